"""Real scripts that import the function of a `map`: both files are changed, the new text makes the calls that were replayed, and
the elements are the same as before, bit for bit.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import InsertAfter, SplitFlatMap, SplitMap
from advisor.predict import mixed_function
from advisor.predict.splits import split_edit, text_of
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.splitting import CannotSplitError, split_function
from advisor.testing import batch, map_, pipeline, source
from tests.in_one_line import in_one_line
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

pytestmark = pytest.mark.tensorflow
EMPTY = pipeline(source(), map_("f", ms=1), batch(4), consumer_ms=1).analysis

DATA = """\
import tensorflow as tf

SIZE = 6


def prepare(image, label, flips=True):
    image = tf.image.resize(image, [SIZE, SIZE])
    if flips:
        image = tf.reverse(image, [0])
    return image - tf.reduce_mean(image), label


class Reader:
    size = SIZE

    def prepare(self, image, label):
        image = tf.image.resize(image, [self.size, self.size])
        return tf.reverse(image, [0]), label
"""
PREPARE_BATCH = """

def prepare_batch(image, label, flips=True):
    image = tf.image.resize(image, [SIZE, SIZE])

    def prepare_rows(row):
        image, label = row
        if flips:
            image = tf.reverse(image, [0])
        return image - tf.reduce_mean(image), label

    return tf.vectorized_map(prepare_rows, (image, label), fallback_to_while_loop=False)
"""
DATA_BATCH = DATA.replace(
    "    return image - tf.reduce_mean(image), label\n",
    f"    return image - tf.reduce_mean(image), label\n{PREPARE_BATCH}",
)
READER_BATCH = (
    DATA
    + """
    def prepare_batch(self, image, label):
        image = tf.image.resize(image, [self.size, self.size])

        def prepare_rows(row):
            image, label = row
            return tf.reverse(image, [0]), label

        return tf.vectorized_map(prepare_rows, (image, label), fallback_to_while_loop=False)
"""
)
TRAIN = """\
import functools

import tensorflow as tf
{0}

images = tf.reshape(tf.range(5 * 4 * 4 * 3.0), [5, 4, 4, 3])
ds = tf.data.Dataset.from_tensor_slices((images, tf.range(5))){1}
"""
VECTORIZED = {
    "a name": (
        ("from pictures import Reader, prepare  # of the project", ".map(prepare).batch(2)"),
        ("from pictures import Reader, prepare, prepare_batch  # of the project", ".batch(2).map(prepare_batch)"),
        DATA_BATCH,
    ),
    "another name, in brackets": (
        ("from pictures import (\n    prepare as make,\n    Reader,\n)", ".map(make, num_parallel_calls=2).batch(2)"),
        (
            "from pictures import (\n    prepare as make, prepare_batch,\n    Reader,\n)",
            ".batch(2).map(prepare_batch, num_parallel_calls=2)",
        ),
        DATA_BATCH,
    ),
    "a module": (
        ("import pictures as own", ".map(own.prepare).batch(2)"),
        ("import pictures as own", ".batch(2).map(own.prepare_batch)"),
        DATA_BATCH,
    ),
    "a module in a lambda": (
        ("import pictures", ".map(lambda x, y: pictures.prepare(x, y, flips=False)).batch(2)"),
        ("import pictures", ".batch(2).map(lambda x, y: pictures.prepare_batch(x, y, flips=False))"),
        DATA_BATCH,
    ),
    "a partial": (
        ("from pictures import prepare", ".map(functools.partial(prepare, flips=False)).batch(2)"),
        ("from pictures import prepare, prepare_batch", ".batch(2).map(functools.partial(prepare_batch, flips=False))"),
        DATA_BATCH,
    ),
    "a method": (
        ("from pictures import Reader\n\nreader = Reader()", ".map(reader.prepare).batch(2)"),
        ("from pictures import Reader\n\nreader = Reader()", ".batch(2).map(reader.prepare_batch)"),
        READER_BATCH,
    ),
}
NOISY = """\
import tensorflow as tf


def decode(row):
    return tf.exp(row / 24.0)


def load(row, half=0.5):
    row = decode(row) * half
    return row + tf.random.stateless_uniform([], [1, 2]) + tf.random.uniform([], seed=3)
"""
LOAD_HALVES = """

