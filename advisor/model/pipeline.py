"""The executed tf.data graph with its measurements, as read by rules, prediction and reports.

`Analysis` is made by `advisor.graph` from a `Recording` and a `Trace`.

All times are sums over the window in integer nanoseconds unless stated otherwise. Shares range from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.model.calls import Call, CodeLine, Scalar
from advisor.model.json_types import Count
from advisor.model.profile_statistics import DeviceFacts, Statistics
from advisor.model.recording import Consumer, Host, Recording
from advisor.model.run_hosts import HostComparison
from advisor.model.window_readings import IteratorModel, Usage


@dataclass(frozen=True, slots=True)
class OpCost:
    """Time of one op type inside one iterator's function."""

    op: str
    count: Count
    total_ns: Count


@dataclass(frozen=True, slots=True)
class LineCost:
    """Time of one line inside an iterator's function, summed over threads in the window."""

    at: CodeLine
    total_ns: Count
    share: float
    """`total_ns` relative to the time of all ops of the function, 0 to 1."""
    ops: tuple[str, ...] = ()
    """Types of the line's ops, most expensive first; empty for a line of Python code."""
    samples: int | None = None
    """Lines of Python code: the number of samples behind the time, which is an estimate; None: the time was measured."""
    margin_ns: Count = 0
    """Half width of the estimate's 95 % interval; 0 if the time was measured."""
    unrecorded_ns: Count = 0
    """The part of `total_ns` that is estimated, of runs of short ops that the profiler left out."""
    native_share: float = 0.0
    """Lines of Python code: the share of the samples inside compiled code of a library, 0 to 1."""
    library: str = ""
    """The package of that code; empty if it is unknown."""
    callee: str = ""
    """The called expression as written."""
    advice: str = ""
    """A cheaper way, in one sentence; empty if none is known, or if the consumer does not wait for this iterator."""


@dataclass(frozen=True, slots=True)
class Iterator:
    """One node of the executed graph: all iterators of one dataset (of several epochs or interleave slots), folded."""

    id: str
    """Unique in the analysis: `p0.3`."""
    parent_id: str | None
    """Id of the iterator that consumes it; None for the root."""
    name: str
    """Type as TensorFlow writes it: `ParallelMapV2`."""
    long_name: str
    """The long name without `[n]` indices."""
    dataset_name: str = ""
    calls: tuple[Call, ...] = ()
    """The calls it represents, source first: none if injected, several if fused."""
    num_calls: int = 0
    instances: int = 1
    """Number of iterators folded into this node."""
    latency_ns: int = 0
    """Sum of the durations of its GetNext calls."""
    self_ns: int = 0
    """Latency minus the overlap with its direct inputs' GetNext calls (TensorFlow's definition)."""
    blame_ns: int = 0
    """The part of the consumer's wait that is attributed to it."""
    blame_share: float = 0.0
    """`blame_ns` relative to the pipeline's whole wait. The shares of a pipeline add up to 1, or are all 0 without a wait."""
    busy_ns: int = 0
    """Its own work, summed over threads: self time without waiting, plus the runs of its functions."""
    function_ns: int = 0
    """Time of its functions' executors, summed over threads."""
    usual_ns: int | None = None
    """Self time with outliers capped (calls that lost their core or began an epoch); None for asynchronous iterators, whose calls
    are not their work."""
    refill_ns: int | None = None
    """Self time of the few calls that are far longer than the others and than any unpacking of a buffer. In one that reads
    files they wait for storage. None for asynchronous iterators."""
    unprofiled_ns: float | None = None
    """Its own work per element without the profiler, from tf.data's model; None if unknown. The model counts only the ops of a
    function, and no work in other threads."""
    python_ns: int = 0
    """The part of `function_ns` inside ops that run Python."""
    ops: tuple[OpCost, ...] = ()
    """Ops of its functions, most expensive first."""
    lines: tuple[LineCost, ...] = ()
    """Lines of its functions, most expensive first; empty without a recording, or if nothing costs time."""
    parallelism: int | None = None
    is_autotuned: bool = False
    buffer_size: int | None = None
    """Buffer limit in elements; None without a buffer."""
    buffered_elements: float | None = None
    """Mean fill of the buffer at its calls."""
    element_bytes: int | None = None
    """Mean size in bytes of the elements it produces (from tf.data's model, or else from static shapes)."""
    elements: int | None = None
    """Number of elements it produced in the window (produce events or calls)."""
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)
    is_async: bool = False
    is_on_critical_path: bool = False
    """Whether it is on the critical path: the blocking iterators from the root, across asynchronous boundaries."""
    is_on_classic_path: bool = False
    """Whether it is on the path by the profiler guide's definition: the slowest call only, up to asynchronous boundaries."""
    is_bottleneck: bool = False
    injected_by_tensorflow: bool = False
    is_upstream_unseen: bool = False
    """Whether it requires an input, but none ran in the window, so that it need not be the source."""
    has_saturated_calls: bool | None = None
    """Parallel iterators: whether all call slots were busy while the consumer waited."""

    @property
    def main_call(self) -> Call | None:
        """The call to report. Of fused calls it is the last one with a function, or else the last one; None if injected."""
        with_function = [call for call in self.calls if call.function is not None]
        calls = with_function or list(self.calls)
        return calls[-1] if calls else None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The iterator with the largest share of the wait, and the resource that limits it."""

    iterator_id: str
    resource: str
    """`node`, `cpu`, `gil`, `disk`."""
    blame_share: float
    """Share of the wait of all iterators that represent the same call."""
    why: str = ""
    """The observation behind `resource`, as a clause."""
    classic_iterator_id: str | None = None
    """The bottleneck by the profiler guide's definition, if it differs."""
    classic_why: str = ""
    """Why the two differ."""


