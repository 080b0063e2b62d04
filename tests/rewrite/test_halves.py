"""Real scripts whose function is split: the text that is written makes the calls that were replayed, with the same elements."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument, SplitMap
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.shared_calls import spread
from advisor.splitting import split_function
from tests.in_one_line import in_one_line
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

HEAD = """\
import tensorflow as tf

tf.random.set_seed(3)
rows = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(24.0), [8, 3]))


def noisy(row):
    return row + tf.random.normal([3])


"""


@dataclass(frozen=True)
class Script:
    """A script without its head, and what becomes of it."""

    before: str
    after: str
    has_parallel_fix: bool = False


SCRIPTS = {
    "a definition, with a shuffle that moves": Script(
        """\
def prepare(row):
    # The same every time.
    row = tf.exp(row / 24)

    # Another one every time.
    return noisy(row), tf.reduce_sum(row)


ds = rows.shuffle(8, seed=1)
ds = ds.map(prepare, num_parallel_calls=1)
ds = ds.batch(3)
""",
        """\
def prepare_cached(row):
    # The same every time.
    row = tf.exp(row / 24)
    return row


def prepare(row):
    # Another one every time.
    return noisy(row), tf.reduce_sum(row)


ds = rows
ds = ds.map(prepare_cached, num_parallel_calls=1).cache().shuffle(8, seed=1).map(prepare, num_parallel_calls=1)
ds = ds.batch(3)
""",
    ),
    "a chain of lambdas": Script(
        """\
ds = (
    rows
    .map(lambda row: noisy(tf.math.cumsum(tf.sin(row))) * 2.0)
    .batch(3)
)
""",
        """\
ds = (
    rows
    .map(lambda row: tf.math.cumsum(tf.sin(row)))
    .cache()
    .map(lambda value: noisy(value) * 2.0)
    .batch(3)
)
""",
    ),
    "a closure in a helper, made parallel by another fix": Script(
        """\
def make(scale, factor=2.0):
    @tf.function
    def prepare(row):
        '''Scale and add noise.'''
        half = 0.5
        row = tf.exp(row / scale) * half
        row = noisy(row) * factor
        return row - half
    return rows.map(prepare)


datasets = [make(24.0), make(12.0)]
""",
        """\
def make(scale, factor=2.0):
    @tf.function
    def prepare_cached(row):
        half = 0.5
        row = tf.exp(row / scale) * half
        return row

    @tf.function
    def prepare(row):
        '''Scale and add noise.'''
        half = 0.5
        row = noisy(row) * factor
        return row - half
    return rows.map(prepare_cached, num_parallel_calls=1).cache().map(prepare, num_parallel_calls=1)


datasets = [make(24.0), make(12.0)]
""",
        has_parallel_fix=True,
    ),
    "a function with another user": Script(
        """\
def prepare(row):
    if tf.reduce_sum(row) > 9.0:
        row = row / 2.0
    row = tf.nn.softmax(row)
    return noisy(row)


one = prepare(tf.zeros([3]))
ds = rows.map(prepare)
""",
        """\
def prepare(row):
    if tf.reduce_sum(row) > 9.0:
        row = row / 2.0
    row = tf.nn.softmax(row)
    return noisy(row)


def prepare_cached(row):
    if tf.reduce_sum(row) > 9.0:
        row = row / 2.0
    row = tf.nn.softmax(row)
    return row


def prepare_random(row):
    return noisy(row)


one = prepare(tf.zeros([3]))
ds = rows.map(prepare_cached).cache().map(prepare_random)
""",
    ),
    "a lambda in a helper, whose function has another user": Script(
        """\
def prepare(row, by, train):
    row = tf.nn.softmax(row) / by
    if train:
        row = noisy(row) * by
    return row


def make(by, train):
    ds = rows.map(lambda row: prepare(row, by, train))
    return ds.batch(3)


datasets = [make(24.0, train=True)]
valid = rows.map(lambda row: prepare(row, 1.0, train=False))
""",
        """\
def prepare(row, by, train):
    row = tf.nn.softmax(row) / by
    if train:
        row = noisy(row) * by
    return row


def prepare_cached(row, by, train):
    row = tf.nn.softmax(row) / by
    return row


def prepare_random(row, by, train):
    if train:
        row = noisy(row) * by
    return row


def make(by, train):
    ds = rows.map(lambda row: prepare_cached(row, by, train)).cache().map(lambda row_2: prepare_random(row_2, by=by, train=train))
    return ds.batch(3)


datasets = [make(24.0, train=True)]
valid = rows.map(lambda row: prepare(row, 1.0, train=False))
""",
    ),
    "a method": Script(
        """\
