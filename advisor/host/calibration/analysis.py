"""Constants of the analysis of a profile (`advisor.graph`), of its statistics (`advisor.statistics`) and of rules in general."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

OUTLIER_RATIO = Constant(
    10,
    "ratio",
    "With two parallel maps on two cores, the calls of a shuffle took 1.1 us (median), 2.2 us (90th percentile) and 196 us "
    "(mean). A ratio between calls of one machine, a tenth of what the longest ones gave.",
    TWO_CORES,
)
"""Calls longer than this multiple of the median are capped: their thread lost its core, or an epoch began."""
SHORT_OP_NS = Constant(
    4_000,
    "ns",
    "TensorFlow considers ops of fewer than 8,000 cycles cheap (`kOpIsExpensiveThresholdCycles`): 4 us at 2 GHz. All runs of "
    "5 us were recorded, and at most 0.4 % of those of 1.2 us.",
    TWO_CORES,
)
"""Maximum time of a run of an op that the profiler leaves out."""
LONGEST_UNPACKING_NS = Constant(
    10_000_000,
    "ns",
    "zlib unpacks the 256 KiB of TensorFlow's buffer in 0.7 ms (zeros) to 1.2 ms (random digits), with other programs in 4.3 ms. "
    "A machine that is seven times as slow stays below it.",
    TWO_CORES,
)
"""A reader's call that takes longer than this and is an outlier has filled its buffer, and waited for storage meanwhile."""
SATURATED_SHARE = Constant(
    0.1, "share", "In theory any share above 0; 0.1 tolerates a fetching thread that waits for a core."
)
"""A parallel node is saturated if it fetches no input during at least this share of the time that others wait for it."""
IDLE_NOISE = Constant(
    0.05, "share", "With many slots, even wake-ups of the fetching thread would look like saturation."
)
"""Idle shares below this count as 0."""
CPU_BUSY_SHARE = Constant(0.9, "share", "A saturated pool loses the remaining tenth to wake-ups.")
"""If the cores are at least this busy, more parallelism cannot help."""
PACE_BUSY_SHARE = Constant(0.9, "share", "As CPU_BUSY_SHARE: threads that never wait still lose some time to wake-ups.")
"""Parallel work upstream sets the pace of a sequential node if its threads are busy for at least this share of the time ..."""
PACE_MARGIN = Constant(0.05, "share", "Chosen: with less, both set the pace in turn.")
"""... and for at least so much more of it than the thread of the sequential node."""
PYTHON_SHARE = Constant(0.5, "share")
"""The GIL is suspected if Python ops take at least this share of the bottleneck's function time."""
GIL_WAIT_SHARE = Constant(0.2, "share", "A GIL that is always held gives 0.33 (`LockProbe`).")
"""The GIL is contended if a probe thread waits for it for at least this share of its time."""
GIL_HELD_SHARE = Constant(0.8, "share")
"""The GIL is exhausted if the time in Python ops, summed over threads, is at least this share of the window."""
PYTHON_CPU_SHARE = Constant(
    0.5, "share", "Python code that sleeps or waits for a file releases the GIL and uses little CPU."
)
"""Python ops compute if the CPU time of the process is at least this share of the time in them; otherwise they sleep."""
DISK_BYTES_PER_S = Constant(10e6, "bytes/s", "Even spinning disks read large files faster at random access.")
"""Below this rate of reads from storage, the disk is not the limit."""
DISK_IDLE_CPU_SHARE = Constant(0.5, "share", "A pipeline that waits for the disk leaves the cores idle.")
"""The disk is the limit only if the cores are less busy than this."""
UNSEEN_SHARE = Constant(0.1, "share", "Fewer do not change the results.")
"""Steps without producers are dropped if they are at least this share of all steps ..."""
UNSEEN_WAIT_SHARE = Constant(0.05, "share", "The threshold between input-bound and not input-bound.")
"""... and if they waited at least this share of their time."""
IDLE_DEVICE_SHARE = Constant(0.01, "share", "Copies at start-up leave a few events.")
"""A device is idle if it has less than this share of the busiest device's events."""
FEW_MODELLED = Constant(16, "elements", "The first elements cost more because their memory is newly allocated.")
"""Minimum number of elements for a mean of tf.data's model."""
MAX_OVERHEAD = Constant(0.05, "share", "The bound that capture itself keeps.")
"""Overhead of the profiler, as a share of the step time, above which the report warns."""
MIN_VERDICT_STEPS = Constant(3, "steps")
"""Minimum number of steps for a prediction and for a gate. The verdict on fewer steps describes these steps only."""
SURE_VERDICT_STEPS = Constant(
    10, "steps", "The 95 % interval of the median needs 8 steps; below, the range is all there is."
)
"""With fewer steps, the verdict gives their number and the range of their waits."""
WIDE_CEILING = Constant(1.1, "ratio")
"""Ratio of the ends of a 95 % interval from which on a measured ceiling is reported with its interval."""
SHARED_CORES_GAIN = Constant(1.05, "ratio", "As for the wait: 5 % of the step.")
"""Gains below this, of a pipeline that takes no cores from the training, are not reported."""
BUFFER_SHARE = Constant(0.9, "share", "One reading in ten may fall into the moment in which an element is added.")
"""A buffer counts as always full, or always empty, if it was so at this share of its readings."""
MIN_GAPS = Constant(2, "steps", "A single one may be the end of an epoch.")
"""Minimum number of gaps between marked steps that contain a call."""

LOCKSTEP_SHARE = Constant(
    0.9, "share", "An epoch may end for one of them alone, and a step may read one of them twice."
)
"""Two iterators are read by one training step if this share of its steps reads both once."""

MIN_LINE_SAMPLES = Constant(3, "samples", "With fewer, the 95 % interval of the time includes zero.")
"""Lines of Python functions with fewer samples are not shown."""
MIN_PYTHON_REPEATS = Constant(
    32, "calls", "A function that returns something else for one element in ten is found with 97 % probability."
)
"""Repeated calls of a Python function that must have returned the same before a cache of its results is proposed."""
ADVISED_BLAME = Constant(0.1, "share", "Removing a tenth of the wait is barely measurable.")
"""Lines of iterators that cause a smaller share of the wait are shown without advice, or not at all."""
ADVISED_LINE_SHARE = Constant(0.2, "share", "Other lines matter more.")
"""Lines with a smaller share of their function's time get no advice."""
EXPLAINED_SHARE = Constant(
    0.05,
    "share",
    "Without so much of the wait, a step is at most 1.05 times faster, the smallest speedup that rules report.",
)
"""Share of the wait from which a rule says why it proposes nothing for an iterator."""

# -- Steps that take far longer than the others (`advisor.statistics.outliers`)

OUTLIER_STEP_RATIO = Constant(
    1.5, "ratio", "In a loop whose steps hardly vary, 3.5 deviations alone would be a few percent."
)
"""An outlier takes at least this many times as long as the median step."""
MIN_OUTLIER_STEPS = Constant(
    11, "steps", "With fewer, the deviation of the others is not known well enough. Not measured."
)
"""Minimum number of steps for outliers to be found."""
OUTLIER_PART_SHARE = Constant(0.2, "share")
"""A name is reported if it accounts for this share of the additional time of an outlier."""
RARE_EVENT_SHARE = Constant(0.1, "share")
"""An event that runs in a smaller share of other steps counts as additional instead of slower: an op that waited for a core takes
many times as long as usual."""
