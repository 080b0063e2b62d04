"""A line that makes several datasets: a change of it is one of all of them, and is judged on all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import InsertAfter, MoveAfter, SetArgument
from advisor.model.finding import Safety
from advisor.prove.trial.sibling_datasets import sibling_datasets
from advisor.prove.trial.trial_result import BROKEN
from advisor.prove.trial.trial_runner import TrialRunner
from advisor.rewrite.shared_calls import spread
from tests.recorded import Recorded


def prepared(size: int, noise: float) -> Any:
    """Like a helper that a script calls for training and for validation."""
    import tensorflow as tf

    def disturb(x: Any) -> Any:
        return tf.cast(x, tf.float32) + (tf.random.uniform([]) * noise if noise else 0.0)

    return tf.data.Dataset.range(size).map(disturb).batch(4)


@pytest.mark.tensorflow
def test_the_other_dataset_of_the_same_text_is_compared_too(recorded: Recorded, tmp_path: Path) -> None:
    """The cache that is right for the training freezes the noise of the other one."""
    training = prepared(40, noise=0.0)
    prepared(12, noise=1.0)
    recorded.recorder.is_open = False
    call_id = call_id_of(training)
    assert call_id is not None
    bench = TrialRunner(recorded.recorder, call_id, tmp_path, lambda *_: None)
    trial = bench.try_fix((), (InsertAfter(recorded.call("map", 0).id, "cache"),), Safety.EXACT, None, 10.0)
    assert trial.verdict == BROKEN
    assert trial.safety_seen is Safety.CHANGES
    assert "The same text creates the dataset of batch at line" in trial.note
    assert "freeze" in trial.note


@pytest.mark.tensorflow
def test_only_datasets_of_the_edited_text_are_siblings(recorded: Recorded) -> None:
    import tensorflow as tf

    training, validation, other = prepared(40, 0.0), prepared(12, 0.0), tf.data.Dataset.range(3).map(lambda x: x + 1)
    training.take(1)  # a look at one batch is no other dataset
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = spread((InsertAfter(recorded.call("map", 0).id, "cache"),), calls)
    (sibling,) = sibling_datasets(recorded.recorder, call_id_of(training) or "", edits)
    assert sibling.call_id == call_id_of(validation)
    assert [edit.call_id for edit in sibling.edits] == [recorded.call("map", 1).id]
    assert sibling_datasets(recorded.recorder, call_id_of(other) or "", ()) == []


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_loop_over_functions_is_changed_at_every_turn(recorded: Recorded, tmp_path: Path) -> None:
    """What is measured is what the changed text would do."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(30)
    for step in (lambda x: x + 1, lambda x: x * 2):
        dataset = dataset.map(step)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = (SetArgument(recorded.call("map").id, "num_parallel_calls", 2),)
    assert {edit.call_id for edit in spread(edits, calls)} == {recorded.call("map", index).id for index in (0, 1)}
    recorded.recorder.is_open = False
    bench = TrialRunner(recorded.recorder, call_id_of(dataset) or "", tmp_path, lambda *_: None)
    out = tmp_path / "run"
    bench.profile(edits, out, lambda: {"target": "x", "argv": (), "cwd": ".", "is_seeded": False})
    from advisor.model.codec import decode
    from advisor.model.recording import Recording

    recording = decode((out / "recording.json").read_bytes(), Recording)
    assert [c.arguments.get("num_parallel_calls") for c in recording.calls if c.method == "map"] == [2, 2]


@pytest.mark.tensorflow
def test_moves_go_with_their_partners(recorded: Recorded) -> None:
    for _ in range(2):
        prepared(8, 0.0)
    maps, batches = ([recorded.call(method, index).id for index in (0, 1)] for method in ("map", "batch"))
    calls = {call.id: call for call in recorded.recorder.calls()}
    assert spread((MoveAfter(maps[0], batches[0]),), calls) == (
        MoveAfter(maps[0], batches[0]), MoveAfter(maps[1], batches[1]),
    )  # fmt: skip
