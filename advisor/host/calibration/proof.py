"""Constants of trials and proofs (`advisor.prove`) and of further runs: turns, time limits, what counts as a gain."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

# -- What counts as a gain

WORTHWHILE = Constant(
    1.05,
    "ratio",
    "Every change costs the readers of a script, and 1.04x (1.02 to 1.09) was once measured for two identical pipelines "
    "on a busy machine.",
    TWO_CORES,
)
"""A smaller gain counts as `same`."""
SAME_WITHIN = Constant(
    1.25, "ratio", "Three to eight pairs of runs that vary by 5 % tell apart effects down to 1.05 to 1.25."
)
"""Two scripts are called the same only if their interval excludes larger effects in both directions."""
ROUNDING_OF_LOSSES = Constant(
    0.01, "share", "Chosen: float32 sums in another order move the mean loss of 64 batches by far less. Not measured."
)
"""Losses of the same elements that differ by less are not reported."""
LOSS_BEYOND_ROUNDING = Constant(
    0.1,
    "share",
    "Of seven scripts with `mixed_bfloat16`, six had losses within 6.6 % of those of the unchanged script in the first 64 "
    "batches, and one 48.7 % (docs/benchmarks.md, step advice).",
)
"""A change of the step whose losses deviate by more, beyond what unchanged runs differ by, is not one of arithmetic alone."""
MIN_GAIN = Constant(0.05, "share", "As in the rules (`Rule.min_speedup`).")
"""Smallest gain worth a change."""
UNKNOWN_PASSES = Constant(10, "passes", "Chosen: few enough that the first of them may matter. Not measured.")
"""Passes over the data of a run whose number of passes is unknown, when it is decided whether to look at the first one."""
EARLY_SAVING = Constant(
    0.5,
    "share",
    "Chosen: tried first, a change that was predicted to save 10 % left no time for a cache that saves 47 %.",
)
"""A change that helps from the first element is tried before a cache if it saves at least this share of what the cache saves."""
STILL = Constant(0.2, "share")
"""Relative reduction of the wait below which it counts as unchanged."""

# -- One A/B benchmark (`advisor.prove.trial.ab_benchmark`)

FILL_S = Constant(60.0, "s", "A cache that takes longer pays off only in long trainings.")
"""Longest time to fill the caches of a side."""
MAX_TURNS = Constant(31, "turns")
"""Maximum number of pairs of turns."""
AB_HALF_WIDTH = Constant(0.05, "share")
"""Enough once the interval reaches no further than this share from the median ..."""
GAIN_SHARE = Constant(0.25, "share", "2.0 is known well enough as 1.8 to 2.2.")
"""... or no further than this share of the gain (or loss) itself."""
CLEAR_S = Constant(
    15.0, "s", "Chosen: turns of whole epochs take up to 3 s, and six pairs of them half a minute. Not measured."
)
"""After so long, it is also enough ..."""
CLEAR_SHARE = Constant(
    0.5, "share", "Whether to keep a change that gains 2.2 does not depend on whether it may be 1.6."
)
"""... that at least this share of the gain (or loss) is certain."""
TURN_S = Constant(0.6, "s")
"""Length of a turn."""
AB_WARMUP_S = Constant(
    2.5, "s", "AUTOTUNE looks again after 10 ms, 20 ms, 40 ms ... and has made most of its changes by then.", TWO_CORES
)
"""Time that a side runs before its first turn."""
AB_BUDGET_S = Constant(90.0, "s")
"""No new pair begins after that."""
TURN_ELEMENTS = Constant(8, "elements")
"""A turn goes on until it has seen so many, four times its length at most."""
SHORT_EPOCH_S = Constant(3.0, "s")
"""Epochs up to that long are measured whole."""
LOOK_S = Constant(0.2, "s", "A look takes half a millisecond.", TWO_CORES)
"""How often the free memory is read."""
QUIET_S = Constant(2.0, "s")
"""Buffers may take so long to fill after a turn."""
QUIET_LOOK_S = Constant(0.03, "s")
"""Time between two looks at the CPU time of the process meanwhile."""
QUIET_CORE_SHARE = Constant(0.2, "share")
"""A side is quiet if the process uses less than this share of a core between two looks."""
DRAIN_S = Constant(2.0, "s")
"""Longest time to drop the elements in buffers before a turn ..."""
DRAIN_SLICE_S = Constant(0.2, "s")
"""... in slices of this length ..."""
DRAIN_RATE_RATIO = Constant(1.25, "ratio")
"""... until the rate of a slice is at most this many times that of the turn before: elements in buffers come at once."""
RESERVED_MEMORY_SHARE = Constant(0.1, "share")
"""Share of all memory that must stay free while a cache of unknown size is filled."""

# -- Comparison of elements, and memory (`advisor.prove.trial`)

COMPARED_ELEMENTS = Constant(2000, "elements")
"""Elements of one pass of the comparison, and ..."""
COMPARED_S = Constant(3.0, "s")
"""... the longest time of the first pass: the others take as many elements as that one."""
SIBLING_ELEMENTS = Constant(200, "elements")
SIBLING_S = Constant(1.0, "s")
"""The same for another dataset that the same text makes."""
ROWS_BESIDE = Constant(
    50_000, "rows", "Chosen: about 400 bytes per row and component are kept, 20 MB in all for one component (computed)."
)
"""So many rows of batches are kept while the batches are compared; those of more are read once more if they are needed."""
ROWS_BESIDE_BYTES = Constant(
    64 << 20, "bytes", "Chosen, not measured: the statistics of up to 16 million numbers are computed twice."
)
"""The same for larger rows: up to so many bytes of batches."""
SLOWER_FACTOR = Constant(5, "factor")
"""Longest time that the dataset of a changed text may take to compare, as a multiple of the original's."""
RECURRING_SHARE = Constant(
    0.5,
    "share",
    "Random numbers of one distribution hardly share any value, choices from a list share nearly all. Not measured.",
)
"""Share of the values of one draw that must also be in another for values to count as recurring ..."""
USUALLY_RECURRING = Constant(0.9, "share")
"""... and the share of that share that the changed text must reach."""
VISIBLE_LOSS = Constant(0.1, "share")
"""If only the numbers of elements are compared, a loss of this share must be detectable."""
VISIBLE_COMMON_LOSS = Constant(0.25, "share", "The share of common elements is a rough measure.")
"""The same if only the share of common elements is compared."""
LEAST_FILL_S = Constant(5.0, "s", "All that the trial took until then would be for nothing otherwise.")
"""However little is left of the budget, a trial that has begun may take so long to fill its caches ..."""
LONGEST_TURNS_S = Constant(45.0, "s")
"""... and for the fewest turns that say anything."""
SAMPLED_ELEMENTS = Constant(32, "elements")
"""Elements whose size is looked at."""
CACHE_RESERVE = Constant(
    1.1,
    "ratio",
    "A cache keeps elements as tensors of their own: up to a tenth more, for elements of some KiB.",
    TWO_CORES,
)
"""Memory of a cache relative to the bytes of its elements."""
MEMORY_SAMPLE_S = Constant(0.02, "s", "One sample costs some 20 us; datasets grow for longer than this.", TWO_CORES)
"""Time between two looks at the memory of the process."""

