"""What `advisor fix` is asked to do, and what it returns.

In: nothing.  Out: `FixRequest`, `FixResult`, and what is said and checked before the script runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from advisor.capture.request import files_sentence
from advisor.host.calibration.proof import DEFAULT_BUDGET_S
from advisor.model.errors import NotWritable
from advisor.model.outcome import Report
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.model.units import step_option
from advisor.prove.ends.script_commands import ScriptCommands
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
    usual_s: float | None = None
    """As in `advisor.prove.budget.Budget`."""
    only: tuple[str, ...] = ()
    """Ids of the rules whose fixes are tried; empty for all."""
    is_pipeline_only: bool = False
    """Prove on the pipeline alone, without running the training."""
    is_to_be_written: bool = False
    """Proved changes will be written, so changes to unwritable files are not tried."""
    as_if: AsIf | None = None
    """An imagined training step, which the pipeline is to feed; implies `is_pipeline_only`."""
    on_concluding: Callable[[], None] = lambda: None
    """Called once nothing is run any more: what follows is the report."""

    @property
    def commands(self) -> ScriptCommands:
        """The commands for the same script."""
        script, as_if = self.script, self.as_if
        mode: tuple[str, ...] = ("--pipeline-only",) if self.is_pipeline_only else ()
        if as_if is not None:
            mode = (
                ("--as-if-speedup", _plain(as_if.speedup))
                if as_if.step_s is None
                else ("--as-if-step", step_option(as_if.step_s))
            )
        window = {"--steps": script.steps, "--warmup": script.warmup, "--seconds": script.seconds}
        words = [word for name, value in window.items() if value is not None for word in (name, _plain(value))]
        return ScriptCommands(
            script.path,
            script.module,
            script.args,
            tuple(script.allow),
            self.only,
            tuple(script.rule_directories),
            tuple([*words, "--in-place"] if script.in_place else words),
            mode,
            self.budget_s,
            is_budget_given=self.trials_s is None,
            is_to_be_written=self.is_to_be_written,
        )


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
    problem: str = ""
    """Why nothing at all could be measured, if the process of the trials died; empty otherwise."""


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
        NotWritable: It cannot be written.
    """
    path = request.script.path
    obstacle = early_obstacle(path) if request.is_to_be_written and path is not None else ""
    if obstacle:
        raise NotWritable(
            f"{obstacle}, so nothing was run: --write could not write it. Without --write, changes are tried and shown."
        )


def _plain(value: float | None) -> str:
    """A number as an option's value, without an exponent."""
    return f"{value or 0:.9f}".rstrip("0").rstrip(".")
