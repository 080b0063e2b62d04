"""Figures of a run as the profiler guide's pages show them, and the facts of devices that rules read.

In: nothing.  Out: `Statistics` and `DeviceFacts`, made by `advisor.statistics`.

Times are integer nanoseconds, sizes bytes, shares 0 to 1. docs/statistics.md defines every figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where time went, each moment counted once, in the profiler guide's categories."""

    compile_ns: int = 0
    """Tracing of functions, graph optimisation, XLA compilation."""
    input_ns: int = 0
    """The host waits for the input pipeline, or copies to the device while nothing computes."""
    output_ns: int = 0
    """Copies from the device to the host."""
    kernel_launch_ns: int = 0
    """The host prepares or launches work for a device that does none."""
    host_compute_ns: int = 0
    device_communication_ns: int = 0
    """Copies between and inside devices, collectives."""
    device_compute_ns: int = 0
    other_ns: int = 0
    """Nothing that was traced: Python, mostly."""
    to_device_ns: int = 0
    """The part of `input_ns` in which a copy to the device ran."""

    @property
    def total_ns(self) -> int:
        """All categories together: the step's duration."""
        return (
            self.compile_ns
            + self.input_ns
            + self.output_ns
            + self.kernel_launch_ns
            + self.host_compute_ns
            + self.device_communication_ns
            + self.device_compute_ns
            + self.other_ns
        )


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step."""

    number: int
    start_ns: int
    """From the profile's zero."""
    duration_ns: int
    breakdown: Breakdown


@dataclass(frozen=True, slots=True)
class HostSteps:
    """The steps of one host: a row of the pod viewer."""

    host: str
    num_steps: int
    mean_ns: int
    mean: Breakdown
    """Mean over all steps."""
    steps: tuple[StepTime, ...] = ()
    """At most as many as reports can hold, evenly taken from all."""
    source: str = ""
    """What the steps are: `markers`, `device`, `recorder`, `function`, `iterator`, `program` (docs/statistics.md)."""


@dataclass(frozen=True, slots=True)
class OpRow:
    """Statistics of one op, or of one op type (then `name` is empty). Self time: less what ran inside it on its thread."""

    side: str
    """`host` or `device`."""
    type: str
    name: str
    occurrences: int
    total_ns: int
    self_ns: int
    is_eager: bool
    share: float
    """Of its side's self time, idle time left out."""
    cumulative_share: float
    """Sum of `share` down to this row, in order of self time."""
    share_with_idle: float
    """Of its side's whole time, idle time counted."""
    cumulative_share_with_idle: float
    tensor_core_share: float | None = None
    """Part of its kernels' time that ran on tensor cores; None: no kernels."""
    num_ops: int = 1
    """Ops of that type; 1 for an op."""

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.occurrences if self.occurrences else 0.0


@dataclass(frozen=True, slots=True)
class KernelRow:
    """All runs of one kernel for one op with one launch configuration."""

    name: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None
    """Static and dynamic."""
    block: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None
    is_using_tensor_core: bool
    is_op_tensor_core_eligible: bool
    op: str
    occurrences: int
    total_ns: int
    min_ns: int
    max_ns: int
    occupancy_share: float | None = None
    """Theoretical occupancy, where the file says it."""

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.occurrences if self.occurrences else 0.0