@dataclass(frozen=True, slots=True)
class StepStats:
    """Distribution of step times."""

    count: int
    median_ns: int
    p95_ns: int
    mean_ns: int
    low_ns: int | None
    """Lower end of the 95 % interval of the median; None if there are too few steps."""
    high_ns: int | None
    """Upper end of the same interval."""
    wait_median_ns: int = 0
    wait_mean_ns: int = 0
    stretches: int = 0
    """Effective number of independent stretches behind the interval of the median."""
    mean_error: float | None = None
    """Standard error of the mean, relative to the mean; None if there are too few steps."""
    mean_stretches: int = 0
    """Effective number of independent stretches behind the error of the mean."""
    wait_share_low: float | None = None
    """Wait share of the step that waited least; None if unknown."""
    wait_share_high: float | None = None
    """Wait share of the step that waited most."""


@dataclass(frozen=True, slots=True)
class RootCall:
    """One call of a pipeline's root. The columns are in the order of `Pipeline.iterators`."""

    start_ns: int
    """On the profile's clock."""
    duration_ns: int
    num_calls: tuple[int, ...]
    """Calls of each iterator inside this call, on the caller's thread; 0 if it ran on another thread or not at all."""
    total_ns: tuple[int, ...]
    self_ns: tuple[int, ...]
    blame_ns: tuple[int, ...]
    """The call's duration, attributed across asynchronous boundaries."""
    is_on_path: tuple[bool, ...] = ()
    """Whether each iterator is on this call's critical path, across asynchronous boundaries."""
    bottleneck: int | None = None
    """Index of the iterator that the call mostly waited for; None if only passive iterators have a share."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One input pipeline: a root and everything upstream of it."""

    id: str
    """`p0`, ..."""
    host: str
    iterators: tuple[Iterator, ...]
    """Root first, parents before children."""
    consumer: Consumer | None = None
    is_main: bool = False
    """Whether the verdict is about the steps of this pipeline's consumer."""
    is_device: bool = False
    """Whether it feeds the host side of a device iterator or is one (MultiDeviceIterator, Generator/Prefetch without a Root)."""
    serves_elements: bool = False
    """Whether it runs in a tf.data service worker: its elements go to other processes, whose wait is not recorded."""
    steps: StepStats | None = None
    wait_ns: int = 0
    """Time that its consumer spent inside the root's GetNext, counted once (union over devices). If the wait was measured without
    the profiler, that share of `span_ns`."""
    span_ns: int = 0
    """Sum of the profiled steps; `wait_ns / span_ns` is the input wait share."""
    num_elements: int = 0
    """Elements that reached the root in the window."""
    min_call_ns: int = 0
    mean_call_ns: int = 0
    max_call_ns: int = 0
    slow_calls: int = 0
    """Root calls longer than 50 us, the profiler guide's threshold for a call that had to wait."""
    slowest_calls: tuple[RootCall, ...] = ()
    """The slowest calls of the root, slowest first."""
    bottleneck: Bottleneck | None = None
    already_done: tuple[str, ...] = ()
    """Optimizations that tf.data applied by itself, as sentences without a subject."""
    model: IteratorModel | None = None
    notes: tuple[str, ...] = ()
    """What was not recorded or is uncertain, in sentences."""

    @property
    def root(self) -> Iterator:
        """The iterator that the consumer calls."""
        return self.iterators[0]

    @property
    def elements_per_s(self) -> float:
        """Elements per second at the root (one per step); 0 if not measured."""
        return 1e9 / self.step_ns if self.step_ns else 0.0

    @property
    def step_ns(self) -> float:
        """Mean step time in ns, without the profiler if it was measured that way; 0 if not measured."""
        unprofiled = self.steps.mean_ns if self.steps is not None else 0
        return float(unprofiled) or self.profiled_step_ns

    @property
    def profiled_step_ns(self) -> float:
        """Mean step time in ns with the profiler; 0 if not measured."""
        return self.span_ns / self.num_elements if self.num_elements else 0.0

    @property
    def unprofiled_ratio(self) -> float:
        """Ratio of the step times without and with the profiler; 1 if one of them was not measured."""
        return self.step_ns / self.profiled_step_ns if self.profiled_step_ns else 1.0

    @property
    def wait_share(self) -> float:
        """Share of the step time that the consumer waited for input, 0 to 1."""
        return min(1.0, self.wait_ns / self.span_ns) if self.span_ns else 0.0

    def iterator(self, iterator_id: str) -> Iterator:
        """Return the iterator with that id.

        Raises:
            KeyError: The pipeline has no such iterator.
        """
        for it in self.iterators:
            if it.id == iterator_id:
                return it
        raise KeyError(iterator_id)

    def inputs(self, iterator: Iterator) -> tuple[Iterator, ...]:
        """Return the direct inputs of an iterator."""
        return tuple(it for it in self.iterators if it.parent_id == iterator.id)

    def upstream(self, iterator: Iterator) -> tuple[Iterator, ...]:
        """Return all direct and indirect inputs of an iterator, nearest first."""
        return self._reached(iterator, is_upstream=True)

    def downstream(self, iterator: Iterator) -> tuple[Iterator, ...]:
        """Return the iterators between an iterator (exclusive) and the consumer, nearest first."""
        return self._reached(iterator, is_upstream=False)

    def parent(self, iterator: Iterator) -> Iterator | None:
        """Return the iterator that consumes `iterator`; None for the root."""
        return None if iterator.parent_id is None else self.iterator(iterator.parent_id)

    def _reached(self, iterator: Iterator, is_upstream: bool) -> tuple[Iterator, ...]:
        import networkx as nx  # `advisor rules` needs no networkx

        by_id = {it.id: it for it in self.iterators}
        dataflow: nx.DiGraph[str] = nx.DiGraph()
        dataflow.add_nodes_from(by_id)
        dataflow.add_edges_from((it.id, it.parent_id) for it in self.iterators if it.parent_id in by_id)
        return tuple(by_id[other] for _, other in nx.bfs_edges(dataflow, iterator.id, reverse=is_upstream))


