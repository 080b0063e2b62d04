"""The cache of measured costs: one file per kind of machine, and nothing that cannot be right."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from advisor.host.calibration.stored import (
    BUILT_IN,
    calibration_file,
    can_store,
    load_calibration,
    plausible,
    store_calibration,
)
from advisor.model.calibration import Calibration
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host

HOST = Host("a", 4.0, 8, 1 << 34, 1 << 33, cpu_model="EPYC", tensorflow_version="2.21.0")
MEASURED = Calibration(next_ns=40_000.0, handoff_ns=9_000.0, measured_on="2026-11-21")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_nothing_is_known_at_first():
    assert load_calibration(HOST) is None


def test_stored_costs_are_read_back():
    store_calibration(HOST, MEASURED)
    assert load_calibration(HOST) == MEASURED
    assert load_calibration(replace(HOST, hostname="b", memory_free_bytes=1)) == MEASURED
    assert [path.name for path in calibration_file(HOST).parent.iterdir()] == [calibration_file(HOST).name]


@pytest.mark.parametrize(
    "other",
    [replace(HOST, cpu_model="Xeon"), replace(HOST, cores=2.0), replace(HOST, tensorflow_version="2.20.0")],
)
def test_another_machine_has_its_own(other):
    store_calibration(HOST, MEASURED)
    assert load_calibration(other) is None


def test_without_tensorflow_there_is_no_machine_to_look_up():
    unknown = replace(HOST, tensorflow_version="")
    store_calibration(unknown, MEASURED)
    assert load_calibration(unknown) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"cpu_model": 3}', b"\xff"])
def test_damaged_file_is_as_none(content):
    store_calibration(HOST, MEASURED)
    calibration_file(HOST).write_bytes(content)
    assert load_calibration(HOST) is None


def test_costs_that_cannot_be_stored_are_an_error(cache):
    cache.write_text("a file")
    assert not can_store(HOST)
    assert load_calibration(HOST) is None
    with pytest.raises(AdvisorError, match="Cannot write"):
        store_calibration(HOST, MEASURED)


def test_folder_is_made_for_the_first_one():
    assert can_store(HOST)
    assert calibration_file(HOST).parent.is_dir()


def test_only_plausible_costs_are_believed():
    assert BUILT_IN.next_ns is not None
    assert plausible(MEASURED) == MEASURED
    bad = replace(MEASURED, next_ns=BUILT_IN.next_ns * 10, component_ns=-3.0, wakeup_ns=math.inf, handoff_ns=math.nan)
    assert plausible(bad) == Calibration(measured_on=MEASURED.measured_on)
