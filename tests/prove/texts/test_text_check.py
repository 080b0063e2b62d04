"""The patched text against what was proved, on real TensorFlow: right texts pass, planted wrong ones are named."""

from __future__ import annotations

import linecache
import runpy
import time
from pathlib import Path

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.capture.request import CaptureRequest
from advisor.model.call_graph import CallGraph
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument, Vectorize
from advisor.model.errors import ScriptFailed
from advisor.prove.measure.script_windows import ScriptWindow
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts import text_check
from advisor.prove.texts.graph_difference import difference
from advisor.prove.texts.text_check import TextCheck
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited import CannotReplay
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.shared_calls import spread

AUTOTUNE = Code("tf.data.AUTOTUNE")
SCRIPT = """
import tensorflow as tf

class Config:
    pass

config = Config()
config.scale = 2
config.fn = lambda x: x * 2

def augment(x):
    return x * config.scale

class Data:
    def make(self, n):
        self.ds = tf.data.Dataset.range(n)
        self.ds = self.ds.map(augment)
        return self.ds

def val():
    return tf.data.Dataset.range(5).map(config.fn).batch(2)

val_ds = val()
ds = Data().make(20)
ds = ds.map(config.fn)
ds = ds.shuffle(8, seed=1)
ds = ds.batch(4)
"""
RIGHT = SCRIPT.replace("map(augment)", "map(augment, num_parallel_calls=tf.data.AUTOTUNE)").replace(
    "ds = ds.batch(4)", "ds = ds.batch(4).cache()"
)
WRONG = {
    "nothing done": (lambda text: SCRIPT, "is called instead of cache"),
    "another argument": (lambda text: text.replace("ds.batch(4)", "ds.batch(3)"), "batch_size=3"),
    "another function": (
        lambda text: text.replace("map(augment,", "map(lambda x: x * 2,"),
        "differs from the one that was proved",
    ),
    "an attribute rebound before the call": (
        lambda text: text.replace("ds = ds.map(config.fn)", "config.fn = lambda x: x * 3\nds = ds.map(config.fn)"),
        "differs from the one that was proved",
    ),
    "a value that the function reads": (
        lambda text: text.replace("self.ds = self.ds.map", "config.scale = 3\n        self.ds = self.ds.map"),
        "differs from the one that was proved",
    ),
    "another order": (
        lambda text: text.replace(
            "ds = ds.shuffle(8, seed=1)\nds = ds.batch(4)", "ds = ds.batch(4).shuffle(8, seed=1)"
        ),
        "is called instead of",
    ),
    "a call too many": (lambda text: text.replace(".cache()", ".cache().prefetch(1)"), "is called instead of"),
    "another dataset": (lambda text: text.replace("batch(2)", "batch(2, drop_remainder=True)"), "drop_remainder=True"),
    "a dataset more": (lambda text: text + "\nother = tf.data.Dataset.range(3)\n", "creates 3 datasets instead of 2"),
}


def recorded_run(recorded, path, text):
    """The calls of a script with this text."""
    path.write_text(text)
    recorder = recorded.recorder
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    linecache.clearcache()  # AutoGraph reads lambdas as they are written
    datasets = runpy.run_path(str(path))
    recorder.is_open = False
    return recorded_graph(recorder, call_id_of(datasets["ds"]))


def edits_of(calls):
    parse = next(call.id for call in calls if call.method == "map" and call.site.line == 17)
    last = [call.id for call in calls if call.method == "batch"][-1]
    return SetArgument(parse, "num_parallel_calls", AUTOTUNE), InsertAfter(last, "cache")


@pytest.mark.tensorflow
def test_planted_wrong_texts_are_named_and_the_right_one_is_not(recorded, tmp_path):
    path = tmp_path / "train.py"
    graph = recorded_run(recorded, path, SCRIPT)
    calls = {call.id: call for call in recorded.recorder.calls()}
    expected = edited_graph(graph, spread(edits_of(calls.values()), calls))
    code = changed_code(SCRIPT.encode(), RIGHT.encode())
    right = "\n# moved down\n" + RIGHT
    assert difference(expected, recorded_run(recorded, path, right), changed_code=code) is None
    for name, (change, reason) in WRONG.items():
        text = change(RIGHT)
        assert text != RIGHT, name
        reported = difference(expected, recorded_run(recorded, path, text), changed_code=code)
        assert reported is not None, name
        assert reason in reported, (name, reported)


