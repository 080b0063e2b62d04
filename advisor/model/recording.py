"""What capture records about a script: the calls that create datasets, their consumers, the steps and the machine.

`Recording` is stored as `recording.json` in a run folder.

Times are integer nanoseconds. Instants are Unix time (`time.time_ns()`), so that they can be aligned with the profile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from advisor.model.calibration import Calibration
from advisor.model.calls import Call, CodeLine, Scalar, Site
from advisor.model.state import ObservedState
from advisor.model.window_readings import AloneReading, BufferLevels, GapWaits, IteratorModel, Usage


@dataclass(frozen=True, slots=True)
class SampledLine:
    """A line of a Python function that threads were executing when they were sampled."""

    function: Site
    """The Python function called from TensorFlow (`py_function`, `numpy_function`, a generator)."""
    at: CodeLine
    samples: int
    native_samples: int = 0
    """The samples inside compiled code that the line called."""
    library: str = ""
    """Package of the code that the line called (`numpy`, `PIL`, `cv2`); empty if it called none, or several equally often."""
    callee: str = ""
    """The called expression, as written: `np.sort`, `.resize`."""


@dataclass(frozen=True, slots=True)
class PythonSamples:
    """Samples of the threads inside Python functions of pipelines, taken before the window or in its profiled stretch."""

    duration_ns: int
    """Length of the profiled stretch, which the samples represent."""
    ticks: int
    """Number of times at which all threads were sampled; one sample stands for `duration_ns / ticks`."""
    lines: tuple[SampledLine, ...] = ()
    """Most frequent first; only the first `MAX_SAMPLED_LINES` are recorded."""


@dataclass(frozen=True, slots=True)
class CompileCall:
    """A call of `compile` of a Keras model."""

    site: Site | None
    """The user's call; for a call made by a library, the user's call of that library."""
    text: str = ""
    """The call as written, at most 200 characters."""
    explicit: tuple[str, ...] = ()
    """Names of the parameters that the caller passed."""
    library: str | None = None
    """Top-level package of the code that made the call; None for the user's code."""


@dataclass(frozen=True, slots=True)
class Product:
    """The layer of a Keras model with the most multiplications per sample."""

    layer: str
    kind: str
    """`MatMul` or `Conv2D`."""
    inputs: tuple[int, ...]
    """Shape of its input for one sample: the features come last."""
    kernel: tuple[int, ...]
    strides: tuple[int, int] = (1, 1)
    padding: str = "VALID"


