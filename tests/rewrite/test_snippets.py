"""Real scripts, rewritten: the text is the expected one, only the intended calls differ, it runs, and its elements are those of
the recorded pipeline replayed with the same edits.
"""

from __future__ import annotations

import contextlib
import typing
from pathlib import Path

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.calls import Call
from advisor.model.edits import BuildOnce, Edit, SplitFlatMap, SplitMap, VectorizeParts, VectorizeRagged
from advisor.prove.texts.graph_difference import difference, unstable_fields
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.shared_calls import edited_ids, spread
from tests.in_one_line import in_one_line
from tests.rewrite import snippets
from tests.rewrite.kept_tokens import check_tokens
from tests.rewrite.script_runs import elements, recorded_again, replayed, run
from tests.rewrite.snippets import chains, files, forms, inner, vectorized, windows
from tests.rewrite.snippets.not_plain import NOT_PLAIN

KINDS = (chains, forms, files, vectorized, inner, windows)
SNIPPETS = {name: snippet for kind in KINDS for name, snippet in kind.SNIPPETS.items()}


def test_there_are_at_least_sixty():
    assert len(SNIPPETS) == sum(len(kind.SNIPPETS) for kind in KINDS) >= 60


METHODS = ("map", "filter", "batch", "shuffle", "cache", "prefetch", "with_options", "range", "from_tensor_slices", "window",
           "flat_map")  # fmt: skip


def test_every_kind_of_edit_is_among_them():
    """Each is replayed and written into a real script, and both give the same elements.

    Split functions have scripts of their own, in `test_halves.py`; loops have them in `test_build_once.py`, functions
    that are vectorised in parts in `test_batch_parts.py`, and those of texts in `test_ragged_function.py`.
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
    assert in_one_line(after.decode(snippet.encoding)) == in_one_line(snippet.after)
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
