"""Predictions and proofs in report.json, version 1: ratios of times, the outlook, the fixes and their proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from advisor.model.finding import Safety
from advisor.model.json_types import Amount, Count, Positive, Share, one_of
from advisor.model.paired_test import REASONS
from advisor.model.untried import Why
from advisor.report.json_format import Object
from advisor.report.pipeline_format import Site

ProvedOn = Annotated[str, one_of("training", "pipeline")]


class Ratio(Object, frozen=True):
    """A ratio of times before to after (above 1 is faster) with its range."""

    value: float | None
    low: float | None
    high: float | None


class Horizon(Object, frozen=True):
    """How often a run of the script passes over its data."""

    basis: Annotated[str, one_of("known", "assumed", "unknown")]
    why: str
    """Where the number of passes comes from, or why it is unknown."""
    passes: Amount | None
    """Number of passes (epochs); null if unknown."""
    steps_per_pass: Amount | None
    steps_done: Count
    """Steps that the recorded run had made when the recording ended."""


class RunGain(Object, frozen=True):
    """The predicted effect of a change on a whole run of the script."""

    passes: Amount | None
    """Passes over the data in the run; null if unknown."""
    basis: Annotated[str, one_of("known", "assumed", "unknown")]
    predicted_speedup: Ratio | None
    """Of all passes together; null if their number is unknown."""
    saved_ms: float | None
    """Predicted time that the change saves, see `saved_per`."""
    saved_per: Annotated[str, one_of("run", "pass", "step")]
    """`run` if the number and the length of the passes are known; `pass` (a later one) if only their length is."""
    break_even_pass: Positive | None
    """The pass in which a change that does not help the first one has saved time; null for other changes."""
    sentence: str
    """The effect as text; empty if every pass becomes equally faster."""


class Speedup(Object, frozen=True):
    """A measured ratio of times before to after (above 1 is faster) with its 95 % interval."""

    speedup: float | None
    low: float | None
    high: float | None


class PairedTest(Object, frozen=True):
    """How the alternating pairs of runs behind a ratio of step times have ended."""

    ended_because: Annotated[str, one_of(*REASONS)]
    """`clear`: faster or slower. `futile`: no gain that counts. `curtailed`: the remaining pairs could not have shown one.
    `last`: all pairs were measured. `out of time`: undecided when the time was used up. After the first three, the estimate is
    conditional on having stopped; after `clear` it is probably somewhat too large."""
    pairs: Count
    """Pairs that were measured."""
    max_pairs: Count
    median: Ratio | None
    """Median of the ratios with its exact 95 % interval (order statistics), which does not allow for early stopping; null with
    fewer than 6 pairs."""


class ServiceDemand(Object, frozen=True):
    """The cost of one element at the root, at one iterator. Times are in nanoseconds per element at the root."""

    iterator_id: str
    visits: Amount | None
    """Elements that it produces per element at the root."""
    busy_ns: Amount | None
    """Time during which it occupies a thread, without that thread's wait for a core."""
    cpu_ns: Amount | None
    waiting_ns: Amount | None
    """Time during which it occupies a thread but no core."""
    python_ns: Amount | None
    """Time inside ops that run Python."""
    servers: Amount | None
    """Threads that can do this work in parallel; null if no limit is known."""
    stage: Count
    """Iterators of one stage share its threads; stage 0 is the consumer's thread."""
    capacity_per_s: Amount | None
    """Maximum elements per second at the root if only this iterator limited it; null if it costs nothing."""


class Limit(Object, frozen=True):
    """A lower bound of the step time and the resource that causes it."""

    resource: Annotated[str, one_of("consumer", "node", "cpu", "gil", "disk")]
    step_ns: Amount | None
    """The shortest possible step."""
    iterator_id: str | None


class CombinedPlan(Object, frozen=True):
    """The best set of changes that are allowed, compatible with each other, and fit in memory."""

    findings: Sequence[Count]
    """Indices into `findings` of the report."""
    predicted_speedup: Ratio
    memory_bytes: int
    """Additional memory."""
    limit: Limit
    """The limit of the pipeline after the changes."""
    limit_speedup: float | None
    """Maximum speedup that this limit allows, relative to the present step."""
    service_workers: Positive | None
    """Machines that would have to do the input work; null if the host is not the limit, or if the number is unknown."""
    sentence: str
    over_run: RunGain | None
    """The effect on a whole run."""


