"""Constants of the predictions (`advisor.predict`)."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

# -- Costs that describe the machine: used unless they were measured on the machine of the run (`advisor.predict.machine_costs`)

NEXT_NS = Constant(
    90_000.0,
    "ns",
    "Cached elements of one component took 64 to 104 us, proofs of caches after all work 87 to 109 us.",
    TWO_CORES,
)
"""Minimum step time of a consumer that ignores the elements (Python's `next`) if a prefetch thread has to be woken."""
NEXT_HERE_NS = Constant(50_000.0, "ns", "Cached elements of one component took 45 to 50 us.", TWO_CORES)
"""The same without any other thread."""
COMPONENT_NS = Constant(
    5_500.0,
    "ns",
    "Elements with 1, 5 and 20 components of 1 KiB took 120, 154 and 219 us with a prefetch; 83, 104 and 224 us without; "
    "medians of four.",
    TWO_CORES,
)
"""Additional time of `next` for each further component of an element."""
HANDOFF_OVERHEAD_NS = Constant(
    (25_000.0, 15_000.0, 5_000.0),
    "ns",
    "Fitted to maps of 25 us to 1.2 ms per element on one and on two threads, nothing else running (benchmarks/hand_over.py).",
    TWO_CORES,
)
"""Overhead of handing an element to a thread of a parallel map and back that does not overlap with other work: maximum, typical,
minimum."""
COPIED_BYTES_PER_NS = Constant(
    4.0,
    "bytes/ns",
    "Eight images of 48 KiB took 70 us while two cores were busy; a batch of eight strings of 110 KB took 50 us without "
    "and 320 us with copying.",
    TWO_CORES,
)
"""Rate of copying elements into a batch."""
SMALL_READ_NS = Constant(
    260.0,
    "ns",
    "Records of 12 kB in the page cache took 20.1 us each with a buffer of 256 bytes, 7.5 us with one of 64 KiB.",
    TWO_CORES,
)
"""A read by a reader of tf.data whose buffer is small, without the copying. On a network file system it costs far more."""
OP_START_NS = Constant(
    (1_000.0, 4_000.0),
    "ns",
    "One and five ops on texts of 35 to 1,289 characters: a call per batch of 128 saved 44 to 52 and 45 to 60 us of processor "
    "time per text, so 0 to 4 us for each further op; one thread, nothing else running. The typical value is measured on each "
    "machine, and the maximum is scaled with it.",
    TWO_CORES,
)
"""Time that an op of a function takes before it computes anything, which a call per batch saves for all elements but one:
typical, maximum."""

PLAUSIBLE_RATIO = Constant(
    8.0, "ratio", "Below the ten times that a measurement next to twelve busy processes gave (`BUSY_CORES`)."
)
"""A measured cost that differs from the built-in one by more than this ratio is taken for a failed measurement."""

# -- Costs and factors of the model

CALLED_NS = Constant(
    50_000.0,
    "ns",
    "45 and 56 us with a function of 0.74 ms, 16 us with one of 0.07 ms. It is not measured on each machine: it depends on the "
    "function, and on the profiler, which a calibration does not start.",
    TWO_CORES,
)
"""Cost per element of calling the function of a map fused with its batch, with the profiler and copying 48 KiB."""
EPOCH_START_NS = Constant(
    1_500_000.0,
    "ns",
    "0.3 to 2 ms passed between the epochs of isolated pipelines. It is not measured on each machine: it depends "
    "on the pipeline more than on the machine.",
    TWO_CORES,
)
"""Creation of an iterator and its threads, which no change avoids."""
EFFICIENCY = Constant(
    (0.65, 0.8, 1.0),
    "share",
    "As `HANDOFF_OVERHEAD_NS`. It is not measured on each machine: a share of time, most of which depends on how much the times "
    "of the elements differ.",
    TWO_CORES,
)
"""Share of a thread's time in which it works: with very different element times, typically, with equal times."""
CONTENTION_FACTOR = Constant(
    (1.0, 0.5, 0.35),
    "ratio",
    "Six caches after nearly all of a pipeline's work left 0.50 to 0.68 of the profiled cost of the rest "
    "(benchmarks/predictions.py). It is not measured on each machine: that takes whole pipelines on an "
    "idle machine, and the range covers what they gave.",
    TWO_CORES,
)
"""Cost of copying and passing on existing elements, relative to the cost while functions keep the cores, their caches and the
memory busy: worst, likely, best."""
UNCERTAINTY = Constant(
    0.3, "share", "Deliberately wide until enough predictions have been compared with measured gains."
)
"""Relative error of the model, as a share of the predicted gain, in both directions."""
BESIDE_INPUT = Constant(2.0, "ratio", "A guess, used only for the upper end of the range.")
"""Maximum speedup of a consumer on the same cores if the pipeline no longer runs concurrently, because processor caches, memory
and wake-ups are shared."""
OTHERS_KEEP = Constant(
    (1.0, 0.5, 0.0),
    "share",
    "Unknown: none, half or all of them. The scheduler divides cores among the processes that compete for them.",
)
"""Share of the cores used by other processes that they keep if this one needs more: worst, likely, best."""
ALONE = Constant(
    (0.2, 1.5),
    "ratio",
    "Twelve healthy scripts on 2 cores, whose training computes on both: the pipeline alone took 0.2 to 3.6 times as long per "
    "element as its events beside the training say without waits for a core, and at most 1.4 times as long as with all CPU time "
    "of unknown origin. Beside the training, its data and code leave the processor's caches in each step.",
)
"""Factors from the time per element beside a training on the same cores to the ends of the range for the pipeline alone."""
READ_ALONE = Constant(
    (0.5, 1.4),
    "ratio",
    "Ten to twelve healthy scripts, three times: 0.58 to 1.23, and once 1.69. A second does not see what varies from minute to "
    "minute, and AUTOTUNE, which had little to do for the training, makes more parallel calls later.",
    TWO_CORES,
)
"""Factors from the time per element in a second of reading to the ends of the range for the pipeline alone."""
BRINK_SPEEDUP = Constant(1.1, "ratio", "Less than the error of the prediction.")
"""Speedup of the step up to which the pipeline counts as about as fast as the training."""
MOST_HEADROOM = Constant(100.0, "ratio", "The pipeline's own time is then too short to be measured beside the step.")
"""Speedups above this are not distinguished in the headroom of a healthy pipeline."""
MOST_SPEEDUP = Constant(1000.0, "ratio", "If 99.9 % of a step is wait, the rest is too short to be measured.")
"""Maximum predicted speedup."""

# -- Cores, the GIL and memory

LOCK_WAIT_SHARE = Constant(
    0.2,
    "share",
    "A GIL that is always held gives 0.33 (`LockProbe`). The reverse does not hold: if it is released every 100 us, the probe "
    "never waits.",
)
"""If a probe thread waits for the GIL for this share of its time, another thread holds it for long."""
COMPUTING_SHARE = Constant(
    0.25, "share", "Low, because the time in Python ops includes the wait for the GIL and for a core."
)
"""Minimum share of the time in Python ops that must be CPU time for the code to count as computing instead of sleeping."""
FREE_CORES_SHARE = Constant(0.5, "share", "With half of the cores idle, a core is always free.")
"""Share of busy cores up to which no thread is assumed to wait for a core."""
FULL_CORES_SHARE = Constant(
    0.95, "share", "With no core idle, threads wait for nothing else; that 0.95 counts as none is a judgement."
)
"""Share of busy cores from which on all waits of runnable threads are assumed to be for cores; linear in between."""
REPORTED_CORES = Constant(0.25, "cores")
"""Number of cores used by other processes from which on they are reported."""
OVERLAP_RATIO = Constant(1.05, "ratio")
"""Sum of the ops' times, relative to the time in which they ran, above which they are said to have run at once."""
MEMORY_SHARE = Constant(
    0.8, "share", "The rest is a reserve for peaks of the training and for estimates that are too low."
)
"""Share of the free memory that all changes together may use."""

# -- What counts as enough

FEW_ELEMENTS = Constant(16, "elements", "Below it, the buffers between two iterators distort the ratio.")
"""Minimum number of elements in the window for a ratio of counts."""
WHOLE_EPOCH_SHARE = Constant(0.9, "share")
"""A consumer that takes a smaller share of an epoch leaves it early."""
WORTH_MORE = Constant(1.02, "ratio", "Every change makes a script harder to read.")
"""Predictions within this ratio count as equal; the smallest such set of changes is chosen."""
STILL_WAITING = Constant(1.05, "ratio", "Rules ignore smaller gains.")
"""The consumer is still waiting if a step would be faster by this ratio without the limit."""