@pytest.mark.tensorflow
def test_a_function_that_reads_another_value_where_it_was_moved_to_is_seen(recorded, tmp_path):
    """The rewriter cannot see that `augment` reads `config.scale`, so only the recorded calls tell."""
    before = SCRIPT.replace("ds = ds.map(config.fn)\nds = ds.shuffle(8, seed=1)\n",
                            "ds = ds.map(augment)\nconfig.scale = 5\nds = ds.shuffle(8, seed=1)\n")  # fmt: skip
    path = tmp_path / "train.py"
    graph = recorded_run(recorded, path, before)
    calls = {call.id: call for call in recorded.recorder.calls()}
    moved = [call.id for call in calls.values() if call.method == "map"][-1]
    edits = (MoveAfter(moved, next(call.id for call in calls.values() if call.method == "shuffle")),)
    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    text = patch.files[path.resolve()][1].decode()
    assert "config.scale = 5\nds = ds.shuffle(8, seed=1)\nds = ds.map(augment)" in text
    reported = difference(edited_graph(graph, edits), recorded_run(recorded, path, text))
    assert reported is not None
    assert "differs from the one that was proved" in reported


VECTORISED = """
import tensorflow as tf

def center(row):
    return row - tf.reduce_mean(row)

def spread(row):
    return row - tf.reduce_max(row)

rows = tf.reshape(tf.range(20.0), [10, 2])
ds = tf.data.Dataset.from_tensor_slices(rows)
ds = ds.map(center).shuffle(8, seed=1).batch(4)
"""


@pytest.mark.tensorflow
def test_the_text_of_a_vectorised_function_must_trace_the_proved_graph(recorded, tmp_path):
    path = tmp_path / "train.py"
    before = recorded_run(recorded, path, VECTORISED)
    calls = {call.id: call for call in recorded.recorder.calls()}
    moved, batch = (next(call.id for call in calls.values() if call.method == name) for name in ("map", "batch"))
    edits = (MoveAfter(moved, batch), Vectorize(moved))
    graph = recorded_graph(recorded.recorder, before.consumer, edits=edits)
    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    right = patch.files[path.resolve()][1].decode()
    expected = edited_graph(graph, edits)
    assert difference(expected, recorded_run(recorded, path, right)) is None
    for old, new in (
        ("tf.function(center)", "tf.function(spread)"),
        ("tf.function(center)", "tf.function(lambda row: 2 * center(row))"),
        ("tf.vectorized_map(tf.function(center), rows_2, fallback_to_while_loop=False)", "center(rows_2)"),
        (".batch(4)", ".batch(4, drop_remainder=True)"),
    ):
        assert old in right
        reported = difference(expected, recorded_run(recorded, path, right.replace(old, new)))
        assert reported is not None, new
    with pytest.raises(CannotReplay, match="unknown"):
        edited_graph(before, edits)


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_patched_script_is_held_at_its_first_element(tmp_path, monkeypatch):
    """A session on the script as it is, the right patch, and one that does something else; random values are no difference."""
    (tmp_path / "datasets").mkdir()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "datasets"))  # what a run writes there is not thrown away
    path = tmp_path / "train.py"
    text = "import os, random\nkept = os.environ['TFDS_DATA_DIR']\nopen(kept + '/begun', 'w')\n" + SCRIPT.replace(
        "seed=1", "seed=random.randint(0, 10**9)"
    ) + "for x in val_ds.take(1): pass\nfor x in ds: pass\nopen(kept + '/trained', 'w')\n"  # fmt: skip
    path.write_text(text)
    request = CaptureRequest(tmp_path / "run", path)
    lines = []
    with ProofSession(request, None, 120.0, lambda progress: lines.append(progress.text)) as session:
        graph = session.call_graph()
    assert graph.consumption == 2
    check = TextCheck(request, (), graph, time.monotonic() + 120, lambda progress: lines.append(progress.text))
    batch = [call.id for call in graph.calls if call.method == "batch"][-1]
    edits = (InsertAfter(batch, "prefetch", (("", 1),)),)
    right = text.replace("ds = ds.batch(4)", "ds = ds.batch(4).prefetch(1)")
    verdict = check.check(edits, Patch({path: (text.encode(), right.encode())}))
    assert (verdict.note, verdict.is_proved) == ("", True)
    assert check.runs == 2  # once more as it is, for the seed
    assert check.check(edits, Patch({path: (text.encode(), right.encode())})) is verdict
    wrong = right.replace("prefetch(1)", "prefetch(1).take(2)")
    verdict = check.check(edits, Patch({path: (text.encode(), wrong.encode())}))
    assert verdict.is_broken
    assert "take at line" in verdict.note
    assert check.runs == 3
    assert [file.name for file in (tmp_path / "datasets").iterdir()] == ["begun"]
    assert path.read_text() == text


