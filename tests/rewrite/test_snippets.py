"""Real scripts, rewritten: the text is the expected one, only the intended calls differ, it runs, and its elements are those of
the recorded pipeline replayed with the same edits.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import runpy
import sys
import tokenize
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.edits import (
    BuildOnce,
    Edit,
    InsertAfter,
    MoveAfter,
    SetArgument,
    SplitFlatMap,
    SplitMap,
    VectorizeParts,
    VectorizeRagged,
)
from advisor.prove.graph_difference import difference, unstable_fields
from advisor.prove.trial.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.shared_calls import edited_ids, spread
from tests.recorded import Recorded
from tests.rewrite import snippets
from tests.rewrite.snippets import Snippet, chains, files, forms, inner, vectorized, windows
from tests.rewrite.snippets.files import IMAGES

KINDS = (chains, forms, files, vectorized, inner, windows)
SNIPPETS = {name: snippet for kind in KINDS for name, snippet in kind.SNIPPETS.items()}


def test_there_are_at_least_sixty():
    assert len(SNIPPETS) == sum(len(kind.SNIPPETS) for kind in KINDS) >= 60


METHODS = ("map", "filter", "batch", "shuffle", "cache", "prefetch", "with_options", "range", "from_tensor_slices", "window",
           "flat_map")  # fmt: skip


def test_every_kind_of_edit_is_among_them():
    """Each is replayed and written into a real script, and both give the same elements.

    Split functions have scripts of their own, in `test_split_functions.py`; loops have them in `test_build_once.py`, functions
    that are vectorised in parts in `test_mixed_functions.py`, and those of texts in `test_ragged_text.py`.
    """
    calls = [Call(f"{method} {number}", method, None, inputs=("range 0",)) for method in METHODS for number in range(3)]
    kinds = set()
    for snippet in SNIPPETS.values():
        with contextlib.suppress(IndexError, StopIteration):  # an edit of another method
            kinds |= {type(edit) for edit in snippet.edits(snippets.Recorded(calls))}
    others = {SplitMap, SplitFlatMap, BuildOnce, VectorizeParts, VectorizeRagged}
    assert kinds | others == set(typing.get_args(Edit))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Small files that snippets read."""
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("files") / "data"
    for number in range(4):
        path = folder / "images" / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_png(tf.fill([4, 4, 3], tf.cast(number * 20, tf.uint8))).numpy())
    for name in "ab":
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as writer:
            for number in range(3):
                writer.write(f"{name}{number}-".encode() * (number + 1))
    prepare_numbers(folder / "tfds")
    (folder / "lines.csv").write_text("value,name\n1,a\n2,b\n3.5,c\n")
    return folder


def prepare_numbers(folder: Path) -> None:
    """A dataset of tfds with two splits."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    class Numbers(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")
        code_path = None

        def _info(self):
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({"n": tf.int64}))

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples(6), "test": self._generate_examples(4)}

        def _generate_examples(self, count):
            yield from ((number, {"n": number}) for number in range(count))

    tfds.disable_progress_bar()
    Numbers(data_dir=str(folder)).download_and_prepare()


@pytest.mark.tensorflow
@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS)
def test_snippet(snippet, data, tmp_path, monkeypatch, recorded):
    for name, text in {**snippet.modules, "train.py": snippet.text}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode(snippet.encoding))
    (tmp_path / "data").symlink_to(data)
    monkeypatch.chdir(tmp_path)
    datasets = run(tmp_path / "train.py", monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = tuple(snippet.edits(snippets.Recorded(calls.values())))
    recorded.recorder.is_open = False
    expected = [elements(replayed(recorded, dataset, edits, calls)) for dataset in datasets]

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    changed = tmp_path / snippet.file
    assert list(patch.files) == [changed.resolve()]
    before, after = patch.files[changed.resolve()]
    assert before == changed.read_bytes() == snippet.before.encode(snippet.encoding)
    assert after.decode(snippet.encoding) == snippet.after
    assert after.startswith(b"\xef\xbb\xbf") == (snippet.encoding == "utf-8-sig")
    check_tokens(snippet, edits, calls)
    shared = edited_ids(spread(edits, calls))
    assert {edit.call_id for edit in edits} <= set(shared)
    assert len(shared) == snippet.serves * len({calls[edit.call_id].site for edit in edits}) or snippet.serves == 1

    consumer = call_id_of(datasets[0])
    proved = edited_graph(recorded_graph(recorded.recorder, consumer, edits=edits), spread(edits, calls))
    unpatched = recorded_again(recorded, tmp_path / "train.py", monkeypatch)[1]
    unstable = unstable_fields(recorded_graph(recorded.recorder, consumer), unpatched)
    assert unstable == frozenset()
    changed.write_bytes(after)
    datasets, graph = recorded_again(recorded, tmp_path / "train.py", monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(before, after)) is None
    assert difference(proved, unpatched) is not None
    assert [elements(dataset) for dataset in datasets] == expected


MOVED_OUT = """\
import tensorflow as tf
scale, steps = 2, [1]
def double(x):
    return x * scale