# -- Fixed numbers instead of AUTOTUNE (`advisor.prove.search.fixed_numbers`)

NUMBERS_RESERVE = Constant(
    1.25, "ratio", "Chosen: the training shares the cores with the calls, and elements differ. Not measured."
)
"""Parallel calls relative to what the training needs on average."""
NUMBERS_S = Constant(25.0, "s", "Two warm-ups of 2.5 s; with turns, six to ten pairs of 0.6 s in addition.", TWO_CORES)
"""Longest time of the comparison; it does not start if less is left."""
NUMBERS_TURNS = Constant(10, "turns", "With the warm-ups and the pauses, they fit into `NUMBERS_S`.")
"""Maximum number of pairs of turns in it."""
MATERIAL_BYTES = Constant(
    64 << 20,
    "bytes",
    "A number that is right for 8 cores is wrong for 64, so the saving must be worth it (docs/proof.md).",
)
"""Numbers that save less memory ..."""
MATERIAL_SHARE = Constant(0.1, "share", "As `MATERIAL_BYTES`.")
"""... or less than this share of the process's peak do not replace AUTOTUNE."""

# -- The child that serves trials (`advisor.prove.session.held_process`)

TRIAL_S = Constant(90.0, "s", "Most trials need a third of it.")
"""Longest time for the turns of one trial."""
PROMPT_TRIAL_S = Constant(60.0, "s", "Somebody is waiting at a prompt.")
"""The same in a notebook or an interactive session."""
SILENCE_S = Constant(150.0, "s", "It reports each turn and pass, which take up to a minute.")
"""Time without a message after which the child counts as hanging."""
PAIRS_OF_DIFFERENT_DATA = Constant(
    4,
    "pairs",
    "Chosen: seven such changes took 10 or 11 starts, three others with up to eight pairs 11 to 21. If runs vary by 2 %, four "
    "pairs show 1.15x in three of four cases (simulated).",
    TWO_CORES,
)
"""Pairs of runs after which `advisor prove` stops if the data are different, one of the looks of the sequential test."""
MAX_HANGS = Constant(2, "times", "A hanging pipeline costs another run of the script.")
"""After more hangs than this the session gives up."""
QUIT_GRACE_S = Constant(30.0, "s")
"""Time for the script's `finally` blocks at the end, limited by the budget ..."""
LEAST_QUIT_GRACE_S = Constant(1.0, "s")
"""... but at least this."""

