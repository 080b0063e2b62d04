"""Constants of the measurement window (`advisor.capture.window`): when to measure, for how long, how often to look."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

# -- Warm-up and the trial before the window

TRIAL_STEPS = Constant(
    2,
    "steps",
    "The first step traces and fills shuffle buffers, the second may trace again (Keras, variables of the first call).",
)
"""Number of steps before the trial, which is early so that scripts that end soon are measured too."""
TRIAL_SECONDS = Constant(1.0, "s")
"""Length of the trial."""
PAUSE_STEPS = Constant(10, "steps")
PAUSE_SECONDS = Constant(1.0, "s")
"""Pause between trial and window, in which the elements prefetched while the trial was written are consumed."""
SLOW_PAUSE_STEPS = Constant(2, "steps")
SLOW_PAUSE_SECONDS = Constant(5.0, "s")
WARMUP_STEPS = Constant(10, "steps")
"""Minimum number of steps of the warm-up."""
SETTLE_S = Constant(
    2.0,
    "s",
    "AUTOTUNE starts with parallelism 1 or 2 and optimizes after 10, 20, 40... ms, i.e. 7 times in 2 s.",
    TWO_CORES,
)
"""Minimum length of the warm-up."""
SLOW_WARMUP_S = Constant(10.0, "s")
"""For steps that take seconds, `SLOW_WARMUP_STEPS` and this time are a sufficient warm-up."""
SLOW_WARMUP_STEPS = Constant(3, "steps")
AUTOTUNE_FIRST_CALLS = Constant(
    16, "calls", "A map of calls that sleep, with cpu_budget 64, made 16 at a time and, after a look, 64.", TWO_CORES
)
"""Parallel calls with which AUTOTUNE starts, or as many as there are cores if these are fewer."""
LOOK_FACTOR = Constant(
    2.0,
    "factor",
    "Looks come 10, 30, 70, 150... ms after the iterator was made, also while a shuffle buffer is filled. After 3 s of that, "
    "the calls grew from 16 to 64 at 5.1 s.",
    TWO_CORES,
)
"""AUTOTUNE's first look that sees the cost of every call comes at most so many times the first element's time after the start."""

# -- The stretch without the profiler

MIN_STEPS = Constant(
    20,
    "steps",
    "In simulations, intervals hold up to a correlation of neighbouring steps of 0.8, with fewer steps up to 0.3 "
    "(`advisor.model.intervals`).",
)
"""Minimum number of steps in each stretch, unless steps take seconds."""
UNPROFILED_SECONDS = Constant(
    2.0,
    "s",
    "A shorter one covers too few cycles of tf.data's buffers and of periodic costs (garbage collection, log output).",
)
"""Minimum time without the profiler."""
UNPROFILED_MAX_SECONDS = Constant(5.0, "s", "Many scripts end after half a minute.")
"""Maximum time without the profiler for unstable step times."""
UNPROFILED_SLOW_SECONDS = Constant(10.0, "s")
UNPROFILED_MIN_STEPS = Constant(3, "steps", "As `MIN_VERDICT_STEPS`: with fewer, nothing is predicted.")
"""For steps that take seconds, this many steps in `UNPROFILED_SLOW_SECONDS` are sufficient."""

# -- The stretch with the profiler

MIN_SECONDS = Constant(
    1.0,
    "s",
    "The profile only has to show how the time is distributed, and the memory for its events takes time when first used.",
)
"""Minimum time with the profiler."""
RESTLESS_SECONDS = Constant(3.0, "s", "As `MIN_SECONDS`: step times come from the stretch without the profiler.")
"""Maximum time with the profiler for unstable step times, once there are enough steps."""
MAX_SECONDS = Constant(20.0, "s")
"""Maximum time with the profiler."""
SLOW_SECONDS = Constant(
    15.0, "s", "Steps of up to 5 s then take at most a minute until the window closes, longer ones at most 12 steps."
)
"""For steps that take seconds, `SLOW_STEPS` and this time with the profiler are sufficient."""
SLOW_STEPS = Constant(3, "steps", "As `MIN_VERDICT_STEPS`.")
MAX_STEPS = Constant(5_000, "steps", "More do not improve the estimate and take long to read (docs/capture.md).")
"""Maximum number of steps with the profiler."""
MAX_HALF_WIDTH = Constant(0.05, "share")
"""Step times are stable if the half width of the 95 % confidence interval of their mean is at most this share of the mean."""
BYTES_PER_EVENT = Constant(25, "bytes", "20 to 30 bytes in profiles of TensorFlow 2.21.", TWO_CORES)
"""Size of an event in an xplane file."""
MAX_EVENTS = Constant(
    2_000_000,
    "events",
    "Such a profile is 50 to 60 MB and takes seconds to write and to read; more events do not improve the estimate.",
    TWO_CORES,
)
"""The window closes before the profile holds more than approximately this many events."""

TRIM_FROM_BYTES = Constant(64 << 20, "bytes", "Giving back 3.7 GB took 5 to 11 ms after a session.", TWO_CORES)
"""A process that has grown by less in a profiler session keeps the memory."""
PROFILE_ROOM_BYTES = Constant(
    2 << 30,
    "bytes",
    "Giving 0.5 GB back during a session took 50 to 100 ms, in which other threads may wait for memory: most windows need none.",
    TWO_CORES,
)
"""If the process grows by more in a session, free memory is given back before its end ..."""
PROFILE_ROOM_SHARE = Constant(0.125, "share")
"""... or by more than this share of the memory that was free, if that is less."""

# -- The time until the first verdict

VERDICT_SECONDS = Constant(60.0, "s", "A requirement: a verdict should not take longer (docs/capture.md).")
"""A verdict takes at most this long, counted from the start of the command ..."""
VERDICT_STEPS = Constant(12, "steps", "So many steps of 5 s fit into `VERDICT_SECONDS` (see `SLOW_SECONDS`).")
"""... or as long as this many steps, if that is longer."""
AFTER_WINDOW_S = Constant(
    14.0,
    "s",
    "The pipeline is read alone, the profile is written, exit handlers run, the profile is read and the report is written: 2 to "
    "22 s on 35 scripts from the wild, at most 14 s on 31 of them.",
    TWO_CORES,
)
"""Part of it that is kept for what follows the window ..."""
AFTER_WINDOW_FACTOR = Constant(
    3.0, "factor", "Chosen: the window's profile is written, read and analysed, and is seldom smaller than the trial's."
)
"""... or this many times as long as the trial's profile was written, if that is longer."""
COUNTED_START_S = Constant(30.0, "s", "A script that takes longer to start misses the limit whatever is measured.")
"""At most this much of the time before the first step counts."""
SHORT_SECONDS = Constant(3.0, "s", "More steps than `MIN_STEPS` fit into it unless they are slow.")
"""Time that is kept for either stretch of slow steps if there is no time for a longer one."""
SHORT_PROFILED_STEPS = Constant(2, "steps")
"""Steps with the profiler for which time is kept meanwhile; if it is over nevertheless, one is enough."""
SHORT_PAUSE_SHARE = Constant(
    0.2, "share", "Buffers gain at most this share of a step while the consumer waits for the trial to be written."
)
"""There is no pause after a trial that was written in less than this share of a step, if there is no time for one."""