@dataclass(frozen=True, slots=True)
class ProductTimes:
    """The largest product of the model, timed alone on the machine of the run in 32 and in 16 bit."""

    product: Product
    rows: int
    """Number of samples."""
    float32_ns: float
    bfloat16_ns: float
    """With the cast of the kernel, which stays in 32 bit."""

    @property
    def gain(self) -> float:
        """How many times faster 16 bit is."""
        return self.float32_ns / self.bfloat16_ns if self.bfloat16_ns > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the script around a consumer, usually over its epochs."""

    count: int | None
    """Number of its passes, if it is a `for` over a `range` whose bounds are known; None if unknown."""
    file: str = ""
    line: int = 0
    """The line of the loop; 0 if there may be a loop that was not found."""
    end_line: int = 0


@dataclass(frozen=True, slots=True)
class Consumer:
    """A place in the program that takes elements from a dataset."""

    id: str
    call_id: str | None
    """The call that created the consumed dataset."""
    kind: str
    """`for`, `next`, `as_numpy_iterator`, `keras.fit`, `keras.evaluate`, `keras.predict`, `distributed`, `tf.function`, ..."""
    site: Site | None
    iterators: int = 1
    """Number of iterators created there (usually one per epoch)."""
    finished_epochs: int = 0
    """Keras: completed epochs over the whole dataset."""
    finished_steps: int = 0
    """Keras: steps in these epochs."""
    is_main: bool = False
    """Whether the window followed the steps of this consumer."""
    releases: tuple[tuple[int, int], ...] = ()
    """For each iterator destroyed between two steps (usually at the end of an epoch): Unix time at which TensorFlow had destroyed
    it, and how long the script waited for that, in ns."""
    datasets: int = 0
    """Number of datasets that it has read one after the other; 0 in recordings of earlier versions."""
    loops: tuple[Loop, ...] | None = None
    """The loops of the script around this place, innermost first; empty if there is none, None if they were not recorded."""
    eager_step: CodeLine | None = None
    """The script's function that opens a GradientTape outside a tf.function in the steps of this loop, at the line in which it
    begins; None if there is none."""
    graph_steps: tuple[CodeLine, ...] = ()
    """The script's functions that run as a `tf.function` in the steps of this loop, get their elements as arguments and take a
    gradient, each at the line in which it begins."""


@dataclass(frozen=True, slots=True)
class GeneratorPasses:
    """The passes that the script made over a Python generator, from its first element to its last one."""

    call_id: str
    """The `from_generator` call."""
    passes: int
    """Finished passes."""
    elements: int
    """Elements of the first pass."""
    compared: int
    """Elements of each pass of which digests were compared: the first ones, and a sample of the others."""
    is_same: bool
    """Whether all passes had as many elements, and those compared were bit-identical; True if there was one pass."""


@dataclass(frozen=True, slots=True)
class RepeatedCalls:
    """The calls of the Python functions in the function of one recorded call (`py_function`, `numpy_function`)."""

    call_id: str
    """The call whose function contains them."""
    calls: int
    repeats: int
    """Calls for an element equal to one of an earlier call; of most elements, only a sample is followed."""
    is_same: bool
    """Whether all of these returned bit-identical results."""


@dataclass(frozen=True, slots=True)
class StepSeries:
    """The steps of one consumer, as timed in Python (empty for loops inside a `tf.function`)."""

    consumer_id: str
    start_ns: tuple[int, ...] = ()
    """Unix time of the start of each `next` (or Keras batch)."""
    wait_ns: tuple[int, ...] = ()
    """Time inside `next`; empty if Python cannot observe it (Keras fetches inside its step function)."""
    end_ns: tuple[int, ...] = ()
    """Unix time of the end of each step: the start of the next step, or the end of the loop after the last step of an epoch."""
    first_step: int = 0
    """Number of the first step in the columns; the oldest steps of a very long loop are dropped."""
    epoch_firsts: tuple[int, ...] = ()
    """Numbers of the first steps of epochs (passes over a dataset, or Keras' epochs), from `first_step` on. The last epoch may
    not have begun."""

    @property
    def epoch_steps(self) -> int | None:
        """Number of steps of an epoch; None if no other one has begun after one, or if they differ."""
        end = self.first_step + len(self.start_ns)
        return steps_of_epochs([first for first in self.epoch_firsts if first < end])


def steps_of_epochs(firsts: Iterable[int]) -> int | None:
    """Return the number of steps of each epoch; None if there is none, or if they differ.

    Args:
        firsts: Numbers of the first steps of epochs; the last one has not ended.
    """
    lengths = {after - before for before, after in itertools.pairwise(firsts)}
    return lengths.pop() if len(lengths) == 1 and min(lengths) > 0 else None


def steps_in_whole_epochs(count: int, epoch_steps: int | None) -> int:
    """Return how many of consecutive steps make whole epochs; all of them if they are less than one, or if that is unknown.

    Args:
        count: The number of steps, of which the first one may be anywhere in its epoch.
        epoch_steps: Steps of an epoch; None if unknown.
    """
    return count - count % epoch_steps if epoch_steps is not None and count >= epoch_steps else count


@dataclass(frozen=True, slots=True)
class Window:
    """The measured part of the run: an unprofiled stretch, then a profiled one.

    Step times and waits are taken from the unprofiled stretch, because the profiler itself costs time. The profiled steps show
    where the wait comes from.
    """

    start_ns: int
    """Start of the profiled stretch."""
    end_ns: int
    warmup_steps: int
    """Steps of the main consumer before the measured part."""
    steps: int
    """Steps of the main consumer in the profiled stretch; 0 if Python could not count them."""
    closed_by: str
    """`stable`, `steps`, `seconds`, `events`, `script ended`, `script failed`, `interrupted`."""
    plain_start_ns: int = 0
    """Start of the unprofiled stretch; 0 if there was none."""
    plain_end_ns: int = 0
    plain_steps: int = 0

    @property
    def is_profile_early(self) -> bool:
        """Whether the profile was taken before the unprofiled stretch, in the first steps, without time for a later one."""
        return self.plain_start_ns > self.start_ns


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU or TPU of the host."""

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
    """Whether the processor multiplies bfloat16 numbers in hardware (AMX, AVX512-BF16, Arm's BF16); None if unknown."""
    platform: str = ""
    python_version: str = ""
    tensorflow_version: str = ""
    accelerators: tuple[Accelerator, ...] = ()
    disk_free_bytes: int | None = None
    """Free space in the script's working directory."""
    disk_read_bytes_per_s: float | None = None
    """Read rate of the disk for files of the pipeline, without the page cache; None if not measured."""
    calibration: Calibration | None = None
    """Costs measured on this machine; None if it was never calibrated."""


@dataclass(frozen=True, slots=True)
class ScriptExit:
    """How the script ended."""

    kind: str
    """`stopped` (by the advisor, after the window), `finished`, `failed`, `exited` (sys.exit with a code), `interrupted`,
    `killed`."""
    code: int = 0
    exception: str = ""
    """`ValueError: ...`, one line."""

    @property
    def is_failure(self) -> bool:
        """Whether the script raised an exception, or ended itself with an exit code other than 0."""
        return self.kind == "failed" or (self.kind == "exited" and self.code != 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that capture records apart from the profile."""

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
    """None if the window never opened."""
    usage: Usage | None = None
    models: tuple[IteratorModel, ...] = ()
    """tf.data's models over the profiled stretch."""
    plain_models: tuple[IteratorModel, ...] = ()
    """tf.data's models over the unprofiled stretch, without the cost of the profiler."""
    buffers: tuple[BufferLevels, ...] = ()
    """How full the last buffer of the measured consumer's pipeline was in the window; empty if tf.data does not tell."""
    gap_waits: tuple[GapWaits, ...] = ()
    """Waits of the measured consumer that Python does not see; empty if it sees them, or tf.data does not tell."""
    keras: dict[str, Scalar] = field(default_factory=dict)
    """`dtype_policy`, `steps_per_execution`, `jit_compile`, `run_eagerly`, `batch_size`, and the arguments `epochs`,
    `initial_epoch` and `steps_per_epoch` of `fit`. `fits`: how often it was called; `may_stop`: whether a callback may end it
    early. Empty if Keras was not used."""
    compiles: tuple[CompileCall, ...] = ()
    """The calls of `compile` of Keras models, the first few of them."""
    losses: tuple[tuple[int, float | None], ...] = ()
    """Of the first batches of the first `fit`, or of the first steps of another loop: (batches so far, the mean loss over them;
    None if it is not finite). Of `fit`, it is Keras' mean."""
    loss_source: str = "keras"
    """Where the losses were seen: `keras`, `gradient` (differentiated outside a tf.function), `returned` (by a tf.function that
    takes a gradient). Losses of different kinds cannot be compared."""
    product: Product | None = None
    """The largest product of the trained Keras model; None if it is unknown."""
    product_times: ProductTimes | None = None
    """None if it was not measured: only for Keras models in 32 bit on a CPU with units for 16 bit."""
    python_samples: PythonSamples | None = None
    """None if the pipelines call no Python function, or without a profile."""
    ceiling_step_ns: tuple[int, ...] = ()
    """Step times of the second run of `--ceiling`, in which the consumed dataset is its first batch, repeated."""
    idle_step_ns: tuple[int, ...] = ()
    """Durations of steps after the window that were given the same element again and again, so that the pipeline was idle; empty
    if steps do not wait for input, or if that could not be done."""
    read_alone: AloneReading | None = None
    """The pipeline without training, after the window; None if it was not read, or too few elements came."""
    alone_element_ns: float | None = None
    """Mean time per element of the second run of `--headroom`, in which the pipeline is read without training."""
    unprofiled: str = ""
    """Why no profile could be taken, in one sentence; empty if there is one, or if the script never reached that point."""
    is_seeded: bool | None = None
    """Whether the script set TensorFlow's global seed (`tf.random.set_seed`), so that a rerun draws the same random numbers; None
    if unknown."""
    is_pipeline_alone: bool = False
    """Whether the consumer read the elements without using them: the pipeline in isolation instead of a training."""
    is_read_once: bool = False
    """Of a pipeline in isolation: whether the training passes over its data once, so that later passes are of no use to it."""
    steps_queued_by: str = ""
    """The library whose steps run after the call that starts them has returned (`JAX`); empty if none is known."""
    other_runs: int = 0
    """Number of other processes on the machine that ran the same script at the end of the window."""
    as_if_step_ns: int | None = None
    """Length of the wait that replaced each training step; None for a training, and for the pipeline in isolation."""
    goes_on: bool = False
    """Whether the training went on when this was written, as that of a program that watches itself does: a change helps only
    what is left of its run."""
    state: tuple[ObservedState, ...] | None = None
    """State that the pipelines read and that could change while the script ran; None if it was not observed."""
    generators: tuple[GeneratorPasses, ...] = ()
    """The Python generators that the script passed over at least once."""
    python_calls: tuple[RepeatedCalls, ...] = ()
    """The Python functions of the pipelines that were called."""
    full_windows: tuple[str, ...] = ()
    """Of the recording of an edited pipeline: ids of the calls whose elements were whole windows of one size before the edits."""
    warnings: tuple[str, ...] = ()
    disk_notes: tuple[str, ...] = ()
    """Sentences on what could not be kept from the disk, for a run whose files are thrown away; also among the warnings."""
    schema_version: int = 1

    @property
    def is_reproducible(self) -> bool:
        """Whether a rerun of the script reproduces any random numbers, so that drawing other numbers would change its results.

        Every fixed seed counts: `tf.random.set_seed` (`keras.utils.set_random_seed` calls it), the `seed` argument of a call in
        the script, a seeded op in a function. If it is unknown, the script counts as seeded.
        """
        if self.is_seeded is not False:
            return True
        has_argument = any(call.library is None and call.arguments.get("seed") is not None for call in self.calls)
        return has_argument or any(call.function is not None and call.function.is_seeded for call in self.calls)

    @property
    def times_without_input(self) -> tuple[int, ...]:
        """Durations of steps whose input cost nothing, in ns: those of `--ceiling`, or else those after the window.

        The latter are too few to count if steps are only started, and run later.
        """
        is_queued = bool(self.host.accelerators or self.steps_queued_by)
        return self.ceiling_step_ns or (() if is_queued else self.idle_step_ns)
