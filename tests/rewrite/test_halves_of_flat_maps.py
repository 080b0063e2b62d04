"""Real scripts whose `flat_map` is split: the text that is written makes the calls that were replayed, with the same elements."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import InsertAfter, SplitFlatMap
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited import CannotReplay
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch, patch_for
from advisor.splitting import split_function
from tests.in_one_line import in_one_line
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

HEAD = """\
import tensorflow as tf

rows = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(24.0), [8, 3]))
factor = 2.0


"""


@dataclass(frozen=True)
class Script:
    """A script without its head, and what becomes of it."""

    before: str
    after: str


SCRIPTS = {
    "a definition, in one line": Script(
        """\
def slices(row):
    # Before the dataset.
    row = tf.exp(row / 24.0) * factor
    return tf.data.Dataset.from_tensor_slices(row)


ds = rows.flat_map(slices).batch(4)
""",
        """\
def slices_values(row):
    # Before the dataset.
    row = tf.exp(row / 24.0) * factor
    return row


def slices(row):
    return tf.data.Dataset.from_tensor_slices(row)


ds = rows.map(slices_values, num_parallel_calls=tf.data.AUTOTUNE).flat_map(slices).batch(4)
""",
    ),
    "a lambda, with a line for each call and a call behind the dataset": Script(
        """\
ds = (
    rows
    .take(5)  # enough
    .flat_map(lambda row: tf.data.Dataset.from_tensor_slices(tf.sort(row * 2.0)).repeat(2))
    .batch(4)
)
""",
        """\
ds = (
    rows
    .take(5)  # enough
    .map(lambda row: tf.sort(row * 2.0), num_parallel_calls=tf.data.AUTOTUNE)
    .flat_map(lambda value: tf.data.Dataset.from_tensor_slices(value).repeat(2))
    .batch(4)
)
""",
    ),
    "an interleave": Script(
        """\
def slices(row):
    row = tf.sort(tf.exp(row / 24.0))
    return tf.data.Dataset.from_tensor_slices(row)


ds = rows.interleave(slices, cycle_length=3).batch(4)
""",
        """\
def slices_values(row):
    row = tf.sort(tf.exp(row / 24.0))
    return row


def slices(row):
    return tf.data.Dataset.from_tensor_slices(row)


ds = rows.map(slices_values, num_parallel_calls=tf.data.AUTOTUNE).interleave(slices, cycle_length=3).batch(4)
""",
    ),
}


def edit_of(calls, text):
    call = next(call for call in calls.values() if call.method in ("flat_map", "interleave"))
    halves = split_function(text, call, calls[call.inputs[0]].element_spec, is_script=True)
    texts = halves.texts
    return SplitFlatMap(
        call.id, texts.first, texts.second, halves.names, texts.first_name, texts.second_name, texts.original, texts.line,
        texts.is_replaced,
    )  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_written_halves_are_the_proved_ones(name, tmp_path, monkeypatch, recorded):
    script, path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(HEAD + script.before)
    monkeypatch.chdir(tmp_path)
    datasets = run(path, monkeypatch)
    unchanged = [elements(dataset) for dataset in datasets]
    calls = {call.id: call for call in recorded.recorder.calls()}
    edit = edit_of(calls, path.read_text())
    edits = (edit,)
    recorded.recorder.is_open = False
    behind_cache = (edit, InsertAfter(calls[edit.call_id].inputs[0], "cache"))
    assert [elements(replayed(recorded, dataset, behind_cache, calls)) for dataset in datasets] == unchanged
    patch = patch_for(behind_cache, calls, tmp_path)
    assert isinstance(patch, Patch) and b".cache()" in patch.files[path.resolve()][1].partition(b".map(")[0]
    expected = [elements(replayed(recorded, dataset, edits, calls)) for dataset in datasets]
    assert expected == unchanged

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    before, after = patch.files[path.resolve()]
    assert in_one_line(after.decode()) == in_one_line(HEAD + script.after)
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(datasets[0]), edits=edits), edits)
    unpatched = recorded_again(recorded, path, monkeypatch)[1]
    assert difference(proved, unpatched) is not None
    path.write_bytes(after)
    patched, graph = recorded_again(recorded, path, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(before, after)) is None
    assert [elements(dataset) for dataset in patched] == expected

    wrong = after.replace(b"/ 24.0", b"/ 12.0").replace(b"row * 2.0", b"row * 3.0")
    assert wrong != after
    path.write_bytes(wrong)
    graph = recorded_again(recorded, path, monkeypatch)[1]
    assert difference(proved, graph, changed_code=changed_code(before, wrong)) is not None


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ("row + tf.random.normal([3])", "draws random numbers"),
        ("tf.numpy_function(lambda x: x, [row], tf.float32)", "runs Python code"),
    ],
)
def test_what_may_differ_when_it_runs_earlier_is_not_moved(work, reason, tmp_path, monkeypatch, recorded):
    path = tmp_path / "train.py"
    path.write_text(
        f"{HEAD}def slices(row):\n    row = {work}\n    return tf.data.Dataset.from_tensor_slices(row)\n\n\n"
        "ds = rows.flat_map(slices)\n"
    )
    monkeypatch.chdir(tmp_path)
    datasets = run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edit = edit_of(calls, path.read_text())
    recorded.recorder.is_open = False
    with pytest.raises(CannotReplay, match=reason):
        replayed(recorded, datasets[0], (edit,), calls)
