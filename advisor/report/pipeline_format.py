"""Pipelines, iterators and calls in report.json, version 1.

Times are in nanoseconds (`_ns`), sizes in bytes, shares from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from advisor.model.json_types import Amount, Count, Positive, Share, one_of
from advisor.model.pipeline import OpCost
from advisor.report.json_format import Object


class Site(Object, frozen=True):
    """A place in the user's source. Line and column count from 1."""

    file: str
    line: Positive
    column: Positive


class Call(Object, frozen=True):
    """A tf.data call of the script."""

    id: str
    """Unique among the calls of the script."""
    method: str
    file: str | None
    line: Positive | None
    column: Positive | None
    end_line: Positive | None
    end_column: Positive | None
    text: str
    """The call as written."""
    library: str | None
    """The package that made the call; null for the user's own code."""
    inputs: Sequence[str]
    """Ids of the calls whose datasets it consumes."""
    nested_in: str | None
    """Id of the call whose function made this one."""
    made_by: str | None
    """Id of the public call inside which this one was made."""


class Consumer(Object, frozen=True):
    """The place in the program that takes elements from the pipeline."""

    file: str | None
    line: Positive | None
    kind: str
    """`for`, `next`, `keras.fit`, ..."""


class Line(Object, frozen=True):
    """A line inside the functions of an iterator."""

    file: str
    line: Positive
    function: str
    """Name of the Python function that contains the line."""
    text: str
    """The line when it was recorded."""
    via: Positive | None
    """The line of the pipeline's own function that led there; null if it is the same function."""
    total_ns: Count
    """Its time in the window, summed over threads."""
    margin_ns: Count
    """Half width of the 95 % interval of `total_ns`, if it is an estimate from samples."""
    unrecorded_ns: Count
    """The part of `total_ns` that is estimated, of runs of short ops that TensorFlow's profiler left out."""
    share: Share
    """`total_ns` relative to the time of all ops of the function."""
    ops: Sequence[str]
    """Types of its ops, most expensive first; empty for a line of Python code."""
    samples: Count | None
    """The number of samples behind the time; null if the time was measured."""
    native_share: Share
    """Python code: the share of the samples inside compiled code of a library."""
    library: str
    """Python code: the package of that code."""
    callee: str
    """Python code: the called expression."""
    advice: str


class Iterator(Object, frozen=True):
    """All iterators of one dataset (of several epochs or interleave slots), folded."""

    id: str
    parent_id: str | None
    """The iterator that consumes it; null for the root."""
    name: str
    """Type as TensorFlow writes it (`ParallelMapV2`)."""
    long_name: str
    calls: Sequence[Call]
    """The calls it represents, source first: none if injected, several if fused."""
    num_calls: Count
    latency_ns: Count
    """Sum of the durations of its GetNext calls in the window."""
    self_ns: Count
    """Latency minus the overlap with the GetNext calls of its direct inputs."""
    blame_ns: Count
    """The part of the consumer's wait that is attributed to it."""
    blame_share: Share | None
    """`blame_ns` relative to the pipeline's whole wait."""
    busy_ns: Count
    """Its own work, summed over threads."""
    parallelism: Count | None
    is_autotuned: bool
    buffer_size: int | None
    """In elements."""
    element_bytes: Count | None
    is_async: bool
    on_critical_path: bool
    """Whether it is on the critical path, across asynchronous boundaries."""
    is_on_classic_path: bool
    """Whether it is on the path by the profiler guide's definition: the slowest call only, up to asynchronous boundaries."""
    is_bottleneck: bool
    injected_by_tensorflow: bool
    buffered_elements: Amount | None
    """Mean number of elements in its buffer at its calls."""
    elements: Count | None
    """Number of elements it produced in the window."""
    instances: Count
    """Number of iterators folded into this one: epochs, cycle slots."""
    parameters: dict[str, str | int | float | bool]
    """What its events say about it, by TensorFlow's names."""
    function_ns: Count
    """Time of its functions, summed over threads."""
    python_ns: Count
    """The part of `function_ns` inside ops that run Python."""
    ops: Sequence[OpCost]
    """Op types of its functions, most expensive first."""
    lines: Sequence[Line]
    """Lines inside its functions, most expensive first."""
    is_upstream_unseen: bool
    """Whether it has an input that did not run in the window."""


class Bottleneck(Object, frozen=True):
    """The iterator with the largest share of the wait, and the resource that limits it."""

    iterator_id: str
    name: str
    long_name: str
    blame_share: Share | None
    site: Site | None
    resource: Annotated[str, one_of("node", "cpu", "gil", "disk")]
    why: str
    classic_iterator_id: str | None
    """The bottleneck by the profiler guide's definition, if it differs."""
    classic_why: str


class RootCall(Object, frozen=True):
    """One call of a root. The arrays are in the order of the pipeline's iterators."""

    start_ns: int
    """Relative to the profile's zero."""
    duration_ns: Count
    num_calls: Sequence[Count]
    """Calls inside this one, on the caller's thread."""
    total_ns: Sequence[Count]
    self_ns: Sequence[Count]
    blame_ns: Sequence[Count]
    """The call's duration, attributed across asynchronous boundaries."""
    on_critical_path: Sequence[Count]
    """Indices of the iterators on this call's critical path."""
    bottleneck: int | None
    """Index of the iterator that it mostly waited for."""


class Pipeline(Object, frozen=True):
    """One input pipeline: a root and everything upstream of it."""

    id: str
    host: str
    is_main: bool
    """Whether the verdict is about this pipeline."""
    is_device: bool
    consumer: Consumer | None
    elements_per_s: Amount | None
    num_elements: Count
    input_wait_share: Share | None
    wait_ns: Count
    span_ns: Count
    """From the first step to the end of the last one."""
    iterators: Sequence[Iterator]
    """Root first, parents before children."""
    bottleneck: Bottleneck | None
    already_done: Sequence[str]
    """Optimizations that tf.data applied by itself."""
    notes: Sequence[str]
    num_calls: Count
    """Calls of its root in the window."""
    min_call_ns: Count
    mean_call_ns: Count
    max_call_ns: Count
    slow_calls: Count
    """Root calls longer than 50 us."""
    slowest_calls: Sequence[RootCall]
    """The slowest calls of the root, slowest first."""