class Rows:
    factor = 3.0

    def prepare(self, row):
        row = tf.exp(row / 24.0)
        return noisy(row) * self.factor

    def dataset(self):
        return rows.map(self.prepare)


ds = Rows().dataset().batch(3)
""",
        """\
class Rows:
    factor = 3.0

    def prepare(self, row):
        row = tf.exp(row / 24.0)
        return noisy(row) * self.factor

    def prepare_cached(self, row):
        row = tf.exp(row / 24.0)
        return row

    def prepare_random(self, row):
        return noisy(row) * self.factor

    def dataset(self):
        return rows.map(self.prepare_cached).cache().map(self.prepare_random)


ds = Rows().dataset().batch(3)
""",
    ),
    "a partial": Script(
        """\
import functools


def prepare(factor, row, half=0.5):
    row = tf.exp(row / 24.0) * half
    return noisy(row) * factor


ds = (
    rows
    .map(functools.partial(prepare, 3.0))
    .batch(3)
)
""",
        """\
import functools


def prepare_cached(factor, row, half=0.5):
    row = tf.exp(row / 24.0) * half
    return row


def prepare(row, factor):
    return noisy(row) * factor


ds = (
    rows
    .map(functools.partial(prepare_cached, 3.0))
    .cache()
    .map(functools.partial(prepare, factor=3.0))
    .batch(3)
)
""",
    ),
}


def edits_of(calls, text, has_parallel_fix):
    call = next(call for call in calls.values() if call.method == "map")
    halves = split_function(text, call, calls[call.inputs[0]].element_spec, is_script=True)
    texts = halves.texts
    split = SplitMap(
        call.id, texts.first, texts.second, halves.names, texts.first_name, texts.second_name, texts.original, texts.line,
        texts.is_replaced, texts.wrapped,
    )  # fmt: skip
    moves = [MoveAfter(other.id, call.id) for other in calls.values() if other.method == "shuffle"]
    parallel = [SetArgument(call.id, "num_parallel_calls", 1)] if has_parallel_fix else []
    return (*parallel, split, *moves, InsertAfter(call.id, "cache"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_written_halves_are_the_proved_ones(name, tmp_path, monkeypatch, recorded):
    script, path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(HEAD + script.before)
    monkeypatch.chdir(tmp_path)
    datasets = run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = edits_of(calls, path.read_text(), script.has_parallel_fix)
    recorded.recorder.is_open = False
    shared = spread(edits, calls)
    expected = [elements(dataset) for dataset in (replayed(recorded, dataset, shared, calls) for dataset in datasets)]

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    before, after = patch.files[path.resolve()]
    assert in_one_line(after.decode()) == in_one_line(HEAD + script.after)
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(datasets[0]), edits=edits), shared)
    unpatched = recorded_again(recorded, path, monkeypatch)[1]
    assert difference(proved, unpatched) is not None
    path.write_bytes(after)
    patched, graph = recorded_again(recorded, path, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(before, after)) is None
    assert [elements(dataset) for dataset in patched] == expected

    wrong = after[len(HEAD) :]
    for old, new in (
        (b"* 2.0", b"* 3.0"),
        (b"* factor", b"* 9.0"),
        (b"* by", b"* 3.0"),
        (b"return noisy", b"return 2.0 * noisy"),
    ):
        wrong = wrong.replace(old, new)
    wrong = HEAD.encode() + wrong
    assert wrong != after
    path.write_bytes(wrong)
    graph = recorded_again(recorded, path, monkeypatch)[1]
    assert difference(proved, graph, changed_code=changed_code(before, wrong)) is not None


@pytest.mark.tensorflow
def test_a_definition_that_was_changed_since_and_arguments_that_do_something_are_not_written(
    tmp_path, monkeypatch, recorded
):
    path = tmp_path / "train.py"
    text = HEAD + SCRIPTS["a definition, with a shuffle that moves"].before
    path.write_text(
        text.replace("(row / 24)", "(row / 12)").replace("num_parallel_calls=1", "num_parallel_calls=len('a')")
    )
    monkeypatch.chdir(tmp_path)
    run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = edits_of(calls, path.read_text(), has_parallel_fix=False)
    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, CannotRewrite)
    assert patch.reason == "The arguments of map cannot be written twice."
    split = next(edit for edit in edits if isinstance(edit, SplitMap))
    parallel = SetArgument(split.call_id, "num_parallel_calls", Code("tf.data.AUTOTUNE"))
    assert isinstance(patch_for((parallel, *edits), calls, tmp_path), Patch)
    path.write_text(path.read_text().replace("# Another", "# One more"))
    patch = patch_for((parallel, *edits), calls, tmp_path)
    assert isinstance(patch, CannotRewrite)
    assert patch.reason == "The definition of the function has changed."