@dataclass(frozen=True, slots=True)
class BufferReadings:
    """How often the pipeline's last buffer was full or empty when the consumer came for an element."""

    transformation: str
    """Type of the iterator that owns the buffer (`Prefetch`)."""
    readings: int
    full: int
    empty: int
    capacity: int
    """Its largest capacity in elements; AUTOTUNE may change it."""
    is_at_steps: bool
    """Whether the buffer was read as each step began; otherwise at arbitrary times, in a loop whose steps Python cannot see."""


@dataclass(frozen=True, slots=True)
class GapReadings:
    """How long steps without the profiler waited for input, from tf.data's gap times."""

    steps: int
    step_ns: int
    """Mean length of a step."""
    wait_share: float
    """Share of the steps spent waiting for input, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether input is the bottleneck, and the maximum possible speedup."""

    is_input_bound: bool
    input_wait_share: float | None
    """Share of the step time spent waiting for input; None if no step was measured."""
    max_speedup: float | None
    """The maximum possible speedup: 1 / (1 - wait share), or measured with `--ceiling`; None for one or two steps."""
    steps: StepStats | None
    limit: str
    """`pipeline`, `cpu`, `gil`, `disk`, `model`, `unknown`."""
    sentence: str
    is_ceiling_measured: bool = False
    level: str = "unknown"
    """`none` (< 5 % wait), `moderate` (< 20 %), `high`, `unknown`. Without a measured share: that of `gaps`, else `none` if the
    buffer was full at the steps, `moderate` if it was empty."""
    wait_steps: str = "profiled"
    """The steps behind `input_wait_share`: `profiled`, `unprofiled` (timed without the profiler), or `estimated` (unprofiled
    steps, with the wait estimated from profiled ones, because Keras does not expose it)."""
    certainty: str = "high"
    """How far the number of steps supports the verdict: `high` (10 steps or more), `medium` (3 to 9), `low` (1 or 2), `none` (no
    step was measured). Without a measured step, the number of readings of the gaps or the buffer counts, but never as `high`."""
    buffer: BufferReadings | None = None
    """None if tf.data's model of the running iterator was not read, or the pipeline does not end in a buffer."""
    gaps: GapReadings | None = None
    """None if the profile shows the wait, or tf.data's gap times do not."""

    @property
    def is_tentative(self) -> bool:
        """Whether it describes one or two steps: nothing is predicted from them, and no gate fails because of them."""
        return self.certainty == "low"


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one run: everything that rules may read."""

    target: str
    verdict: Verdict
    pipelines: tuple[Pipeline, ...] = ()
    calls: tuple[Call, ...] = ()
    host: Host | None = None
    usage: Usage | None = None
    keras: dict[str, Scalar] = field(default_factory=dict)
    recording: Recording | None = None
    warnings: tuple[str, ...] = ()
    profiling_overhead: float | None = None
    """Mean step time with the profiler, relative to the time without it, minus 1; None if there are too few steps."""
    device: DeviceFacts | None = None
    """Facts about the devices; None without a profile."""
    statistics: Statistics | None = None
    """The tables of the profiler guide; None without a profile."""
    hosts: HostComparison | None = None
    """A comparison of the hosts, if the run has several."""
    texts: dict[str, str] = field(default_factory=dict)
    """File -> its text, for the files of a simulated script, which are not on disk."""

    @property
    def main(self) -> Pipeline | None:
        """The pipeline that the verdict is about; None if there is none."""
        for pipeline in self.pipelines:
            if pipeline.is_main:
                return pipeline
        return None

    def call(self, call_id: str) -> Call:
        """Return the call with that id.

        Raises:
            KeyError: There is no such call.
        """
        for call in self.calls:
            if call.id == call_id:
                return call
        raise KeyError(call_id)
