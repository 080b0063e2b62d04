"""What the recording sees of state that the script changes while it trains."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from advisor.capture.instrument.captured_state import captured_by, named_objects
from advisor.capture.instrument.fingerprints import python_fingerprint
from advisor.capture.instrument.state_watch import StateWatch
from advisor.host.disk_speed import file_names
from advisor.model.calls import Call
from advisor.model.codec import decode, encode
from advisor.model.recording import Recording
from advisor.predict import cache_assumptions, cache_obstacles
from advisor.testing import map_, pipeline, source

FILES = Call("c1", "TFRecordDataset", None)


@pytest.fixture
def state() -> StateWatch:
    calls = (FILES, Call("c2", "map", None, inputs=("c1",)), Call("g1", "from_generator", None))
    return StateWatch(lambda: calls, pytest.fail)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"1")
    os.utime(path, (1, 1))  # long before the run
    return path


def test_a_file_that_is_rewritten_between_epochs_is_a_change(state, file):
    state.note_call(FILES, None, [str(file)])
    state.epoch("c2")
    assert state.observed()[0].change is None
    file.write_bytes(b"22")
    state.epoch("c2")
    (seen,) = state.observed()
    assert (seen.kind, seen.name, seen.call_ids, seen.epochs) == ("file", str(file), ("c1",), 2)
    assert (seen.change.how, seen.change.epoch) == ("changed", 1)


def test_strings_that_are_no_names_of_files_do_not_end_the_watch(state, file):
    """`from_tensor_slices` may be given encoded images."""
    state.note_call(FILES, None, ["\x89PNG\r\n\x00\x00", str(file), "x" * 10_000, ""])
    assert [seen.name for seen in state.observed()] == [str(file)]


def test_a_file_of_the_same_size_with_another_time_has_changed(state, file):
    state.note_call(FILES, None, [str(file)])
    state.epoch("c1")
    os.utime(file, (2, 2))
    assert state.observed()[0].change is not None


def test_a_file_that_stays_is_no_change(state, file):
    state.note_call(FILES, None, [str(file)])
    for _ in range(3):
        state.epoch("c2")
    (seen,) = state.observed()
    assert seen.change is None and not seen.is_written_before and seen.epochs == 3


def test_opening_a_file_for_writing_is_a_change_even_before_its_time_changes(state, file):
    state.note_call(FILES, None, [str(file)])
    state.opened_for_writing(str(file), lambda: ("train.py", 7))
    assert state.observed()[0].is_written_before and state.observed()[0].change is None
    state.epoch("c1")
    state.opened_for_writing(str(file.parent / ".." / file.parent.name / file.name), lambda: ("train.py", 9))
    change = state.observed()[0].change
    assert (change.how, change.file, change.line) == ("was opened for writing", "train.py", 9)


def test_a_file_that_the_run_made_may_be_written_again(state, file):
    os.utime(file)
    state.note_call(FILES, None, [str(file)])
    assert state.observed()[0].is_written_before


def test_a_dataset_that_tfds_prepares_is_written_once(state, file):
    (file.parent / "dataset_info.json").write_text("{}")
    os.utime(file)
    state.note_call(FILES, None, [str(file)])
    state.opened_for_writing(str(file), lambda: ("train.py", 7))
    assert not state.observed()[0].is_written_before
    state.epoch("c1")
    state.opened_for_writing(str(file), lambda: ("train.py", 9))
    assert state.observed()[0].change is not None, "a later write counts like any other"


def test_of_many_files_the_changed_one_is_named(state, file, tmp_path):
    names = [str(file)]
    for number in range(20):
        names.append(str(tmp_path / f"{number}"))
        Path(names[-1]).write_bytes(b"x")
    state.note_call(FILES, None, names)
    state.epoch("c1")
    Path(names[7]).unlink()
    assert state.observed()[0].name == names[7]


def test_lists_and_names_that_a_generator_reads(state):
    samples, position = [1, 2], 0

    def generate():
        yield from samples[position:]

    state.note_call(Call("g1", "from_generator", None), generate, [])
    state.epoch("g1")
    samples.append(3)
    state.epoch("g1")
    position = 1
    state.epoch("g1")
    changes = {item.name: item.change.epoch for item in state.observed() if item.change}
    assert changes == {"samples": 1, "position": 2}


def test_one_pipelines_epochs_are_not_anothers(state, file):
    state.note_call(FILES, None, [str(file)])
    state.epoch("g1")
    file.write_bytes(b"22")
    state.epoch("g1")
    assert state.observed()[0].change is None and state.observed()[0].epochs == 0


def test_objects_are_compared_by_content_as_far_as_that_is_known():
    class Own:
        pass

    own = Own()
    assert python_fingerprint([1, {"a": (2.0, None)}]) == python_fingerprint([1, {"a": (2.0, None)}])
    assert python_fingerprint([1]) != python_fingerprint((1,)) != python_fingerprint([2])
    assert python_fingerprint([own]) == python_fingerprint([own]) != python_fingerprint([Own()])
    assert python_fingerprint(own) is None and python_fingerprint(list(range(100_000))) is None
    endless: list = []
    endless.append(endless)
    assert python_fingerprint(endless) is None


def test_names_that_a_function_reaches():
    class Reader:
        def __init__(self):
            self.rows = [1]

        def read(self):
            return [self.rows, FILES]

    assert {"self", "self.rows", "FILES"} <= {name for name, _ in named_objects(Reader().read)}


def test_names_of_files_in_arguments(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
    assert set(file_names({"file_pattern": str(tmp_path / "*")})) == {str(tmp_path / "a"), str(tmp_path / "b")}
    assert str(tmp_path / "b") in file_names({"path": str(tmp_path)})
    assert file_names({"tensors": (["a", "b"], [1, 2])}) == ["a", "b"]


def test_recordings_of_earlier_versions_can_be_read():
    data = encode({"target": "x", "host": _host(), "script_exit": {"kind": "stopped"}, "calls": [{
        "id": "c", "method": "map", "site": None, "function": {"name": "f", "site": None, "is_stateful": True}}]})  # fmt: skip
    recording = decode(data, Recording)
    assert recording.state is None and recording.calls[0].function.stateful_ops is None


def _host():
    return pipeline(source(), map_("f", ms=1), consumer_ms=1).analysis.host


# -- the real thing: one script, whose pipelines each read something else that its loop changes

SCRIPT = """\
    import time
    import tensorflow as tf

    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    fixed = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2], tf.int64, tf.int64), 0)
    kept, level, step = tf.Variable(1, dtype=tf.int64), tf.Variable(1, dtype=tf.int64), tf.Variable(0, dtype=tf.int64)
    samples = [1, 2]

    def write(count):
        with tf.io.TFRecordWriter("rewritten") as writer:
            for number in range(count):
                writer.write(b"x")

    def generate():
        yield from samples

    write(2)
    table.insert(tf.range(8, dtype=tf.int64), tf.range(8, dtype=tf.int64))
    numbers = tf.data.Dataset.range(8)
    looked_up = numbers.map(lambda x: table.lookup(x))
    scaled = numbers.map(lambda x: x * level)
    steps = numbers.map(lambda x: x + step)
    constant = numbers.map(lambda x: fixed.lookup(x) * kept)
    rewritten = tf.data.TFRecordDataset("rewritten")
    lines = tf.data.TextLineDataset("lines.txt")
    replaced = tf.data.TextLineDataset("replaced.txt")
    generated = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int32))

    @tf.function
    def count():
        step.assign_add(1)

    for epoch in range(3):
        for dataset in (looked_up, scaled, steps, constant, rewritten, lines, replaced, generated):
            for element in dataset:
                pass
        table.insert(tf.constant([1], tf.int64), tf.constant([epoch], tf.int64))
        level.assign_add(1)
        count()
        write(3 + epoch)
        samples.append(epoch)
        tf.io.gfile.copy("lines.txt", "next.txt", overwrite=True)
        tf.io.gfile.rename("next.txt", dst="replaced.txt", overwrite=True)
    for element in numbers.map(lambda x: x + 1):  # the training loop
        time.sleep(0.02)
    """


@pytest.mark.long
@pytest.mark.tensorflow
def test_what_the_training_loop_changes_between_epochs(watch, tmp_path):
    for name in ("lines.txt", "replaced.txt"):
        (tmp_path / name).write_text("a\nb\n")
        os.utime(tmp_path / name, (1, 1))
    run = watch(SCRIPT)
    lines = SCRIPT.splitlines()

    def line(text: str) -> int:
        return next(number for number, line in enumerate(lines, 1) if text in line)

    changed = {item.name: item.change for item in run.recording.state if item.change is not None}
    files = {str(tmp_path / name) for name in ("rewritten", "replaced.txt")}
    assert set(changed) == {"table", "level", "step", "samples"} | files
    assert changed[str(tmp_path / "replaced.txt")].line == line("tf.io.gfile.rename")
    assert changed["table"].line == line("table.insert(tf.constant")
    assert changed["level"].line == line("level.assign_add")
    assert (changed["step"].line, changed["step"].epoch) == (line("step.assign_add"), 1)  # inside a tf.function
    assert changed[str(tmp_path / "rewritten")].line == line("tf.io.TFRecordWriter")
    kept = next(item for item in run.recording.state if item.name == "kept")
    assert kept.epochs == 3 and kept.is_compared and kept.change is None

    analysis = dataclasses.replace(
        pipeline(source(), map_("f", ms=1), consumer_ms=1).analysis, calls=run.recording.calls, recording=run.recording
    )
    by_line = {call.site.line: call for call in run.recording.calls if call.made_by is None}

    def verdict(text: str) -> str:
        call = by_line[line(text)]
        return "; ".join(o.reason for o in cache_obstacles(analysis, call)) or "; ".join(
            cache_assumptions(analysis, call)
        )

    insert = line("table.insert(tf.constant")
    assert verdict("looked_up = ") == (
        f"reads the mutable table `table`, which was changed after epoch 1 had begun (train.py:{insert})"
    )
    assert verdict("scaled = ").startswith("reads the variable `level`, which was assigned after epoch 1")
    assert verdict("steps = ").startswith("reads the variable `step`, which was assigned after epoch 1 had begun")
    assert verdict("constant = ") == (
        "the variable `kept` is not assigned while training runs (it was the same at the beginning of 3 epochs)"
    )
    assert verdict("rewritten = ").startswith("reads the file rewritten, which was opened for writing after epoch 1")
    assert verdict("lines = ") == ""
    assert "reads the Python object `samples`, which changed" in verdict("generated = ")


@pytest.mark.tensorflow
def test_the_object_behind_a_handle_is_found_without_a_name():
    tf = pytest.importorskip("tensorflow")
    tables = [tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)]
    dataset = tf.data.Dataset.range(3).map(lambda x: tables[0].lookup(x))
    (captured,) = captured_by(dataset._functions()[0].function.graph, None)
    assert captured.owner is tables[0] and captured.kind == "mutable table"