# -- The window of a run without the profiler

WHOLE_EPOCHS_STRETCH = Constant(
    2.0,
    "factor",
    "Any epoch that is no longer than the window itself ends in this time, whenever the window begins.",
)
"""A window that is to hold whole epochs takes at most so many times as long as it would without."""

# -- Windows after the run's own one (`advisor watch`)

LATER_SECONDS = Constant(
    2.0, "s", "As `UNPROFILED_SECONDS`: the script is trained with, and the first window was longer."
)
"""Length of each of the two stretches of a later window, without and with the profiler."""
LATER_EVENTS = Constant(400_000, "events", "A fifth of `MAX_EVENTS`: about 10 MB.")
LATER_LIMIT_S = Constant(20.0, "s", "As `MAX_SECONDS`.")
"""A later window is closed after this time even if no step ends."""
FOLLOW_AFTER_S = Constant(60.0, "s", "Longer than most evaluations between two epochs.")
"""A later window follows another consumer if the training loop has made no step for this long."""

# -- Monitor

CHECK_NS = Constant(250_000_000, "ns", "Computing the confidence interval takes up to a millisecond.", TWO_CORES)
"""Minimum time between two checks."""
BUFFER_LOOK_NS = Constant(
    50_000_000,
    "ns",
    "Reading the model took 0.12 and 0.18 ms with 4 and 32 iterators, other programs running.",
    TWO_CORES,
)
"""Minimum time between two readings of how full the last buffer is."""
PATIENCE_S = Constant(5.0, "s")
"""Time to wait for a training loop after a loop that only reads the dataset, e.g. to count its elements before training."""
BOUNDARY_NS = Constant(1_000_000_000, "ns", "Four checks; with none, a script of 35 ms a step was stopped within one.")
"""So much later than at a step boundary the watchdog stops a script that has steps but does not train."""
NEW_LEADER_STEPS = Constant(3, "steps")
"""Minimum number of steps before the window changes to another consumer of the same rank."""
LOOK_STEPS = Constant(20, "steps", "Chosen; a loop inside the first step of another one is usually shorter.")
"""After so many steps a consumer is not part of the first step of the one that is followed: that one was only looked at."""
ENOUGH_STEPS = Constant(20, "steps", "As `MIN_STEPS`.")
"""A window that was closed early with fewer steps than this is discarded in favour of a trial with more."""
MAX_STOPS = Constant(3, "times")
"""Number of times `StopScript` is raised before the process is ended."""

