"""Split functions: the same elements bit for bit, with the numbers that the script draws, or a reason why not."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import InsertAfter, SplitMap, Vectorize
from advisor.model.finding import Safety
from advisor.predict.splits import split_edit
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.trial_result import REFUSED
from advisor.prove.trial.trial_runner import TrialRunner
from advisor.replay.edited import CannotSplit
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import CannotReplay
from advisor.splitting import split_function
from tests.recorded import Recorded
from tests.replay.test_vectorized_calls import rows, values

pytestmark = pytest.mark.tensorflow


def halves(recorded: Recorded, first: str, second: str, *names: str) -> tuple[SplitMap, InsertAfter]:
    """The edits for two lambdas."""
    call_id = recorded.call("map").id
    return SplitMap(call_id, first, second, names), InsertAfter(call_id, "cache")


def test_a_seeded_script_draws_the_same_numbers_over_several_epochs(recorded: Recorded) -> None:
    import tensorflow as tf

    tf.random.set_seed(5)
    try:
        dataset = tf.data.Dataset.from_tensor_slices(rows(9)).map(lambda x: tf.exp(x) + tf.random.normal([3]))
        edits = halves(recorded, "lambda x: tf.exp(x)", "lambda v: v + tf.random.normal([3])", "v")
        edited, work = recorded.replaying(dataset, *edits)
        again = recorded.replay(dataset)
        epochs = [values(again) for _ in range(3)]
        for epoch in epochs:
            assert values(edited) == epoch
    finally:
        tf.random.set_seed(None)  # type: ignore[arg-type]
    calls = {call.id: call for call in edited_calls(recorded.recorder, work)}
    first, second = calls[edits[0].call_id], calls[f"{edits[0].call_id}_rest"]
    assert first.function is not None and second.function is not None
    assert (first.function.random_ops, second.function.random_ops) == ((), ("RandomStandardNormal",))
    cache = next(call for call in calls.values() if call.method == "cache")
    assert (cache.inputs, second.inputs) == ((first.id,), (cache.id,))


def test_a_first_half_that_draws_is_refused_before_anything_is_measured(recorded: Recorded, tmp_path) -> None:
    import tensorflow as tf

    def noisy(x: Any) -> Any:
        return x + tf.random.uniform([3])

    dataset = tf.data.Dataset.from_tensor_slices(rows(40)).map(lambda x: noisy(tf.sin(noisy(x))))
    recorded.recorder.is_open = False
    frozen = halves(recorded, "lambda x: tf.sin(noisy(x))", "lambda v: noisy(v)", "v")
    with pytest.raises(CannotSplit, match="the first half of its function draws random numbers"):
        recorded.replay(dataset, *frozen)
    trial = TrialRunner(recorded.recorder, str(call_id_of(dataset)), tmp_path, lambda *_: None).try_fix(
        (), frozen, Safety.EXACT, 0, budget_s=20.0
    )
    assert (trial.verdict, trial.is_replayable) == (REFUSED, True)  # so the whole script is not run for it


def test_an_unseeded_split_is_exact(recorded: Recorded, tmp_path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(rows(60)).map(lambda x: tf.sin(x) * tf.random.uniform([3]))
    edits = halves(recorded, "lambda x: tf.sin(x)", "lambda v: v * tf.random.uniform([3])", "v")
    recorded.recorder.is_open = False
    judgement = Equivalence(recorded.recorder, str(call_id_of(dataset)), Bounds(400, 5.0), tmp_path).judge(edits)
    assert (str(judgement.seen), judgement.undecided) == ("exact", "")


def noisy(row: Any, label: Any, scale: float, *, is_training: bool = False) -> Any:
    """A function of a script, which is passed in lambdas and partials."""
    row = tf_sin(row) * scale
    if is_training:
        row = row + random_like(row) * scale
    return row, label


def tf_sin(row: Any) -> Any:
    import tensorflow as tf

    return tf.sin(row)


def random_like(row: Any) -> Any:
    import tensorflow as tf

    return tf.random.normal(tf.shape(row))


def lambda_of(dataset: Any, scale: float) -> Any:
    is_training = scale > 0
    return dataset.map(lambda row, label: noisy(row, label, scale, is_training=is_training))


def nested_lambda_of(dataset: Any, scale: float) -> Any:
    def inner(row: Any, label: Any, scale: float) -> Any:
        row = tf_sin(row)
        return row + random_like(row) * scale, label

    return dataset.map(lambda row, label: inner(row, label, scale))


def partial_of(dataset: Any, scale: float) -> Any:
    return dataset.map(functools.partial(noisy, scale=scale, is_training=True))


class Loader:
    """A class of a script."""

    half = 0.5

    def prepare(self, row: Any, label: Any, scale: float = 3.0) -> Any:
        row = tf_sin(row) * self.half
        return row + random_like(row) * scale, label

    def method_of(self, dataset: Any, scale: float) -> Any:
        return dataset.map(self.prepare)

    def lambda_of(self, dataset: Any, scale: float) -> Any:
        return dataset.map(lambda row, label: self.prepare(row, label, scale))

    def partial_of(self, dataset: Any, scale: float) -> Any:
        return dataset.map(functools.partial(self.prepare, scale=scale))


PASSED = (lambda_of, nested_lambda_of, partial_of, Loader().method_of, Loader().lambda_of, Loader().partial_of)


@pytest.mark.parametrize("passed", PASSED)
@pytest.mark.parametrize("seed", [None, 5])
def test_a_function_in_a_lambda_or_partial_is_split(recorded: Recorded, tmp_path, passed: Any, seed: Any) -> None:
    import tensorflow as tf

    tf.random.set_seed(seed)
    try:
        dataset = passed(tf.data.Dataset.from_tensor_slices((rows(60), list(range(60)))), 2.0)
        call = recorded.call("map")
        spec = recorded.call("from_tensor_slices").element_spec
        split = split_function(Path(__file__).read_text(), call, spec, is_script=True)
        edits = split_edit(SplitMap, call, split), InsertAfter(call.id, "cache")
        assert split.names == ("row", "label") and edits[0].wrapped is not None
        recorded.recorder.is_open = False
        judgement = Equivalence(recorded.recorder, str(call_id_of(dataset)), Bounds(400, 5.0), tmp_path).judge(edits)
        assert (str(judgement.seen), judgement.undecided) == ("exact", "")
    finally:
        tf.random.set_seed(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (
            "lambda x: [x, x]",
            "lambda v: v[0] + tf.random.normal([3])",
            "`v`, which its first half passes on, is a Python list",
        ),
        ("lambda x: (x, 3)[0]", "lambda v: v * 2 + tf.random.normal([3])", "another graph than its function"),
        ("lambda x: 3", "lambda v: v + tf.random.normal([3])", "is a Python int"),
        ("lambda x: (x, x)", "lambda v: v[0] + tf.random.normal([3])", "is a tuple, whose parts would be passed"),
        ("lambda x: x.missing", "lambda v: v + tf.random.normal([3])", "its halves fail"),
        ("lambda x: x", "lambda v: v + tf.random.uniform([3])", "another graph than its function"),
    ],
)
def test_values_that_a_dataset_would_change_and_other_computations_are_refused(
    recorded: Recorded, first: str, second: str, reason: str
) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(rows(4)).map(lambda x: x + tf.random.normal([3]))
    with pytest.raises(CannotSplit, match=reason):
        recorded.replay(dataset, *halves(recorded, first, second, "v"))


def test_a_function_that_is_traced_otherwise_each_time_is_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    counter = iter(range(100))
    dataset = tf.data.Dataset.from_tensor_slices(rows(4)).map(lambda x: x * next(counter) + tf.random.normal([3]))
    edits = halves(recorded, "lambda x: x * next(counter)", "lambda v: v + tf.random.normal([3])", "v")
    with pytest.raises(CannotSplit, match="each time that its function is traced, it has another graph"):
        recorded.replay(dataset, *edits)


def test_a_print_in_the_first_half_is_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    def shown(x: Any) -> Any:
        tf.print("row", output_stream="file:///dev/null")
        return tf.exp(x)

    dataset = tf.data.Dataset.from_tensor_slices(rows(4)).map(lambda x: shown(x) + tf.random.normal([3]))
    with pytest.raises(CannotSplit, match="the first half of its function prints in every call"):
        recorded.replay(dataset, *halves(recorded, "lambda x: shown(x)", "lambda v: v + tf.random.normal([3])", "v"))


def test_a_function_is_changed_by_one_edit_only_and_not_inside_a_function(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(2).flat_map(lambda i: tf.data.Dataset.range(3).map(lambda x: x + i))
    with pytest.raises(CannotReplay, match="calls inside a function cannot be split"):
        recorded.replay(dataset, *halves(recorded, "lambda x: x", "lambda v: v + i", "v"))
    dataset = tf.data.Dataset.range(2).map(lambda x: x)
    edits = halves(recorded, "lambda x: x", "lambda v: v", "v")
    with pytest.raises(CannotReplay, match="an earlier edit has split its function"):
        recorded.replay(dataset, *edits, Vectorize(edits[0].call_id))
