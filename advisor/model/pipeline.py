"""The executed tf.data graph with its measurements: what rules, prediction and reports read.

In: nothing.  Out: `Analysis`, made by `advisor.graph` from a `Recording` and a `Trace`.

All times are sums over the window in integer nanoseconds unless a name says otherwise. Shares are 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.model.profile_statistics import DeviceFacts, Statistics
from advisor.model.recording import Call, Consumer, Host, IteratorModel, Recording, Scalar, Usage
from advisor.model.run_hosts import HostComparison


@dataclass(frozen=True, slots=True)
class OpCost:
    """Time of one op type inside one iterator's function."""

    op: str
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class Iterator:
    """One node of the executed graph: all iterators of the same dataset folded (epochs, cycle slots of an
    interleave).
    """

    id: str
    """Unique in the analysis: `p0.3`."""
    parent_id: str | None
    """The iterator that consumes it; None for the root."""
    name: str
    """Type as TensorFlow writes it: `ParallelMapV2`."""
    long_name: str
    """The long name with `[n]` indices removed."""
    dataset_name: str = ""
    calls: tuple[Call, ...] = ()
    """The calls it stands for: none if injected, several if fused, in pipeline order (source first)."""
    num_calls: int = 0
    instances: int = 1
    """Iterators folded into this one."""
    latency_ns: int = 0
    """Sum of the durations of its GetNext calls."""
    self_ns: int = 0
    """Latency minus the overlap with its direct inputs' GetNext calls (TensorFlow's definition)."""
    blame_ns: int = 0
    """The part of the consumer's wait that is attributed to it."""
    blame_share: float = 0.0
    """blame_ns over the pipeline's whole wait; the shares of a pipeline add up to 1 (or are all 0: no wait)."""
    busy_ns: int = 0
    """Its own work on whatever thread: self time that is not waiting, plus its functions' runs. Summed over threads."""
    function_ns: int = 0
    """Time of its functions' executors, summed over threads."""
    usual_ns: int | None = None
    """Self time without what is far longer than its usual calls (of one that lost its core, or began an epoch); None:
    asynchronous, so that its calls are not its work."""
    unprofiled_ns: float | None = None
    """Its own work for an element without the profiler, by tf.data's model; None: not known. The model counts no more of a
    function than its ops, and nothing of what other threads do for it."""
    python_ns: int = 0
    """The part of it inside ops that run Python."""
    ops: tuple[OpCost, ...] = ()
    """Ops of its functions, costliest first."""
    parallelism: int | None = None
    is_autotuned: bool = False
    buffer_size: int | None = None
    """The limit in elements, where it has a buffer."""
    buffered_elements: float | None = None
    """Mean fill seen at its calls."""
    element_bytes: int | None = None
    """Mean bytes of one element it produces (tf.data's model where present, else from static shapes)."""
    elements: int | None = None
    """Elements it produced in the window (produce events or calls)."""
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)
    is_async: bool = False
    is_on_critical_path: bool = False
    """On the profiler guide's path: blocking iterators from the root, walked through asynchronous boundaries."""
    is_on_classic_path: bool = False
    """On the guide's own definition: self time of the slowest call only, stopping at asynchronous boundaries."""
    is_bottleneck: bool = False
    injected_by_tensorflow: bool = False
    is_upstream_unseen: bool = False
    """It must have an input, but none ran in the window: it may not be the source."""
    has_saturated_calls: bool | None = None
    """Parallel iterators: all call slots were busy while the consumer waited (True), some were free (False)."""

    @property
    def main_call(self) -> Call | None:
        """The call to point at: of fused calls the one whose function runs there, else the last; None if injected."""
        with_function = [call for call in self.calls if call.function is not None]
        calls = with_function or list(self.calls)
        return calls[-1] if calls else None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    iterator_id: str
    resource: str
    """`node`, `cpu`, `gil`, `disk`."""
    blame_share: float
    """Share of the wait of all iterators that stand for the same call."""
    why: str = ""
    """One sentence: what was seen."""
    classic_iterator_id: str | None = None
    """What the profiler guide's own definition would have named, where that differs."""
    classic_why: str = ""


@dataclass(frozen=True, slots=True)
class StepStats:
    """Distribution of step times."""

    count: int
    median_ns: int
    p95_ns: int
    mean_ns: int
    low_ns: int | None
    """Lower end of a 95 % interval of the median; None: too few steps for one."""
    high_ns: int | None
    wait_median_ns: int = 0
    wait_mean_ns: int = 0
    stretches: int = 0
    """Independent stretches of steps that the interval of the median rests on."""
    mean_error: float | None = None
    """Standard error of the mean, as a share of it; None: too few steps."""
    mean_stretches: int = 0
    """Independent stretches of steps that the error of the mean rests on."""


