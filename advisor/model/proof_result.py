"""The proof as a whole: how fixes were proved, the result of all kept fixes together, and notes for the user.

`Proof` is part of the `Report` of `advisor fix` and `advisor.optimize`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model import units
from advisor.model.paired_test import PairedTest
from advisor.model.untried import NextStep, UntriedFix

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
    text`; of `advisor prove`: `first runs`, `elements`, `whole script` or `pipeline alone`."""
    seconds: float
    runs: int = 0
    """Number of starts of the script in it."""


@dataclass(frozen=True, slots=True)
class FixedNumbers:
    """Small fixed numbers instead of `tf.data.AUTOTUNE` in all changes, compared in the held script with imagined steps."""

    parallel_calls: int | None
    """`num_parallel_calls`; None: that number is not replaced, because the training needs all cores."""
    buffer_size: int | None
    """Of an added `prefetch`; None: there is none."""
    step_ns: int
    """Length of the imagined steps: that of the training's own, without their wait."""
    autotune_bytes: int
    """Memory that the pipeline takes with AUTOTUNE: the increase of the process's resident memory."""
    fixed_bytes: int
    """The same with the numbers."""
    peak_bytes: int
    """Peak resident memory of the process with AUTOTUNE."""
    speed: tuple[float, float, float] | None = None
    """Ratio of the rates, numbers to AUTOTUNE, with its 95 % interval; None: not measured, because little memory is saved."""
    is_chosen: bool = False
    """The numbers replace AUTOTUNE."""
    seconds: float = 0.0
    """Wall time of the comparison."""
    autotune_calls: int | None = None
    """Most parallel calls of one transformation, each on a thread, with AUTOTUNE: the number of cores; None if unknown."""

    @property
    def sentence(self) -> str:
        """What was compared and decided."""
        calls = None if self.parallel_calls is None else f"num_parallel_calls={self.parallel_calls}"
        size = None if self.buffer_size is None else f"prefetch({self.buffer_size})"
        numbers = " and ".join(filter(None, (calls, size)))
        took = f"{units.format_bytes(max(0, self.fixed_bytes))} instead of {units.format_bytes(max(0, self.autotune_bytes))}"
        threads = ""
        if self.parallel_calls is not None and self.autotune_calls is not None:
            threads = f" with up to {self.parallel_calls} instead of {units.format_many(self.autotune_calls, 'thread')} per call"
        memory = f"{took}{threads}, at a peak of {units.format_bytes(self.peak_bytes)}"
        steps = f"in steps of {units.format_ns(self.step_ns)}"
        if self.speed is None:
            return (
                f"AUTOTUNE is kept instead of {numbers}: the pipeline would take {memory}, which saves too little to justify "
                "a fixed value, which does not adapt to other machines."
            )
        ratio = units.format_range(*self.speed)
        if self.is_chosen:
            return (
                f"{numbers} instead of AUTOTUNE: as fast {steps} ({ratio}), and the pipeline takes {memory}. On another machine, "
                "measure again: these numbers do not adapt."
            )
        return f"AUTOTUNE is kept instead of {numbers}: the pipeline would take {memory}, but {steps} it may be slower ({ratio})."


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
    the gain, or the time was used up before they decided), or `not measured`."""
    phases: tuple[Phase, ...] = ()
    """Where `seconds` went; the rest is reading, writing and rendering."""
    fixed_numbers: FixedNumbers | None = None
    """Numbers that were compared with AUTOTUNE; None if none were."""
    test: PairedTest | None = None
    """How the pairs of runs of the whole script have ended; None if there are none."""
    next: NextStep | None = None
    """How to go on; None if everything was tried and what is proved is written, or if the proof was not one of a script."""
    untried: tuple[UntriedFix, ...] = ()
    """Proposed changes that were not measured, with reasons and commands; empty if the proof was not one of a script."""