ds = tf.data.Dataset.range(3)
{}
"""


def moved_out(c: snippets.Recorded) -> list[Edit]:
    return [MoveAfter(c("map"), c("flat_map"))]


NOT_PLAIN = {
    "an inner map that uses the element of the outer call": (
        MOVED_OUT.format("ds = ds.flat_map(lambda i: tf.data.Dataset.range(2).map(lambda x: x * i))"),
        moved_out,
        "use names of the function of flat_map",
    ),
    "an inner map whose argument depends on a local name": (
        MOVED_OUT.format(
            "def f(i):\n    n = 2\n    return tf.data.Dataset.range(2).map(double, n)\nds = ds.flat_map(f)"
        ),
        moved_out,
        "use names of the function of flat_map",
    ),
    "an inner map that is not the last call": (
        MOVED_OUT.format("ds = ds.flat_map(lambda i: tf.data.Dataset.range(2).map(double).take(1))"),
        moved_out,
        "is not the last call in the function",
    ),
    "an inner map in a function with another use": (
        MOVED_OUT.format(
            "def f(i):\n    return tf.data.Dataset.range(2).map(double)\nds = ds.flat_map(f)\nother = f(0)"
        ),
        moved_out,
        "may also be used elsewhere",
    ),
    "an inner map whose result is used twice": (
        MOVED_OUT.format(
            "def f(i):\n    inner = tf.data.Dataset.range(2).map(double)\n    print(inner)\n    return inner\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "is not the last call in the function",
    ),
    "an inner function that uses the element of the outer call": (
        MOVED_OUT.format(
            "def f(i):\n    def times(x):\n        return x * i\n    return tf.data.Dataset.range(2).map(times)\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "times uses i of the function of flat_map (line 8)",
    ),
    "an inner function with a default": (
        MOVED_OUT.format(
            "def f(i):\n    def times(x, n=i + 0):\n        return x\n    return tf.data.Dataset.range(2).map(times)\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "times at line 7 is more than a plain function",
    ),
    "an inner function that reads what changes": (
        MOVED_OUT.format(
            "n = 2\nn = 3\ndef f(i):\n    def times(x):\n        return x * n\n"
            "    return tf.data.Dataset.range(2).map(times)\nds = ds.flat_map(f)"
        ),
        moved_out,
        "n, which times uses, is assigned more than once",
    ),
    "a list of readers": (
        'import tensorflow as tf\nreaders = list(map(tf.data.TFRecordDataset, ["data/a.tfrecord"]))\nds = readers[0]\n',
        snippets.cached("TFRecordDataset"),
        "does not show that list calls TFRecordDataset",
    ),
    "a bound method under another name": (
        "import tensorflow as tf\nstep = tf.data.Dataset.range(3).batch\nds = step(2)\n",
        snippets.prefetched(),
        "does not show that step calls batch",
    ),
    "arguments in a dictionary": (
        "import tensorflow as tf\nhow = {'map_func': lambda x: x}\nds = tf.data.Dataset.range(3).map(**how)\n",
        snippets.parallel(),
        "include * or **",
    ),
    "a reader given to an interleave": (
        "import tensorflow as tf\nfiles = tf.data.Dataset.from_tensor_slices(['data/a.tfrecord'])\n"
        "ds = files.interleave(tf.data.TFRecordDataset)\n",
        lambda c: [InsertAfter(c("TFRecordDataset"), "cache")],
        "inside the function of interleave, not by a line",
    ),
    "a call inside Keras": (
        "import numpy as np\nimport keras\n"
        "ds = keras.utils.timeseries_dataset_from_array(np.arange(9.0), None, sequence_length=2, batch_size=3)\n",
        lambda c: [SetArgument(c("map", -1), "num_parallel_calls", snippets.AUTOTUNE)],
        "map is called inside keras",
    ),
    "behind a call in the middle of Keras": (
        "import numpy as np\nimport keras\n"
        "ds = keras.utils.timeseries_dataset_from_array(np.arange(9.0), None, sequence_length=2, batch_size=3)\n",
        lambda c: [InsertAfter(c("map", -1), "cache")],
        "keras makes further calls after map",
    ),
    "two datasets of Keras, of which none is used": (
        IMAGES.replace("ds =", "ds, val =").replace(
            "verbose=False", 'verbose=False, validation_split=0.5, subset="both", seed=1'
        ),
        lambda c: [InsertAfter(c.last(), "cache")],
        "returns the dataset itself",
    ),
    "a dataset that is used in between": (
        "import tensorflow as tf\nds = tf.data.Dataset.range(5)\nds = ds.shuffle(5, seed=1)\nfirst = ds.take(1)\n"
        "ds = ds.map(lambda x: x)\n",
        snippets.moved("shuffle", "map"),
        "is also used elsewhere",
    ),
    "options that serve two datasets": (
        "import tensorflow as tf\noptions = tf.data.Options()\noptions.deterministic = False\n"
        "ds = tf.data.Dataset.range(5).with_options(options)\nother = tf.data.Dataset.range(6).with_options(options)\n",
        snippets.option("with_options", "deterministic", True),
        "are also used by other datasets",
    ),
    "a source taken out": (
        "import tensorflow as tf\nds = tf.data.Dataset.range(5).batch(2)\n",
        snippets.removed("range"),
        "range is not called as a method of a dataset",
    ),
    "a statement in a class": (
        "import tensorflow as tf\nclass Data:\n    ds = tf.data.Dataset.range(5).batch(2)\nds = Data.ds\n",
        snippets.option("batch", "deterministic", True),
        "is called in a class",
    ),
    "the body of a function on the line of a class": (
        "import tensorflow as tf\nclass Data:\n    def make(self): return tf.data.Dataset.range(5).batch(2)\n"
        "ds = Data().make()\n",
        snippets.option("batch", "deterministic", True),
        "is called in a class",
    ),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize(("text", "edits", "reason"), NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_plain_stays_as_it_is_with_a_reason(text, edits, reason, data, tmp_path, monkeypatch, recorded):
    script = tmp_path / "train.py"
    script.write_text(text)
    (tmp_path / "data").symlink_to(data)
    monkeypatch.chdir(tmp_path)
    run(script, monkeypatch)
    recorded.recorder.is_open = False
    calls = {call.id: call for call in recorded.recorder.calls()}
    result = patch_for(tuple(edits(snippets.Recorded(calls.values()))), calls, tmp_path)
    assert isinstance(result, CannotRewrite), result.diff
    assert reason in result.reason
    assert result.reason.endswith(".")


def run(script: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run a script as `python script` does; its datasets."""
    before = set(sys.modules)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(script.parent))
        patched.setattr(sys, "dont_write_bytecode", True)
        names = runpy.run_path(str(script), run_name="__main__")
    for name in set(sys.modules) - before:
        if str(script.parent) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    return list(names["datasets"]) if "datasets" in names else [names["ds"]]


