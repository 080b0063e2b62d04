"""Constants of the analysis of many hosts (`advisor.hosts`): what differs between them, and time limits of a Dask cluster."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

# -- How hosts differ

SAME_STEP = Constant(0.05, "share")
"""Hosts step together if their median steps differ by no more than this share."""
BUSY_SHARE = Constant(
    0.5,
    "share",
    "Workers that are the limit are busy for at least 0.95 of the time, and for at most 0.003 behind a link that carries two "
    "thirds of what they could send (`benchmarks/service_sides.py`).",
    TWO_CORES,
)
"""Share of the time for which busy pipelines make the workers of a tf.data service the limit."""

# -- Processes, and the workers of a Dask cluster

MIN_BYTES_FOR_PROCESSES = Constant(
    8 << 20, "bytes", "Starting a process takes as long as analysing a profile of a few MB."
)
"""Minimum total size of the profiles for several processes."""
BASE_BYTES = Constant(100 << 20, "bytes", "Analysis cost in docs/benchmarks.md.", TWO_CORES)
"""Memory that an analysis takes besides its profile."""
BYTES_PER_BYTE = Constant(5, "ratio", "Analysis cost in docs/benchmarks.md.", TWO_CORES)
"""Memory that the analysis of a profile takes, as a multiple of its unpacked size."""
CONNECT_S = Constant(10, "s")
"""Longest time to wait for the scheduler, and for its first worker."""
LOST_S = Constant(60, "s")
"""Time after which a cluster without any worker, or a scheduler that does not answer, is given up."""
CHECK_S = Constant(2, "s")
"""Time between two checks that the cluster has workers."""
CLOSE_S = Constant(5, "s")
"""Longest time to close the connection."""
RUNNING_PER_THREAD = Constant(2, "functions", "The next function is there when one ends.")
"""Functions submitted for each thread of the workers."""