@dataclass(frozen=True, slots=True)
class InputOpRow:
    """One row of the input-op table: a tf.data iterator, or what hands elements to the device."""

    name: str
    count: int
    total_ns: int
    total_share: float
    """Of the self time of all input ops; more than 1 is possible, as inner ops count in outer ones too."""
    self_ns: int
    self_share: float
    category: str
    """`reading on demand`, `reading in advance`, `preprocessing`, `enqueuing`, `other`."""


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """One row of the guide's table of all input pipelines; times of its root's calls."""

    pipeline_id: str
    host: str
    name: str
    """The root's long name."""
    min_ns: int
    mean_ns: int
    max_ns: int
    calls: int
    slow_calls: int
    """Longer than 50 us."""


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """The input-pipeline analyzer's sections."""

    input_share: float | None
    """Device side: share of the step time that was input (waiting and copying); None: no steps."""
    input_mean_ns: int | None
    """Per step."""
    input_min_ns: int | None
    input_max_ns: int | None
    level: str
    """`none` (< 5 %), `moderate` (< 20 %), `high`, `unknown`."""
    host_time_ns: dict[str, int]
    """Host side: self time per class of `InputOpRow.category`."""
    ops: tuple[InputOpRow, ...] = ()
    pipelines: tuple[PipelineRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TopOp:
    """One of the ops with the largest self time on the devices (on the host where there is none)."""

    name: str
    type: str
    side: str
    self_ns: int
    share: float
    cumulative_share: float
    is_tensor_core_eligible: bool | None = None
    is_using_tensor_core: bool | None = None


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What the run ran on."""

    num_hosts: int
    hosts: tuple[str, ...]
    device_type: str
    """`GPU`, `TPU`, `CPU`."""
    device_name: str
    num_devices: int
    """Devices that computed; of a CPU, hosts."""
    num_devices_seen: int
    """Devices that the profile knows of."""
    cores: float | None
    """Usable cores of the host; None: not captured by this tool."""
    compute_capability: str | None = None
    device_memory_bytes: int | None = None
    device_cores: int | None = None
    """Streaming multiprocessors."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview page."""

    num_steps: int
    step_ns: int
    """Mean step time."""
    step_min_ns: int
    step_max_ns: int
    breakdown: Breakdown
    """Mean per step."""
    compute_16bit_share: float | None
    """Of the time that devices computed; None: no device."""
    compute_32bit_share: float | None
    host_op_share: float | None
    """Of all runs of ops, those on the host."""
    device_op_share: float | None
    host_eager_share: float | None
    """Of the ops' self time on the host, what ran eagerly."""
    device_eager_share: float | None
    top_ops: tuple[TopOp, ...]
    environment: RunEnvironment
    next_steps: tuple[str, ...] = ()
    """What to look at next, in sentences."""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """One moment of an allocator."""

    time_ns: int
    heap_bytes: int
    stack_bytes: int
    free_bytes: int
    fragmentation: float | None
    """Of the free memory, what lies not in its largest piece, 0 to 1; None: the allocator does not say."""


@dataclass(frozen=True, slots=True)
class MemoryUser:
    """What held memory at the peak: equal allocations folded."""

    op: str
    region: str
    data_type: str
    shape: str
    occurrences: int
    bytes: int
    """Of all of them."""
    requested_bytes: int


@dataclass(frozen=True, slots=True)
class AllocatorMemory:
    """One allocator's memory in the window."""

    host: str
    allocator: str
    """`GPU_0_bfc`, `gpu_host_bfc`, ..."""
    num_allocations: int
    num_deallocations: int
    peak_bytes: int
    """The most that was in use in the window."""
    peak_time_ns: int
    peak_heap_bytes: int
    peak_stack_bytes: int
    peak_free_bytes: int
    peak_fragmentation: float | None
    lifetime_peak_bytes: int
    """The most that was ever in use, before the window too."""
    capacity_bytes: int
    timeline: tuple[MemoryPoint, ...] = ()
    users: tuple[MemoryUser, ...] = ()
    """At the peak, largest first."""
    unexplained_bytes: int = 0
    """In use at the peak, allocated before the window."""
    left_out_users: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    allocators: tuple[AllocatorMemory, ...]
    """The one with the highest peak of device memory first."""


@dataclass(frozen=True, slots=True)
class OutlierStep:
    """A step longer than the mean plus three standard deviations."""

    host: str
    number: int
    duration_ns: int
    ran_then: tuple[str, ...]
    """Names of events that hardly run in ordinary steps and account for much of the difference, longest first."""
    slower_then: tuple[str, ...] = ()
    """Names of events that run in every step and took much longer in this one: another process, a slow disk, a full core."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What rules need to know of the device side. None: the profile does not say."""

    device_type: str
    """`GPU`, `TPU`, `CPU`."""
    num_devices: int
    """That computed."""
    compute_capability: float | None = None
    """7.5 (NVIDIA); None for others."""
    vendor: str = ""
    compute_16bit_share: float | None = None
    tensor_core_eligible_ns: int = 0
    """Time of kernels whose op could use tensor cores."""
    tensor_core_used_ns: int = 0
    """Time of kernels on tensor cores."""
    eligible_off_tensor_core_ns: int = 0
    """Time of kernels that could have used tensor cores and did not."""
    kernel_ns: int = 0
    """Time of all kernels."""
    num_steps: int = 0
    step_ns: int = 0
    """Mean step time."""
    kernels_per_step: float | None = None
    median_kernel_ns: int | None = None
    launch_gap_share: float | None = None
    """Of the step time: the host launched while the device did nothing (`Breakdown.kernel_launch_ns`)."""
    idle_share: float | None = None
    """Of the step time in which no device did anything."""
    other_share: float | None = None
    """Of the step time, what was not traced at all (`Breakdown.other_ns`): Python, mostly."""
    memory_peak_share: float | None = None
    """Of a device's memory, the most in use in the window; the fullest device's."""
    to_device_ns_per_step: int | None = None
    """Time of host-to-device copies per step and device."""
    to_device_share: float | None = None
    """Of the step time in which such a copy ran."""
    exposed_to_device_share: float | None = None
    """Of the step time in which such a copy ran and nothing computed."""
    eager_share: float | None = None
    """Of ops' self time, host and devices together, what ran eagerly."""
    host_eager_share: float | None = None
    eager_ops_per_step: float | None = None
    """Ops that Python ran one by one, those that fetch input left out."""
    eager_step_share: float | None = None
    """Of the step time in which such an op ran."""
    num_tracings: int = 0
    """Functions traced in the window."""
    num_compilations: int = 0
    """XLA compilations in the window."""
    compile_ns: int = 0
    """Time in tracing and compilation, each moment counted once."""
    compiled_names: tuple[str, ...] = ()
    """What was traced or compiled, most often first."""
    num_collectives: int = 0
    outliers: tuple[OutlierStep, ...] = ()
    has_xla_ops: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """All figures. An absent section is None; `missing` says which capture would fill it."""

    overview: Overview | None = None
    input: InputStatistics | None = None
    ops: tuple[OpRow, ...] | None = None
    """Host and device, largest self time first per side; row `IDLE` included."""
    op_types: tuple[OpRow, ...] | None = None
    kernels: tuple[KernelRow, ...] | None = None
    memory: MemoryStatistics | None = None
    hosts: tuple[HostSteps, ...] | None = None
    device: DeviceFacts | None = None
    missing: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    """Section -> rows that reports leave out because of their length."""
