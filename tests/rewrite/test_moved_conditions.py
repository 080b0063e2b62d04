"""A helper that shuffles for training only, behind a new cache: its text makes the calls of the replay, for both datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import InsertAfter, MoveAfter
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.shared_calls import spread
from tests.recorded import Recorded
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

pytestmark = pytest.mark.tensorflow
SCRIPT = """\
import tensorflow as tf


def make(rows, is_training):
    ds = tf.data.Dataset.from_tensor_slices(rows)
    {}
    return ds.batch(4)


datasets = [make(tf.range(20), True), make(tf.range(6), False)]
"""
SHUFFLE = "if is_training:\n        ds = ds.shuffle(20, seed=3)"


def test_the_cache_is_for_both_and_the_shuffle_for_training_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(f"{SHUFFLE}\n    ds = ds.map(lambda row: row * 2)"))
    monkeypatch.chdir(tmp_path)
    training, validation = run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    mapped, shuffled = (next(call for call in calls.values() if call.method == method) for method in ("map", "shuffle"))
    edits = spread((MoveAfter(shuffled.id, mapped.id), InsertAfter(mapped.id, "cache")), calls)
    recorded.recorder.is_open = False
    expected = [elements(replayed(recorded, dataset, edits, calls)) for dataset in (training, validation)]

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    old, new = patch.files[path.resolve()]
    assert new.decode() == SCRIPT.format(f"ds = ds.map(lambda row: row * 2).cache()\n    {SHUFFLE}")
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(training), edits=edits), edits)
    assert difference(proved, recorded_again(recorded, path, monkeypatch)[1]) is not None
    path.write_bytes(new)
    datasets, graph = recorded_again(recorded, path, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(old, new)) is None
    assert [elements(dataset) for dataset in datasets] == expected
