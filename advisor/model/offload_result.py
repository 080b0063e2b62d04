"""What `advisor offload` finds: whether a pipeline can move to tf.data service, what was measured, how many workers it needs.

`Movability` is made by `advisor.offload.legality`, `ServiceMeasurement` by `advisor.prove.trial.service.service_trial`,
`Sizing` by `advisor.offload.sizing`, `ServedMeasurement` by `advisor.prove.trial.service.served_trial`, `ServiceProof` by
`advisor.workflows.offload_proof`, and `Offload`, which holds them all, by `advisor.workflows.offload`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.calls import Site
from advisor.model.edits import Edit, InsertAfter, StepEdit
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.proof_result import Side

MOVABLE, UNDECIDED, REFUSED = "movable", "undecided", "refused"
"""Verdicts on a pipeline and on a single call. `UNDECIDED`: nothing recorded speaks against it, but it is on no reviewed list, or
rests on something that was not observed."""

PYTHON = "python"
"""It runs Python code of the trainer's process."""
FILES = "files"
"""It reads or writes files that a worker does not have, or that several workers would write."""
COUNTS = "counts per worker"
"""It counts elements, which every worker would do for its own part."""
RANDOM = "seeded random numbers"
"""Every worker would draw the same numbers."""
STATE = "state"
"""It reads or changes state of the trainer's process."""
EFFECT = "side effect"
"""It does something outside the pipeline, which would happen on the workers."""
OP = "op"
"""It contains an op that workers may lack."""
SOURCE = "source"
"""Its source is not known to be divisible among workers."""
SERVICE = "service"
"""A real worker process refused it."""
CAUSES = (PYTHON, FILES, COUNTS, RANDOM, STATE, EFFECT, OP, SOURCE, SERVICE)

DYNAMIC, OFF = "dynamic", "off"
"""Sharding policies: each element once over all workers, or all elements from each worker."""
POLICIES = (DYNAMIC, OFF)
PROCESSING_MODES = {DYNAMIC: "distributed_epoch", OFF: "parallel_epochs"}
"""Policy -> the `processing_mode` of `distribute`, which exists in every version of TensorFlow 2."""


REPEAT, BATCH, FIT = "repeat", "batch", "fit"
REPAIRS = (REPEAT, BATCH, FIT)
"""Repairs without which a pipeline can move as well: `repeat` before `distribute`, batches that are sent as one element, and both
`repeat` and `steps_per_epoch` for Keras."""

_NOT_MEASURED = Side()


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a call must not run on a worker, or may not."""

    verdict: str
    """`REFUSED` or `UNDECIDED`."""
    cause: str
    """One of `CAUSES`."""
    method: str
    """The method of the call."""
    reason: str
    """A clause with the call as its subject: `runs Python code, ...`."""
    site: Site | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that the move requires or profits from."""

    text: str
    """What to do and why, in one sentence."""
    edits: tuple[Edit, ...] = ()
    """Empty, like `before` and `step_edits`, if it has to be made by hand."""
    code: str = ""
    """What to write by hand; empty if there are edits."""
    before: tuple[Edit, ...] = ()
    """Edits that put calls between the place and `distribute`; of two, the later one ends up closer to the place."""
    one_pass: tuple[Edit, ...] = ()
    """What takes the place of `before` where one pass through the workers is measured and compared: no `repeat`."""
    step_edits: tuple[StepEdit, ...] = ()
    """Changes of the call that trains; they need the other edits of the repair, and the other way round."""
    kind: str = ""
    """One of `REPAIRS` if the move is possible without it, so that it may be left to the user."""

    @property
    def is_written(self) -> bool:
        """Whether the advisor makes the change; otherwise it is made by hand."""
        return bool(self.edits or self.before or self.step_edits)


@dataclass(frozen=True, slots=True)
class Movability:
    """Whether a pipeline can run on workers, and where the `distribute` goes."""

    verdict: str
    """`MOVABLE`, `UNDECIDED` or `REFUSED`."""
    sentence: str
    after_id: str = ""
    """The call after which the elements leave the workers; empty if there is no such place."""
    after_method: str = ""
    after_site: Site | None = None
    moved_share: float | None = None
    """Share of the pipeline's own work that happens before that place, 0 to 1; None if it was not measured."""
    objections: tuple[Objection, ...] = ()
    """Nearest to the consumer first."""
    conditions: tuple[str, ...] = ()
    """What has to hold for the move, and what it changes, in clauses without a period."""
    repairs: tuple[Repair, ...] = ()
    safety: Safety = Safety.REORDERED
    """What the move does to the elements."""
    max_workers: int | None = None
    """Number of parts into which the source can be divided: further workers get no data. None if unknown or endless."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the repairs, which precede that of `distribute`."""
        return tuple(edit for repair in self.repairs for edit in repair.edits)

    @property
    def before(self) -> tuple[Edit, ...]:
        """The edits that put calls between the place and `distribute`."""
        return tuple(edit for repair in self.repairs for edit in repair.before)

    @property
    def step_edits(self) -> tuple[StepEdit, ...]:
        """The changes of the call that trains."""
        return tuple(edit for repair in self.repairs for edit in repair.step_edits)

    @property
    def sent_together(self) -> int:
        """Number of elements of the place that a repair makes one element for the way to the training."""
        sizes = (
            dict(edit.arguments) for edit in self.before if isinstance(edit, InsertAfter) and edit.method == "batch"
        )
        size = next(sizes, {}).get("")
        return size if isinstance(size, int) else 1


