"""Constants of moving a pipeline to tf.data service (`advisor.offload`, `advisor.prove.trial.service.service_trial`)."""

from __future__ import annotations

from advisor.host.calibration.constant import TWO_CORES, Constant

# -- Whether a move is worth it

LEAST_MOVED_SHARE = Constant(0.5, "share", "If more stays than moves, the trainer's host is still the limit.")
"""Least share of the pipeline's work that moves to the workers."""
CLIENT_LINK_BYTES_PER_S = Constant(1.25e9, "bytes/s", "10 Gbit/s, the usual link of a machine with accelerators.")
"""What the trainer's host can receive, unless `--network` says otherwise."""
LINK_SHARE = Constant(0.8, "share", "gRPC and TCP take their part of a link.")
"""Share of a link that elements can use."""
CLIENT_CORE_SHARE = Constant(0.8, "share", "The training loop itself needs a core, too.")
"""Share of the client's cores that may receive elements."""
DISPATCHER_CORES = Constant(1.0, "cores", "There is one dispatcher, and it serves splits under one lock.")
"""Cores that the dispatcher can use."""
MODEL_WAIT_SHARE = Constant(0.05, "share", "XProf calls less than 5 % of waiting no bottleneck.")
"""With less waiting, the model is the limit and workers do not help."""
LATE_END_S = Constant(0.2, "s", "About 1 s was usual on TensorFlow 2.21.", TWO_CORES)
"""A pass whose end comes so much later than its last element is worth a sentence."""
LESS_WORK = Constant(0.02, "share", "CPU times of processes have a resolution of 10 ms.", TWO_CORES)
"""Least relative difference between two compressions that counts."""
IDLE_SHARE = Constant(0.5, "share", "A pipeline of one busy thread, and its client, use more than half of two cores.")
"""If a worker, its client and the dispatcher use less of this machine's cores, the worker waits for something else."""

# -- The measurement with real processes

SERVER_START_S = Constant(
    90.0, "s", "Starting TensorFlow takes 4 to 10 s on two cores, and several times that under load.", TWO_CORES
)
"""Longest time until the dispatcher or a worker answers."""
SERVICE_WARMUP_S = Constant(2.5, "s", "As AB_WARMUP_S: most changes of AUTOTUNE are made by then.", TWO_CORES)
"""Time that a stream runs before it is measured."""
SERVICE_PART_S = Constant(1.2, "s")
"""Length of one part of a measurement ..."""
SERVICE_PARTS = Constant(4, "parts")
"""... and their number: the range is that of the parts."""
COMPARED_ROWS = Constant(20_000, "elements")
"""Most rows of one pass of the local pipeline and of the service that are compared ..."""
COMPARED_PASS_S = Constant(20.0, "s")
"""... and the longest time for each of the two."""

# -- A service that the user runs

DISPATCHER_ANSWER_S = Constant(10.0, "s", "A dispatcher answers in milliseconds, and on another continent in a second.")
"""Longest wait for one answer of a dispatcher."""
WORKER_ANSWER_S = Constant(2.0, "s", "As for the dispatcher; a firewall that drops packets never answers.")
"""Longest wait for a connection to a worker."""
WORKERS_WAIT_S = Constant(
    20.0, "s", "A worker that has just been started registers once TensorFlow is imported.", TWO_CORES
)
"""Longest wait for the first worker of a dispatcher."""
PROBE_S = Constant(30.0, "s", "It is one element from each worker.")
"""Longest wait for the answers of all workers to the question of their TensorFlow."""
STALL_S = Constant(45.0, "s", "Retries of a client whose worker or dispatcher is gone take up to some seconds each.")
"""Time without an element after which a pass through the service counts as stuck ..."""
STALL_PASSES = Constant(3.0, "passes")
"""... or as many local passes, if that is longer."""