class Headroom(Object, frozen=True):
    """How fast the pipeline could go if the training did not hold it back.

    Times are in nanoseconds per step: for one element at the root, or several with Keras' `steps_per_execution`.
    """

    element_ns: Amount | None
    """With a consumer that takes no time and no core, the shortest step without a wait: predicted, or read for a second."""
    low_ns: Amount | None
    high_ns: Amount | None
    """Its range."""
    measured_ns: Amount | None
    """Mean time of the pipeline alone, measured with `--headroom`; null if it was not measured."""
    read_ns: Amount | None
    """How long the pipeline was read without training after the window, for `element_ns`; null if that is predicted."""
    step_speedup: float | None
    """How much faster the training could become before it waits for input."""
    surest_speedup: float | None
    """The same at the slow end of the predicted range, unless it was measured."""
    limit: Limit
    """What would limit the pipeline then."""
    sentence: str


class SharedCores(Object, frozen=True):
    """What the pipeline's CPU time costs a training that computes on the same cores and hardly waits for input."""

    cpu_ns: Amount | None
    """CPU time of the pipeline in nanoseconds per step, measured while it was read without training."""
    share: float
    """The same, as a share of the CPU time that the process uses per step."""
    speedup: float
    """How much faster a step could be without any input work, wait included: an estimate, not a bound."""
    sentence: str


class Outlook(Object, frozen=True):
    """The potential of the main pipeline. Times are in nanoseconds per element at the root."""

    step_ns: Amount | None
    consumer_ns: Amount | None
    """The consumer's own time, without its wait for a core."""
    demands: Sequence[ServiceDemand]
    limits: Sequence[Limit]
    """Limits of the present pipeline, longest step first."""
    memory_room_bytes: Count | None
    """Memory available to all changes together; null if unknown."""
    plan: CombinedPlan | None
    """null if no finding has a prediction."""
    horizon: Horizon | None
    """How often a run passes over the data."""
    headroom: Headroom | None
    """null if the training waits for input and it was not measured."""
    shared_cores: SharedCores | None
    """null if the training waits for input or computes elsewhere, if its pipeline was not read without training, or if it
    takes too little of the cores."""


class Fix(Object, frozen=True):
    """The result of proving one fix."""

    rule: str
    site: Site | None
    predicted_speedup: Ratio | None
    measured: Speedup | None
    safety_claimed: Safety
    safety_seen: Annotated[str, one_of(*Safety, "undecided")] | None
    verdict: Annotated[str, one_of("faster", "same", "slower", "broken")]
    applied: bool
    proved_on: ProvedOn | None
    """Where the fix was measured to be faster: on the training (with all kept fixes together) or on the input pipeline in
    isolation; null if the verdict is not `faster`."""


class BeforeAfterBytes(Object, frozen=True):
    """A size without and with the fix."""

    before: Count | None
    after: Count | None


class Gain(Object, frozen=True):
    """The speedup of one quantity; null means unknown or not measured."""

    predicted: Ratio | None
    measured: Ratio | None
    """With its 95 % interval."""


class LossDeviation(Object, frozen=True):
    """How far a change moves the loss of the first batches (Keras' mean over the batches so far)."""

    batches: Count
    """Number of batches up to which the losses were compared."""
    relative: float | None
    """Largest difference of the medians of the runs, relative to the loss without the change; null if it is not finite."""
    between_runs: float | None
    """Largest difference between runs without the change, in the same way."""


class FixDetails(Object, frozen=True):
    """More about one of the report's `fixes`."""

    title: str
    note: str
    memory_bytes: BeforeAfterBytes
    """Peak resident memory of the process without and with the fix."""
    end_to_end: bool
    """Whether it was measured by running the whole script."""
    pipeline: Gain
    """The speedup of the input pipeline in isolation."""
    step: Gain
    """The speedup of a training step: predicted for this change alone; measured if the script ran with this change alone."""
    of_step: bool
    """Whether it changes the training step and leaves the data untouched."""
    loss: LossDeviation | None
    """For a change of the training step; null if the loss is unknown."""


class ProofSide(Object, frozen=True):
    """The original script, or the script with all kept changes; null means not measured."""

    elements_per_s: Amount | None
    step_time_ms: Amount | None
    input_wait_share: Share | None
    peak_rss_bytes: Count | None


