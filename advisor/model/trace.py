"""The contents of a profile, reduced to what the analysis needs. Events are stored in columns to hold millions of them in memory.

`Trace` is made by `advisor.profile` from the `.xplane.pb` files of one run.

Times are integer nanoseconds on the profile's clock (0 is the start of the profile if the file contains it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Kinds = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int32]


class EventKind(IntEnum):
    """The kind of an event on a host thread. `key` and `link` relate events of different threads."""

    ITERATOR = 1
    """`Iterator::...` GetNext. key = iterator id; link = parent id (0 if none)."""
    PRODUCE = 2
    """`<Type>Produce` on a worker thread. key = element id."""
    CONSUME = 3
    """`<Type>Consume` inside the event of the asynchronous iterator. key = element id."""
    FUNCTION = 4
    """`InstantiatedCapturedFunction::*` and `FunctionRun`. key = produced context id `_p` (only for asynchronous runs; otherwise
    0); link = step id, which joins a run with its executors."""
    EXECUTOR = 5
    """`ExecutorState::Process`, `ExecutorDoneCallback`. key = consumed context id `_c` (0 if none); link = step id."""
    OP = 6
    """The execution of an op; label = op type (`DecodeJpeg`); key = 1 + index into `HostTrace.op_names`, 0 if unknown."""
    GET_NEXT = 7
    """`IteratorGetNextOp::DoCompute` and similar: the consumer requests an element from a root iterator."""
    STEP = 8
    """A marked step (`Trace(..., _r=1)`, Keras' `train`). key = step number."""
    TRACING = 9
    """Function tracing, compilation or Grappler, which do not belong to the steady state."""


@dataclass(frozen=True, slots=True, eq=False)
class Thread:
    """The events of one host thread, sorted by start, longer events first. All columns have the same length."""

    line_id: int
    name: str
    start_ns: Times
    end_ns: Times
    kind: Kinds
    label: Labels
    """Index into `HostTrace.labels`."""
    key: Keys
    link: Keys

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class IteratorFacts:
    """One iterator id, described by its events."""

    id: int
    """uint64."""
    parent_id: int
    """uint64; 0 if there is no parent."""
    long_name: str
    """`Iterator::Root::Prefetch::ParallelMapV2`; names of device iterators and in old files are unchanged."""
    dataset_name: str
    """Stat `name`: the dataset's `name=`, `fused(a,b)`, `inject/prefetch_...`; empty if the file has none."""
    num_calls: int
    shapes: str = ""
    types: str = ""
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)
    """All other stats with their last value; the strings "true" and "false" become booleans."""
    buffered_elements_mean: float | None = None


@dataclass(frozen=True, slots=True)
class PlaneFacts:
    """A plane without host threads (device, metadata), summarised."""

    name: str
    """`/device:GPU:0`, ..."""
    num_lines: int
    num_events: int


@dataclass(frozen=True, slots=True, eq=False)
class HostTrace:
    """One host's profile."""

    hostname: str
    path: str
    threads: tuple[Thread, ...]
    labels: tuple[str, ...]
    """Names that `Thread.label` refers to: for ITERATOR the long name, for OP the op type, for PRODUCE and CONSUME the iterator
    type, possibly without its version (TensorFlow writes `ParallelMapProduce` for `ParallelMapV2`)."""
    iterators: dict[int, IteratorFacts]
    planes: tuple[PlaneFacts, ...] = ()
    start_unix_ns: int | None = None
    """Unix time of the profile's zero; None if the file does not contain it."""
    num_events: int = 0
    errors: tuple[str, ...] = ()
    """XSpace.errors and warnings from the file, without control characters."""
    is_jax: bool = False
    """Whether it was taken with JAX's profiler, which does not record tf.data."""
    op_names: tuple[str, ...] = ()
    """Names of ops as in the graph that was executed (`PartitionedCall/sort/TopKV2`), for the keys of OP events."""
    warnings: tuple[str, ...] = ()
    """What was omitted when the file was read (impossible times, too many names), in sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The profiles of all hosts of one run."""

    hosts: tuple[HostTrace, ...]
    warnings: tuple[str, ...] = ()