# -- Watchdog

POLL_S = Constant(0.2, "s")
"""Time between two looks at the threads."""
BLOCKED_S = Constant(1.0, "s")
"""A call into TensorFlow's executor that takes longer than this is a loop and not a step."""
LOOP_SECONDS = Constant(4.0, "s")
"""Shortest window without visible steps."""
LOOP_ELEMENTS = Constant(12, "elements")
"""Such a window goes on until so many elements were taken, if tf.data's model shows them ..."""
SLOW_LOOP_ELEMENTS = Constant(4, "elements", "Three whole steps lie between them: `MIN_VERDICT_STEPS`.")
"""... or so many after `SLOW_LOOP_SECONDS` ..."""
SLOW_LOOP_SECONDS = Constant(30.0, "s", "Half of the minute until the verdict; the script's start takes the rest.")
LOOP_LOOK_S = Constant(1.0, "s", "Reading the model takes about a millisecond.", TWO_CORES)
"""... which is asked this often ..."""
MAX_LOOP_SECONDS = Constant(60.0, "s", "As `VERDICT_SECONDS`.")
"""... but no longer than this."""
REOPENED_LOOP_FACTOR = Constant(4.0, "factor")
"""A window with fewer requests than `SLOW_LOOP_ELEMENTS` is followed by one that is this many times as long."""
LEAST_LOOP_REQUESTS = Constant(2, "requests", "A whole step lies between them: without one there is no verdict.")
"""A window that has shown so many requests is not followed by another one after the time until the first verdict."""
LOOP_GRACE_S = Constant(5.0, "s")
"""Time for a loop inside TensorFlow, which cannot be interrupted, to return by itself ..."""
LONG_LOOP_GRACE_S = Constant(20.0, "s")
"""... at most, if earlier calls of it have returned, and took longer."""
LOOP_GRACE_FACTOR = Constant(1.5, "factor")
"""A call is given so many times the length of the longest call before."""
STOP_GRACE_S = Constant(60.0, "s")
"""Time for the script's `finally` blocks and exit handlers."""
RELEASE_S = Constant(1.0, "s", "Destroying an iterator takes milliseconds, unless AUTOTUNE's thread sleeps.")
"""Time for destroying the iterators of a stopped script ..."""
PYTHON_RELEASE_S = Constant(10.0, "s", "Chosen: most calls of a Python function are shorter.")
"""... whose pipelines call Python: the interpreter cannot end before these calls have."""

# -- Probe of the GIL

PROBE_SLEEP_S = Constant(
    0.01, "s", "Twice Python's switch interval, so that a GIL that is always held gives a share of 0.33."
)
PROBES_AT_ONCE = Constant(5, "probes", "As `PROBE_PAUSE_S`.")
PROBE_PAUSE_S = Constant(
    0.2, "s", "20 probes per second take 0.2 % of one core if a wake-up takes 100 us (virtual machines)."
)
PROBE_SLACK_NS = Constant(
    100_000,
    "ns",
    "Linux' default timer slack is 50 us on every machine, and waking up takes about as long; Python holds the GIL for 5 ms.",
    TWO_CORES,
)
"""Delay of a sleeping thread that is not a wait for the GIL."""
MIN_PROBES = Constant(3, "probes")

# -- Reading the pipeline without training, after the window

