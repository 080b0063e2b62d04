"""What the capture phase saw of a script: the calls that made datasets, who consumed them, the steps and the machine.

In: nothing.  Out: `Recording`, stored as `recording.json` in a run folder.

Times are integer nanoseconds. Instants are Unix time (`time.time_ns()`), so that they can be laid beside the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.model.state import CapturedResource, ObservedState

INFINITE_CARDINALITY = -1
"""`tf.data.INFINITE_CARDINALITY`."""
UNKNOWN_CARDINALITY = -2
"""`tf.data.UNKNOWN_CARDINALITY`."""
AUTOTUNE = -1
"""`tf.data.AUTOTUNE`."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Site:
    """A span of the user's source. Lines and columns count from 1, columns in characters, `end_column` is exclusive.

    `line`/`column` are where the call's method name stands (the place a reader looks for in a chain over several lines);
    the end is the end of the whole call.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What is known of the Python function given to a transformation, from the graph that TensorFlow traced of it."""

    name: str
    site: Site | None
    is_stateful: bool
    """TensorFlow's own view: it will not parallelise a stateful function by itself."""
    random_ops: tuple[str, ...] = ()
    """Types of the ops that draw random numbers, nested functions included."""
    python_ops: tuple[str, ...] = ()
    """Types of the ops that run Python code (`PyFunc`, `EagerPyFunc`, ...): they hold the interpreter's lock."""
    ops: dict[str, int] = field(default_factory=dict)
    """Op type -> number of such nodes, nested functions included."""
    captured: tuple[str, ...] = ()
    """Types of captured resources (`HashTableV2`, `VarHandleOp`, ...)."""
    resources: tuple[CapturedResource, ...] = ()
    """The captured resources and datasets, each identified by the object that owns it."""
    stateful_ops: tuple[str, ...] | None = None
    """Types of the ops that TensorFlow's registry calls stateful or does not know, nested functions included; None: a recording
    of an earlier version, which did not look."""
    is_seeded: bool = False
    """A random op in it has a seed, its own or the global one, or draws from a `tf.random.Generator`, which may have one."""
    is_elementwise: bool | None = None
    """Whether one call on a batch gives the batch of what it gives for each element; None: not looked at."""
    flow: tuple[tuple[str, str], ...] = ()
    """Distinct (op type, type of an op that takes its result)."""
    fixed_ops: dict[str, int] = field(default_factory=dict)
    """Op type -> number of ops that depend on no random number; empty where none is drawn."""
    random_site: Site | None = None
    """The user's line that first draws a random number."""
    unchanged: tuple[tuple[int, int], ...] = ()
    """(component of the result, component of the element) that passes through as it is; components as `tf.nest.flatten`
    numbers them."""
    used_inputs: tuple[int, ...] | None = None
    """Components of the element that the function reads; None: not looked at."""
    is_traced: bool = True
    """False: read in a script that was not run (`--source`), so that what it does is not known."""


@dataclass(frozen=True, slots=True)
class Call:
    """One public tf.data call that made a dataset."""

    id: str
    """Unique, a Python identifier: also the `name=` that TensorFlow writes into the profile, unless `user_name` is
    set.
    """
    method: str
    """`map`, `batch`, `TFRecordDataset`, `from_tensor_slices`, ..."""
    site: Site | None
    """The user's call; for a call made by a library, the user's call of that library."""
    inputs: tuple[str, ...] = ()
    """Ids of the calls whose datasets it consumes, in order."""
    arguments: dict[str, Scalar] = field(default_factory=dict)
    """Bound arguments by parameter name. What is no scalar is a short description such as `<function augment>`."""
    explicit: tuple[str, ...] = ()
    """Names of the parameters that the caller passed."""
    function: FunctionFacts | None = None
    user_name: str | None = None
    library: str | None = None
    """Top-level package of the code that made the call (`keras`, `tensorflow_datasets`, ...); None: the user's own."""
    made_by: str | None = None
    """Id of the public call inside which this one was made (`from_generator` makes a `flat_map`)."""
    nested_in: str | None = None
    """Id of the call whose function made this one (`map` inside an `interleave` function)."""
    cardinality: int | None = None
    """Elements per epoch; INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, or None where it was not asked."""
    element_spec: str = ""
    element_bytes: int | None = None
    """Bytes of one element where the spec's shapes and types fix it."""
    file_bytes: int | None = None
    """Bytes of all the files whose names it is given, from the sizes of some of them; None: it is given none."""
    options: dict[str, Scalar] = field(default_factory=dict)
    """For `with_options`: dotted option -> value, only those that the user set (`autotune.enabled`)."""
    unrecorded: tuple[str, ...] = ()
    """Classes of datasets between this call and its recorded inputs, or instead of one, that no recorded call made."""
    text: str = ""
    """The call as written, for people (`.map(augment)`), at most 200 characters."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A place that takes elements out of a dataset."""

    id: str
    call_id: str | None
    """The call that made the consumed dataset."""
    kind: str
    """`for`, `next`, `as_numpy_iterator`, `keras.fit`, `keras.evaluate`, `keras.predict`, `distributed`,
    `tf.function`, ...
    """
    site: Site | None
    iterators: int = 1
    """How many iterators were made there (epochs, usually)."""
    finished_epochs: int = 0
    """Keras: epochs over the whole dataset that came to their end."""
    finished_steps: int = 0
    """Steps of those."""
    is_main: bool = False
    """The consumer whose steps the window followed."""
    releases: tuple[tuple[int, int], ...] = ()
    """Of its iterators that went away between two steps (at the end of an epoch, usually): Unix time at which TensorFlow had let
    go of them, and how long the script waited for that, ns."""


