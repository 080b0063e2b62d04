"""Adds the costs of this machine to a run that was captured on it.

In: a run folder whose script has ended or is held.  Out: its `host.json` and `recording.json` with a `Calibration`, measured once
per machine and then read from the user's cache.

The child that captures a run finds an existing calibration itself (`describe_host`). The first run on a machine has none: the
costs are measured after the window, in another process, stored, and added to the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from advisor.capture.cost_measurement import cores_of_others
from advisor.capture.machine_probe import measure_calibration
from advisor.capture.request import Progress
from advisor.capture.window.usage import Snapshot
from advisor.host.calibration.stored import busy_calibration, can_store, load_calibration, store_calibration, today
from advisor.host.calibration.window import BUSY_CORES, CALIBRATION_LEFT_S, CALIBRATION_TIMEOUT_S
from advisor.model.calibration import Calibration
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host, Recording
from advisor.model.run_folder import RECORDING_NAME, write_whole

_HOST_NAME = "host.json"
_LOOK_S = 0.3
"""Time to see whether other processes use the cores, before TensorFlow is imported for nothing."""


def calibrate_run(folder: Path, deadline: float | None, on_progress: Callable[[Progress], None]) -> None:
    """Add a calibration to a run without one, if the machine is calibrated or there is time to measure it.

    If anything fails, the run stays as it is, and predictions use the built-in costs.

    Args:
        folder: The run folder.
        deadline: Time of `time.monotonic` before which everything must end; None for no limit.
        on_progress: Called before a measurement.
    """
    with suppress(OSError, AdvisorError):
        _calibrate_run(folder, deadline, on_progress)


def _calibrate_run(folder: Path, deadline: float | None, on_progress: Callable[[Progress], None]) -> None:
    host = decode((folder / _HOST_NAME).read_bytes(), Host)
    if host.calibration is not None or not host.tensorflow_version:
        return
    recording = decode((folder / RECORDING_NAME).read_bytes(), Recording)
    calibration = load_calibration(host)
    if calibration is None:
        is_late = deadline is not None and deadline - time.monotonic() < CALIBRATION_LEFT_S.value
        if is_late or recording.window is None or not can_store(host):
            return
        on_progress(Progress("calibrating"))
        calibration = measure_and_store(host)
        if calibration.is_busy:
            return
    host = replace(host, calibration=calibration)
    write_whole(folder / _HOST_NAME, encode(host))
    write_whole(folder / RECORDING_NAME, encode(replace(recording, host=host)))


def measure_and_store(host: Host) -> Calibration:
    """Measure the costs of this machine and keep them in the user's cache.

    A failure is kept too, so that it is not repeated, unless other processes were the reason.

    Args:
        host: This machine, with its version of TensorFlow.
    """
    start = Snapshot.take()
    time.sleep(_LOOK_S)
    busy = cores_of_others(start)
    if busy > BUSY_CORES.value:
        return busy_calibration(busy)
    try:
        calibration = measure_calibration(CALIBRATION_TIMEOUT_S.value)
    except AdvisorError as error:
        calibration = Calibration(measured_on=today(), failure=str(error))
    if not calibration.is_busy:
        store_calibration(host, calibration)
    return calibration
