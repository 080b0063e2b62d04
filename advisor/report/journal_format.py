"""The lines of a journal of `advisor prove --journal`, version 1: one JSON object each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.json_types import Amount, Count, Positive, one_of
from advisor.report.change_format import ChangeProof
from advisor.report.json_format import Object
from advisor.report.proof_format import Speedup

BEGAN, JUDGED, FAILED, STOPPED = "began", "judged", "failed", "stopped"
EVENTS = (BEGAN, JUDGED, FAILED, STOPPED)


class TrialOptions(Object, frozen=True):
    """The options of a trial; null: chosen by the advisor."""

    pipeline_only: bool
    allow: Sequence[str]
    """Permitted effects on the data beyond `exact`, from the options and the settings."""
    steps: Positive | None
    warmup: Count | None
    seconds: Amount | None
    budget_s: Amount


class JournalEntry(Object, frozen=True):
    """The beginning or the end of a trial: one change of one text, judged once."""

    schema_version: Literal[1]
    event: Annotated[str, one_of(*EVENTS)]
    """`began`: it has started. `judged`: it has a verdict. `failed`: the script fails with the change. `stopped`: it ended
    without a result, such as by Ctrl-C. A trial that has only begun is still running or was ended by a crash."""
    trial: str
    """The same in both lines of a trial."""
    time: str
    """ISO 8601, UTC."""
    advisor_version: str
    target: str
    """The script with its arguments."""
    change: str
    """Where the changed text came from, such as `--with faster.py`."""
    files: Sequence[str]
    """The Python files that the change replaces."""
    base: str
    """SHA-256 of what is changed: the script's name and arguments, its text, and the project's modules that it imports. Layout
    and comments do not count."""
    diff: str
    """SHA-256 of the change. Layout and comments do not count."""
    options: TrialOptions
    hypothesis: str
    """What was expected of the change, as given by `--hypothesis`."""
    verdict: str | None
    """As in `proof`; null without one, as for the other figures."""
    speedup: Speedup | None
    seconds: Amount | None
    """Wall time of the trial."""
    exit_code: int | None
    """Of the command, with the `--fail-on` that it was given."""
    error: str
    """Why there is no verdict; empty if there is one."""
    proof: ChangeProof | None
    """What `advisor prove --json` wrote."""