@dataclass(frozen=True, slots=True)
class RootCall:
    """One call of a pipeline's root. The columns are in the order of `Pipeline.iterators`."""

    start_ns: int
    """On the profile's clock."""
    duration_ns: int
    num_calls: tuple[int, ...]
    """Calls of each iterator inside this one, on the caller's thread; 0: it ran on another one, or not at all."""
    total_ns: tuple[int, ...]
    self_ns: tuple[int, ...]
    blame_ns: tuple[int, ...]
    """The call's duration, attributed through asynchronous boundaries."""
    is_on_path: tuple[bool, ...] = ()
    """On this call's critical path, walked through asynchronous boundaries."""
    bottleneck: int | None = None
    """Place of the iterator that most of this call waited for; None: only ones that hand elements on."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One input pipeline: a root and everything under it."""

    id: str
    """`p0`, ..."""
    host: str
    iterators: tuple[Iterator, ...]
    """Root first, parents before children."""
    consumer: Consumer | None = None
    is_main: bool = False
    """The pipeline whose consumer's steps the verdict speaks of."""
    is_device: bool = False
    """Feeds a device iterator's host side or is one (MultiDeviceIterator, Generator/Prefetch without a Root)."""
    serves_elements: bool = False
    """Runs in a tf.data service worker: its elements go to consumers in other processes, whose wait it does not show."""
    steps: StepStats | None = None
    wait_ns: int = 0
    """Time its consumer spent inside the root's GetNext, counted once (union over devices); where the wait was measured
    without the profiler, that share of `span_ns`."""
    span_ns: int = 0
    """Sum of the profiled steps: wait_ns / span_ns is the input wait share."""
    num_elements: int = 0
    """Elements that reached the root in the window."""
    min_call_ns: int = 0
    mean_call_ns: int = 0
    max_call_ns: int = 0
    slow_calls: int = 0
    """Root calls longer than 50 us (the profiler guide's line between fetched ahead and waited for)."""
    slowest_calls: tuple[RootCall, ...] = ()
    """Its root's slowest calls, slowest first."""
    bottleneck: Bottleneck | None = None
    already_done: tuple[str, ...] = ()
    """What tf.data did by itself, in sentences (`map at train.py:12 runs as ParallelMapV2, AUTOTUNE chose 4`)."""
    model: IteratorModel | None = None
    notes: tuple[str, ...] = ()
    """What could not be seen or is uncertain."""

    @property
    def root(self) -> Iterator:
        return self.iterators[0]

    @property
    def elements_per_s(self) -> float:
        """Elements per second at the root (one a step); 0 where nothing was measured."""
        return 1e9 / self.step_ns if self.step_ns else 0.0

    @property
    def step_ns(self) -> float:
        """Time of a step, ns: without the profiler where it was measured without; 0 where nothing was measured."""
        plain = self.steps.mean_ns if self.steps is not None else 0
        return float(plain) or self.profiled_step_ns

    @property
    def profiled_step_ns(self) -> float:
        """Time of a step under the profiler, ns; 0 where nothing was measured."""
        return self.span_ns / self.num_elements if self.num_elements else 0.0

    @property
    def plain_over_profiled(self) -> float:
        """Time of a step without the profiler over that with it; 1 where one of them was not measured."""
        return self.step_ns / self.profiled_step_ns if self.profiled_step_ns else 1.0

    @property
    def wait_share(self) -> float:
        return min(1.0, self.wait_ns / self.span_ns) if self.span_ns else 0.0

    def iterator(self, iterator_id: str) -> Iterator:
        """The iterator of that id; KeyError if it is not in this pipeline."""
        for it in self.iterators:
            if it.id == iterator_id:
                return it
        raise KeyError(iterator_id)

    def inputs(self, iterator: Iterator) -> tuple[Iterator, ...]:
        return tuple(it for it in self.iterators if it.parent_id == iterator.id)

    def upstream(self, iterator: Iterator) -> tuple[Iterator, ...]:
        """Every iterator that feeds `iterator`, nearest first."""
        found: list[Iterator] = []
        level = list(self.inputs(iterator))
        while level:
            found += level
            level = [below for it in level for below in self.inputs(it)]
        return tuple(found)

    def parent(self, iterator: Iterator) -> Iterator | None:
        return None if iterator.parent_id is None else self.iterator(iterator.parent_id)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is input the problem, and what is the most that fixing it can give?"""

    is_input_bound: bool
    input_wait_share: float | None
    """None: no steps could be found. With `level` unknown: of the few steps that there were."""
    max_speedup: float | None
    """The ceiling: 1 / (1 - wait), or measured with `--ceiling`."""
    steps: StepStats | None
    limit: str
    """`pipeline`, `cpu`, `gil`, `disk`, `model`, `unknown`."""
    sentence: str
    is_ceiling_measured: bool = False
    level: str = "unknown"
    """`none` (< 5 % wait), `moderate` (< 20 %), `high`, `unknown`."""
    wait_steps: str = "profiled"
    """The steps that `input_wait_share` is of: `profiled`, `unprofiled` (timed without the profiler), or `estimated`: of
    unprofiled steps, from the waits of the profiled ones (Keras does not show the others).
    """


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that rules may read."""

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
    """Mean step time while the profiler ran over that without it, minus 1; None: too few steps."""
    device: DeviceFacts | None = None
    """The device side; None: no profile."""
    statistics: Statistics | None = None
    """The profiler guide's tables; None: no profile."""
    hosts: HostComparison | None = None
    """The hosts beside one another, where the run has several."""

    @property
    def main(self) -> Pipeline | None:
        for pipeline in self.pipelines:
            if pipeline.is_main:
                return pipeline
        return None

    def call(self, call_id: str) -> Call:
        """The recorded call of that id; KeyError if there is none."""
        for call in self.calls:
            if call.id == call_id:
                return call
        raise KeyError(call_id)