@dataclass(frozen=True, slots=True)
class ServiceRate:
    """One way to read the pipeline through one worker process, measured for some seconds."""

    compression: str
    """`AUTO` or `none`."""
    elements_per_s: float
    elements_per_core_s: float
    """Elements per second of CPU time of the worker."""
    elements_per_core_s_low: float
    """The least and the most of the parts of the measurement."""
    elements_per_core_s_high: float
    client_cpu_s: float
    """CPU time of the client per element, in seconds."""
    dispatcher_cpu_s: float
    """CPU time of the dispatcher per element, in seconds."""
    elements: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ServiceMeasurement:
    """What real dispatcher and worker processes on this machine did with the pipeline."""

    objection: Objection | None = None
    """Why the workers could not run it; nothing else was measured then."""
    compared_workers: int = 0
    """Number of worker processes in the comparison; 0: nothing was compared."""
    local_elements: int = 0
    """Rows of one pass of the local pipeline, or its elements if they are no batches."""
    service_elements: int = 0
    """The same through the service."""
    is_same: bool | None = None
    """Whether they are equal as multisets; None: not comparable, and `comparison` says why."""
    comparison: str = ""
    """The result of the comparison in one sentence."""
    element_bytes: float = 0.0
    local_elements_per_s: float = 0.0
    """The pipeline read in the script's process, without a consumer."""
    local_cpu_s: float = 0.0
    """CPU time per element meanwhile, in seconds."""
    rates: tuple[ServiceRate, ...] = ()
    end_delay_s: float | None = None
    """How much later the end of a finite pass came through the service than its last element; None if not measured."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedMeasurement:
    """What the workers of a service that the user runs did with the pipeline, which the held script read without training."""

    measurement: ServiceMeasurement
    """The comparison; without `rates`, as the CPU time of other machines is unknown."""
    workers: int = 0
    """Workers that could be reached at the beginning."""
    lost: tuple[str, ...] = ()
    """Addresses of workers that could be reached at the beginning, and no longer at the end."""
    delivered_per_s: float | None = None
    """Elements per second that arrived without a training; None if not measured."""
    client_cpu_s: float | None = None
    """CPU time that receiving an element took here, in seconds."""


@dataclass(frozen=True, slots=True)
class ServiceProof:
    """The script with its own pipeline against the script that reads from a running service, in alternating runs."""

    address: str
    verdict: str
    """`faster`, `same`, `slower`, `broken` (the script fails with the service), `undecided` (the runs vary by more than the
    gain), `not measured`."""
    sentence: str
    workers: int = 0
    """Workers that could be reached at the beginning."""
    lost_workers: tuple[str, ...] = ()
    """Addresses of those that ended, or could no longer be reached, before the end."""
    delivered_per_s: float | None = None
    """Elements per second that the service delivered to a reader that did nothing else; None if not measured."""
    client_cpu_s: float | None = None
    """CPU time that receiving an element took in the trainer, in seconds."""
    predicted_speedup: float | None = None
    """The gain that these elements per second promise, before the script was run with them; None if unknown."""
    speedup: Interval | None = None
    """Step time without the service / with it; None if not measured."""
    turns: int = 0
    """Pairs of runs."""
    before: Side = _NOT_MEASURED
    """The script as it is."""
    after: Side = _NOT_MEASURED
    """The script that reads from the service."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many workers the training needs."""

    verdict: str
    """`workers`: so many; `no gain`: more workers do not help; `unknown`: something was not measured."""
    sentence: str
    limit: str = ""
    """With `no gain`, and where fewer workers than needed can be used: `model`, `client`, `network`,
    `dispatcher`, `source`."""
    wanted_per_s: float | None = None
    """Elements per second that the training would consume if it never waited."""
    reachable_per_s: float | None = None
    """What of that the client, its network and the source allow."""
    worker_per_s: float | None = None
    """Elements per second of a worker with `worker_cores` cores."""
    worker_cores: float | None = None
    workers: int | None = None
    workers_low: int | None = None
    workers_high: int | None = None
    compression: str = "AUTO"
    """The faster one."""
    client_bytes_per_s: float | None = None
    """Bytes per second that the client would receive, before compression."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offload:
    """Everything that `advisor offload` found."""

    target: str
    sentence: str
    movability: Movability
    measurement: ServiceMeasurement | None
    """None if the pipeline cannot move, or with `--no-measurement`."""
    sizing: Sizing | None
    policy: str
    diff: str
    """Unified diff of the script; empty if it cannot be written, and a note says why."""
    proof: ServiceProof | None = None
    """With `--service`: what the script gained from that service."""
    files: tuple[str, ...] = ()
    """Paths of the files that were written."""
    changed_files: tuple[str, ...] = ()
    """The user's files that were changed."""
    runs: int = 0
    seconds: float = 0.0
    run_folder: str = ""
    notes: tuple[str, ...] = ()
