"""Changes that let the pipeline run earlier than the loop expects, where the loop changes what it reads."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument, SetOption
from advisor.model.finding import Fix, Safety
from advisor.model.recording import Recording, ScriptExit
from advisor.model.settings import Settings
from advisor.model.state import CapturedResource, ObservedState, StateChange
from advisor.predict import with_timing
from advisor.testing import batch, map_, pipeline, source

SCALE = CapturedResource("variable", "scale", "s1")
READS = FunctionFacts("distort", None, True, resources=(SCALE,), stateful_ops=("ReadVariableOp",))
PYTHON = FunctionFacts("load", None, True, python_ops=("EagerPyFunc",))
ASSIGNED = ObservedState("s1", "variable", "scale", epochs=2,
                         change=StateChange("was assigned", 1, "train.py", 28))  # fmt: skip
STAYED = dataclasses.replace(ASSIGNED, change=None)
CLAUSE = (
    "`distort` may run earlier or later than now, though it reads the variable `scale`, "
    "which was assigned after epoch 1 had begun (train.py:28)"
)
AUTOTUNE = Code("tf.data.AUTOTUNE")


def site(line: int) -> Site:
    return Site("train.py", line, 1, line, 9)


def analysed(function: FunctionFacts | None, observed: tuple[ObservedState, ...] | None, *more: Call):
    made = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis
    calls = (
        Call("range", "range", site(1)),
        Call("map", "map", site(2), inputs=("range",), function=function),
        Call("batch", "batch", site(3), inputs=("map",)),
        *more,
    )
    recording = Recording("train.py", made.host, ScriptExit("stopped"), calls=calls, state=observed)
    return dataclasses.replace(made, calls=calls, recording=recording)


def judged(made, *edits, safety: Safety = Safety.EXACT) -> Fix:
    return with_timing(made, Fix(edits, safety, is_auto=True))


@pytest.mark.parametrize(
    "edit",
    [
        SetArgument("map", "num_parallel_calls", AUTOTUNE),
        SetArgument("batch", "num_parallel_calls", AUTOTUNE),
        InsertAfter("batch", "prefetch", (("", AUTOTUNE),)),
        MoveAfter("map", "batch"),
        SetOption("range", "autotune.enabled", None),
    ],
)
def test_a_variable_that_was_assigned_makes_the_fix_ask(edit):
    fix = judged(analysed(READS, (ASSIGNED,)), edit)
    assert not fix.is_auto and fix.assumptions == (CLAUSE,)
    unchanged = judged(analysed(READS, (STAYED,)), edit)
    assert unchanged.is_auto and unchanged.assumptions == ()


def test_calls_upstream_of_the_state_are_free():
    assert judged(analysed(READS, (ASSIGNED,)), InsertAfter("range", "prefetch", (("", 2),))).is_auto


def test_without_a_watch_state_that_can_change_is_not_known():
    made = analysed(READS, None)
    (clause,) = judged(made, InsertAfter("batch", "prefetch", (("", 2),))).assumptions
    assert clause.endswith("reads the variable `scale`, which was not watched")


def test_a_generator_that_reads_what_the_loop_fills_makes_a_prefetch_ask():
    seen = ObservedState("p", "Python object", "replayed", ("range",), epochs=2, change=StateChange("changed", 1))
    fix = judged(analysed(None, (seen,)), InsertAfter("batch", "prefetch", (("", AUTOTUNE),)))
    assert not fix.is_auto and "`replayed`" in fix.assumptions[0]


def test_python_code_that_never_ran_twice_at_once_makes_the_fix_ask():
    edit = SetArgument("map", "num_parallel_calls", AUTOTUNE)
    fix = judged(analysed(PYTHON, ()), edit, safety=Safety.RERANDOMIZED)
    assert fix.assumptions == ("the Python code of `load` may run several times at once",)
    assert judged(analysed(PYTHON, ()), InsertAfter("batch", "prefetch", (("", 2),))).assumptions == ()
    made = analysed(PYTHON, ())
    parallel = tuple(
        dataclasses.replace(call, arguments={"num_parallel_calls": 2}) if call.id == "map" else call
        for call in made.calls
    )
    assert judged(dataclasses.replace(made, calls=parallel), edit).assumptions == ()


def test_another_dataset_of_the_text_counts():
    random = FunctionFacts("augment", None, True, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",))
    edit = SetArgument("map", "num_parallel_calls", AUTOTUNE)
    pure = FunctionFacts("decode", None, False, stateful_ops=())
    other = Call("other", "map", site(2), inputs=("range",), function=random)
    assert judged(analysed(pure, ()), edit).safety is Safety.EXACT
    assert judged(analysed(pure, (), other), edit).safety is Safety.RERANDOMIZED
    reads = dataclasses.replace(other, function=READS)
    assert judged(analysed(pure, (ASSIGNED,), reads), edit).assumptions == (CLAUSE,)


def test_every_finding_of_a_run_is_judged():
    made = pipeline(source(), map_("distort", ms=5, random=True), batch(32), consumer_ms=20, cores=8).analysis
    calls = tuple(dataclasses.replace(call, function=READS) if call.method == "map" else call for call in made.calls)
    host = made.host
    recording = Recording("train.py", host, ScriptExit("stopped"), calls=calls, state=(ASSIGNED,))
    report = run_rules(
        dataclasses.replace(made, calls=calls, recording=recording), load_rules([], Settings()), Settings()
    )
    fixes = {finding.rule: finding.fix for finding in report.findings if finding.fix is not None}
    assert "serial-map" in fixes
    for fix in fixes.values():
        assert not fix.is_auto and CLAUSE in fix.assumptions
