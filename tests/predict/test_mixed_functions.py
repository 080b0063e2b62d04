"""Which functions may be vectorised in parts: those of which every line is known, and whose state cannot change."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from advisor.model.calls import BatchLine, Call, FunctionFacts, Site
from advisor.model.edits import MoveAfter, VectorizeParts
from advisor.model.finding import Safety
from advisor.model.recording import Recording, ScriptExit
from advisor.model.state import CapturedResource
from advisor.predict import mixed_function
from advisor.predict.mixed_functions import Mixed
from advisor.testing import batch, map_, pipeline, source
from tests.prove.run_recordings import HOST

WORD = "TensorSpec(shape=(), dtype=tf.string, name=None)"
MADE = pipeline(source(), map_("f", ms=1), batch(32), consumer_ms=1).analysis
TEXT = "def f(word):\n    code = TABLE.lookup(word)\n    return tf.reverse([code], [0])\nds = ds.map(f).batch(4)\n"
LINES = (
    BatchLine(2, "lookup", {"LookupTableFindV2": 1}, takes_batches=True),
    BatchLine(3, "reverse", {"ReverseV2": 1, "Pack": 1}, takes_batches=False),
)
FUNCTION = FunctionFacts(
    "f", None, False, ops={"LookupTableFindV2": 1, "ReverseV2": 1, "Pack": 1}, stateful_ops=(), batch_lines=LINES,
    resources=(CapturedResource("static table", "TABLE"),), captured=("HashTableV2",),
)  # fmt: skip


def mixed(tmp_path: Path, text: str = TEXT, **changes: object) -> Mixed:
    path = tmp_path / "train.py"
    path.write_text(text)
    function = dataclasses.replace(FUNCTION, site=Site(str(path), 1, 1, 3, 1))
    call_changes = {key: changes.pop(key) for key in ("arguments", "nested_in") if key in changes}
    spec = str(changes.pop("spec", WORD))
    calls = [
        Call("range", "range", None, element_spec=spec),
        Call("map", "map", Site(str(path), 4, 9, 4, 15), ("range",), function=dataclasses.replace(function, **changes)),
        Call("batch", "batch", None, ("map",)),
    ]
    calls[1] = dataclasses.replace(calls[1], **call_changes)
    return mixed_function(dataclasses.replace(MADE, calls=tuple(calls)), calls[1], calls[2])


def test_the_fix_moves_the_map_and_writes_a_function_of_batches(tmp_path):
    fix = mixed(tmp_path).fix
    assert fix is not None and (fix.safety, fix.is_auto, mixed(tmp_path).lines) == (Safety.EXACT, True, (3,))
    move, edit = fix.edits
    assert move == MoveAfter("map", "batch")
    assert isinstance(edit, VectorizeParts) and edit.name == "f_batch" and edit.line == 1


METHOD = """class A:
  def f(self, word):
    code = TABLE.lookup(word)
    return tf.reverse([code], [0])
  def make(self, ds):
    return ds.map(self.f).batch(4)
"""


@pytest.mark.parametrize("is_script", [True, False])
def test_a_method_that_another_file_may_override_is_an_assumption(tmp_path, is_script):
    path = tmp_path / "train.py"
    path.write_text(METHOD)
    lines = tuple(dataclasses.replace(line, line=line.line + 1) for line in LINES)
    function = dataclasses.replace(FUNCTION, site=Site(str(path), 2, 1, 4, 1), batch_lines=lines)
    calls = (
        Call("range", "range", None, element_spec=WORD),
        Call("map", "map", Site(str(path), 6, 12, 6, 26), ("range",), function=function),
        Call("batch", "batch", None, ("map",)),
    )
    recording = Recording("train.py", HOST, ScriptExit("stopped"), argv=("train.py",), cwd=str(tmp_path))
    analysis = dataclasses.replace(MADE, calls=calls, recording=recording if is_script else None)
    fix = mixed_function(analysis, calls[1], calls[2]).fix
    assert fix is not None and fix.is_auto is is_script
    assert fix.assumptions == (() if is_script else ("no class in another file overrides `f`",))
    edit = fix.edits[1]
    assert isinstance(edit, VectorizeParts) and (edit.name, edit.argument, edit.called) == (
        "f_batch",
        "self.f_batch",
        "",
    )


def test_what_it_draws_or_branches_on_is_said_as_for_a_whole_function(tmp_path):
    drawing = mixed(tmp_path, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",)).fix
    branching = mixed(tmp_path, ops={**FUNCTION.ops, "If": 1}).fix
    assert drawing is not None and drawing.safety is Safety.RERANDOMIZED
    assert branching is not None and (branching.safety, branching.is_auto) == (Safety.EXACT, False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"resources": (CapturedResource("mutable table", "TABLE"),)}, "it reads state outside its element"),
        ({"resources": (CapturedResource("variable", "scale"),)}, "it reads state outside its element"),
        ({"resources": ()}, "it reads state outside its element"),
        ({"stateful_ops": ("ReadVariableOp",)}, "it has stateful ops"),
        ({"stateful_ops": None}, "it has stateful ops"),
        ({"random_ops": ("RandomShuffle",)}, "it draws random numbers in a way"),
        ({"python_ops": ("PyFunc",)}, "it runs Python code"),
        ({"text": TEXT.replace("def f", "@wrap\ndef f")}, "the text has no call of map where it was recorded"),
        ({"text": TEXT.replace("(word)", "(word, *more)", 1)}, "it takes a variable number of arguments"),
        ({"batch_lines": ()}, ""),
        ({"spec": WORD.replace("()", "(None,)")}, ""),
        ({"arguments": {"deterministic": False}}, ""),
        ({"nested_in": "interleave"}, ""),
    ],
)
def test_what_may_depend_on_more_than_its_element_is_refused(tmp_path, changes: dict[str, object], reason: str):
    mixture = mixed(tmp_path, **changes)
    assert mixture.fix is None
    assert mixture.reason.startswith(reason) and bool(mixture.reason) == bool(reason)
