"""What proving fixes showed beside the outcome of each: how it was done, all kept fixes together, what the user should know.

In: nothing.  Out: `Proof`, part of a `Report` made by `advisor fix` and `advisor.optimize`.
"""

from __future__ import annotations

from dataclasses import dataclass

TRAINING, PIPELINE = "training", "pipeline"
"""Values of `proved_on`: the whole script, or the input pipeline alone."""
NOT_MEASURED, UNDECIDED = "not measured", "undecided"
"""Values of `Proof.training` beside the verdicts of a trial."""


@dataclass(frozen=True, slots=True)
class Side:
    """The script as it is, or with all kept changes. None: not measured."""

    elements_per_s: float | None = None
    """Of the pipeline alone, at its root."""
    step_ns: float | None = None
    """Mean step time of the training, median of the turns."""
    wait_share: float | None = None
    """Share of the step spent waiting for input, 0 to 1."""
    peak_rss_bytes: int | None = None
    """Peak resident memory: of the training where it was run, else of the pipeline alone."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How the fixes were proved."""

    verdict: str
    """Of all kept fixes together: `faster`, `same`, `slower`, `broken`; `nothing`: nothing was kept or nothing was found."""
    sentence: str
    """The verdict for people, in one or two sentences."""
    before: Side = Side()
    after: Side = Side()
    runs: int = 0
    """How often the script was run in all."""
    pipeline_turns: int = 0
    """Pairs of turns of the pipeline alone."""
    end_to_end_turns: int = 0
    """Pairs of runs of the whole script; 0: it was not run to its steps, `notes` say why."""
    diff: str = ""
    """Unified diff of all kept fixes."""
    left_out: tuple[str, ...] = ()
    """Fixes that were not tried, with the reason."""
    written_files: tuple[str, ...] = ()
    """Files that the script itself opened for writing while it was run."""
    changed_files: tuple[str, ...] = ()
    """Files that the tool wrote, on `--write`."""
    notes: tuple[str, ...] = ()
    """What limits the statement."""
    seconds: float = 0.0
    """Wall time of the whole proof."""
    proved_on: str | None = None
    """Where all kept fixes together were measured to be faster: `training` (the whole script) or `pipeline` (the input pipeline
    alone); None: nowhere.
    """
    training: str = NOT_MEASURED
    """What the whole script showed with all kept fixes: `faster`, `same`, `slower`, `broken`, `undecided` (its runs differ by
    more than it gains), `not measured`.
    """
