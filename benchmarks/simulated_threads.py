"""Times the attribution of the wait alone, on timelines of many threads that are busy at the same time.

In: a number of threads and of boundaries (instants at which a thread changes its activity).  Out: seconds of processor time, and
the memory that the attribution allocates. Used by `analysis_cost.py --attribution`.

The pipeline is `interleave(tfrecord, map) -> shuffle -> map -> batch -> prefetch`, both parallel. The first threads are the
consumer, the buffer's and the map's; of the others, half read files and half run functions. Every thread changes its activity
at random times, so that nearly every moment of many threads has a combination of activities that no other has.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import networkx as nx
import numpy as np

from advisor.graph.attribution import attribute
from advisor.graph.nodes import Forest, Node
from advisor.graph.thread_states import Activity, Timeline
from advisor.model.trace import EventKind

CHAIN = ("Root", "Prefetch", "BatchV2", "ParallelMapV2", "Shuffle", "ParallelInterleaveV4", "Map", "TFRecord")
ROOT, PREFETCH, BATCH, MAP, SHUFFLE, INTERLEAVE, INNER_MAP, READER = range(len(CHAIN))
CONSUMING = [Activity(EventKind.ITERATOR, ROOT, node) for node in (ROOT, PREFETCH)]
BUFFERING = [Activity(EventKind.PRODUCE, PREFETCH, node) for node in (PREFETCH, BATCH, MAP)]
FETCHING = [Activity(EventKind.PRODUCE, MAP, node) for node in (MAP, SHUFFLE, INTERLEAVE)]
READING = [
    *(Activity(EventKind.PRODUCE, INTERLEAVE, node) for node in (INTERLEAVE, INNER_MAP, READER)),
    Activity(EventKind.PRODUCE, INTERLEAVE, INNER_MAP, is_in_function=True),
]
RUNNING = [Activity(EventKind.EXECUTOR, node, node) for node in (MAP, INNER_MAP)]
ROLES = (CONSUMING, BUFFERING, FETCHING)
ACTIVITIES = [activity for role in (*ROLES, READING, RUNNING) for activity in role]
MEAN_STEP_NS = 5_000
"""Between the boundaries of one thread."""


def simulated_timeline(num_threads: int, num_boundaries: int) -> Timeline:
    """Threads whose activities are drawn at random; one time in four a thread has none."""
    random = np.random.default_rng(0)
    timeline = Timeline(ACTIVITIES, [], [], [], {}, frozenset(), {})
    for thread in range(num_threads):
        role = ROLES[thread] if thread < len(ROLES) else (READING, RUNNING)[thread % 2]
        codes = np.array([-1, *(ACTIVITIES.index(activity) for activity in role)], np.int32)
        weights = np.array([0.25, *[0.75 / len(role)] * len(role)])
        length = num_boundaries // num_threads
        timeline.times.append(np.cumsum(random.integers(1, 2 * MEAN_STEP_NS, length)))
        timeline.codes.append(random.choice(codes, length, p=weights))
        timeline.codes[-1][-1] = -1
    return timeline


def chain() -> Forest:
    """The pipeline."""
    nodes = [Node(index, type, type, "", pipeline=0) for index, type in enumerate(CHAIN)]
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((node.index, node.index - 1) for node in nodes[1:])
    return Forest(nodes, graph, {})


def measure(num_threads: int, num_boundaries: int) -> dict[str, float]:
    """Attribute once for the time and once for the memory."""
    timeline, forest = simulated_timeline(num_threads, num_boundaries), chain()
    end = max(int(times[-1]) for times in timeline.times)
    intervals = (np.array([0], np.int64), np.array([end], np.int64))
    arguments: tuple[Any, ...] = (timeline, forest, ROOT, intervals, {MAP: num_threads})
    start = time.process_time()  # one thread; the time of the processor hardly depends on what else runs
    attribute(*arguments)
    seconds = time.process_time() - start
    tracemalloc.start()
    attribute(*arguments)
    allocated = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "threads": num_threads,
        "boundaries": sum(len(times) for times in timeline.times),
        "seconds": seconds,
        "allocated_bytes": allocated,
    }
