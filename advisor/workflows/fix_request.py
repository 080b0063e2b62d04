"""What `advisor fix` is asked to do, and what it returns.

In: nothing.  Out: `FixRequest`, `FixResult`, and what is said and checked before the script runs.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from advisor.capture.request import files_sentence
from advisor.host.calibration.proof import DEFAULT_BUDGET_S
from advisor.model.errors import AdvisorError
from advisor.model.outcome import Report
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.rewrite.apply.writable import early_obstacle
from advisor.rewrite.patch import Patch
from advisor.workflows.analyze import Request
from advisor.workflows.as_if_step import AsIf


@dataclass(frozen=True, slots=True)
class FixRequest:
    """A script to fix, and the limits."""

    script: Request
    budget_s: float = DEFAULT_BUDGET_S.value
    """Wall time of the whole command in seconds; whatever still runs at its end is stopped (`advisor.prove.budget`)."""
    trials_s: float | None = None
    """Longest time of trials on the pipeline alone before the whole script is measured; None: what the budget leaves."""
    only: tuple[str, ...] = ()
    """Ids of the rules whose fixes are tried; empty for all."""
    is_pipeline_only: bool = False
    """Prove on the pipeline alone, without running the training."""
    is_to_be_written: bool = False
    """Proved changes will be written, so changes to unwritable files are not tried."""
    as_if: AsIf | None = None
    """An imagined training step, which the pipeline is to feed; implies `is_pipeline_only`."""

    def command(self, *options: str) -> str:
        """Return the command for the same script and changes, with other options."""
        script = self.script
        target = ["-m", script.module] if script.module else [str(script.path)]
        permitted = [word for level in script.allow for word in ("--allow", level)]
        only = [word for rule in self.only for word in ("--only", rule)]
        return shlex.join(["advisor", "fix", *options, *permitted, *only, *target, *script.args])


@dataclass(frozen=True, slots=True)
class FixResult:
    """The report, and the proved change of the user's files."""

    report: Report
    patch: Patch = field(default_factory=Patch)
    """Patch of the applied fixes; empty if there are none."""
    changed_meanwhile: Path | None = None
    """A file of the patch that changed after the script was started and so differs from what was measured."""
    is_interrupted: bool = False
    """Ctrl-C ended the proof: the report holds what was found until then."""


def announcement(request: FixRequest) -> str:
    """Say how often the script will run and what happens to its files, to be shown before the first run."""
    files = files_sentence(request.script.in_place)
    if request.is_pipeline_only or request.as_if is not None:
        return (
            "The script will be run once, up to its first element; it will not train. If there is something to change, it will "
            f"be run to the same point once more with the changes. {files}"
        )
    return (
        f"The script will be run up to {2 + 2 * MAX_PAIRS} times, each time for a short window: once or twice to analyse it "
        f"and to try changes, and {2 * MIN_PAIRS} to {2 * MAX_PAIRS} times without and with the changes in turn. A change that "
        f"only the whole script can prove takes as many runs again. {files}"
    )


def check_writable(request: FixRequest) -> None:
    """Check, before anything is run, that a script to be changed can be written.

    Raises:
        AdvisorError: It cannot be written.
    """
    path = request.script.path
    obstacle = early_obstacle(path) if request.is_to_be_written and path is not None else ""
    if obstacle:
        raise AdvisorError(
            f"{obstacle}, so nothing was run: --write could not write it. Without --write, changes are tried and shown."
        )
