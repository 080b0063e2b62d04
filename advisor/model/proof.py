"""The proof as a whole: how fixes were proved, the result of all kept fixes together, and notes for the user.

`Proof` is part of the `Report` of `advisor fix` and `advisor.optimize`.
"""

from __future__ import annotations

from dataclasses import dataclass

TRAINING, PIPELINE = "training", "pipeline"
"""Values of `proved_on`: the whole script, or the input pipeline in isolation."""
NOT_MEASURED, UNDECIDED = "not measured", "undecided"
"""Values of `Proof.training` in addition to the verdicts of a trial."""


@dataclass(frozen=True, slots=True)
class Side:
    """Measurements of the original script or of the script with all kept changes. None means not measured."""

    elements_per_s: float | None = None
    """Elements per second at the root of the pipeline in isolation."""
    step_ns: float | None = None
    """Mean step time of the training; the median over the turns."""
    wait_share: float | None = None
    """Share of the step spent waiting for input, 0 to 1."""
    peak_rss_bytes: int | None = None
    """Peak resident memory of the training if it was run, or else of the pipeline in isolation."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the proof's wall time."""

    name: str
    """`analysis`, `trials` (on the pipeline alone), `whole script` (with the check of the changed text) or `check of the changed
    text`."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Proof:
    """How the fixes were proved."""

    verdict: str
    """Verdict on all kept fixes together: `faster`, `same`, `slower`, `broken`, or `nothing` if no fix was kept or found."""
    sentence: str
    """The verdict as text, in one or two sentences."""
    before: Side = Side()
    after: Side = Side()
    runs: int = 0
    """Total number of runs of the script."""
    pipeline_turns: int = 0
    """Pairs of turns of the pipeline in isolation."""
    end_to_end_turns: int = 0
    """Pairs of runs of the whole script, 3 to 8; 0 if it was not run up to its steps (`notes` say why)."""
    diff: str = ""
    """Unified diff of all kept fixes."""
    left_out: tuple[str, ...] = ()
    """Fixes that were not tried, with the reason."""
    written_files: tuple[str, ...] = ()
    """Files that the script itself opened for writing."""
    changed_files: tuple[str, ...] = ()
    """Files that the tool wrote with `--write`."""
    notes: tuple[str, ...] = ()
    """Limitations of the result."""
    seconds: float = 0.0
    """Wall time of the whole proof."""
    proved_on: str | None = None
    """Where all kept fixes together were measured to be faster: `training` (the whole script) or `pipeline` (the input pipeline
    in isolation); None if nowhere."""
    training: str = NOT_MEASURED
    """Result of the whole script with all kept fixes: `faster`, `same`, `slower`, `broken`, `undecided` (the runs vary more than
    the gain), or `not measured`."""
    phases: tuple[Phase, ...] = ()
    """Where `seconds` went; the rest is reading, writing and rendering."""
