"""A bare profile laid beside a script: the same lines as the recording has, and none where two would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.graph import analyse, source_calls
from advisor.graph.inferred_calls import infer_calls
from advisor.graph.source_alignment import align_source
from advisor.model.codec import decode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Recording
from advisor.profile import read_trace
from tests.profile.made_profile import ProfileBuilder

DATA = Path(__file__).parents[1] / "data"
RUNS = sorted(path.parent.name for path in DATA.glob("*/recording.json"))


def lines_of(analysis) -> list[tuple[str, tuple[tuple[str, int, int, int], ...]]]:
    """Per iterator its calls that stand in the script: (method, line, column, end column)."""
    return [
        (
            it.long_name,
            tuple(
                (call.method, call.site.line, call.site.column, call.site.end_column)
                for call in it.calls
                if call.site and call.library is None and call.made_by is None
            ),
        )
        for pipeline in analysis.pipelines
        for it in pipeline.iterators
    ]


@pytest.mark.parametrize("name", RUNS)
def test_real_captures_get_the_lines_that_were_recorded(name):
    folder = DATA / name
    recording = decode((folder / "recording.json").read_bytes(), Recording)
    recorded = dict(lines_of(analyse(read_trace(folder), recording, name)))
    aligned = align_source(analyse(read_trace(folder), None, name), DATA / "scripts" / f"{name}.py")
    of_operations = dict(lines_of(aligned))
    aligned = {long_name: calls for long_name, calls in of_operations.items() if calls}
    assert aligned, "something is found in every one of them"
    for long_name, calls in aligned.items():
        if recorded.get(long_name):  # iterators that a library made have no call of the user's in the recording
            assert calls == recorded[long_name], long_name
    assert {long_name for long_name, calls in recorded.items() if calls} <= set(aligned)


def profile(tmp_path, *types: str, **parameters):
    """An analysis of a made-up chain, root first; `Map__parallelism=4` gives an iterator a parameter."""
    made = ProfileBuilder()
    line = made.host.line("python")
    for step in range(5):
        name = "Iterator"
        for depth, kind in enumerate(types):
            name += f"::{kind}"
            own = {key.partition("__")[2]: value for key, value in parameters.items() if key.startswith(f"{kind}__")}
            line.event(name, step * 100 + depth, step * 100 + 90 - depth, id=depth + 1, parent_id=depth, **own)
    return analyse(read_trace(made.write(tmp_path / "h.xplane.pb")), None, "made")


def aligned_lines(tmp_path, analysis, script: str) -> tuple[dict[str, list[tuple[str, int]]], str]:
    path = tmp_path / "train.py"
    path.write_text(script)
    aligned = align_source(analysis, path)
    calls = {
        it.name: [(call.method, call.site.line) for call in it.calls]
        for pipeline in aligned.pipelines
        for it in pipeline.iterators
    }
    return calls, aligned.warnings[-1]


def test_variables_functions_and_branches_are_followed(tmp_path):
    script = """
import tensorflow as tf
SIZE = 32
def prepare(ds, training):
    if training:
        ds = ds.shuffle(1000)
    ds = ds.map(parse)
    return ds.batch(SIZE), 7
train, number = prepare(tf.data.Dataset.range(100), True)
"""
    analysis = profile(tmp_path, "Root", "BatchV2", "Map", "Shuffle", "Range", BatchV2__batch_size=32)
    calls, said = aligned_lines(tmp_path, analysis, script)
    assert calls == {
        "Root": [],
        "BatchV2": [("batch", 8)],
        "Map": [("map", 7)],
        "Shuffle": [("shuffle", 6)],
        "Range": [("range", 9)],
    }
    assert "not run" in said


def test_fused_calls(tmp_path):
    script = """
ds = tf.data.Dataset.from_tensor_slices(x)
ds = ds.shuffle(10).repeat()
ds = (ds
      .map(f)
      .batch(8))
"""
    analysis = profile(tmp_path, "Model", "MapAndBatch", "ShuffleAndRepeat", "TensorSlice")
    calls, _ = aligned_lines(tmp_path, analysis, script)
    assert calls["MapAndBatch"] == [("map", 5), ("batch", 6)]
    assert calls["ShuffleAndRepeat"] == [("shuffle", 3), ("repeat", 3)]


def test_two_pipelines_of_one_shape_are_ambiguous_only_where_they_differ(tmp_path):
    script = """
def make(path):
    return tf.data.TFRecordDataset(path).map(decode)
