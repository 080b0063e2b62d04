"""`advisor doctor`: what this machine and its installation offer, as a bug report needs it.

In: nothing.  Out: `Checkup`. TensorFlow is imported only in child processes; whatever is broken becomes a line.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from advisor.capture.machine_probe import probe_tensorflow
from advisor.capture.request import Progress
from advisor.host.calibration.stored import BUILT_IN, cache_folder, calibration_file, load_calibration
from advisor.host.machine import cgroup_limits, describe_host
from advisor.model.calibration import Calibration
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host
from advisor.model.run_folder import runs_folder
from advisor.model.tensorflow_facts import TensorFlowFacts
from advisor.model.units import format_bytes, format_count, format_ns
from advisor.model.version import __version__
from advisor.sandbox.launch_steps import try_view
from advisor.sandbox.namespace import COPIED, REDIRECTED, View
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.calibrate import measure_and_store

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "firefox")
PACKAGES = (
    "keras", "tf_keras", "tensorflow-datasets", "tensorboard", "grpcio", "fsspec", "universal-pathlib", "aiohttp", "gcsfs",
    "s3fs",
)  # fmt: skip
"""Distributions that one of the commands uses if they are installed."""
COST_NAMES = {
    "next_ns": "`next` with a prefetch",
    "next_here_ns": "`next` without other threads",
    "component_ns": "... per further component",
    "handoff_ns": "element to a thread and back",
    "copied_bytes_per_ns": "copying into a batch",
    "small_read_ns": "small read of a file",
    "op_start_ns": "starting an op",
    "wakeup_ns": "waking a thread",
    "page_cache_bytes_per_ns": "reading from the page cache",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line."""

    section: str
    name: str
    value: str
    is_ok: bool = True
    """False: something that the advisor needs does not work."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All lines, and the costs in numbers."""

    checks: tuple[Check, ...]
    calibration: Calibration | None
    """None if the machine could not be calibrated because TensorFlow cannot be imported."""


def check_up(is_calibrated_again: bool, on_progress: Callable[[Progress], None]) -> Checkup:
    """Check this machine and installation, and calibrate the machine if that was never done.

    Args:
        is_calibrated_again: Measure the costs although they are known.
        on_progress: Called before each part that takes seconds.
    """
    on_progress(Progress("starting"))
    facts: TensorFlowFacts | AdvisorError
    try:
        facts = probe_tensorflow()
    except AdvisorError as error:
        facts = error
    checks = [*_software(facts), *_machine(describe_host()), *_tools()]
    if isinstance(facts, AdvisorError):
        return Checkup((*checks, Check("calibration", "costs", "unknown without TensorFlow")), None)
    calibration = None if is_calibrated_again else load_calibration(facts.host)
    problem = ""
    if calibration is None:
        on_progress(Progress("calibrating"))
        try:
            calibration = measure_and_store(facts.host)
        except AdvisorError as error:
            problem = str(error)
    return Checkup((*checks, *_calibration(facts.host, calibration, problem)), calibration)


def _software(facts: TensorFlowFacts | AdvisorError) -> Iterator[Check]:
    yield Check("software", "advisor", __version__)
    yield Check("software", "Python", f"{platform.python_version()} ({sys.executable})")
    if isinstance(facts, AdvisorError):
        yield Check("software", "TensorFlow", f"cannot be imported: {facts}", is_ok=False)
        return
    yield Check("software", "TensorFlow", f"{facts.host.tensorflow_version} ({facts.path})")
    problem = facts.profiler_problem
    yield Check("software", "its profiler", f"fails: {problem}" if problem else "works", is_ok=not problem)
    devices = ", ".join(f"{device.kind} {device.name}" for device in facts.host.accelerators)
    yield Check("software", "accelerators", devices or "none")
    if facts.is_built_with_cuda:
        is_missing = not facts.cupti and bool(facts.host.accelerators)
        yield Check(
            "software", "libcupti", facts.cupti or "not found: GPU kernels are not profiled", is_ok=not is_missing
        )
    else:
        yield Check("software", "libcupti", "not needed: this TensorFlow is built without CUDA")


def _machine(host: Host) -> Iterator[Check]:
    yield Check("machine", "system", host.platform)
    yield Check("machine", "processor", host.cpu_model or "unknown")
    yield Check("machine", "cores", f"{host.cores:g} usable of {host.cores_installed} (CPU affinity, cgroup)")
    limit = f"{format_bytes(host.memory_bytes)} usable, {format_bytes(host.memory_free_bytes)} free (cgroup, ulimit)"
    yield Check("machine", "memory", limit)
    yield _cgroup_limits(*cgroup_limits())
    yield _private_view()


def _cgroup_limits(quota: float | None, memory: int | None) -> Check:
    """The limits themselves: what is usable may also be limited by the machine, the affinity or `ulimit`."""
    cpu = "none" if quota is None else f"{format_count(quota)} core{'' if quota == 1 else 's'}"
    return Check("machine", "cgroup limits", f"CPU {cpu}, memory {'none' if memory is None else format_bytes(memory)}")


def _private_view() -> Check:
    """Whether runs of a script can be kept from writing to the real files."""
    if sys.platform != "linux":
        return Check("machine", "private view", "needs Linux: runs use a copy of the project", is_ok=False)
    with temporary_folder("doctor") as folder:
        cwd = os.path.realpath(".")
        outcome = try_view(View(os.path.realpath(folder), cwd, near=(cwd,), projects=(cwd,)))
    if outcome.kind == REDIRECTED:
        return Check(
            "machine", "private view", f"refused ({outcome.reason}): runs use a copy of the project", is_ok=False
        )
    if outcome.kind == COPIED:
        return Check(
            "machine", "private view", f"no overlay ({outcome.reason}): runs use a copy of the project", is_ok=False
        )
    return Check("machine", "private view", "works (mount namespace, overlayfs)")


def _tools() -> Iterator[Check]:
    browser = os.environ.get("ADVISOR_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    yield Check("tools", "browser", browser or "none found (only tests of report.html need one)")
    tools = []
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            tools.append(f"{name} {importlib.metadata.version(name)}")
    yield Check("tools", "optional packages", ", ".join(tools) or "none")
    for name, folder in (("saved runs", runs_folder()), ("cache", cache_folder())):
        is_writable = _is_writable(folder)
        yield Check("tools", name, f"{folder}{'' if is_writable else ' (not writable)'}", is_ok=is_writable)


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder that may not exist yet."""
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return existing.is_dir() and os.access(existing, os.W_OK)


def _calibration(host: Host, calibration: Calibration | None, problem: str) -> Iterator[Check]:
    if calibration is None:
        yield Check("calibration", "costs", problem, is_ok=False)
        return
    if calibration.failure:
        failure = f"not measured: {calibration.failure} Try again with --calibrate."
        yield Check("calibration", "costs", failure, is_ok=False)
        return
    yield Check("calibration", "measured on", calibration.measured_on)
    yield Check("calibration", "file", str(calibration_file(host)))
    for field in fields(Calibration):
        if field.name in COST_NAMES:
            yield Check("calibration", COST_NAMES[field.name], _cost(field.name, getattr(calibration, field.name)))


def _cost(name: str, value: float | None) -> str:
    def formatted(cost: float) -> str:
        return format_ns(cost) if name.endswith("_ns") and "bytes" not in name else f"{format_bytes(cost * 1e9)}/s"

    usual = getattr(BUILT_IN, name)
    if value is None:
        return f"not measured; {formatted(usual)} is used" if usual is not None else "not measured"
    return formatted(value) + (
        f" (built in: {formatted(usual)})" if usual is not None else " (not used by predictions)"
    )
