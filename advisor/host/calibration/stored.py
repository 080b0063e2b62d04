"""The user's cache of measured costs: one small file per kind of processor, number of cores and version of TensorFlow.

In: a `Host`.  Out: its `Calibration`, or None. Nothing is measured here; `advisor.capture.cost_measurement` does that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from advisor.host.calibration.prediction import (
    COMPONENT_NS,
    COPIED_BYTES_PER_NS,
    HANDOFF_OVERHEAD_NS,
    NEXT_HERE_NS,
    NEXT_NS,
    OP_START_NS,
    PLAUSIBLE_RATIO,
    SMALL_READ_NS,
)
from advisor.model.calibration import Calibration
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host
from advisor.model.run_folder import write_whole

BUILT_IN = Calibration(
    next_ns=NEXT_NS.value,
    next_here_ns=NEXT_HERE_NS.value,
    component_ns=COMPONENT_NS.value,
    handoff_ns=HANDOFF_OVERHEAD_NS.value[1],
    copied_bytes_per_ns=COPIED_BYTES_PER_NS.value,
    small_read_ns=SMALL_READ_NS.value,
    op_start_ns=OP_START_NS.value[0],
)
"""The costs that are assumed where none were measured."""
_METHOD = 3
"""Number of the method of measurement, so that a better method replaces older values."""


@dataclass(frozen=True, slots=True)
class _File:
    """The content of one file."""

    cpu_model: str
    cores: float
    tensorflow_version: str
    calibration: Calibration


def cache_folder() -> Path:
    """Return the folder of the calibrations in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("tfdata-advisor") / "calibration"


def calibration_file(host: Host) -> Path:
    """Return the file for machines like this one, whether it exists or not."""
    key = "\n".join((str(_METHOD), host.cpu_model, f"{host.cores:g}", host.tensorflow_version))
    return cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def load_calibration(host: Host) -> Calibration | None:
    """Return what was measured on this machine; None if there is nothing, or if the file cannot be read."""
    if not host.tensorflow_version:
        return None
    with contextlib.suppress(OSError, AdvisorError):
        file = decode(calibration_file(host).read_bytes(), _File)
        if (file.cpu_model, file.cores, file.tensorflow_version) == _key(host):
            return file.calibration
    return None


def can_store(host: Host) -> bool:
    """Return whether a calibration could be stored; otherwise every run would measure it again."""
    folder = calibration_file(host).parent
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    return False


def store_calibration(host: Host, calibration: Calibration) -> None:
    """Write a calibration atomically.

    Raises:
        AdvisorError: The file cannot be written.
    """
    path = calibration_file(host)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AdvisorError(f"Cannot write to {path.parent}: {error.strerror or error}.") from None
    write_whole(path, encode(_File(*_key(host), calibration)))


def plausible(measured: Calibration) -> Calibration:
    """Return the calibration without costs that cannot be right: not positive, or far from every known machine."""
    dropped: dict[str, Any] = {}
    for field in fields(Calibration):
        value, usual = getattr(measured, field.name), getattr(BUILT_IN, field.name)
        if not isinstance(value, float):
            continue
        is_far = isinstance(usual, float) and not 1 / PLAUSIBLE_RATIO.value <= value / usual <= PLAUSIBLE_RATIO.value
        if is_far or not value > 0 or value == float("inf"):
            dropped[field.name] = None
    return replace(measured, **dropped)


def busy_calibration(cores: float) -> Calibration:
    """Return the result of a measurement that other processes have spoilt.

    Args:
        cores: Number of cores that they used.
    """
    return Calibration(measured_on=today(), failure=f"Other processes used {cores:.1f} cores.", is_busy=True)


def today() -> str:
    """Return the date in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _key(host: Host) -> tuple[str, float, str]:
    return host.cpu_model, host.cores, host.tensorflow_version
