"""The first run on a machine measures its costs once; later ones find them. Nothing is measured where it may not be."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.host.calibration.stored import BUILT_IN, busy_calibration, load_calibration, store_calibration
from advisor.host.calibration.window import CALIBRATION_LEFT_S
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host, Recording
from advisor.workflows import calibrate
from advisor.workflows.calibrate import calibrate_run

DATA = Path(__file__).parents[1] / "data" / "keras_fit"
MEASURED = replace(BUILT_IN, handoff_ns=9_000.0, measured_on="2026-11-21")


class Machine:
    """What a measurement gives, and how often it was made."""

    def __init__(self):
        self.result = MEASURED
        self.measured = 0

    def measure(self, timeout_s):
        self.measured += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Machine()
    monkeypatch.setattr(calibrate, "measure_calibration", made.measure)
    monkeypatch.setattr(calibrate, "cores_of_others", lambda start: 0.0)
    monkeypatch.setattr(calibrate, "_LOOK_S", 0.0)
    return made


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(DATA / "recording.json", folder)
    host = recording_of(folder).host
    assert host.tensorflow_version and host.calibration is None
    (folder / "host.json").write_bytes(encode(host))
    return folder


def host_of(folder):
    return decode((folder / "host.json").read_bytes(), Host)


def recording_of(folder):
    return decode((folder / "recording.json").read_bytes(), Recording)


def calibrated(folder, deadline=None):
    phases = []
    calibrate_run(folder, deadline, lambda progress: phases.append(progress.phase))
    assert host_of(folder).calibration == recording_of(folder).host.calibration
    return host_of(folder).calibration, phases


def test_first_run_measures_and_the_next_one_reads(machine, run):
    before = recording_of(run)
    assert calibrated(run) == (MEASURED, ["calibrating"])
    assert replace(recording_of(run), host=before.host) == before, "nothing else has changed"
    (run / "host.json").write_bytes(encode(replace(host_of(run), calibration=None)))
    assert calibrated(run) == (MEASURED, [])
    assert machine.measured == 1


def test_values_of_the_run_stay(machine, run):
    older = replace(MEASURED, handoff_ns=1.0)
    store_calibration(host_of(run), MEASURED)
    for name, value in (("host.json", host_of(run)), ("recording.json", recording_of(run).host)):
        changed = replace(value, calibration=older)
        whole = changed if name == "host.json" else replace(recording_of(run), host=changed)
        (run / name).write_bytes(encode(whole))
    assert calibrated(run) == (older, [])


def test_too_little_time_is_left(machine, run):
    assert calibrated(run, time.monotonic() + CALIBRATION_LEFT_S.value - 1) == (None, [])
    assert calibrated(run, time.monotonic() + CALIBRATION_LEFT_S.value + 60)[0] == MEASURED


def test_run_without_a_window_is_not_worth_it(machine, run):
    (run / "recording.json").write_bytes(encode(replace(recording_of(run), window=None)))
    assert calibrated(run) == (None, [])


def test_failure_is_kept_and_not_repeated(machine, run):
    machine.result = AdvisorError("A process that imports TensorFlow was killed by signal 11.")
    calibration, _ = calibrated(run)
    assert calibration.failure == str(machine.result) and calibration.handoff_ns is None
    assert load_calibration(host_of(run)) == calibration


def test_busy_machine_is_tried_again(machine, run, monkeypatch):
    machine.result = busy_calibration(1.5)
    assert calibrated(run)[0] is None
    monkeypatch.setattr(calibrate, "cores_of_others", lambda start: 1.5)
    assert calibrated(run)[0] is None
    assert machine.measured == 1, "TensorFlow is not imported in vain"
    assert load_calibration(host_of(run)) is None


def test_cache_that_cannot_be_written_is_not_measured_for(machine, run, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert calibrated(run) == (None, [])
    assert machine.measured == 0


def test_folder_without_a_recording_is_left_alone(machine, tmp_path):
    calibrate_run(tmp_path, None, lambda progress: None)
    assert list(tmp_path.iterdir()) == []
