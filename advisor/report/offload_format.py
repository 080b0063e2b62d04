"""The JSON of `advisor offload --json`, version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.finding import Safety
from advisor.model.json_types import Amount, Count, Positive, Share, one_of
from advisor.model.offload_result import CAUSES, MOVABLE, POLICIES, REFUSED, UNDECIDED
from advisor.report.json_format import Object
from advisor.report.pipeline_format import Site
from advisor.report.proof_format import Speedup


class Objection(Object, frozen=True):
    """Why a call must not run on a worker, or may not."""

    verdict: Annotated[str, one_of(REFUSED, UNDECIDED)]
    cause: Annotated[str, one_of(*CAUSES)]
    method: str
    site: Site | None
    reason: str
    """A clause with the call as its subject."""


class Repair(Object, frozen=True):
    """A change that the move requires or profits from."""

    text: str
    in_diff: bool
    """Whether `diff` contains it; otherwise it is made by hand."""
    code: str
    """What to write by hand; empty otherwise."""


class Movability(Object, frozen=True):
    """Whether the pipeline can run on workers, and where `distribute` goes."""

    verdict: Annotated[str, one_of(MOVABLE, UNDECIDED, REFUSED)]
    sentence: str
    after: str
    """The method after whose call the elements leave the workers; empty if there is no such place."""
    after_site: Site | None
    moved_share: Share | None
    """Share of the pipeline's own work that moves."""
    safety: Safety
    """What the move does to the elements."""
    max_workers: Count | None
    """Number of parts into which the source can be divided; null if unknown or endless."""
    objections: Sequence[Objection]
    conditions: Sequence[str]
    """What has to hold for the move, and what it changes."""
    repairs: Sequence[Repair]


class Rate(Object, frozen=True):
    """The pipeline read through one worker process."""

    compression: Annotated[str, one_of("AUTO", "none")]
    elements_per_s: Amount
    elements_per_core_s: Amount
    """Elements per second of CPU time of the worker."""
    elements_per_core_s_low: Amount
    elements_per_core_s_high: Amount
    client_cpu_ms: Amount
    """CPU time of the client per element."""
    dispatcher_cpu_ms: Amount
    elements: Count
    seconds: Amount


class Measurement(Object, frozen=True):
    """What real dispatcher and worker processes did: on this machine, or with `--service`, those of that service."""

    compared_workers: Count
    """0: nothing was compared."""
    local_elements: Count
    """Rows of one pass of the local pipeline, or its elements if they are no batches."""
    service_elements: Count
    same_elements: bool | None
    """Whether they are equal as multisets; null: not comparable."""
    comparison: str
    element_bytes: Amount
    local_elements_per_s: Amount
    local_cpu_ms: Amount
    """CPU time per element of the pipeline without the service."""
    end_delay_ms: Amount | None
    """How much later the end of a pass came through the service than its last element."""
    rates: Sequence[Rate]
    """Empty with `--service`: the CPU time of other machines is unknown."""


class Sizing(Object, frozen=True):
    """How many workers the training needs."""

    verdict: Annotated[str, one_of("workers", "no gain", "unknown")]
    sentence: str
    limit: Annotated[str, one_of("", "model", "client", "network", "dispatcher", "source")]
    """What limits it beyond the workers; empty if nothing does."""
    workers: Positive | None
    workers_low: Positive | None
    workers_high: Positive | None
    worker_cores: Amount | None
    worker_elements_per_s: Amount | None
    wanted_elements_per_s: Amount | None
    """What the training would consume if it never waited."""
    reachable_elements_per_s: Amount | None
    client_bytes_per_s: Amount | None
    compression: Annotated[str, one_of("AUTO", "none")]


class ProofSide(Object, frozen=True):
    """The script as it is, or reading from the service; null: not measured."""

    step_time_ms: Amount | None
    """Mean step time; the median over the runs."""
    input_wait_share: Share | None
    peak_rss_bytes: Count | None


class Proof(Object, frozen=True):
    """With `--service`: the script with its own pipeline against the script that reads from that service."""

    address: str
    verdict: Annotated[str, one_of("faster", "same", "slower", "broken", "undecided", "not measured")]
    """`broken`: the script fails with the service. `undecided`: the runs vary by more than the gain,
    or the time was used up before they decided."""
    sentence: str
    workers: Count
    """Workers that could be reached at the beginning."""
    lost_workers: Sequence[str]
    """Addresses of those that ended, or could no longer be reached, before the end."""
    delivered_elements_per_s: Amount | None
    """What the service delivered to a reader that did nothing else."""
    client_cpu_ms: Amount | None
    """CPU time of the trainer per element received."""
    predicted_speedup: Amount | None
    """The gain that this rate promises."""
    step_speedup: Speedup | None
    """Step time without the service / with it, with its 95 % interval."""
    turns: Count
    """Pairs of fresh runs behind it."""
    before: ProofSide
    after: ProofSide


class Offload(Object, frozen=True):
    """Whether an input pipeline can move to tf.data service, and what that takes."""

    schema_version: Literal[1]
    advisor_version: str
    sharding: Annotated[str, one_of(*POLICIES)]
    sentence: str
    target: str
    movability: Movability
    measurement: Measurement | None
    sizing: Sizing | None
    proof: Proof | None
    """Null without `--service`."""
    diff: str
    """Unified diff of the script; empty if there is none."""
    files: Sequence[str]
    """The generated files that were written."""
    changed_files: Sequence[str]
    """The user's files that were changed."""
    runs: Count
    seconds: Amount
    run_folder: str
    notes: Sequence[str]