@dataclass(frozen=True, slots=True)
class StepSeries:
    """The steps of one consumer as the recorder saw them from Python (empty for loops inside a tf.function)."""

    consumer_id: str
    start_ns: tuple[int, ...] = ()
    """Unix time of the beginning of each `next` (or Keras batch)."""
    wait_ns: tuple[int, ...] = ()
    """Time inside `next`; empty where Python cannot see it (Keras fetches inside its step function)."""
    end_ns: tuple[int, ...] = ()
    """Unix time of each step's end: the next step's beginning, or the end of the loop after an epoch's last step."""
    first_step: int = 0
    """Number of the first step that is here; of a very long loop the oldest are left out."""


@dataclass(frozen=True, slots=True)
class Window:
    """The measured part of the run: a plain stretch without the profiler, then the profiled one.

    Step times and waits are taken from the plain stretch, because the profiler costs time itself; what the profiled steps
    did says where the wait comes from.
    """

    start_ns: int
    """Beginning of the profiled stretch."""
    end_ns: int
    warmup_steps: int
    """Steps of the main consumer before the measured part."""
    steps: int
    """Steps of the main consumer in the profiled stretch; 0 where Python could not count them."""
    closed_by: str
    """`stable`, `steps`, `seconds`, `events`, `script ended`, `script failed`, `interrupted`."""
    plain_start_ns: int = 0
    """Beginning of the stretch without the profiler; 0: there was none."""
    plain_end_ns: int = 0
    plain_steps: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the process (all threads) used during the window."""

    wall_ns: int
    cpu_ns: int
    children_cpu_ns: int = 0
    read_bytes: int | None = None
    """Bytes that storage really delivered (`/proc/self/io` read_bytes)."""
    read_chars: int | None = None
    """Bytes asked for by read calls, page cache included (rchar)."""
    peak_rss_bytes: int | None = None
    host_cpu_busy_share: float | None = None
    """Busy share of all the machine's cores during the window, other processes included, 0 to 1."""
    gil_wait_share: float | None = None
    """Median share of a probe's wall time in which it waited for Python's lock, 0 to 1; None: not probed."""


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One node of tf.data's own model of a running iterator, as the difference between window start and end.

    Source: `model.proto`, read through `get_model_proto` (private API; absent where it is not there).
    """

    id: int
    name: str
    """Iterator type (`MapAndBatch`)."""
    inputs: tuple[int, ...] = ()
    num_elements: int = 0
    bytes_produced: int = 0
    bytes_consumed: int = 0
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
    """True: counts are those of the window; False: since the iterator was made."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    kind: str
    """`GPU`, `TPU`."""
    name: str
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """The machine, as the process may use it."""

    hostname: str
    cores: float
    """Usable cores: the smaller of CPU affinity and cgroup quota."""
    cores_installed: int
    memory_bytes: int
    """Usable memory: the smaller of physical memory and cgroup limit."""
    memory_free_bytes: int
    cpu_model: str = ""
    has_bfloat16: bool | None = None
    """The processor multiplies bfloat16 numbers itself (AMX, AVX512-BF16, Arm's BF16); None: not known."""
    platform: str = ""
    python_version: str = ""
    tensorflow_version: str = ""
    accelerators: tuple[Accelerator, ...] = ()
    disk_free_bytes: int | None = None
    """Free space where the script runs."""
    disk_read_bytes_per_s: float | None = None
    """How fast the disk delivers files that the pipeline reads, past the page cache; None: not measured."""


@dataclass(frozen=True, slots=True)
class ScriptExit:
    """How the script ended."""

    kind: str
    """`stopped` (by us, after the window), `finished`, `failed`, `exited` (sys.exit with a code), `interrupted`,
    `killed`.
    """
    code: int = 0
    exception: str = ""
    """`ValueError: ...`, one line."""


@dataclass(frozen=True, slots=True)
class Recording:
    """All that capture knows, beside the profile."""

    target: str
    """The script as the user named it, with its arguments."""
    host: Host
    script_exit: ScriptExit
    argv: tuple[str, ...] = ()
    cwd: str = ""
    calls: tuple[Call, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    steps: tuple[StepSeries, ...] = ()
    window: Window | None = None
    """None: the window never opened."""
    usage: Usage | None = None
    models: tuple[IteratorModel, ...] = ()
    plain_models: tuple[IteratorModel, ...] = ()
    """The same over the stretch without the profiler, whose own cost is no part of them."""
    keras: dict[str, Scalar] = field(default_factory=dict)
    """`dtype_policy`, `steps_per_execution`, `jit_compile`, `run_eagerly`, `batch_size`, where Keras was used."""
    ceiling_step_ns: tuple[int, ...] = ()
    """Step times of the second run of `--ceiling`, in which the consumed dataset was its first batch repeated."""
    unprofiled: str = ""
    """Why no profile could be taken, in one sentence; empty where one was, or where the script gave no occasion."""
    is_seeded: bool | None = None
    """Whether the script fixed TensorFlow's random numbers (`tf.random.set_seed`), so that a rerun draws the same ones; None:
    not known.
    """
    is_pipeline_alone: bool = False
    """The consumer took element after element and did nothing with them: a proof, no training."""
    state: tuple[ObservedState, ...] | None = None
    """State that the pipelines read and that could change while the script ran; None: it was not watched."""
    warnings: tuple[str, ...] = ()
    schema_version: int = 1
