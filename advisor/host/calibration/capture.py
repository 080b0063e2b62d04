"""Constants of a capture outside its window (`advisor.capture`, `advisor.host`): the child process, hooks, costs measured."""

from __future__ import annotations

from advisor.host.calibration.constant import Constant

# -- The end of the script's process (`advisor.capture.script_process`)

INTERRUPT_GRACE_S = Constant(3.0, "s")
"""Time for a child to end after a Ctrl-C in the terminal, which it receives too, before SIGINT is sent to it."""
TERMINATE_GRACE_S = Constant(10.0, "s")
"""Time for a child to run its `finally` blocks after SIGINT, before SIGTERM is sent to it."""
HARD_GRACE_S = Constant(1.5, "s")
"""The same after its deadline, before it is killed."""
KILL_GRACE_S = Constant(2.0, "s")
"""Time for a child to end after SIGTERM, and after SIGKILL."""

# -- What the hooks observe (`advisor.capture.instrument`)

LATEST_STEPS = Constant(200, "steps")
"""Number of latest steps that tell whether a loop works on its elements, and whether it waits for input."""
WORK_SHARE = Constant(0.05, "share")
"""A loop does more than take elements if it spends a larger share of its time outside `next`."""
STATE_CHECK_SHARE = Constant(0.02, "share")
"""Maximum share of the run's time in which the state that pipelines read is compared. Beyond it a comparison is skipped, and its
epoch is not counted."""

# -- Costs of the machine (`advisor.capture.cost_measurement`)

SIZES = (
    "Chosen, not measured: large enough for the cost to be visible, small enough for all of them to take four seconds."
)
"""Why the sizes below are what they are."""

COST_TURN_S = Constant(0.05, "s", SIZES)
"""Length of a turn."""
COST_TURNS = Constant(4, "turns", SIZES)
"""Number of turns, of which the fastest counts."""
COST_COMPONENTS = Constant(21, "components", SIZES)
"""Components of the larger of two elements."""
COST_COMPONENT_BYTES = Constant(1 << 10, "bytes", "The size with which `COMPONENT_NS` was measured.")
"""Size of each of them."""
COST_BATCH = Constant(8, "elements", SIZES)
"""Elements of a batch whose hand-over is measured."""
COST_COPIED_BATCH = Constant(64, "elements", "Copying them takes several times as long as one `next`.")
"""Elements of a batch whose copying is measured."""
COST_IMAGE_BYTES = Constant(48 << 10, "bytes", "The size of an image with which `COPIED_BYTES_PER_NS` was measured.")
"""Size of an element that is copied."""
COST_MANY_BYTES = Constant(64 << 20, "bytes", "More than fits into usual processor caches.")
"""Size of all elements that are copied, and of the file that is read."""
COST_CHUNK_BYTES = Constant(1 << 20, "bytes", SIZES)
"""Bytes of one read from the page cache."""
COST_RECORD_BYTES = Constant(12_000, "bytes", "The size of a record with which `SMALL_READ_NS` was measured.")
COST_RECORDS = Constant(256, "records", SIZES)
"""Size and number of the records that are read."""
COST_BUFFERS = Constant((256, 64 << 10), "bytes", "As for `SMALL_READ_NS`: with many reads per record, and with few.")
"""Small and large buffer of a reader."""
COST_WAKEUPS = Constant(200, "wake-ups", SIZES)
"""Number of wake-ups, of which the median counts."""
COST_PRODUCTS = Constant(
    (2, 8),
    "products",
    "Functions of about 60 and 120 us on the machine of the built-in values, where the hand-over is a visible part.",
)
"""Matrix products of two functions whose hand-over is measured."""
COST_OPS = Constant(40, "ops", SIZES)
"""Ops of the longer of two functions whose calls are otherwise equal."""

# -- Speed of a matrix product (`advisor.capture.product_measurement`)

PRODUCT_TURN_S = Constant(0.08, "s")
"""Length of a turn; a product that takes longer is a turn of its own."""
PRODUCT_TURNS = Constant(5, "turns")
"""Number of turns of each type, of which the fastest counts."""

# -- Speed of the disk (`advisor.host.disk_speed`)

DISK_PROBE_BYTES = Constant(64 << 20, "bytes")
"""Maximum number of bytes that are read ..."""
DISK_PROBE_S = Constant(0.5, "s")
"""... and maximum time for it."""
MIN_DISK_PROBE_BYTES = Constant(
    4 << 20, "bytes", "Fewer bytes show the latency of a request rather than the throughput of the disk."
)
"""If fewer bytes were read, the speed of the disk is unknown."""
