"""Says how each end of `advisor fix` came about and how to go on: one sentence and one command line.

In: the result of a proof, or an error.  Out: a `NextStep`. No end is without one (`tests/prove/ends/test_early_ends.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.host.calibration.proof import MIN_GAIN
from advisor.model.errors import AdvisorError, NotWritable, OutOfTime, ScriptFailed
from advisor.model.units import format_many, format_share
from advisor.model.untried import NextStep, UntriedFix, Why
from advisor.prove.ends.end_reasons import End, undecided_rules, why_of
from advisor.prove.ends.script_commands import ScriptCommands

_MOST_NAMED = 3
"""Changes that a sentence names; the report lists all of them."""


def next_step(end: End) -> NextStep | None:
    """Return how to go on; None if everything was tried and what is proved is written."""
    why = why_of(end)
    return None if why is None else step_for(why, end)


def step_for(why: Why, end: End) -> NextStep:
    """Return the sentence and the command for one reason; every reason has a sentence."""
    titles = _titles([untried for untried in end.untried if untried.why is why])
    return NextStep(why, _sentence(why, end, titles), _command(why, end))


def add_step(error: AdvisorError, commands: ScriptCommands) -> None:
    """Add the command to go on with to the sentence of an error that has ended a run without any result."""
    if isinstance(error, ScriptFailed):
        how, command = "Correct the script, then", commands.again()
    elif isinstance(error, OutOfTime):
        how, command = "Next", commands.longer()
    elif isinstance(error, NotWritable):
        how, command = "Next", commands.not_written()
    elif commands.is_whole_script:
        how, command = "Next", commands.analyze()
    else:
        how, command = "Next", commands.whole_script()
    error.args = (f"{str(error).rstrip()} {how}: {command}", *error.args[1:])


def interrupted_before_trials(commands: ScriptCommands) -> NextStep:
    """Return how to go on after a Ctrl-C before anything was known."""
    sentence = (
        "Interrupted before the script was analysed: nothing was tried, and nothing is kept. The command starts again."
    )
    return NextStep(Why.INTERRUPTED_ANALYSIS, sentence, commands.again())


def _command(why: Why, end: End) -> str | None:
    """The command that goes on; None if none helps."""
    commands, untried = end.commands, [entry for entry in end.untried if entry.why is why]
    match why:
        case Why.PROVED | Why.PIPELINE_ALONE | Why.TRAINING_UNKNOWN | Why.TRAINING_UNDECIDED:
            return commands.write()
        case Why.NO_PIPELINE:
            return None
        case Why.TRAINING_NO_GAIN | Why.NONE_FASTER | Why.NOTHING_PROPOSED | Why.NO_RULE:
            return commands.analyze()
        case Why.NOT_REQUESTED:
            return commands.all_rules()
        case Why.SCRIPT_ENDED:
            return commands.pipeline_only() if commands.is_whole_script else commands.analyze()
        case Why.NEEDS_PERMISSION | Why.NEEDS_REQUEST:
            return _permission(why, end)
        case Why.CONFLICT | Why.TOO_MANY:
            return commands.only_these([entry.rule for entry in untried]) if untried else commands.again()
        case Why.DATA_UNDECIDED:
            return commands.only_these([*_kept_rules(end), *undecided_rules(end.loop)])
        case Why.PROCESS_ENDED:
            return commands.only_these(others) if (others := _others(end)) else commands.prove()
        case Why.CANNOT_REPLAY if not commands.is_whole_script:
            return commands.whole_script()
        case Why.UNWRITABLE:
            return commands.not_written()
        case (
            Why.BUDGET_TOO_SHORT
            | Why.ANALYSIS_OUT_OF_TIME
            | Why.NO_TIME
            | Why.TRIALS_OUT_OF_TIME
            | Why.SCRIPT_OUT_OF_TIME
        ):
            return commands.longer(end.loop.missing_s)
        case Why.SMALL_GAIN | Why.FAST_ENOUGH:
            return commands.pipeline_only()
        case (
            Why.SCRIPT_FAILED
            | Why.SCRIPT_UNSTABLE
            | Why.RUN_TOO_SHORT
            | Why.INTERRUPTED_ANALYSIS
            | Why.INTERRUPTED_TRIALS
            | Why.INTERRUPTED_SCRIPT
        ):
            return commands.again()
        case _:
            return commands.prove()


def _permission(why: Why, end: End) -> str | None:
    """The command that permits as many of the changes as one command can: `--only RULE` excludes all others."""
    entries = [entry for entry in end.untried if entry.why is why and entry.command is not None]
    if why is Why.NEEDS_REQUEST or not entries:
        return entries[0].command if entries else None
    words = [word for entry in entries for word in entry.options if "--only" not in entry.options]
    return end.commands.permitted(words or entries[0].options)


def _others(end: End) -> list[str]:
    """Rules of the changes that were not tried because the process has died with another one."""
    culprits = {attempt.finding.rule for attempt in end.loop.attempts[-1:]}
    return [finding.rule for finding in end.loop.untried if finding.rule not in culprits]


def _kept_rules(end: End) -> list[str]:
    return [finding.rule for finding in end.loop.kept]


def _titles(untried: Sequence[UntriedFix]) -> str:
    titles = list(dict.fromkeys(entry.title for entry in untried))
    more = f" and {format_many(len(titles) - _MOST_NAMED, 'other change')}" if len(titles) > _MOST_NAMED else ""
    return "; ".join(titles[:_MOST_NAMED]) + more


def _sentence(why: Why, end: End, titles: str) -> str:
    what = titles or "a change"
    return (
        _SENTENCES[why]
        .format(
            what=what,
            What=what[:1].upper() + what[1:],
            script="script" if end.commands.module is None else "module",
            gain=format_share(MIN_GAIN.value),
            verdict=end.report.analysis.verdict.sentence,
            note=f" {end.report.notes[0].rstrip('.')}." if end.report.notes and not titles else "",
            kept="what was proved until then is in the report" if end.loop.kept else "nothing was proved until then",
            goes_on=_how_to_judge(why, end.commands),
        )
        .strip()
    )


def _how_to_judge(why: Why, commands: ScriptCommands) -> str:
    """What to do so that the command can judge a change."""
    if why is Why.CANNOT_REPLAY and not commands.is_whole_script:
        return "The command runs the training, too, which can measure it."
    made = "save the diff of the change" if commands.path is None else "make the change in a copy of the script"
    return f"To have it judged, {made}, under the name in the command."


_SENTENCES = {
    Why.PROVED: "The changes are proved on the training, and no file was changed. The command proves and writes them.",
    Why.PIPELINE_ALONE: (
        "The changes are proved on the pipeline alone, and no file was changed. The command proves and writes them."
    ),
    Why.TRAINING_UNKNOWN: (
        "The changes are proved on the pipeline alone, as the training could not be measured, and no file was changed. The "
        "command proves and writes them."
    ),
    Why.TRAINING_UNDECIDED: (
        "The changes are proved on the pipeline alone, and the runs of the training vary by more than the gain. On an idle "
        "machine they vary less. The command measures again and writes what is proved."
    ),
    Why.TRAINING_NO_GAIN: (
        "The training does not become faster, so nothing is applied. The command prints what its steps spend their time on."
    ),
    Why.NONE_FASTER: "Nothing that was tried is faster. The command prints all measurements and findings.",
    Why.NOTHING_PROPOSED: (
        "There is nothing to change in the input pipeline. The command prints what the steps spend their time on."
    ),
    Why.NO_RULE: "No rule has a change for this pipeline. The command prints where the wait comes from.",
    Why.NO_PIPELINE: "{verdict} There is nothing to try.",
    Why.NOT_REQUESTED: "The rules named by --only propose nothing that can be tried. The command asks all rules.",
    Why.SCRIPT_ENDED: (
        "No step of the training could be measured: the {script} made too few steps, or they cannot be observed. The command "
        "measures what it can without them."
    ),
    Why.SCRIPT_FAILED: "The unchanged {script} failed before anything was measured. Correct it, then run the command again.",
    Why.SCRIPT_UNSTABLE: (
        "The unchanged {script} failed in a later run, although it had been analysed before: no file was changed, and {kept}. "
        "Find out why it fails, then run the command again."
    ),
    Why.NEEDS_PERMISSION: "{What}: the effect on the data or on the training needs your permission, which the command gives.",
    Why.NEEDS_REQUEST: "{What}: tried only if asked for by name, as the command does.",
    Why.ADVICE_ONLY: "{What}: no edit of a call makes this change. {goes_on}",
    Why.NOT_LEGAL: "No change that keeps the data can be proposed.{note} {goes_on}",
    Why.MAKES_NOTHING_FASTER: "{What}: it makes nothing faster, so no measurement can prove it. {goes_on}",
    Why.CANNOT_REWRITE: "{What}: the text of the script cannot be changed automatically. {goes_on}",
    Why.UNWRITABLE: "{What}: the file cannot be written. The command tries it without --write and shows the diff.",
    Why.CONFLICT: "{What}: not tried, because another change of the same call was. The command tries it alone.",
    Why.BUDGET_TOO_SHORT: "The budget is below the minimum for any script. The command allows more.",
    Why.ANALYSIS_OUT_OF_TIME: "The budget was used up before the script was measured. The command allows more.",
    Why.NO_TIME: "The analysis left no time for a trial. The command allows more.",
    Why.TRIALS_OUT_OF_TIME: "There was no time to try everything. The command allows more.",
    Why.SCRIPT_OUT_OF_TIME: "There was no time to measure the whole script. The command allows more.",
    Why.SMALL_GAIN: "{What}: a training step could gain less than {gain}. The command tries it on the pipeline alone.",
    Why.FAST_ENOUGH: (
        "The pipeline alone is already so much faster than the training that further speedups have no effect. The command tries "
        "the rest on the pipeline alone."
    ),
    Why.TOO_MANY: "The limit of trials was reached. The command tries the rules that are left.",
    Why.RUN_TOO_SHORT: (
        "{What}: the {script} ended before its steps could be timed with it. Let it train for more steps, then run the command "
        "again."
    ),
    Why.CANNOT_REPLAY: "{What}: the dataset cannot be made again with it outside the training. {goes_on}",
    Why.TRIAL_FAILED: "{What}: its trial gave no result. {goes_on}",
    Why.PROCESS_ENDED: (
        "The process that held the {script} ended during the trials, and {kept}. The command goes on with what is left; a "
        "change that ends it can be judged only if it is made by hand."
    ),
    Why.DATA_UNDECIDED: (
        "A change is faster, and its effect on the data could not be determined. If you know that it keeps the data, the command "
        "applies it."
    ),
    Why.OTHER_TEXT: "The changed text does not make the calls that were proved, so nothing is applied. {goes_on}",
    Why.SCRIPT_FAILS: "The {script} fails with the changes, or its data differ, so nothing is applied. {goes_on}",
    Why.INTERRUPTED_ANALYSIS: "Interrupted before the script was analysed; {kept}. The command starts again.",
    Why.INTERRUPTED_TRIALS: "Interrupted while changes were tried; {kept}. The command starts again.",
    Why.INTERRUPTED_SCRIPT: "Interrupted while the whole script was measured; {kept}. The command starts again.",
}