def recorded_again(recorded: Recorded, script: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], CallGraph]:
    """Another run of a script: its datasets and its calls, which are recorded beside those of the first."""
    recorder = recorded.recorder
    before, kept = dict(recorder._calls), recorder.replay_log
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    linecache.clearcache()  # AutoGraph reads lambdas as they are written
    try:
        datasets = run(script, monkeypatch)
        return datasets, recorded_graph(recorder, call_id_of(datasets[0]))
    finally:
        recorder.is_open, recorder.replay_log = False, kept
        recorder._calls.clear()
        recorder._calls.update(before)


def replayed(recorded: Recorded, dataset: Any, edits: Sequence[Edit], calls: dict[str, Call]) -> Any:
    """The recorded dataset with those of the edits that concern it."""
    from advisor.capture.instrument.dataset_ids import call_id_of

    inner = recorded.recorder.replay_log.inner
    upstream: set[str] = set()
    todo = [call_id_of(dataset)]
    while todo:
        current = todo.pop()
        if current is None or current in upstream:
            continue
        upstream.add(current)
        call = calls.get(current)
        todo += [*(call.inputs if call is not None else ()), *(call_id for call_id, _ in inner.get(current, ()))]
    return recorded.replay(dataset, *[edit for edit in edits if edit.call_id in upstream])


