"""What a profile holds, boiled down to what the analysis needs; columns, not objects, so that millions of events fit.

In: nothing.  Out: `Trace`, made by `advisor.profile` from the `.xplane.pb` files of one run.

Times are integer nanoseconds on the profile's own clock (0 = profile start where the file says so).
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
    """What an event on a host thread is. `key` and `link` say how events of different threads belong together."""

    ITERATOR = 1
    """`Iterator::...` GetNext. key = iterator id; link = parent id (0: none)."""
    PRODUCE = 2
    """`<Type>Produce` on a worker thread. key = element id."""
    CONSUME = 3
    """`<Type>Consume` inside the asynchronous iterator's own event. key = element id."""
    FUNCTION = 4
    """`InstantiatedCapturedFunction::*` and `FunctionRun`. key = produced context id `_p` (only asynchronous runs have
    one; 0: none); link = step id, which joins every run to its executors."""
    EXECUTOR = 5
    """`ExecutorState::Process`, `ExecutorDoneCallback`. key = consumed context id `_c` (0: none); link = step id."""
    OP = 6
    """An op's execution; label = op type (`DecodeJpeg`)."""
    GET_NEXT = 7
    """`IteratorGetNextOp::DoCompute` and its like: the consumer asks a root iterator for an element."""
    STEP = 8
    """A marked step (`Trace(..., _r=1)`, Keras' `train`). key = step number."""
    TRACING = 9
    """Function tracing, compilation or Grappler: not steady state."""


@dataclass(frozen=True, slots=True, eq=False)
class Thread:
    """The events of one host thread, sorted by start, longer first. All columns have the same length."""

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
    """What the events of one iterator id say of it."""

    id: int
    """uint64."""
    parent_id: int
    """uint64; 0: none."""
    long_name: str
    """`Iterator::Root::Prefetch::ParallelMapV2`; device iterators and old files as they are."""
    dataset_name: str
    """Stat `name`: the dataset's `name=`, `fused(a,b)`, `inject/prefetch_...`; empty where the file has none."""
    num_calls: int
    shapes: str = ""
    types: str = ""
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Every other stat, with its last value; the strings "true"/"false" are booleans here."""
    buffered_elements_mean: float | None = None


@dataclass(frozen=True, slots=True)
class PlaneFacts:
    """A plane that is no host thread plane (device, metadata): enough to say what the profile has."""

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
    """Names that `Thread.label` points at: for ITERATOR the long name, for OP the op type, for PRODUCE/CONSUME the
    iterator type (`ParallelMapV2` for `ParallelMapV2Produce` is not guaranteed: TensorFlow writes `ParallelMapProduce`)."""
    iterators: dict[int, IteratorFacts]
    planes: tuple[PlaneFacts, ...] = ()
    start_unix_ns: int | None = None
    """Unix time of the profile's zero, where the file says so."""
    num_events: int = 0
    errors: tuple[str, ...] = ()
    """XSpace.errors and warnings, as they stand in the file, cleaned of control characters."""
    is_jax: bool = False
    """Taken with JAX's own profiler, which does not see tf.data."""
    warnings: tuple[str, ...] = ()
    """What had to be left out to read the file (impossible times, more names than a program has), in sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """All hosts of one run."""

    hosts: tuple[HostTrace, ...]
    warnings: tuple[str, ...] = ()
