"""The statistics of a run, as on the profiler guide's pages, and the device facts that rules read.

`Statistics` and `DeviceFacts` are made by `advisor.statistics`.

Times are integer nanoseconds, sizes are in bytes, shares range from 0 to 1. docs/statistics.md defines every figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.model.json_types import Amount, Count


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Time in the profiler guide's categories; every moment is counted once."""

    compile_ns: Count = 0
    """Function tracing, graph optimization, XLA compilation."""
    input_ns: Count = 0
    """The host waits for the input pipeline, or copies to the device while nothing computes."""
    output_ns: Count = 0
    """Copies from the device to the host."""
    kernel_launch_ns: Count = 0
    """The host prepares or launches work for an idle device."""
    host_compute_ns: Count = 0
    device_communication_ns: Count = 0
    """Copies between and within devices, collectives."""
    device_compute_ns: Count = 0
    other_ns: Count = 0
    """Untraced time, mostly Python."""
    to_device_ns: Count = 0
    """The part of `input_ns` during which a copy to the device ran."""

    @property
    def total_ns(self) -> int:
        """Sum of all categories: the duration of the step."""
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
    """The breakdown of one step."""

    number: int
    start_ns: Count
    """Relative to the profile's zero."""
    duration_ns: Count
    breakdown: Breakdown


@dataclass(frozen=True, slots=True)
class HostSteps:
    """The steps of one host: a row of the pod viewer."""

    host: str
    num_steps: Count
    mean_ns: Count
    mean: Breakdown
    """Mean over all steps."""
    steps: tuple[StepTime, ...] = ()
    """A sample of the steps, evenly spaced and limited to what reports can hold."""
    source: str = ""
    """How the steps were derived: `markers`, `device`, `recorder`, `function`, `iterator`, `program` (docs/statistics.md)."""


@dataclass(frozen=True, slots=True)
class OpRow:
    """Statistics of one op, or of one op type (`name` is then empty).

    Self time excludes other ops that ran inside it on the same thread.
    """

    side: str
    """`host` or `device`."""
    type: str
    name: str
    occurrences: Count
    total_ns: Count
    self_ns: Count
    is_eager: bool
    share: float
    """Share of the self time on its side, without idle time."""
    cumulative_share: float
    """Sum of `share` up to this row, in order of self time."""
    share_with_idle: float
    """Share of the whole time on its side, including idle time."""
    cumulative_share_with_idle: float
    tensor_core_share: float | None = None
    """Share of its kernels' time on tensor cores; None without kernels."""
    num_ops: Count = 1
    """Number of ops of that type; 1 for an op."""
    median_self_ns: Amount | None = None
    """Median self time of one run on the host. Of a type, the mean of the medians of its ops, weighted by their runs. Unlike the
    mean, it leaves out runs in which the thread was interrupted."""
    mean_ns: Amount = field(init=False)
    """Mean duration of one occurrence."""

    def __post_init__(self) -> None:
        """Derive `mean_ns`, a field because report.json has it."""
        object.__setattr__(self, "mean_ns", self.total_ns / self.occurrences if self.occurrences else 0.0)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """All runs of one kernel for one op with one launch configuration."""

    name: str
    registers_per_thread: Count | None
    shared_memory_bytes: Count | None
    """Static and dynamic."""
    block: tuple[Count, Count, Count] | None
    grid: tuple[Count, Count, Count] | None
    is_using_tensor_core: bool
    is_op_tensor_core_eligible: bool
    op: str
    occurrences: Count
    total_ns: Count
    min_ns: Count
    max_ns: Count
    occupancy_share: float | None = None
    """Theoretical occupancy; None if the file does not contain it."""
    mean_ns: Amount = field(init=False)
    """Mean duration of one run."""

    def __post_init__(self) -> None:
        """Derive `mean_ns`, a field because report.json has it."""
        object.__setattr__(self, "mean_ns", self.total_ns / self.occurrences if self.occurrences else 0.0)