def elements(dataset: Any) -> list[Any]:
    import numpy as np
    import tensorflow as tf

    return [[np.asarray(leaf).tolist() for leaf in tf.nest.flatten(element)] for element in dataset]


def check_tokens(snippet: Snippet, edits: Sequence[Edit], calls: dict[str, Call]) -> None:
    """All tokens outside the intended calls are there, in order, and nothing else but inside those and `added` lines."""
    spans = []
    for edit in edits:
        for call_id in (edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,):
            site = calls[call_id].site
            assert site is not None
            spans.append(((site.line, site.column - 1), (site.end_line, site.end_column - 1)))
    for outer in [
        span for span in spans for other in spans if span != other and span[0] <= other[0] and other[1] <= span[1]
    ]:
        spans = [span for span in spans if span != outer]  # the innermost are meant
    gone = [position for text in snippet.gone for position in places_of(snippet.before, text)]
    pieces: list[list[str]] = [[]]
    for token in tokens(snippet.before):
        is_inside = any(start <= token.start and token.end <= end for start, end in spans) or token.start in gone
        if is_inside:
            pieces.append([])
        else:
            pieces[-1].append(token.string)
    added = [position for text in snippet.added for position in places_of(snippet.after, text)]
    after = [token.string for token in tokens(snippet.after) if token.start not in added]
    kept = [[text for text in piece if text != "."] for piece in pieces]  # the dot of a link stands before its span
    after = [text for text in after if text != "."]
    position = 0
    for piece in (piece for piece in kept if piece):
        while after[position : position + len(piece)] != piece:
            position += 1
            assert position < len(after), f"{piece} is not in the text any more"
        position += len(piece)
    assert not kept[-1] or after[-len(kept[-1]) :] == kept[-1]
    assert kept[0] == after[: len(kept[0])]


def tokens(text: str) -> list[tokenize.TokenInfo]:
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    return [
        token for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline) if token.type not in skipped
    ]


def places_of(text: str, line: str) -> list[tuple[int, int]]:
    """Where the tokens of a line stand, the last time it does."""
    wanted = [token.string for token in tokens(line)]
    all_tokens = tokens(text)
    starts = [
        i for i in range(len(all_tokens)) if [token.string for token in all_tokens[i : i + len(wanted)]] == wanted
    ]
    assert starts, f"{line!r} is not in the text"
    return [token.start for token in all_tokens[starts[-1] : starts[-1] + len(wanted)]]
