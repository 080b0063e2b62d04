"""Why a proof has ended, why fixes were not tried, and how to go on.

In: nothing.  Out: `Why`, one name for each way in which `advisor fix` may end; `UntriedFix` and `NextStep`, parts of the report's
proof. `advisor.prove.ends.untried_fixes` and `advisor.prove.ends.early_ends` make them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from advisor.model.calls import Site


class Why(StrEnum):
    """The reason for an end or for leaving a fix out. Values are part of report.json."""

    PROVED = "proved"
    """Changes are proved on the training and are not written yet."""
    PIPELINE_ALONE = "proved on the pipeline alone"
    """The training was not to be run (`--pipeline-only`, `--as-if-step`)."""
    TRAINING_UNKNOWN = "training not measurable"
    """Changes are proved on the pipeline alone; the steps of the whole script cannot be timed."""
    TRAINING_UNDECIDED = "training undecided"
    """Changes are proved on the pipeline alone; the runs of the whole script vary by more than the gain."""
    TRAINING_NO_GAIN = "training gains nothing"
    """The pipeline alone is faster; the training is not."""
    NONE_FASTER = "none faster"
    """Everything was tried, and nothing is faster."""
    NOTHING_PROPOSED = "nothing proposed"
    """No rule proposes a change, and input is not the problem."""
    NO_RULE = "no rule applies"
    """Input is the problem, and no rule proposes a change."""
    NO_PIPELINE = "no pipeline"
    """The script reads no dataset of tf.data."""
    NOT_REQUESTED = "not requested"
    """`--only` excludes what is proposed."""
    SCRIPT_ENDED = "script ended early"
    """The script ended before its steps could be measured."""
    SCRIPT_FAILED = "script failed"
    """The unchanged script failed before anything was measured."""
    SCRIPT_UNSTABLE = "script fails now and then"
    """The unchanged script was analysed, and failed in a later run."""
    NEEDS_PERMISSION = "needs permission"
    """`--allow LEVEL` permits the effect of the change on the data."""
    NEEDS_REQUEST = "needs request"
    """`--only RULE` asks for a change that rests on an assumption."""
    ADVICE_ONLY = "advice only"
    """No edit of a call makes the change."""
    NOT_LEGAL = "not legal"
    """The change would alter the data."""
    MAKES_NOTHING_FASTER = "makes nothing faster"
    """The change saves memory or corrects something, so that no measurement can prove it."""
    CANNOT_REWRITE = "cannot be written into the text"
    """The call is written in a way that is not edited."""
    UNWRITABLE = "file not writable"
    CONFLICT = "conflicts"
    """With a change of a larger prediction, or one that is kept."""
    BUDGET_TOO_SHORT = "budget too short"
    """`--budget` is below the minimum for any script; nothing was run."""
    ANALYSIS_OUT_OF_TIME = "no time for the analysis"
    NO_TIME = "no time for a trial"
    """The analysis left too little of the budget."""
    TRIALS_OUT_OF_TIME = "no time for more trials"
    SCRIPT_OUT_OF_TIME = "no time for the whole script"
    SMALL_GAIN = "small gain"
    """A training step could gain less than what counts as faster."""
    FAST_ENOUGH = "fast enough"
    """The pipeline alone is already so much faster than the training that further speedups have no effect."""
    TOO_MANY = "limit of trials"
    CANNOT_REPLAY = "cannot be rebuilt"
    """The dataset cannot be made again with the change, so that only the whole script can measure it."""
    RUN_TOO_SHORT = "run too short"
    """The script ended before its steps could be timed with the change."""
    TRIAL_FAILED = "trial without result"
    """The changed pipeline hung, did not fit into memory, or gave too few elements."""
    PROCESS_ENDED = "trial process ended"
    """The process that held the script has died."""
    DATA_UNDECIDED = "data undecided"
    """A change is faster, and its effect on the data could not be determined."""
    OTHER_TEXT = "changed text differs"
    """The changed text does not make the calls that were proved."""
    SCRIPT_FAILS = "script fails with the changes"
    INTERRUPTED_ANALYSIS = "interrupted in the analysis"
    INTERRUPTED_TRIALS = "interrupted in the trials"
    INTERRUPTED_SCRIPT = "interrupted in the whole script"


MADE_BY_HAND = frozenset(
    {Why.ADVICE_ONLY, Why.NOT_LEGAL, Why.MAKES_NOTHING_FASTER, Why.CANNOT_REWRITE, Why.TRIAL_FAILED, Why.PROCESS_ENDED}
)
"""Reasons for which a change can only be judged after the user has made it, in a copy of the script."""


@dataclass(frozen=True, slots=True)
class UntriedFix:
    """A proposed change that was not measured."""

    rule: str
    title: str
    site: Site | None
    why: Why
    sentence: str
    """The reason."""
    command: str | None = None
    """The command that tries it, or that judges it if it is made by hand; None if no command helps."""
    options: tuple[str, ...] = ()
    """The options that permit it, as words; empty if it needs no permission."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """How to go on after the end of a proof."""

    why: Why
    """Why the proof has ended."""
    sentence: str
    """What has happened, and what the command does."""
    command: str | None = None
    """The complete command line, quoted for a shell; None if no command helps."""
