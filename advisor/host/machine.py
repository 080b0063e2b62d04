"""The machine as this process may use it: cores by affinity and cgroup quota, memory by cgroup limit, accelerators.

In: /proc and the cgroup files (absent ones are borne).  Out: a `Host`.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import shutil
import socket
import sys
from pathlib import Path

from advisor.model.recording import Accelerator, Host

_CGROUP = Path("/sys/fs/cgroup")
_BFLOAT16 = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Linux's names of these processor features; the last is Arm's."""
_NO_LIMIT = 1 << 60
"""cgroup v1 writes a number near 2**63 where there is no limit."""


def describe_host() -> Host:
    """Facts of this machine; TensorFlow's version and accelerators only if the script has loaded it."""
    installed = os.cpu_count() or 1
    memory, free = memory_bytes()
    version, accelerators = _tensorflow_facts()
    return Host(
        hostname=socket.gethostname(),
        cores=usable_cores(),
        cores_installed=installed,
        memory_bytes=memory,
        memory_free_bytes=free,
        cpu_model=_cpu_model(),
        has_bfloat16=has_bfloat16(),
        platform=platform.platform(),
        python_version=platform.python_version(),
        tensorflow_version=version,
        accelerators=accelerators,
        disk_free_bytes=_disk_free(),
    )


def _disk_free() -> int | None:
    """Free bytes on the file system of the working directory."""
    try:
        return shutil.disk_usage(Path.cwd()).free
    except OSError:
        return None


def usable_cores(cgroup: Path = _CGROUP) -> float:
    """The smaller of CPU affinity and cgroup quota; a quota may be a fraction."""
    try:
        cores = float(len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS and Windows
        cores = float(os.cpu_count() or 1)
    return min(cores, _quota(cgroup))


def memory_bytes(cgroup: Path = _CGROUP) -> tuple[int, int]:
    """(usable, free): the smallest of the machine's, the cgroup's and the process' own limits (`ulimit -v`, `ulimit -d`)."""
    total, free = _limited(*_machine_memory())
    limit, used = _NO_LIMIT, 0
    for folder in (*_own_groups(cgroup, ""), *_own_groups(cgroup / "memory", "memory")):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            found = _number(folder / limit_name)
            if found is not None and found < limit:
                limit, used = found, (_number(folder / used_name) or 0) - _reclaimable(folder)
    if limit >= _NO_LIMIT:
        return total, free
    return min(total, limit), max(0, min(free, limit - used))


def _reclaimable(group: Path) -> int:
    """Bytes of a cgroup's use that are cached files nobody has used lately: the kernel gives them up before it says no."""
    with contextlib.suppress(OSError, ValueError):
        facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
    return 0


def _limited(total: int, free: int) -> tuple[int, int]:
    """(total, free) under the process' own limits, which tell of address space and data, not of what is resident."""
    try:
        import resource
    except ImportError:  # Windows
        return total, free
    status: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(("VmSize:", "VmData:")):
                name, size, _ = line.split()
                status[name] = int(size) * 1024
    for kind, used in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            total, free = min(total, limit), max(0, min(free, limit - status.get(used, 0)))
    return total, free


def _quota(cgroup: Path) -> float:
    smallest = math.inf
    for folder in _own_groups(cgroup, ""):  # version 2: "max 100000" or "150000 100000"
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            smallest = min(smallest, math.inf if quota == "max" else int(quota) / int(period))
    for controller in ("cpu", "cpu,cpuacct"):  # version 1
        for folder in _own_groups(cgroup / controller, "cpu"):
            quota_us, period_us = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
            if quota_us and period_us and quota_us > 0:
                smallest = min(smallest, quota_us / period_us)
    return smallest


def _own_groups(root: Path, controller: str) -> list[Path]:
    """The process' own group and its parents up to `root`: the tightest limit counts."""
    relative = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if (not controller and not controllers) or controller in controllers.split(","):
                relative = path.strip("/")
    groups = [root]
    for part in Path(relative).parts:
        if part == "..":
            return [root]
        groups.append(groups[-1] / part)
    return [group for group in groups if group.is_dir()]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _machine_memory() -> tuple[int, int]:
    facts: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            facts[name] = int(rest.split()[0]) * 1024
    if "MemTotal" in facts:
        return facts["MemTotal"], facts.get("MemAvailable", facts.get("MemFree", 0))
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0, 0


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Whether the first core's flags name instructions that multiply bfloat16; None: there are no flags to read."""
    with contextlib.suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, flags = line.partition(":")
            if name.strip() in ("flags", "Features"):  # x86 and Arm
                return not _BFLOAT16.isdisjoint(flags.split())
    return None


def _tensorflow_facts() -> tuple[str, tuple[Accelerator, ...]]:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "config"):
        return "", ()
    found = []
    for kind in ("GPU", "TPU"):
        with contextlib.suppress(Exception):  # a broken driver is not our business
            for device in tensorflow.config.list_physical_devices(kind):
                details = tensorflow.config.experimental.get_device_details(device) if kind == "GPU" else {}
                found.append(Accelerator(kind, str(details.get("device_name", device.name))))
    return str(getattr(tensorflow, "__version__", "")), tuple(found)
