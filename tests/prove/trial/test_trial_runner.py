"""What would not fit in memory is not tried: not by its prediction, and not by what its own elements show."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.host.machine import memory_bytes
from advisor.model.edits import InsertAfter, Remove, SetArgument
from advisor.model.finding import Safety
from advisor.prove.trial import cache_room, trial_runner
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.trial_result import FASTER, REFUSED
from advisor.prove.trial.trial_runner import TrialRunner


@pytest.fixture
def bench(tmp_path):
    return TrialRunner(Recorder(SiteFinder(), lambda text: None), "call", tmp_path, lambda phase, done, total: None)


def test_a_fix_that_is_predicted_not_to_fit_is_refused_before_anything_is_done(bench):
    fix = (InsertAfter("call", "cache"),)
    needed = int(MEMORY_SHARE.value * memory_bytes()[1] * 1.5) + (1 << 20)
    trial = bench.try_fix((), fix, Safety.EXACT, needed, budget_s=1.0)
    assert trial.verdict == REFUSED and trial.is_replayable
    assert trial.note.startswith("Not tried: it would take ") and "of free memory" in trial.note


def test_a_limit_of_the_machine_is_seen_at_once(bench, monkeypatch):
    monkeypatch.setattr(cache_room, "memory_bytes", lambda: (1 << 30, 100 << 20))
    assert bench.try_fix((), (), Safety.EXACT, 81 << 20, budget_s=1.0).note.startswith(
        "Not tried: it would take 81 MiB"
    )


def test_a_new_cache_is_measured_by_its_own_elements(bench, monkeypatch):
    """The prediction may be wrong or missing: elements are looked at before a cache is filled."""
    monkeypatch.setattr(cache_room, "memory_bytes", lambda: (1 << 30, 100 << 20))
    monkeypatch.setattr(
        cache_room, "collect", lambda dataset, bounds: SimpleNamespace(size_bytes=1 << 20, rows=[0] * 32)
    )

    def work(elements: int, filename: str = ""):
        name = SimpleNamespace(numpy=lambda: filename.encode())
        cache = SimpleNamespace(cardinality=lambda: elements, _inputs=lambda: [None], _filename=name)
        return SimpleNamespace(built=[SimpleNamespace(method="cache", id="new", is_inside=False, dataset=cache)])

    assert bench._cache_too_big(work(10)) == ""
    assert bench._cache_too_big(work(-2)) == ""
    assert "Not tried" in bench._cache_too_big(work(10_000))  # 32 KiB each: 344 MiB with what a cache takes beside them
    assert bench._cache_too_big(work(10_000, "on-disk")) == ""


@pytest.mark.tensorflow
def test_the_elements_of_the_same_edits_are_compared_once(recorded, tmp_path, monkeypatch):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(60).map(lambda x: x + 1).batch(2)
    recorded.recorder.is_open = False
    compared, judge = [], Equivalence.judge
    monkeypatch.setattr(Equivalence, "judge", lambda self, edits: compared.append(edits) or judge(self, edits))
    runner = TrialRunner(recorded.recorder, call_id_of(dataset), tmp_path, lambda phase, done, total: None)
    monkeypatch.setattr(TrialRunner, "_measured", lambda self, trial, *others: replace(trial, verdict=FASTER))
    cached = InsertAfter(recorded.call("map").id, "cache")
    last = InsertAfter(recorded.call("batch").id, "prefetch", (("", 2),))
    alone = runner.try_fix((), (cached,), Safety.EXACT, None, budget_s=60.0)
    both = runner.try_fix((cached,), (last,), Safety.EXACT, None, budget_s=60.0)
    assert (alone.verdict, both.verdict, both.safety_seen) == (FASTER, FASTER, Safety.EXACT)
    assert alone.original_s > 0 == both.original_s  # the original is read once
    assert len(compared) == 2
    assert runner.try_fix((), (last, cached), Safety.EXACT, None, budget_s=60.0) == both
    assert len(compared) == 2
    runner.try_fix((), (last,), Safety.EXACT, None, budget_s=60.0)
    assert len(compared) == 3


@pytest.mark.tensorflow
@pytest.mark.timed
def test_what_fills_a_cache_is_timed_in_the_first_pass(recorded, tmp_path):
    """Once the cache is full, its cost is no longer seen."""
    import tensorflow as tf

    def slow(x):
        return tf.numpy_function(lambda number: time.sleep(0.002) or number, [x], tf.int64)

    dataset = tf.data.Dataset.range(60).map(slow).cache().map(lambda x: x + 1).batch(2)
    recorded.recorder.is_open = False
    runner = TrialRunner(recorded.recorder, call_id_of(dataset), tmp_path, lambda phase, done, total: None)
    parallel = SetArgument(recorded.call("map", 0).id, "num_parallel_calls", 4)
    moved = (Remove(recorded.call("cache").id), InsertAfter(recorded.call("batch").id, "cache"))
    first = runner.try_fix(moved, (parallel,), Safety.EXACT, None, budget_s=60.0, is_first_pass=True)
    later = runner.try_fix(moved, (parallel,), Safety.EXACT, None, budget_s=20.0)
    assert first.verdict == FASTER and first.safety_seen is Safety.EXACT and first.speedup.low > 1.5
    assert later.rate_before > 10 * first.rate_before


def test_the_second_side_must_fit_beside_the_first(monkeypatch):
    """Its buffers are as large as those of the first, and what the fix adds comes on top."""
    monkeypatch.setattr(trial_runner, "memory_bytes", lambda: (2 << 30, 500 << 20))
    trial_runner._check_room([], 0, 1 << 30)  # nothing is known yet: the prediction was looked at before
    trial_runner._check_room([None], 0, 1 << 30)
    trial_runner._check_room([1000 << 20], 900 << 20, 300 << 20)
    with pytest.raises(trial_runner.CannotMeasure, match="would take about 450 MiB"):
        trial_runner._check_room([1000 << 20], 900 << 20, 350 << 20)