train = make(a).batch(8)
valid = make(b).batch(8)
"""
    calls, said = aligned_lines(tmp_path, profile(tmp_path, "Root", "BatchV2", "Map", "TFRecord"), script)
    assert calls["Map"] == [("map", 3)], "both ways lead to the same line"
    assert calls["TFRecord"] == [("TFRecordDataset", 3)]
    assert calls["BatchV2"] == [], "line 4 or 5"
    assert "Several calls in train.py match BatchV2" in said


def test_parameters_tell_pipelines_apart(tmp_path):
    script = """
train = tf.data.Dataset.range(9).batch(8)
valid = tf.data.Dataset.range(9).batch(64)
"""
    calls, _ = aligned_lines(tmp_path, profile(tmp_path, "Root", "BatchV2", "Range", BatchV2__batch_size=64), script)
    assert calls["BatchV2"] == [("batch", 3)]
    assert calls["Range"] == [("range", 3)]


def test_nothing_is_claimed_where_nothing_fits(tmp_path):
    calls, said = aligned_lines(
        tmp_path, profile(tmp_path, "Root", "Map", "Range"), "ds = tf.data.Dataset.range(9).batch(8)\n"
    )
    assert not any(calls.values())
    assert "No dataset in train.py has the structure" in said


def test_a_library_dataset_may_be_anything_below(tmp_path):
    script = "ds = tfds.load('mnist', split='train')\nds = ds.map(f).batch(4)\n"
    calls, _ = aligned_lines(
        tmp_path, profile(tmp_path, "Root", "BatchV2", "ParallelMapV2", "Prefetch", "FlatMap", "TFRecord"), script
    )
    assert calls["BatchV2"] == [("batch", 2)]
    assert calls["ParallelMapV2"] == [("map", 2)]
    assert calls["TFRecord"] == []


def test_a_cut_off_pipeline_is_aligned_as_far_as_it_goes(tmp_path):
    script = "ds = tf.data.Dataset.range(9).shuffle(5).map(f).prefetch(2)\n"
    calls, _ = aligned_lines(tmp_path, profile(tmp_path, "Root", "Prefetch", "ParallelMapV2"), script)
    assert calls["Prefetch"] == [("prefetch", 1)]
    assert calls["ParallelMapV2"] == [("map", 1)]


def test_the_script_is_not_run(tmp_path):
    script = f"open({str(tmp_path / 'ran')!r}, 'w')\nds = tf.data.Dataset.range(9).batch(8)\n"
    aligned_lines(tmp_path, profile(tmp_path, "Root", "BatchV2", "Range"), script)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "script",
    ["def f(:\n", "\0", "x = " + "(" * 5000 + ")" * 5000, "a" + ".b()" * 20_000, b"\xff\xfe".decode("latin-1")],
)
def test_what_is_no_python_is_one_sentence_or_nothing(tmp_path, script):
    analysis = profile(tmp_path, "Root", "BatchV2", "Range")
    path = tmp_path / "train.py"
    path.write_text(script, "utf-8")
    try:
        align_source(analysis, path)
    except AdvisorError as error:
        assert str(path) in str(error)


def test_a_script_made_to_take_for_ever_does_not(tmp_path, monkeypatch):
    looked_at = 0
    value = source_calls._Reader._value

    def counted(self, *args):
        nonlocal looked_at
        looked_at += 1
        assert looked_at <= 2 * source_calls.MAX_STEPS, "expressions looked at"
        return value(self, *args)

    monkeypatch.setattr(source_calls, "MAX_STEPS", 2_000)
    monkeypatch.setattr(source_calls._Reader, "_value", counted)
    functions = "\n".join(f"def f{n}(d):\n    return f{n + 1}(f{n + 1}(d).map(g))" for n in range(40))
    script = f"{functions}\ndef f40(d):\n    return d\nds = f0(tf.data.Dataset.range(9))\n"
    aligned_lines(tmp_path, profile(tmp_path, "Root", "Map", "Range"), script)
    assert looked_at > source_calls.MAX_STEPS


def test_recorded_runs_keep_their_calls():
    folder = DATA / "keras_fit"
    recording = decode((folder / "recording.json").read_bytes(), Recording)
    analysis = analyse(read_trace(folder), recording, "run")
    aligned = align_source(analysis, DATA / "scripts/keras_fit.py")
    assert aligned.pipelines == analysis.pipelines
    assert "--source is ignored" in aligned.warnings[-1]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("\ufeff", "utf-8"),
        ("# coding: latin-1\nname = 'é'\n", "latin-1"),
        ("first = 1\n\x0c\nname = '\x1c\u2028é'\n", "utf-8"),
    ],
    ids=["byte order mark", "declared encoding", "characters that end a line for str.splitlines alone"],
)
def test_a_script_is_read_as_python_reads_it(tmp_path, head, encoding):
    text = head + "import tensorflow as tf\nds = tf.data.Dataset.range(9); é = ds.map(parse)\n"
    path = tmp_path / "train.py"
    path.write_bytes(text.encode(encoding))
    aligned = align_source(profile(tmp_path, "Root", "Map", "Range"), path)
    (call,) = [call for call in aligned.calls if call.method == "map"]
    assert call.site.line == text.count("\n")
    assert text.split("\n")[call.site.line - 1][call.site.column - 1 :].startswith("map(parse)")


FORMS = DATA / "interleave_forms"
LINES = {
    "from_list_of_files": {
        "MapAndBatch": [("map", 7), ("batch", 7)],
        "Interleave": [("interleave", 6)],
        "FiniteRepeat": [("repeat", 6)],
        "FlatMap": [("TFRecordDataset", 6)],
        "TFRecord": [("TFRecordDataset", 6)],
    },
    "imported_reader": {
        "BatchV2": [("batch", 8)],
        "Shuffle": [("shuffle", 7)],
        "ParallelInterleaveV4": [("interleave", 6)],
        "FlatMap": [("TFRecordDataset", 6)],
        "TFRecord": [("TFRecordDataset", 6)],
    },
    "lambda_reader": {
        "BatchV2": [("batch", 6)],
        "Interleave": [("interleave", 5)],
        "FlatMap": [("TextLineDataset", 5)],
        "TextLine": [("TextLineDataset", 5)],
    },
    "named_function": {
        "BatchV2": [("batch", 11)],
        "ParallelInterleaveV4": [("interleave", 10)],
        "Map": [("map", 6)],
        "FiniteSkip": [("skip", 5)],
        "FlatMap": [("TextLineDataset", 4)],
        "TextLine": [("TextLineDataset", 4)],
    },
    # the inner Interleave stands for the call in line 4, the outer one for that in line 7
    "nested_interleave": {
        "BatchV2": [("batch", 8)],
        "Interleave": [("interleave", 7), ("interleave", 4)],
        "FiniteRepeat": [("repeat", 4)],
        "FromTensor": [("from_tensors", 4)],
        "Range": [("range", 4), ("range", 7)],
    },
    # what `functools.partial` calls is not followed
    "partial_reader": {"BatchV2": [("batch", 8)], "Interleave": [("interleave", 7)]},
    "range_inside": {
        "BatchV2": [("batch", 6)],
        "Filter": [("filter", 5)],
        "Interleave": [("interleave", 4)],
        "Map": [("map", 4)],
        "Range": [("range", 4)],
    },
    "reader_class": {
        "BatchV2": [("batch", 5)],
        "Interleave": [("interleave", 4)],
        "FlatMap": [("TFRecordDataset", 4)],
        "TFRecord": [("TFRecordDataset", 4)],
    },
    "reader_class_parallel": {
        "Prefetch": [("prefetch", 6)],
        "MapAndBatch": [("map", 5), ("batch", 6)],
        "ParallelInterleaveV4": [("interleave", 4)],
        "FlatMap": [("TFRecordDataset", 4)],
        "TFRecord": [("TFRecordDataset", 4)],
    },
    "unshuffled_files": {
        "BatchV2": [("batch", 5)],
        "Shuffle": [("shuffle", 5)],
        "Interleave": [("interleave", 4)],
        "FlatMap": [("TFRecordDataset", 4)],
        "TFRecord": [("TFRecordDataset", 4)],
    },
}


@pytest.mark.parametrize("form", sorted(LINES))
def test_interleave_forms_are_matched_in_real_captures(form):
    analysis = analyse(read_trace(FORMS / f"{form}.xplane.pb.gz"), None, form)
    aligned = align_source(analysis, FORMS / f"{form}.py")
    lines_of_nodes: dict[str, list[tuple[str, int]]] = {}
    for it in aligned.pipelines[0].iterators:
        lines = [(call.method, call.site.line) for call in it.calls]
        if lines:
            lines_of_nodes[it.name] = lines_of_nodes.get(it.name, []) + lines
    assert lines_of_nodes == LINES[form]


def test_a_script_that_does_not_fit_leaves_the_inferred_calls(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("ds = tf.data.Dataset.range(9).batch(8)\n")
    analysis = analyse(read_trace(FORMS / "reader_class.xplane.pb.gz"), None, "x")
    aligned = infer_calls(align_source(analysis, path), has_source=True)
    methods = {it.name: [call.method for call in it.calls] for it in aligned.pipelines[0].iterators}
    assert methods["BatchV2"] == ["batch"]
    assert methods["Interleave"] == ["interleave"]
    assert "No dataset in train.py has the structure" in aligned.warnings[-1]