# -- The budget and the whole script

MIN_BUDGET_S = Constant(
    30.0,
    "s",
    "Starting TensorFlow, warm-up, the two measurements of `analyze` and their evaluation took 15 to 25 s.",
    TWO_CORES,
)
"""A shorter budget is refused."""
DEFAULT_BUDGET_S = Constant(
    600.0,
    "s",
    "Chosen: with 300 s, flowers_like (runs of 40 s) ended without a proof on the whole script.",
)
"""`--budget` of `advisor fix` if it is not given."""
USUAL_S = Constant(
    290.0,
    "s",
    "Chosen: people and agents wait for five minutes at most, and the report takes some seconds. Of 29 examples, one took "
    "longer: 361 s (docs/benchmarks.md).",
    TWO_CORES,
)
"""If `--budget` is not given, pairs of runs that would end later than so long after the start are left out, unless they are the
fewest that may decide."""
NEARLY_CLEAR_S = Constant(
    60.0,
    "s",
    "Chosen: the runs so far took minutes, and are for nothing without another pair. A gain of 7x (`windows` in "
    "docs/benchmarks.md) was left undecided after three pairs of runs of 17 s.",
)
"""For how long after `USUAL_S` pairs of runs go on if the next look would be clear with pairs like the median so far."""
TRIALS_S = Constant(
    110.0, "s", "Chosen: time for three trials of 30 to 40 s, which leaves most of the budget to the whole script."
)
"""No trial begins that would end later than so long after the analysis, unless `--budget` is given."""
OVERTIME_GAIN = Constant(
    1.5,
    "ratio",
    "Chosen: of several changes that cost about half a minute each, only such a gain is worth another one.",
)
"""A change with so large a predicted gain is tried even after `TRIALS_S`, if the budget leaves time for it."""
LEAST_TRIAL_S = Constant(
    15.0,
    "s",
    "Two warm-ups of 2.5 s, six pairs of turns of 0.6 s with the pauses between them, and a comparison of the elements.",
    TWO_CORES,
)
"""Time needed to start a trial of a fix."""
ANALYSIS_SHARE = Constant(0.9, "share", "The rest is needed to analyse its recording.")
"""Share of the budget after which the first run is stopped."""
END_SHARE = Constant(0.08, "share")
LONGEST_END_S = Constant(5.0, "s")
"""Time reserved to stop the script and write the reports: a share of the budget, at most so many seconds."""
MAX_ATTEMPTS = Constant(30, "times", "Bounds the loop in case a rule proposes a new fix every time.")
"""Maximum number of fixes that are tried."""
EXPECTED_PAIRS = Constant(4, "pairs", "Three suffice for a clear gain, and eight are the most.")
"""Pairs of runs of the whole script that trials leave time for, if the budget allows it."""
BUDGET_SHARE = Constant(0.7, "share", "Without trials there is nothing to prove.")
"""Largest share of the remaining budget to reserve for the whole script."""
MIN_WINDOW_S = Constant(3.0, "s")
MAX_WINDOW_S = Constant(20.0, "s")
WINDOW_STEPS = Constant(20, "steps")
"""The window of a run: so many steps, limited to this range of seconds."""
MIN_WINDOW_EPOCHS = Constant(3, "epochs")
"""The window of a run whose change saves time between epochs has at least so many whole epochs."""
MIN_PAUSES = Constant(3, "epochs", "As in the rule `epoch-pauses`: each pause occurs at random.")
"""Pauses between epochs that the runs of the changed script must have shown before turning AUTOTUNE off is measured."""
SHUTDOWN_S = Constant(2.0, "s")
"""Estimated time for a stopped script to end."""
SCRIPT_SETTLE_S = Constant(3.0, "s", "The warm-up of `advisor.capture.window`: ten steps and two seconds.")
"""Estimated warm-up of a run without new caches."""
OWN_CACHE_FILL_S = Constant(20.0, "s", "Chosen: six runs take two minutes longer at most. Not measured.")
"""The window of a run follows the first epoch if a cache of the unchanged script is full after so many seconds at most. Otherwise
one side may be timed in the first epoch, and the other one after it."""
UNKNOWN_STEP_S = Constant(0.1, "s")
"""Estimated step time if it is unknown."""
MIN_RUN_STEPS = Constant(3, "steps")
"""A run with fewer steps in its window is not used."""
MIN_STEPS_OF_HALF = Constant(50, "steps", "Chosen: a single slow step then changes the mean by a few percent.")
"""Of a script that ends before its window, the second half of its steps is used if it has so many."""
MARGIN_STEPS = Constant(10, "steps")
"""Steps for the elements of the filling epoch that are still in buffers after the cache."""