@dataclass(frozen=True, slots=True)
class InputOpRow:
    """One row of the input-op table: a tf.data iterator or an op that transfers elements to the device."""

    name: str
    count: Count
    total_ns: Count
    total_share: float
    """Total time relative to the self time of all input ops; may exceed 1, because inner ops also count in outer ones."""
    self_ns: Count
    self_share: float
    category: str
    """`reading on demand`, `reading in advance`, `preprocessing`, `enqueuing`, `other`."""


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """One row of the guide's table of all input pipelines, with the times of its root's calls."""

    pipeline_id: str
    host: str
    name: str
    """The root's long name."""
    min_ns: Count
    mean_ns: Count
    max_ns: Count
    calls: Count
    slow_calls: Count
    """Calls longer than 50 us."""


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """The sections of the input-pipeline analyzer."""

    input_share: float | None
    """Device side: share of the step time spent on input (waiting and copying); None without steps."""
    input_mean_ns: Count | None
    """Per step."""
    input_min_ns: Count | None
    input_max_ns: Count | None
    level: str
    """`none` (< 5 %), `moderate` (< 20 %), `high`, `unknown`."""
    host_time_ns: dict[str, Count]
    """Host side: self time per class of `InputOpRow.category`."""
    ops: tuple[InputOpRow, ...] = ()
    pipelines: tuple[PipelineRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TopOp:
    """One of the ops with the largest self time on the devices, or on the host if there is no device."""

    name: str
    type: str
    side: str
    self_ns: Count
    share: float
    cumulative_share: float
    is_tensor_core_eligible: bool | None = None
    is_using_tensor_core: bool | None = None


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """The hardware of the run."""

    num_hosts: Count
    hosts: tuple[str, ...]
    device_type: str
    """`GPU`, `TPU`, `CPU`."""
    device_name: str
    num_devices: Count
    """Devices that computed; for CPU runs, the number of hosts."""
    num_devices_seen: Count
    """Devices in the profile."""
    cores: float | None
    """Usable cores of the host; None if the run was not captured by this tool."""
    compute_capability: str | None = None
    device_memory_bytes: Count | None = None
    device_cores: Count | None = None
    """Streaming multiprocessors."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview page."""

    num_steps: Count
    step_ns: Count
    """Mean step time."""
    step_min_ns: Count
    step_max_ns: Count
    breakdown: Breakdown
    """Mean per step."""
    compute_16bit_share: float | None
    """Share of the devices' compute time; None without a device."""
    compute_32bit_share: float | None
    host_op_share: float | None
    """Share of all op runs that were on the host."""
    device_op_share: float | None
    host_eager_share: float | None
    """Share of the ops' self time on the host that was eager."""
    device_eager_share: float | None
    top_ops: tuple[TopOp, ...]
    environment: RunEnvironment
    next_steps: tuple[str, ...] = ()
    """Recommended next steps, in sentences."""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """The state of an allocator at one moment."""

    time_ns: Count
    heap_bytes: Count
    stack_bytes: Count
    free_bytes: Count
    fragmentation: float | None
    """Share of the free memory outside its largest block, 0 to 1; None if the allocator does not report it."""


@dataclass(frozen=True, slots=True)
class MemoryUser:
    """A group of equal allocations that held memory at the peak."""

    op: str
    region: str
    data_type: str
    shape: str
    occurrences: Count
    bytes: Count
    """Size of all of them together."""
    requested_bytes: Count


@dataclass(frozen=True, slots=True)
class AllocatorMemory:
    """One allocator's memory in the window."""

    host: str
    allocator: str
    """`GPU_0_bfc`, `gpu_host_bfc`, ..."""
    num_allocations: Count
    num_deallocations: Count
    peak_bytes: Count
    """Maximum in use during the window."""
    peak_time_ns: Count
    peak_heap_bytes: Count
    peak_stack_bytes: Count
    peak_free_bytes: Count
    peak_fragmentation: float | None
    lifetime_peak_bytes: Count
    """Maximum ever in use, including before the window."""
    capacity_bytes: Count
    timeline: tuple[MemoryPoint, ...] = ()
    users: tuple[MemoryUser, ...] = ()
    """Users at the peak, largest first."""
    unexplained_bytes: Count = 0
    """Memory in use at the peak that was allocated before the window."""
    left_out_users: Count = 0


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """The memory page."""

    allocators: tuple[AllocatorMemory, ...]
    """The allocator with the highest peak of device memory first."""


@dataclass(frozen=True, slots=True)
class OutlierStep:
    """A step at least 1.5 times as long as the median one and 3.5 robust deviations longer."""

    host: str
    number: int
    duration_ns: Count
    ran_then: tuple[str, ...]
    """Names of events that rarely run in other steps and account for much of the difference, longest first."""
    slower_then: tuple[str, ...] = ()
    """Names of events that run in every step and took much longer in this one (another process, a slow disk, a busy core)."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The device facts that rules read. A value is None if the profile does not contain it."""

    device_type: str
    """`GPU`, `TPU`, `CPU`."""
    num_devices: Count
    """Devices that computed."""
    compute_capability: float | None = None
    """For example 7.5; None for devices other than NVIDIA's."""
    vendor: str = ""
    compute_16bit_share: float | None = None
    tensor_core_eligible_ns: Count = 0
    """Time of kernels whose op could use tensor cores."""
    tensor_core_used_ns: Count = 0
    """Time of kernels on tensor cores."""
    eligible_off_tensor_core_ns: Count = 0
    """Time of kernels that could have used tensor cores but did not."""
    kernel_ns: Count = 0
    """Time of all kernels."""
    num_steps: Count = 0
    step_ns: Count = 0
    """Mean step time."""
    kernels_per_step: float | None = None
    median_kernel_ns: Count | None = None
    launch_gap_share: float | None = None
    """Share of the step time in which the host launched work while the device was idle (`Breakdown.kernel_launch_ns`)."""
    idle_share: float | None = None
    """Share of the step time in which all devices were idle."""
    other_share: float | None = None
    """Share of the step time that was not traced (`Breakdown.other_ns`), mostly Python."""
    memory_peak_share: float | None = None
    """Maximum share of a device's memory in use during the window, on the fullest device."""
    to_device_ns_per_step: Count | None = None
    """Time of host-to-device copies per step and device."""
    to_device_share: float | None = None
    """Share of the step time in which such a copy ran."""
    exposed_to_device_share: float | None = None
    """Share of the step time in which such a copy ran and nothing computed."""
    eager_share: float | None = None
    """Share of the ops' self time, on host and devices together, that was eager."""
    host_eager_share: float | None = None
    eager_ops_per_step: float | None = None
    """Ops that Python ran individually, without those that fetch input."""
    eager_step_share: float | None = None
    """Share of the step time in which such an op ran."""
    num_tracings: Count = 0
    """Functions traced in the window."""
    num_compilations: Count = 0
    """XLA compilations in the window."""
    compile_ns: Count = 0
    """Time in tracing and compilation; every moment is counted once."""
    compiled_names: tuple[str, ...] = ()
    """Names of traced or compiled functions, most frequent first."""
    num_collectives: Count = 0
    outliers: tuple[OutlierStep, ...] = ()
    has_xla_ops: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """All statistics. An absent section is None, and `missing` says which capture would provide it."""

    overview: Overview | None = None
    input: InputStatistics | None = None
    ops: tuple[OpRow, ...] | None = None
    """Host and device ops, largest self time first on each side; includes the row `IDLE`."""
    op_types: tuple[OpRow, ...] | None = None
    kernels: tuple[KernelRow, ...] | None = None
    memory: MemoryStatistics | None = None
    hosts: tuple[HostSteps, ...] | None = None
    device: DeviceFacts | None = None
    missing: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Count] = field(default_factory=dict)
    """Section -> number of rows that reports omit."""
