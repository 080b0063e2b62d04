"""Vectorised functions as the trial sees them: equal, rounded otherwise, or wrong; and what is not even measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Edit, MoveAfter, Vectorize
from advisor.model.finding import Safety
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.rounding import largest_deviation
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER
from advisor.prove.trial.trial_runner import TrialRunner
from advisor.replay import vectorized_calls
from tests.recorded import Recorded

Judge = Callable[..., Judgement]


@pytest.fixture
def judge(recorded: Recorded, tmp_path: Path) -> Judge:
    def judge(dataset: Any, *edits: Edit) -> Judgement:
        recorded.recorder.is_open = False
        return Equivalence(recorded.recorder, str(call_id_of(dataset)), Bounds(400, 5.0), tmp_path).judge(edits)

    return judge


def moved(recorded: Recorded) -> MoveAfter:
    return MoveAfter(recorded.call("map").id, recorded.call("batch").id)


def vectorized(recorded: Recorded) -> tuple[Edit, ...]:
    return moved(recorded), Vectorize(recorded.call("map").id)


def numbers(count: int) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(tf.random.stateless_normal([count, 6], [1, 2]))


@pytest.mark.tensorflow
def test_a_mean_of_each_row_is_exact_vectorised_and_another_one_on_the_batch_as_it_is(
    recorded: Recorded, judge: Judge
) -> None:
    import tensorflow as tf

    dataset = numbers(70).map(lambda row: row - tf.reduce_mean(row)).shuffle(20).batch(16)
    seen = judge(dataset, *vectorized(recorded))
    assert (seen.seen, seen.undecided) == (Safety.EXACT, "")
    assert judge(dataset, moved(recorded)).seen is Safety.CHANGES


@pytest.mark.long
@pytest.mark.tensorflow
def test_results_that_differ_in_their_last_digits_are_numerics_and_the_deviation_is_told(
    recorded: Recorded, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a converter that adds in another order would do: planted, because the installed one gives the same bits."""
    import tensorflow as tf

    exact = vectorized_calls.batch_function

    def rounded(function: Any, is_plain: bool, tensorflow: Any) -> Any:
        return lambda *rows: exact(function, is_plain, tensorflow)(*rows) * tf.constant(1 + 2**-22, tf.float32)

    dataset = numbers(70).map(lambda row: row * tf.reduce_sum(row)).batch(16)
    monkeypatch.setattr(vectorized_calls, "batch_function", rounded)
    seen = judge(dataset, *vectorized(recorded))
    assert seen.seen is Safety.NUMERICS
    assert seen.note.startswith("Component 1 differs by up to ")
    assert seen.note.endswith("units in the last place (float32).")
    assert seen.holds(Safety.NUMERICS) and not seen.holds(Safety.EXACT)

    def wrong(function: Any, is_plain: bool, tensorflow: Any) -> Any:
        return lambda *rows: exact(function, is_plain, tensorflow)(*rows) * 1.01

    monkeypatch.setattr(vectorized_calls, "batch_function", wrong)
    assert judge(dataset, *vectorized(recorded)).seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_elements_of_several_lengths_cannot_be_batched_before_the_map(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(12).map(lambda i: tf.range(i % 3 + 1)).map(lambda row: tf.reduce_sum(row)).batch(4)
    call = recorded.call("map")
    seen = judge(dataset, MoveAfter(call.id, recorded.call("batch").id), Vectorize(call.id))
    assert seen.seen is Safety.CHANGES
    assert "fails where the original does not" in seen.note


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_trial_measures_what_can_be_vectorised_and_refuses_the_rest_at_once(
    recorded: Recorded, tmp_path: Path
) -> None:
    import tensorflow as tf

    dataset = numbers(64).map(lambda row: tf.nn.relu(row) - tf.reduce_max(row)).repeat(8).batch(32)
    edits = vectorized(recorded)
    recorded.recorder.is_open = False
    bench = TrialRunner(recorded.recorder, str(call_id_of(dataset)), tmp_path, lambda phase, done, total: None)
    trial = bench.try_fix((), edits, Safety.EXACT, 0, budget_s=20.0)
    assert trial.verdict in (FASTER, SAME, SLOWER)
    assert trial.safety_seen is Safety.EXACT

    recorded.recorder.is_open = True
    dataset = numbers(64).map(lambda row: tf.strings.as_string(row)).batch(32)
    edits = vectorized(recorded)
    recorded.recorder.is_open = False
    bench = TrialRunner(recorded.recorder, str(call_id_of(dataset)), tmp_path, lambda phase, done, total: None)
    trial = bench.try_fix((), edits, Safety.EXACT, 0, budget_s=20.0)
    assert (trial.verdict, trial.is_replayable) == (REFUSED, True)  # so the whole script is not run for it
    assert "its function has no vectorised form" in trial.note


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_trial_refuses_other_rounding_unless_it_is_allowed(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    exact = vectorized_calls.batch_function
    monkeypatch.setattr(
        vectorized_calls,
        "batch_function",
        lambda function, is_plain, tensorflow: (
            lambda *rows: exact(function, is_plain, tensorflow)(*rows) * tf.constant(1 + 2**-22)
        ),
    )
    dataset = numbers(64).map(lambda row: row * tf.reduce_sum(row)).batch(32)
    edits = vectorized(recorded)
    recorded.recorder.is_open = False
    bench = TrialRunner(recorded.recorder, str(call_id_of(dataset)), tmp_path, lambda phase, done, total: None)
    trial = bench.try_fix((), edits, Safety.EXACT, 0, budget_s=20.0)
    assert (trial.verdict, trial.safety_seen) == (REFUSED, Safety.NUMERICS)
    assert trial.note.endswith("--allow numerics tries it.")
    assert bench.try_fix((), edits, Safety.NUMERICS, 0, budget_s=20.0).verdict not in (REFUSED, BROKEN)


@pytest.mark.tensorflow
def test_the_graph_of_a_vectorised_function_is_known_only_with_its_edits(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = numbers(8).map(lambda row: row - tf.reduce_mean(row)).batch(4)
    recorded.recorder.is_open = False
    consumer = str(call_id_of(dataset))
    assert recorded_graph(recorded.recorder, consumer).wrapped == {}
    assert list(recorded_graph(recorded.recorder, consumer, edits=vectorized(recorded)).wrapped) == [
        recorded.call("map").id
    ]


# -- last digits


def deviation(one: Any, two: Any) -> int | None:
    largest = largest_deviation([(one, two)])
    return None if largest is None else largest.ulp


@pytest.mark.tensorflow
def test_deviations_are_counted_in_representable_numbers() -> None:
    ones = np.ones(3, np.float32)
    assert deviation(ones, ones) == 0
    assert deviation(ones, np.nextafter(ones, 2)) == 1
    assert deviation(ones, np.nextafter(np.nextafter(ones, 0), 0)) == 2
    tiny = np.float32(1e-45)
    assert deviation(np.float32(tiny), np.float32(-tiny)) == 2
    assert deviation(np.float64(5e-324), np.float64(-5e-324)) == 2
    assert deviation(np.float64(0.0), np.float64(-0.0)) == 0  # of the same value
    assert deviation(np.float32("nan"), np.float32("nan")) == 0
    assert deviation(ones, ones * np.float32(1.0001)) == 839
    assert deviation((ones, np.int32(4)), (np.nextafter(ones, 2), np.int32(4))) == 1


@pytest.mark.tensorflow
def test_whatever_differs_otherwise_is_no_rounding() -> None:
    ones = np.ones(3, np.float32)
    assert deviation(ones, ones * np.float32(1.01)) is None
    assert deviation(ones, ones.astype(np.float64)) is None
    assert deviation(ones, np.ones(4, np.float32)) is None
    assert deviation(np.float32("nan"), np.float32(1)) is None
    assert deviation(np.float32("inf"), np.float32("-inf")) is None
    assert deviation(np.float64(np.finfo(np.float64).max), np.float64(np.finfo(np.float64).min)) is None  # beyond int64
    assert deviation(np.int32(4), np.int32(5)) is None
    assert deviation(np.array(b"a", object), np.array(b"b", object)) is None
    assert deviation(ones, None) is None
    assert deviation(np.float16(1), np.float16(1.05)) is None