# -- Sessions outside of a proof (`advisor.workflows`)

HEADROOM_RUN_S = Constant(300.0, "s")
"""Longest second run for the headroom, with the start of the script."""
UNLIMITED_SESSION_S = Constant(3600.0, "s", "A script that never reads a dataset ends by itself.")
"""Limit of a session without a budget."""

# -- Live processes that take turns (`advisor.prove.measure.live_pairs`)

TURN_SETTLE_S = Constant(
    0.5,
    "s",
    "Chosen: time for the processor's caches, and for clocks that ran on. Not measured.",
)
TURN_SETTLE_STEPS = Constant(
    5, "steps", "Chosen: elements that were in work at the stop hold the time of the stop. Not measured."
)
"""The beginning of a turn that is dropped: both, and then until the last buffer is as full as while steps were timed ..."""
TURN_SETTLE_MOST_S = Constant(5.0, "s", "Chosen: AUTOTUNE may have changed a buffer for good. Not measured.")
"""... but no longer than this."""
TURN_GRACE = Constant(5.0, "ratio", "Chosen: steps of a busy machine are this much longer at times. Not measured.")
TURN_GRACE_S = Constant(60.0, "s", "Chosen: a validation may come between two steps. Not measured.")
"""A turn that takes so many times its length, and so much longer, counts as hanging."""
STOP_WAIT_S = Constant(5.0, "s", "Chosen: the kernel stops all threads within a millisecond.")
"""Time for a process that has announced it to be stopped."""
STOPPED_CPU_SHARE = Constant(
    0.01, "share", "Chosen: /proc counts in hundredths of a second, and turns last for seconds."
)
"""CPU time that the processes of a stopped script may use during the other one's turn, as a share of a core."""
LIVE_MEMORY_RESERVE = Constant(
    1.25, "ratio", "Chosen: the changed script may hold a cache, and both grow. Not measured."
)
"""Memory that must be free before the second process starts, relative to that of the first one."""
LEAST_FREE_SHARE = Constant(0.05, "share", "Chosen: with less, the kernel drops files that both scripts read.")
"""Share of the machine's memory that must be free beside both processes."""
DRIFT_ERROR = Constant(
    0.005, "share", "Chosen: one comparison in fifty falls back for nothing, as four series are tested."
)
"""Probability, on each side, that turns which do not drift are taken for ones that do."""
