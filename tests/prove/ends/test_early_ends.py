"""No dead ends: each way in which `advisor fix` may end has a sentence, and a command that `advisor` accepts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import click
import pytest

from advisor.cli import advisor
from advisor.engine.run import run_rules
from advisor.model.edits import InsertAfter
from advisor.model.errors import AdvisorError, NotWritable, OutOfTime, ScriptFailed
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.outcome import Interval
from advisor.model.settings import Settings
from advisor.model.untried import UntriedFix, Why
from advisor.prove.ends.early_ends import add_step, interrupted_before_trials, step_for
from advisor.prove.ends.end_reasons import End, why_of
from advisor.prove.ends.script_commands import ScriptCommands
from advisor.prove.ends.untried_fixes import command_for, untried_fixes
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.outcomes import ProofFacts, report_of
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, Trial
from advisor.rewrite.fix_plan import make_plan
from advisor.testing import batch, map_, pipeline, source

MADE = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
CALLS = {call.id: call for call in MADE.calls}
ARGS = ("--data", "a folder", "$HOME; rm -rf /", "--write")
SCRIPT = ScriptCommands(Path("my train.py"), None, ARGS, allow=("numerics",), window=("--steps", "20"))
CALLERS = {
    "script": SCRIPT,
    "module": replace(SCRIPT, path=None, module="pkg.train"),
    "like an option": replace(SCRIPT, path=Path("-train.py")),
    "pipeline only": replace(SCRIPT, mode=("--pipeline-only",), is_to_be_written=True, is_budget_given=True),
    "imagined step": replace(SCRIPT, mode=("--as-if-step", "0.005"), only=("serial-map",), rules=(Path("my rules"),)),
}
WITHOUT_COMMAND = {Why.NO_PIPELINE}
NOTHING = LoopResult()
RUN = RunSteps(10.0, 0.5, 50, 100)
ALONE = Trial(FASTER, Interval(3.1, 3.0, 3.2), 10.0, 31.0, 6)


def parsed(command: str) -> click.Context:
    """The command line as `advisor` reads it; nothing is run."""
    program, name, *words = shlex.split(command)
    assert program == "advisor"
    subcommand = advisor.get_command(click.Context(advisor), name)
    assert subcommand is not None, command
    return subcommand.make_context(name, words)


def finding(rule: str, safety: Safety = Safety.EXACT, has_fix: bool = True, **changes: object) -> Finding:
    fix = Fix((InsertAfter(MADE.calls[1].id, rule),), safety, is_auto=True, **changes) if has_fix else None  # type: ignore[arg-type]
    return Finding(rule, f"Do {rule}", "Because.", prediction=Prediction(2, 2, 2), fix=fix)


def untried(why: Why, *options: str, rule: str = "serial-map") -> UntriedFix:
    return UntriedFix(rule, f"Do {rule}", None, why, "So.", command_for(why, rule, options, SCRIPT), options)


def end_of(
    loop: LoopResult = NOTHING,
    whole: EndToEnd | None = None,
    entries: tuple[UntriedFix, ...] = (),
    commands: ScriptCommands = SCRIPT,
    is_applied: bool = False,
    level: str = "high",
) -> End:
    report = run_rules(MADE, [], Settings())
    verdict = replace(report.analysis.verdict, level=level, is_input_bound=level == "high")
    report = replace(report, analysis=replace(report.analysis, verdict=verdict))
    return End(report, loop, whole, is_applied, entries, commands)


def kept(**changes: object) -> LoopResult:
    change = finding("cache")
    return replace(LoopResult((Attempt(change, ALONE, is_kept=True),), (change,), ALONE), **changes)  # type: ignore[arg-type]


def tried(trial: Trial, **changes: object) -> LoopResult:
    return replace(LoopResult((Attempt(finding("cache"), trial, is_kept=False),)), **changes)  # type: ignore[arg-type]


def whole(verdict: str, *interval: float, **changes: object) -> EndToEnd:
    measured = EndToEnd(verdict, Interval(*interval) if interval else None, (RUN,) * 6, (RUN,) * 6)
    return replace(measured, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("why", Why)
def test_every_reason_has_a_sentence_and_a_command_that_is_accepted(why: Why, caller: str) -> None:
    commands = CALLERS[caller]
    options = {Why.NEEDS_PERMISSION: ("--allow", "reordered"), Why.NEEDS_REQUEST: ("--only", "serial-map")}.get(why, ())
    entry = untried(why, *options)
    entry = replace(entry, command=command_for(why, entry.rule, options, commands))
    step = step_for(why, end_of(kept(), entries=(entry,), commands=commands))
    assert step.sentence and step.sentence.endswith(".") and "  " not in step.sentence
    assert "{" not in step.sentence
    assert (step.command is None) == (why in WITHOUT_COMMAND)
    for command in filter(None, (step.command, entry.command)):
        context = parsed(command)
        target = "-m" if commands.path is None else str(commands.path)
        assert Path(context.params["target"]) == Path(target)
        assert context.params["args"] == (("pkg.train",) if commands.path is None else ()) + ARGS
        assert "numerics" in context.params["allow"], "what was permitted stays permitted"
        assert context.params["steps"] == 20


NONE_KEPT = (
    (Why.NOTHING_PROPOSED, end_of(level="none")),
    (Why.NO_RULE, end_of()),
    (Why.SCRIPT_ENDED, end_of(level="unknown")),
    (Why.NOT_REQUESTED, end_of(commands=replace(SCRIPT, only=("serial-map",)))),
    (
        Why.NEEDS_PERMISSION,
        end_of(entries=(untried(Why.ADVICE_ONLY), untried(Why.NEEDS_PERMISSION, "--allow", "reordered"))),
    ),
    (Why.NEEDS_REQUEST, end_of(entries=(untried(Why.NEEDS_REQUEST, "--only", "serial-map"),))),
    (Why.ADVICE_ONLY, end_of(entries=(untried(Why.ADVICE_ONLY),))),
    (Why.NO_TIME, end_of(LoopResult(stopped_because="No time.", why=Why.NO_TIME))),
    (Why.TRIALS_OUT_OF_TIME, end_of(tried(replace(ALONE, verdict=SAME), why=Why.TRIALS_OUT_OF_TIME))),
    (Why.SCRIPT_OUT_OF_TIME, end_of(whole=whole(REFUSED, is_out_of_time=True))),
    (Why.PROCESS_ENDED, end_of(tried(Trial(REFUSED, note="Killed."), why=Why.PROCESS_ENDED))),
    (Why.DATA_UNDECIDED, end_of(tried(replace(ALONE, is_undecided=True)))),
    (Why.NONE_FASTER, end_of(tried(replace(ALONE, verdict=SAME)))),
    (Why.SCRIPT_FAILS, end_of(tried(Trial(BROKEN)))),
    (Why.INTERRUPTED_TRIALS, end_of(LoopResult(is_interrupted=True, why=Why.INTERRUPTED_TRIALS))),
)
KEPT = (
    (Why.PROVED, end_of(kept(), whole(FASTER, 2.0, 1.9, 2.1), is_applied=True)),
    (Why.PIPELINE_ALONE, end_of(kept(), is_applied=True, commands=CALLERS["imagined step"])),
    (Why.TRAINING_UNKNOWN, end_of(kept(), is_applied=True)),
    (Why.TRAINING_UNDECIDED, end_of(kept(), whole(SAME, 1.2, 0.97, 1.5), is_applied=True)),
    (Why.TRAINING_NO_GAIN, end_of(kept(), whole(SAME, 1.0, 0.99, 1.01))),
    (Why.SCRIPT_OUT_OF_TIME, end_of(kept(), whole(REFUSED, is_out_of_time=True))),
    (Why.SCRIPT_UNSTABLE, end_of(kept(why=Why.SCRIPT_UNSTABLE), whole(REFUSED, is_script_failing=True))),
    (Why.OTHER_TEXT, end_of(kept(), whole(BROKEN, is_other_text=True))),
    (Why.SCRIPT_FAILS, end_of(kept(), whole(BROKEN))),
    (Why.CANNOT_REWRITE, end_of(kept())),
    (Why.INTERRUPTED_SCRIPT, end_of(kept(is_interrupted=True, why=Why.INTERRUPTED_SCRIPT), whole(REFUSED, is_interrupted=True))),
    (Why.SMALL_GAIN, end_of(kept(), whole(FASTER, 2.0, 1.9, 2.1), (untried(Why.SMALL_GAIN),),
                            replace(SCRIPT, is_to_be_written=True), is_applied=True)),
    (None, end_of(kept(), whole(FASTER, 2.0, 1.9, 2.1), (), replace(SCRIPT, is_to_be_written=True), is_applied=True)),
)  # fmt: skip


@pytest.mark.parametrize(("why", "end"), [*NONE_KEPT, *KEPT])
def test_each_end_has_its_reason(why: Why | None, end: End) -> None:
    assert why_of(end) == why


def test_what_was_permitted_is_permitted_by_the_command_that_writes() -> None:
    commands = replace(SCRIPT, allow=("reordered", "numerics"), only=("serial-map",), mode=("--pipeline-only",))
    params = parsed(commands.write()).params
    assert params["write"] and params["allow"] == ("reordered", "numerics") and params["only"] == ("serial-map",)
    assert not params["pipeline_only"], "before it is written, the training is measured, too"


def test_no_other_command_writes_unless_the_user_did() -> None:
    writing = {Why.PROVED, Why.PIPELINE_ALONE, Why.TRAINING_UNKNOWN, Why.TRAINING_UNDECIDED}
    commands = {why: step_for(why, end_of(entries=(untried(why),))).command for why in set(Why) - writing}
    without = {Why.NEEDS_PERMISSION, Why.NEEDS_REQUEST, Why.NO_PIPELINE}  # what these need is not in a bare entry
    assert {why for why, command in commands.items() if command is None} == without
    assert not [why for why, command in commands.items() if command and parsed(command).params.get("write")]


def test_one_command_gives_all_permissions_that_go_together() -> None:
    entries = (
        untried(Why.NEEDS_PERMISSION, "--allow", "reordered"),
        untried(Why.NEEDS_PERMISSION, "--allow", "rerandomized", rule="shuffle"),
        untried(Why.NEEDS_PERMISSION, "--allow", "reordered", "--only", "late-shuffle", rule="late-shuffle"),
    )
    params = parsed(step_for(Why.NEEDS_PERMISSION, end_of(entries=entries)).command or "").params
    assert params["allow"] == ("numerics", "reordered", "rerandomized")
    assert params["only"] == ()


def test_a_longer_budget_is_long_enough() -> None:
    loop = LoopResult(why=Why.SCRIPT_OUT_OF_TIME, missing_s=3000.0)
    command = step_for(Why.SCRIPT_OUT_OF_TIME, end_of(loop)).command or ""
    assert parsed(command).params["budget"] >= SCRIPT.budget_s + 3000
    assert parsed(SCRIPT.longer()).params["budget"] == 2 * SCRIPT.budget_s


def test_all_that_was_not_tried_is_listed_with_reason_and_command() -> None:
    needs, advice, waits, dead = (
        finding("a", Safety.REORDERED), finding("b", has_fix=False), finding("c"), finding("d")
    )  # fmt: skip
    report = replace(run_rules(MADE, [], Settings()), findings=(needs, advice, waits, dead))
    plan = make_plan(report.findings, CALLS)
    attempt = Attempt(dead, Trial(REFUSED, note="No longer held.", is_replayable=False), is_kept=False)
    loop = LoopResult((attempt,), why=Why.TRIALS_OUT_OF_TIME, untried=(waits,), stopped_because="No time.")
    entries = untried_fixes(report, plan.left_out, loop, SCRIPT)
    assert [(entry.rule, entry.why) for entry in entries] == [
        ("a", Why.NEEDS_PERMISSION),
        ("b", Why.ADVICE_ONLY),
        ("c", Why.TRIALS_OUT_OF_TIME),
        ("d", Why.CANNOT_REPLAY),
    ]
    assert all(entry.command is not None and parsed(entry.command) for entry in entries)
    assert parsed(entries[0].command or "").params["allow"] == ("numerics", "reordered")
    measured = replace(loop, attempts=(replace(attempt, trial=ALONE),), untried=(waits, dead))
    assert "d" not in [entry.rule for entry in untried_fixes(report, plan.left_out, measured, SCRIPT)]


def test_where_the_budget_was_too_short_for_any_change_every_command_has_a_longer_one() -> None:
    permission, later = finding("a", Safety.REORDERED), finding("b")
    report = replace(run_rules(MADE, [], Settings()), findings=(permission, later))
    plan = make_plan(report.findings, CALLS)
    short = replace(SCRIPT, budget_s=120.0, is_budget_given=True)
    for why, budgets in ((Why.NO_TIME, [240, 240]), (Why.TRIALS_OUT_OF_TIME, [120, 240])):
        loop = LoopResult(why=why, untried=(later,), stopped_because="No time.")
        entries = untried_fixes(report, plan.left_out, loop, short)
        assert [entry.why for entry in entries] == [Why.NEEDS_PERMISSION, why]
        assert [parsed(entry.command or "").params["budget"] for entry in entries] == budgets


def test_a_script_that_ends_too_soon_is_to_run_longer() -> None:
    report = replace(run_rules(MADE, [], Settings()), findings=(short := finding("a"),))
    trial = Trial(REFUSED, note="The script ended before its steps could be timed.", is_replayable=False)
    loop = LoopResult((Attempt(short, trial, is_kept=False, why=Why.RUN_TOO_SHORT),))
    proof = report_of(report, loop, None, ProofFacts(commands=SCRIPT)).proof
    assert proof is not None and proof.next is not None
    (entry,) = proof.untried
    assert entry.why is proof.next.why is Why.RUN_TOO_SHORT
    assert "Let it train for more steps" in proof.next.sentence
    assert entry.command == proof.next.command == SCRIPT.again()


def test_the_report_of_a_script_goes_on_and_that_of_a_dataset_does_not() -> None:
    report = run_rules(MADE, [], Settings())
    proof = report_of(report, LoopResult(), None, ProofFacts(commands=SCRIPT)).proof
    assert proof is not None and proof.next is not None and proof.next.command == SCRIPT.analyze()
    proof = report_of(report, LoopResult(), None, ProofFacts()).proof
    assert proof is not None and proof.next is None and proof.untried == ()


@pytest.mark.parametrize(
    ("error", "caller", "words"),
    [
        (ScriptFailed("It failed."), "script", "Correct the script, then: advisor fix "),
        (OutOfTime("Too slow."), "script", "Next: advisor fix --budget 20min "),
        (NotWritable("Read-only."), "pipeline only", "Next: advisor fix --pipeline-only "),
        (AdvisorError("It consumed no dataset."), "script", "Next: advisor analyze "),
        (AdvisorError("It consumed no dataset."), "pipeline only", "Next: advisor fix "),
    ],
)  # fmt: skip
def test_an_error_names_the_command_to_go_on_with(error: AdvisorError, caller: str, words: str) -> None:
    add_step(error, CALLERS[caller])
    assert words in str(error)
    command = str(error)[str(error).index("advisor ") :]
    assert not parsed(command).params.get("write")


def test_ctrl_c_in_the_analysis_says_how_to_start_again() -> None:
    assert parsed(interrupted_before_trials(SCRIPT).command or "").params["args"] == ARGS
