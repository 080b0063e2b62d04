"""What was read in the window of a run beside its steps: resources, tf.data's own models, buffers, gaps, the pipeline alone.

In: nothing.  Out: parts of a `Recording`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that the process (all threads) used during the window."""

    wall_ns: int
    cpu_ns: int
    children_cpu_ns: int = 0
    read_bytes: int | None = None
    """Bytes read from storage (`/proc/self/io` read_bytes)."""
    read_chars: int | None = None
    """Bytes requested by read calls, including the page cache (rchar)."""
    peak_rss_bytes: int | None = None
    """Largest resident memory of the process until then, outside profiled stretches."""
    host_cpu_busy_share: float | None = None
    """Busy share of all cores of the machine during the window, including other processes, 0 to 1."""
    gil_wait_share: float | None = None
    """Median share of its wall time that a probe thread waited for the GIL, 0 to 1; None if not probed."""
    core_wait_ns: int | None = None
    """Time in which threads were runnable without a core, summed over the process's threads (`/proc/self/task/*/schedstat`)."""


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One node of tf.data's own model of a running iterator, as the difference between the end and the start of the window.

    Source: `model.proto`, read through `get_model_proto` (a private API that some versions lack).
    """

    id: int
    name: str
    """Iterator type (`MapAndBatch`)."""
    inputs: tuple[int, ...] = ()
    num_elements: int = 0
    bytes_produced: int = 0
    processing_time_ns: int = 0
    buffered_elements: int = 0
    buffered_bytes: int = 0
    ratio: float = 0.0
    parameters: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IteratorModel:
    """tf.data's model of one consumer's iterator."""

    consumer_id: str
    output: int
    """Id of the root node."""
    nodes: tuple[ModelNode, ...] = ()
    is_delta: bool = True
    """Whether counts are those of the window; otherwise they are since the creation of the iterator."""


@dataclass(frozen=True, slots=True)
class BufferLevels:
    """How full the last buffer of one consumer's pipeline was, from tf.data's own model. All columns have the same length."""

    consumer_id: str
    transformation: str
    """Type of the iterator that owns the buffer (`Prefetch`)."""
    is_at_steps: bool
    """Whether the buffer was read as a step began, before its element was requested; otherwise at arbitrary times."""
    time_ns: tuple[int, ...] = ()
    """Unix time of each reading."""
    steps: tuple[int, ...] = ()
    """Steps that the consumer had made."""
    elements_taken: tuple[int, ...] = ()
    """Elements that the iterator had delivered."""
    elements: tuple[int, ...] = ()
    """Elements in the buffer."""
    capacity: tuple[int, ...] = ()
    """Capacity of the buffer; AUTOTUNE may change it."""


@dataclass(frozen=True, slots=True)
class AloneReading:
    """What the pipeline delivered while it was read without training, for about a second after the window."""

    elements: int
    """Elements that were waited for, without those in buffers at its start."""
    ns: int
    """How long these took."""
    cpu_ns: int | None = None
    """CPU time of the process meanwhile; None if it was not measured."""


@dataclass(frozen=True, slots=True)
class GapWaits:
    """How long steps of a consumer waited for their element where Python does not see it (Keras), from tf.data's gap times.

    They are the latest 100 steps before the profiler was started and the latest 100 before the window closed, without the first
    step of each `fit`. All columns have the same length.
    """

    consumer_id: str
    start_ns: tuple[int, ...] = ()
    """Unix time of the start of each step."""
    end_ns: tuple[int, ...] = ()
    wait_ns: tuple[int, ...] = ()