TRAINED = (
    SCRIPT
    + """
import time
for x in val_ds.take(1): pass
while True:
    for x in ds:
        time.sleep(0.005)
"""
)


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.slow
def test_a_text_that_is_measured_next_is_checked_in_its_first_run(tmp_path):
    """One start for both; once a text is wrong, the others are only held."""
    path = tmp_path / "train.py"
    path.write_text(TRAINED)
    request = CaptureRequest(tmp_path / "run", path)
    with ProofSession(request, None, 120.0, lambda progress: None) as session:
        graph = session.call_graph()
    batch = [call.id for call in graph.calls if call.method == "batch"][-1]
    edits = (InsertAfter(batch, "prefetch", (("", 1),)),)
    window = ScriptWindow(CaptureRequest(tmp_path / "unused", path, warmup=5, steps=20), 10.0)
    said = []
    end = time.monotonic() + 240
    check = TextCheck(request, (), graph, end, lambda progress: said.append(progress.phase), lambda edits: window)

    def patch(link):
        text = TRAINED.replace("ds = ds.batch(4)", f"ds = ds.batch(4){link}")
        return Patch({path: (TRAINED.encode(), text.encode())})

    right, wrong = patch(".prefetch(1)"), patch(".prefetch(1).take(2)")
    verdict = check.check(edits, right)
    assert (verdict.note, check.runs) == ("", 1)
    early = check.early_run(right, window)
    assert early is not None
    assert early.steps.count >= 15 and 4e6 < early.steps.step_ns < 50e6
    assert early.seconds > 1
    assert check.early_run(right, ScriptWindow(window.request, 11.0)) is None
    assert check.early_run(wrong, window) is None
    check.forget_early_runs()
    assert check.early_run(right, window) is None
    assert "take at line" in check.check(edits, wrong).note
    said.clear()
    assert check.check(edits, patch(".prefetch(2)")).is_broken
    assert "warming up" not in said and check.early_run(patch(".prefetch(2)"), window) is None


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_script_that_fails_after_its_first_element_has_been_checked(tmp_path):
    path = tmp_path / "train.py"
    text = SCRIPT + "for x in ds: raise SystemExit('no training')\n"
    path.write_text(text)
    request = CaptureRequest(tmp_path / "run", path)
    with ProofSession(request, None, 120.0, lambda progress: None) as session:
        graph = session.call_graph()
    batch = [call.id for call in graph.calls if call.method == "batch"][-1]
    edits = (InsertAfter(batch, "prefetch", (("", 1),)),)
    window = ScriptWindow(CaptureRequest(tmp_path / "unused", path, warmup=5, steps=20), 10.0)
    check = TextCheck(request, (), graph, time.monotonic() + 240, lambda progress: None, lambda edits: window)
    patch = Patch({path: (text.encode(), text.replace("ds.batch(4)", "ds.batch(4).prefetch(1)").encode())})
    assert check.check(edits, patch).is_proved
    assert (check.runs, check.early_run(patch, window)) == (1, None)


@pytest.mark.parametrize("fails_anyway", [False, True])
def test_a_script_that_fails_without_the_changes_too_is_not_their_fault(fails_anyway, monkeypatch, tmp_path):
    """The runs are simulated."""
    graph = CallGraph((), "c1")
    deadline = time.monotonic() + 60
    check = TextCheck(CaptureRequest(Path("unused")), (), graph, deadline, lambda progress: None)
    made = []

    def recorded(overlay, what):
        made.append("with" if what.startswith("the changed text") else "without")
        if made[-1] == "with" or fails_anyway:
            raise ScriptFailed("train.py failed: RuntimeError: the data server is down.")
        return graph

    monkeypatch.setattr(check, "_recorded", recorded)
    monkeypatch.setattr(text_check, "edited_graph", lambda graph, edits: graph)
    script = tmp_path / "train.py"
    script.write_text("a = 1\n")
    verdict = check.check((), Patch({script: (b"a = 1\n", b"a = 2\n")}))
    assert made == ["with", "without"]
    assert verdict.is_broken is not fails_anyway
    assert ("failed with the changes, and then without them" in verdict.note) is fails_anyway