def load_cached(row, half=0.5):
    row = decode(row) * half
    return row


def load_random(row):
    return row + tf.random.stateless_uniform([], [1, 2]) + tf.random.uniform([], seed=3)
"""
ROWS = """\
import tensorflow as tf
{0}

tf.random.set_seed(1)
ds = tf.data.Dataset.range(7).map(lambda number: tf.cast(number, tf.float32)){1}
"""
SPLIT = {
    "a name": (
        ("from noisy import load", "\nds = ds.map(load)"),
        ("from noisy import load, load_cached, load_random", "\nds = ds.map(load_cached).cache().map(load_random)"),
    ),
    "a module": (
        ("import noisy", "\nds = ds.map(noisy.load)"),
        ("import noisy", "\nds = ds.map(noisy.load_cached).cache().map(noisy.load_random)"),
    ),
    "a lambda": (
        ("from noisy import load", "\nds = ds.map(lambda row: load(row, 2.0))"),
        (
            "from noisy import load, load_cached, load_random",
            "\nds = ds.map(lambda row: load_cached(row, 2.0)).cache().map(load_random)",
        ),
    ),
}


def own_lines(number: int) -> str:
    """Comments above the functions of a test: AutoGraph takes functions of equal code in equal lines for the same one."""
    return "#\n" * number


def check(edits, texts, folder, monkeypatch, recorded, datasets) -> None:
    """Write the edits, and compare the texts, the calls and the elements with what is expected.

    Args:
        edits: The edits.
        texts: Name of a file -> its expected text.
        folder: The project.
        monkeypatch: Of the test.
        recorded: The recorded calls of the scripts.
        datasets: The script's datasets.
    """
    calls = {call.id: call for call in recorded.recorder.calls()}
    recorded.recorder.is_open = False
    expected = elements(replayed(recorded, datasets[0], edits, calls))
    patch = patch_for(edits, calls, folder)
    assert isinstance(patch, Patch), patch
    written = {path.name: after.decode() for path, (_, after) in patch.files.items()}
    for name in texts:
        assert in_one_line(written.pop(name)) == in_one_line(texts[name])
    assert not written
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(datasets[0]), edits=edits), edits)
    code: dict[str, str] = {}
    for path, (before, after) in patch.files.items():
        path.write_bytes(after)
        code |= changed_code(before, after)
    (patched,), graph = recorded_again(recorded, folder / "train.py", monkeypatch)
    assert difference(proved, graph, changed_code=code) is None
    assert elements(patched) == expected
    for path, (before, _) in patch.files.items():
        path.write_bytes(before if path.name == "train.py" else b"\n" + before)
    assert isinstance(patch_for(edits, calls, folder), CannotRewrite)  # the definition is on another line


@pytest.mark.parametrize("name", VECTORIZED)
def test_the_batch_function_is_written_beside_the_imported_one(name, tmp_path, monkeypatch, recorded):
    before, after, data = VECTORIZED[name]
    above = own_lines(list(VECTORIZED).index(name))
    (tmp_path / "pictures.py").write_text(above + DATA)
    (tmp_path / "train.py").write_text(TRAIN.format(*before))
    monkeypatch.chdir(tmp_path)
    datasets = run(tmp_path / "train.py", monkeypatch)
    analysis = dataclasses.replace(EMPTY, calls=recorded.recorder.calls())
    mixed = mixed_function(analysis, recorded.call("map"), recorded.call("batch"))
    assert mixed.fix is not None, mixed.reason
    assert mixed.where.endswith(" of pictures.py")
    is_method = name == "a method"
    assert mixed.fix.assumptions == (("no class in another file overrides `prepare`",) if is_method else ())
    unchanged = elements(datasets[0])
    texts = {"train.py": TRAIN.format(*after), "pictures.py": above + data}
    check(mixed.fix.edits, texts, tmp_path, monkeypatch, recorded, datasets)
    assert elements(replayed(recorded, datasets[0], mixed.fix.edits, {c.id: c for c in analysis.calls})) == unchanged


@pytest.mark.parametrize("name", SPLIT)
def test_the_halves_are_written_beside_the_imported_function(name, tmp_path, monkeypatch, recorded):
    before, after = SPLIT[name]
    above = own_lines(list(SPLIT).index(name))
    (tmp_path / "noisy.py").write_text(above + NOISY)
    (tmp_path / "train.py").write_text(ROWS.format(*before))
    monkeypatch.chdir(tmp_path)
    datasets = run(tmp_path / "train.py", monkeypatch)
    call = recorded.call("map")
    feeding = next(other for other in recorded.recorder.calls() if other.id == call.inputs[0])
    halves = split_function(
        (tmp_path / "train.py").read_text(), call, feeding.element_spec, True, lambda file: text_of(EMPTY, file)
    )
    edits = (split_edit(SplitMap, call, halves), InsertAfter(call.id, "cache"))
    check(
        edits,
        {"train.py": ROWS.format(*after), "noisy.py": above + NOISY + LOAD_HALVES},
        tmp_path,
        monkeypatch,
        recorded,
        datasets,
    )


def test_two_calls_of_one_imported_function_share_the_new_one(tmp_path, monkeypatch, recorded):
    above = own_lines(len(VECTORIZED))
    (tmp_path / "pictures.py").write_text(above + DATA)
    two = TRAIN.format("from pictures import prepare", ".map(prepare).batch(2)")
    two += "other = tf.data.Dataset.from_tensor_slices((images, tf.range(5))).map(prepare).batch(5)\n"
    (tmp_path / "train.py").write_text(two + "datasets = [ds, other]\n")
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "train.py", monkeypatch)
    calls = recorded.recorder.calls()
    analysis = dataclasses.replace(EMPTY, calls=calls)
    edits = []
    for index in (0, 1):
        mixed = mixed_function(analysis, recorded.call("map", index), recorded.call("batch", index))
        assert mixed.fix is not None, mixed.reason
        edits += mixed.fix.edits
    patch = patch_for(edits, {call.id: call for call in calls}, tmp_path)
    assert isinstance(patch, Patch), patch
    texts = {path.name: after.decode() for path, (_, after) in patch.files.items()}
    assert texts["pictures.py"] == above + DATA_BATCH
    assert texts["train.py"].count("import prepare, prepare_batch\n") == 1
    assert texts["train.py"].count(".map(prepare_batch)") == 2

    other = dataclasses.replace(edits[-1], text=edits[-1].text.replace("prepare_rows", "rows"))
    refused = patch_for([*edits[:-1], other], {call.id: call for call in calls}, tmp_path)
    assert isinstance(refused, CannotRewrite)
    assert refused.reason == "Two calls would need different functions with the name prepare_batch."


def test_a_flat_map_of_another_file(tmp_path, monkeypatch, recorded):
    text = """\
