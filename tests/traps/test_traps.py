"""The traps themselves: their headers, the levels, and one of them run for real. `python -m tests.traps` judges all."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from advisor.model.calls import Call, Site
from advisor.model.edits import SetArgument
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.rewrite.fix_plan import make_plan
from tests.traps.catalogue import ALL, LEVELS, TOPICS, Trap, allowed_by, harmed_keys, read_trap, traps
from tests.traps.judging import Row, Scripts, Tool, Written, judge
from tests.traps.table import table_lines

TRAPS = traps()
PYTHON = Path(sys.executable)
MUTABLE_TABLE = next(trap for trap in TRAPS if trap.name == "mutable_table_refilled")


def test_there_are_at_least_forty_of_every_topic_some():
    assert len(TRAPS) >= 40
    assert {trap.topic for trap in TRAPS} == set(TOPICS)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_each_script_says_what_is_wrong_and_what_must_hold(trap):
    from advisor.engine import load_rules
    from advisor.model.settings import Settings

    wrong = ast.parse(trap.wrong_text())  # the text to replace stands there once
    printed = {
        keyword.arg
        for node in ast.walk(wrong)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "finish"
        for keyword in node.keywords
    }
    assert ast.get_docstring(ast.parse(trap.text()))
    assert trap.tempting in {rule.id for rule in load_rules([], Settings())}
    assert printed and set(trap.may_change) <= printed
    assert any(not {"reordered", "rerandomized"} <= set(trap.may_change.get(key, ())) for key in printed)


def test_a_header_with_a_mistake_is_refused(tmp_path):
    script = tmp_path / "script.py"
    for change in (("mutable tables", "no such topic"), ('"reordered"', '"changes"'), ('"wrong"', '"wrnog"')):
        script.write_text(MUTABLE_TABLE.text().replace(*change, 1))
        with pytest.raises(ValueError):
            read_trap(script)


def test_what_a_level_permits_is_no_harm_and_all_else_is():
    trap = Trap(Path("script.py"), "seeded scripts", "serial-map", ("", ""), {"order": ("reordered",)})
    before = {"elements": "a", "order": "a"}
    reordered, other = {"elements": "a", "order": "b"}, {"elements": "b", "order": "b"}
    assert harmed_keys(trap, "default", before, reordered) == ("order",)
    assert harmed_keys(trap, "rerandomized", before, reordered) == ("order",)
    assert harmed_keys(trap, "reordered", before, reordered) == ()
    assert harmed_keys(trap, ALL, before, other) == ("elements",)
    assert harmed_keys(trap, ALL, before, {"elements": "a"}) == ()  # a missing key is a changed one ...
    assert harmed_keys(trap, ALL, before, {"order": "a"}) == ("elements",)


def planned(level, is_seeded):
    """The safeties of what is planned, of one fix of each safety that do not touch each other."""
    calls = {
        str(safety): Call(str(safety), "map", Site("script.py", number, 1, number, 9), ("source",))
        for number, safety in enumerate(Safety, 1)
    }
    findings = [
        Finding(str(safety), "", "", prediction=Prediction(2, 2, 2),
                fix=Fix((SetArgument(str(safety), "num_parallel_calls", 4),), safety, is_auto=True))
        for safety in Safety
    ]  # fmt: skip
    allowed = [Safety(name) for name in allowed_by(level)]
    return {fix.safety for fix in make_plan(findings, calls, allowed, is_seeded).fixes}


@pytest.mark.parametrize("is_seeded", [False, True])
def test_levels_nest_so_what_is_not_planned_with_all_allowed_is_not_planned_with_less(is_seeded):
    widest = planned(ALL, is_seeded)
    assert widest == set(Safety) - {Safety.CHANGES}
    for level in LEVELS:
        assert planned("default", is_seeded) <= planned(level, is_seeded) <= widest


class FakeScripts:
    """Texts that hold `.cache()` print another invariant."""

    def __init__(self):
        self.runs = []

    def invariant(self, trap, text, modules=None):
        self.runs.append(text)
        body = text.split("ROWS, EPOCHS", 1)[1]
        return {"elements": ".cache()" in body, "order": "shuffle" in body}


def judged(monkeypatch, written, is_nested=True):
    asked = []

    def fix(tool, trap, level):
        asked.append(level)
        return written(level)

    monkeypatch.setattr("tests.traps.judging.fix", fix)
    scripts = FakeScripts()
    rows = judge(Tool(Path("advisor")), scripts, MUTABLE_TABLE, LEVELS, is_nested)
    return {row.level: row.harmed for row in rows}, asked, scripts.runs


def test_a_written_fix_that_breaks_the_invariant_is_harm_at_every_level(monkeypatch):
    text = MUTABLE_TABLE.wrong_text()
    exact = frozenset({"exact"})
    harmed, asked, runs = judged(monkeypatch, lambda level: Written(text, ("repeated-work",), safeties=exact))
    assert harmed == dict.fromkeys(LEVELS, ("elements",))
    assert asked == [ALL]  # nothing but exact fixes was found: less allowed would find the same
    assert len(runs) == 2  # as it is, and the one text that was written


def test_levels_that_permit_the_same_of_what_was_found_share_a_run(monkeypatch):
    text = MUTABLE_TABLE.text().replace(".batch(4)", ".batch(4).shuffle(9)")

    def written(level):
        return Written(text if level in (ALL, "reordered") else None, ("x",), safeties=frozenset({"reordered"}))

    harmed, asked, _ = judged(monkeypatch, written)
    assert asked == [ALL, "default"]
    assert harmed == dict.fromkeys(LEVELS, ())
    harmed, asked, _ = judged(monkeypatch, lambda level: Written(text, ("x",)), is_nested=False)
    assert asked == list(LEVELS)
    assert harmed == {**dict.fromkeys(LEVELS, ("order",)), "reordered": ()}


def test_the_first_of_several_fixes_are_judged_without_the_later_ones_too(monkeypatch):
    steps = (("serial-map", MUTABLE_TABLE.text()), ("repeated-work", MUTABLE_TABLE.wrong_text()))
    harmed, _, _ = judged(monkeypatch, lambda level: Written(MUTABLE_TABLE.text(), ("a", "b"), steps))
    assert harmed["default"] == ("repeated-work: elements",)


def test_a_fix_that_could_not_be_run_is_not_called_unharmed(monkeypatch):
    monkeypatch.setattr("tests.traps.judging.fix", lambda *args: Written(None, note="exit code 2: broken"))
    rows = judge(Tool(Path("advisor")), FakeScripts(), MUTABLE_TABLE, ("default",), is_nested=False)
    assert [row.is_failed for row in rows] == [True]


def test_the_table_counts_by_level_and_names_what_was_written():
    rows = [
        Row("one", "clocks", "default", ("repeated-work (exact)",), ("elements",)),
        Row("one", "clocks", "reordered", ("repeated-work (exact)",), ("elements",)),
        Row("two", "clocks", "default"),
        Row("two", "clocks", "reordered", ("serial-files (reordered)",)),
    ]
    lines = table_lines(rows, 60.0, Tool(Path("advisor")))
    assert "| default | 2 | 1 | 1 |" in lines and "| reordered | 2 | 2 | 1 |" in lines
    assert "| one | all | repeated-work (exact) | elements |" in lines
    assert "| two | reordered | serial-files (reordered) | no |" in lines


def test_the_places_that_the_command_replaces_are_there():
    """`--regardless-of-speed` replaces these by name."""
    from advisor.prove.search.whole_script import measure_end_to_end
    from advisor.prove.session.held_process import _CHILD
    from advisor.prove.trial.trial_runner import Plan, measure
    from advisor.workflows.fix_phases import Proposals, report_of

    assert _CHILD.name == "proof_child.py" and _CHILD.is_file()
    assert callable(measure_end_to_end) and callable(report_of) and Proposals
    assert callable(measure) and Plan(warmup_s=0.3).warmup_s == 0.3


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_invariant_of_the_mutable_table_shows_the_wrong_fix():
    with Scripts(PYTHON) as scripts:
        before, again = (scripts.invariant(MUTABLE_TABLE, MUTABLE_TABLE.text()) for _ in range(2))
        after = scripts.invariant(MUTABLE_TABLE, MUTABLE_TABLE.wrong_text())
    assert before == again
    for level in (*LEVELS, ALL):
        assert "elements" in harmed_keys(MUTABLE_TABLE, level, before, after)


@pytest.mark.tensorflow
@pytest.mark.slow
def test_every_wrong_fix_is_seen():
    from tests.traps.__main__ import main

    assert main(["--wrong", "--jobs", "2"]) == 0


@pytest.mark.tensorflow
@pytest.mark.slow
def test_no_trap_is_harmed_however_fast_the_fixes_are():
    from tests.traps.__main__ import main

    assert main(["--regardless-of-speed", "--jobs", "2"]) == 0
