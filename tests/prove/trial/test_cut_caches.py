"""A cache is measured as training meets it: full where its epochs come to their end, empty where a `take` cuts each of them."""

from __future__ import annotations

from itertools import chain, cycle

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.host.calibration.constant import Constant
from advisor.model.calls import Site
from advisor.model.edits import BuildOnce, InsertAfter, Remove, SetArgument
from advisor.model.finding import Safety
from advisor.prove.trial import ab_side, trial_runner
from advisor.prove.trial.ab_side import CannotMeasure, Plan, Side
from advisor.prove.trial.cache_room import caches_filled
from advisor.prove.trial.trial_runner import TrialRunner

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def tf():
    import tensorflow

    return tensorflow


@pytest.mark.parametrize(
    ("cut", "is_filled"),
    [
        (lambda ds: ds.take(5), False),
        (lambda ds: ds.batch(2).take(3), False),
        (lambda ds: ds.take_while(lambda x: x < 5), False),
        (lambda ds: ds.take(10), True),
        (lambda ds: ds.take(99), True),
        (lambda ds: ds.take(-1), True),
        (lambda ds: ds.repeat().take(40), True),
        (lambda ds: ds.batch(2), True),
    ],
)
def test_a_cache_that_a_take_cuts_short_is_not_filled(recorded, tf, cut, is_filled):
    dataset = cut(tf.data.Dataset.range(10).map(lambda x: x + 1).cache())
    _, work = recorded.replaying(dataset)
    assert len(caches_filled(work)) == is_filled


def test_a_cache_behind_the_take_is_filled(recorded, tf):
    dataset = tf.data.Dataset.range(10).take(5).cache().batch(2)
    _, work = recorded.replaying(dataset)
    assert len(caches_filled(work)) == 1


def test_the_work_before_a_cut_cache_goes_on_in_every_epoch(recorded, tf):
    """As in the training: the elements are made again, however often it has been read."""
    runs = tf.Variable(0, dtype=tf.int64)

    def count(x):
        runs.assign_add(1)
        return x

    cut = tf.data.Dataset.range(10).map(count).cache().take(5)
    _, work = recorded.replaying(cut)
    side = Side("as it is", cut, caches_filled(work), Plan(warmup_s=0.2, turn_s=0.1))
    side.prepare()
    before = int(runs)
    turn = side.turn()
    assert int(runs) - before >= turn.elements


def test_a_cache_that_nobody_could_size_stops_before_memory_runs_out(recorded, tf, monkeypatch):
    """4 of 5 bytes that are free at the beginning may be taken, no more."""

    free = iter([10 << 30, *range(9 << 30, 0, -(1 << 30))])
    monkeypatch.setattr(ab_side, "memory_bytes", lambda: (16 << 30, next(free)))
    endless = tf.data.Dataset.range(10_000).filter(lambda x: x >= 0).cache()
    _, work = recorded.replaying(endless)
    side = Side("with the fix", endless, caches_filled(work), Plan())
    with pytest.raises(CannotMeasure, match="does not fit: after 576 elements"):
        side.prepare()


@pytest.mark.long
def test_a_cache_of_the_script_that_would_not_fit_is_not_filled(recorded, tf, tmp_path):
    """A terabyte: what it takes is known from some elements, and no time goes into filling it."""

    def slow(x):  # on a fast machine, too, little is stored meanwhile
        return tf.sort(tf.random.stateless_uniform((512, 512), tf.stack([x, x])))

    dataset = tf.data.Dataset.range(1_000_000).map(slow).cache()
    bench = TrialRunner(recorded.recorder, call_id_of(dataset), tmp_path, lambda phase, done, total: None)
    trial = bench.try_fix((), (Remove(call_id_of(dataset)),), Safety.EXACT, None, budget_s=1.0)
    assert trial.speedup is not None, trial.note
    assert trial.memory_before_bytes < 4 << 30


def test_where_memory_runs_out_the_first_epoch_begins_anew(recorded, tf, monkeypatch):

    free = chain([10 << 30], cycle([1 << 30, 9 << 30]))
    monkeypatch.setattr(ab_side, "memory_bytes", lambda: (16 << 30, next(free)))
    monkeypatch.setattr(ab_side, "LOOK_S", Constant(0.0, "s"))
    dataset = tf.data.Dataset.range(10_000).cache()
    side = Side("as it is", dataset, [], Plan(warmup_s=0.1, turn_s=0.1), is_fill_needed=False, fits=False)
    side.prepare()
    assert side._iterator is None or side._epoch_count < int(dataset.cardinality()) / 10
    monkeypatch.setattr(ab_side, "memory_bytes", lambda: (16 << 30, 1 << 30))
    with pytest.raises(CannotMeasure, match="takes more memory than there is"):
        side.turn()


@pytest.mark.long
def test_a_cache_of_the_script_that_never_fills_is_measured_as_it_is(recorded, tf):
    """It is what training has of it; one that a fix adds must be full, or the fix is not tried."""
    slow = tf.data.Dataset.range(10_000).map(lambda x: tf.reduce_sum(tf.random.normal((400, 400)))).cache()
    _, work = recorded.replaying(slow)
    plan = Plan(fill_s=0.3, warmup_s=0.2, turn_s=0.2)
    with pytest.raises(CannotMeasure, match="was not full after 0 s"):
        Side("with the fix", slow, caches_filled(work), plan).prepare()
    side = Side("as it is", slow, caches_filled(work), plan, is_fill_needed=False)
    side.prepare()
    assert side.turn().elements > 0


@pytest.fixture
def timed_caches(monkeypatch):
    """Filled with the number of caches on each side, before anything is timed."""
    numbers: list[int] = []

    def measure(before, after, *_):
        numbers.extend(len(side._caches) for side in (before, after))
        raise CannotMeasure("seen")

    monkeypatch.setattr(trial_runner, "measure", measure)
    monkeypatch.setattr(trial_runner, "Plan", lambda **_: Plan(warmup_s=0.1, turn_s=0.1))
    return numbers


def tried(recorded, dataset, edits, lost, tmp_path):
    bench = TrialRunner(recorded.recorder, call_id_of(dataset), tmp_path, lambda *_: None, lost=lost)
    return bench.try_fix((), edits, Safety.EXACT, None, budget_s=30.0)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_cache_that_every_epoch_loses_is_left_out_of_what_is_timed(is_lost, recorded, tf, tmp_path, timed_caches):
    """The script makes the dataset again in every epoch, so that the work before its cache never ends."""
    dataset = tf.data.Dataset.range(10).map(lambda x: x + 1).cache().batch(2)
    mapped, cached = recorded.call("map"), recorded.call("cache")
    lost = {mapped.id, cached.id} if is_lost else set()
    edits = (SetArgument(mapped.id, "num_parallel_calls", 2), InsertAfter(mapped.id, "cache"))
    trial = tried(recorded, dataset, edits, lost, tmp_path)
    assert trial.safety_seen is Safety.EXACT, trial.note
    assert timed_caches == ([0, 0] if is_lost else [1, 2])


def test_a_dataset_that_is_made_once_keeps_its_caches(recorded, tf, tmp_path, timed_caches):
    dataset = tf.data.Dataset.range(10).map(lambda x: x + 1).batch(2)
    mapped, last = recorded.call("map"), recorded.call("batch")
    edits = (BuildOnce(last.id, Site("train.py", 1, 1, 1, 5)), InsertAfter(mapped.id, "cache"))
    trial = tried(recorded, dataset, edits, {mapped.id, last.id}, tmp_path)
    assert trial.safety_seen is Safety.EXACT, trial.note
    assert timed_caches == [0, 1]