import tensorflow as tf


def slices(row):
    rows = tf.exp(tf.stack([row, row]))
    return tf.data.Dataset.from_tensor_slices(rows)
"""
    halves_text = """

def slices_values(row):
    rows = tf.exp(tf.stack([row, row]))
    return rows


def slices_dataset(rows):
    return tf.data.Dataset.from_tensor_slices(rows)
"""
    (tmp_path / "own.py").write_text(text)
    (tmp_path / "train.py").write_text(ROWS.format("from own import slices", "\nds = ds.flat_map(slices)"))
    monkeypatch.chdir(tmp_path)
    datasets = run(tmp_path / "train.py", monkeypatch)
    call = recorded.call("flat_map")
    feeding = next(other for other in recorded.recorder.calls() if other.id == call.inputs[0])
    script = (tmp_path / "train.py").read_text()
    halves = split_function(script, call, feeding.element_spec, True, lambda file: text_of(EMPTY, file))
    line = ".map(slices_values, num_parallel_calls=tf.data.AUTOTUNE).flat_map(slices_dataset)"
    after = ROWS.format("from own import slices, slices_values, slices_dataset", f"\nds = ds{line}")
    edits = (split_edit(SplitFlatMap, call, halves),)
    check(edits, {"train.py": after, "own.py": text + halves_text}, tmp_path, monkeypatch, recorded, datasets)


def test_a_function_of_tensorflow_is_not_split(recorded):
    import tensorflow as tf

    images = tf.data.Dataset.from_tensors(tf.ones([4, 4, 3]))
    images.map(tf.image.rgb_to_grayscale)
    call = recorded.call("map")
    with pytest.raises(CannotSplitError, match="not by the name of a function"):
        split_function(Path(__file__).read_text(), call, "", True, lambda file: text_of(EMPTY, file))