EMPTY_SHARE = Constant(0.1, "ratio", "Chosen: a wait at fewer steps is a small one. Not measured.")
"""A `fit` whose last prefetch is empty at so many of its steps may wait for input."""
ENDING_STEPS = Constant(2, "steps", "One takes the element that is given again, and one more in case the count is off.")
"""A loop that will have ended after so many steps makes its steps without input now."""
IDLE_SETTLE_S = Constant(0.5, "s", "Chosen: time for the buffers of a pipeline to fill. Not measured.")
"""Steps with the same element again and again are timed after so long, ..."""
IDLE_STEPS = Constant(30, "steps", "Chosen: enough for a median, and short beside the window. Not measured.")
"""... until there are so many, ..."""
IDLE_MAX_S = Constant(2.0, "s")
"""... but no longer than this."""
LONGEST_IDLE_STEP_S = Constant(0.3, "s", "Chosen: of longer steps, too few fit into `IDLE_MAX_S`.")
"""Median step, with its wait, above which none are timed."""
IDLE_SILENCE_S = Constant(1.0, "s", "Chosen: three times the longest step.")
"""Time without a step boundary after which the loop counts as ended, and the script is stopped."""
READ_ALONE_S = Constant(
    1.0, "s", "Longer than the costs that come periodically; the analysis of every healthy script takes so much longer."
)
"""How long the pipeline is read."""
READ_ALONE_MAX_S = Constant(3.0, "s")
"""The same if few elements come."""
READ_ALONE_ELEMENTS = Constant(5, "elements", "The mean of fewer depends on where in a batch or a file reading ended.")
"""Minimum number of elements that were not in buffers."""
READ_ALONE_MIN_S = Constant(0.3, "s")
"""Shorter readings tell nothing."""
READ_ALONE_BYTES = Constant(256 << 20, "bytes")
"""If the buffers of the pipeline hold more, its data are not read a second time: for as long, there would be two of each."""
READ_ALONE_SHUFFLE_SHARE = Constant(
    0.05, "share", "Elements from a buffer that is emptied cost nothing, so the rate is wrong by about this share."
)
"""Largest share of the elements read by which shuffle buffers may have been emptied or filled meanwhile."""
READ_ALONE_WAIT_SHARE = Constant(
    0.1, "share", "A training that waits more is input-bound, and its pipeline's rate is seen."
)
"""Share of its time that the median of the latest steps spent waiting from which the pipeline is not read."""

# -- Samples of Python functions

SAMPLE_PAUSE_S = Constant(
    0.01, "s", "A second gives 100 samples: a line with half of them has 50 % plus or minus 10 %."
)
"""Mean time between two looks at the threads."""
SAMPLE_MAX_PAUSE_S = Constant(0.05, "s", "20 samples per second still name a line that takes most of the time.")
SAMPLE_CPU_SHARE = Constant(0.01, "share", "The pause grows until the looks take less of one core.")
SAMPLE_SWITCH_S = Constant(
    0.0005,
    "s",
    "Ten times shorter than usual: three threads that compute in Python were not measurably slower.",
    TWO_CORES,
)
"""Switch interval of Python while the sampler runs."""
PAUSE_SAMPLES = Constant(150, "samples", "A line with a tenth of them has 10 % plus or minus 5 %.")
"""Samples of Python functions for which the pause before the window is extended."""
PAUSE_SAMPLING_S = Constant(
    3.0,
    "s",
    "A function that causes the wait runs most of the time: 3 s give 150 samples of it, or none if calls are short.",
)
"""The longest pause for that."""

# -- The calibration of a machine

FACTS_TIMEOUT_S = Constant(300.0, "s", "TensorFlow's first import from a slow disk may take minutes.")
"""Time for a child process to import TensorFlow and to describe it."""
CALIBRATION_TIMEOUT_S = Constant(60.0, "s", "TensorFlow has just been imported, so its files are in memory.")
"""Time for a child process to import TensorFlow and to measure the costs of the machine."""
CALIBRATION_LEFT_S = Constant(120.0, "s", "Twice `CALIBRATION_TIMEOUT_S`.")
"""With less time left before a deadline, the machine is not calibrated."""
BUSY_CORES = Constant(
    0.25, "cores", "A measurement next to twelve busy processes on two cores gave ten times the usual costs."
)
"""If other processes use more cores than this, the machine is not calibrated."""