class Phase(Object, frozen=True):
    """A part of the proof's wall time."""

    name: str
    """`analysis`, `trials` (on the pipeline alone), `whole script` (with the check of the changed text) or `check of the changed
    text`; of `advisor prove`: `first runs`, `elements`, `whole script` or `pipeline alone`."""
    seconds: Amount
    runs: Count
    """Number of starts of the script in it."""


class FixedNumbers(Object, frozen=True):
    """Small fixed numbers instead of `tf.data.AUTOTUNE` in all changes, compared on the pipeline alone with imagined steps."""

    parallel_calls: Count | None
    """`num_parallel_calls`; null if that number was not replaced."""
    buffer_size: Count | None
    """Of an added `prefetch`; null if there is none."""
    step_ns: Count
    """Length of the imagined steps: that of the training's own, without their wait."""
    autotune_bytes: int
    """Increase of the process's resident memory by the pipeline with AUTOTUNE."""
    fixed_bytes: int
    """The same with the numbers."""
    peak_bytes: Count
    """Peak resident memory of the process with AUTOTUNE."""
    speed: Speedup | None
    """Ratio of the rates, numbers to AUTOTUNE; null if it was not measured, because little memory is saved."""
    chosen: bool
    """The numbers replace AUTOTUNE in the diff."""
    seconds: Amount
    """Wall time of the comparison."""
    sentence: str
    autotune_calls: Count | None = None
    """Most parallel calls of one transformation, each on a thread, with AUTOTUNE; null if unknown."""


class UntriedFix(Object, frozen=True):
    """A proposed change that was not measured."""

    rule: str
    title: str
    site: Site | None
    why: Annotated[str, one_of(*Why)]
    sentence: str
    """The reason."""
    command: str | None
    """The command that tries it, or that judges it if it is made by hand; null if no command helps."""
    by_hand: bool = False
    """Whether the change has to be made in a copy of the script before the command can judge it."""


class Proof(Object, frozen=True):
    """How the fixes were proved."""

    verdict: Annotated[str, one_of("faster", "same", "slower", "broken", "nothing")]
    """Verdict on all kept fixes together; `nothing` if no fix was kept or found."""
    proved_on: ProvedOn | None
    """Where all kept fixes together were measured to be faster: on the training or on the input pipeline in isolation; null if
    nowhere."""
    training: Annotated[str, one_of("faster", "same", "slower", "broken", "undecided", "not measured")]
    """Result of the whole script with all kept fixes; `undecided` if its runs vary more than the gain, or if the time was used up
    before they decided."""
    sentence: str
    before: ProofSide
    after: ProofSide
    runs: Count
    """Total number of runs of the script."""
    pipeline_turns: Count
    """Pairs of turns of the pipeline in isolation."""
    end_to_end_turns: Count
    """Pairs of runs of the whole script."""
    fixes: Sequence[FixDetails]
    """More about each entry of the report's `fixes`, in the same order."""
    diff: str | None
    """Unified diff of all kept fixes."""
    left_out: Sequence[str]
    """Fixes that were not tried, with the reason."""
    written_files: Sequence[str]
    """Files that the script itself opened for writing."""
    changed_files: Sequence[str]
    """Files that `--write` changed."""
    notes: Sequence[str]
    seconds: Amount | None
    """Wall time of the whole proof."""
    phases: Sequence[Phase]
    """Where that time went."""
    fixed_numbers: FixedNumbers | None
    """Fixed numbers that were compared with AUTOTUNE; null if none were."""
    test: PairedTest | None = None
    """How the pairs of runs of the whole script have ended; null if there are none."""
    next_why: Annotated[str, one_of(*Why)] | None = None
    """Why `advisor fix` ended as it did; null if everything was tried and what is proved is written."""
    next_step: str | None = None
    """How to go on, in one or two sentences; null as for `next_why`."""
    next_command: str | None = None
    """The complete command line, quoted for a shell; null if no command helps."""
    untried: Sequence[UntriedFix] = ()
    """Proposed changes that were not measured."""


class Throughput(Object, frozen=True):
    """Elements per second of the pipeline before and after."""

    before: Amount | None
    after: Amount | None
    speedup: float | None
    low: float | None
    high: float | None


class BeforeAfterShare(Object, frozen=True):
    """A share before and after."""

    before: Share | None
    after: Share | None


class Comparison(Object, frozen=True):
    """Measurements before and after the change."""

    pipeline: Throughput
    end_to_end: Ratio | None
    input_wait_share: BeforeAfterShare
