"""Finds the critical path, the bottleneck on it, and the limiting resource.

In: the executed graph with the blame of its nodes; the iterators of one pipeline, the classic self times, and the resource usage
of the process.  Out: the nodes on the critical path, and the `Bottleneck`.

The classic path follows the profiler guide: self time inside the slowest call of the root, on the caller's thread only.
The attributed path starts at the root and follows the input with the largest share of the wait, across asynchronous boundaries.
docs/attribution.md explains why this is not the longest path of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.graph.nodes import Forest, Node
from advisor.graph.pace_setters import pace_of
from advisor.host.calibration.analysis import (
    CPU_BUSY_SHARE,
    DISK_BYTES_PER_S,
    DISK_IDLE_CPU_SHARE,
    GIL_HELD_SHARE,
    GIL_WAIT_SHARE,
    PYTHON_CPU_SHARE,
    PYTHON_SHARE,
)
from advisor.model.catalog import FILE_SOURCES, PYTHON_OPS, base_type
from advisor.model.pipeline import Bottleneck, Iterator
from advisor.model.recording import Host
from advisor.model.units import format_bytes, format_share
from advisor.model.window_readings import Usage

PASSIVE = frozenset(
    {"Root", "Model", "Options", "Prefetch", "FiniteTake", "Take", "Repeat", "Generator+Prefetch", "AssertCardinality"}
)
"""Types that only pass elements on. They are reported as the cause only if no other type has a share."""


def critical_path(forest: Forest, nodes: Sequence[Node], blame_ns: Mapping[int, int]) -> list[int]:
    """Return the path from the root along the input with the largest share of the wait, up to where none has a share.

    Args:
        forest: The executed graph.
        nodes: The nodes of one pipeline, consumers before their inputs.
        blame_ns: `Node.index` -> the part of the wait that is attributed to the node itself.

    Returns:
        The `Node.index` of each node on the path, root first.
    """
    waiting_ns = {node.index: blame_ns.get(node.index, 0) for node in nodes}
    """The wait that is attributed to a node and everything upstream of it."""
    for index in reversed(list(waiting_ns)):
        for consumer in forest.graph.successors(index):
            waiting_ns[consumer] += waiting_ns[index]
    path = [nodes[0].index]
    while inputs := [index for index in forest.graph.predecessors(path[-1]) if waiting_ns[index] > 0]:
        path.append(max(inputs, key=lambda index: waiting_ns[index]))
    return path


def find_bottleneck(
    iterators: Sequence[Iterator],
    classic_self_ns: Mapping[str, int],
    usage: Usage | None,
    host: Host | None,
    span_ns: int = 0,
) -> Bottleneck | None:
    """Find the call with the largest share of the wait, or that sets its pace, and the resource that limits it.

    Args:
        iterators: The iterators of one pipeline, root first.
        classic_self_ns: Iterator id -> self time in nanoseconds inside the slowest call of the root.
        usage: Resource usage during the window; None if it was not measured.
        host: The machine; None if unknown.
        span_ns: Wall time from the first call of the root to the last one; 0 if unknown.

    Returns:
        The bottleneck, or None if most of the wait belongs to iterators that only pass elements on.
    """
    device_feeders = {
        it.id for it in iterators if it.name == "Generator" and not it.long_name.endswith("FlatMap::Generator")
    }
    active = [
        it
        for it in iterators
        if base_type(it.name) not in PASSIVE and not it.injected_by_tensorflow and it.id not in device_feeders
    ]
    passive_share = 1 - sum(it.blame_share for it in active)
    by_call: dict[str, list[Iterator]] = {}
    for it in active:  # one call may run as several iterators (a FlatMap and the files it opens)
        by_call.setdefault(_cost_center(it), []).append(it)
    group = max(by_call.values(), key=lambda its: sum(it.blame_share for it in its), default=[])
    share = sum(it.blame_share for it in group)
    if not group or share <= passive_share:
        return None  # most of the wait belongs to passive nodes: their producers were not recorded, or it is overhead
    worst = max(group, key=lambda it: it.blame_ns)
    busy = cpu_busy_share(usage, host)
    # While the cores are all busy, so are all threads: each one that works less leaves a core to the others.
    pace = pace_of(worst, iterators, span_ns) if busy is None or busy < CPU_BUSY_SHARE.value else None
    pacing = [it for it in active if pace is not None and it in pace.iterators]
    if pacing:
        worst = max(pacing, key=lambda it: it.busy_ns)
        share = sum(it.blame_share for it in by_call[_cost_center(worst)])
    resource, why = _resource(worst, usage, host)
    if pace is not None and pacing:
        why = "; ".join(filter(None, (why, pace.why)))
    classic_id = max(classic_self_ns, key=lambda i: classic_self_ns[i], default=None)
    classic_why = ""
    if classic_id is not None and classic_id != worst.id:
        classic = next(it for it in iterators if it.id == classic_id)
        classic_why = (
            f"{classic.name} has the largest self time inside the slowest call, but it only waits there for work on "
            "other threads"
            if classic.is_async or base_type(classic.name) in PASSIVE
            else f"{classic.name} has the largest self time inside the slowest call, but most calls wait for a different "
            "iterator"
        )
    else:
        classic_id = None
    return Bottleneck(worst.id, resource, share, why, classic_id, classic_why)


def _cost_center(it: Iterator) -> str:
    """The key under which the iterator's cost is summed: its call, or the interleave call whose function opened it."""
    call = it.main_call
    if call is None:
        return it.id
    return call.nested_in if call.nested_in is not None and not call.inputs else call.id


def cpu_busy_share(usage: Usage | None, host: Host | None) -> float | None:
    """Return the share of the usable cores that the process and its children kept busy; None if not measured."""
    if usage is None or host is None or not usage.wall_ns or not host.cores:
        return None
    return (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns / host.cores


def _resource(worst: Iterator, usage: Usage | None, host: Host | None) -> tuple[str, str]:
    busy = cpu_busy_share(usage, host)
    if usage is not None and _holds_python_lock(worst, usage):
        waits = (
            ""
            if usage.gil_wait_share is None
            else f"; a probe thread waited for the GIL {format_share(usage.gil_wait_share)} of its time"
        )
        return "gil", f"its elements are produced by Python code, which runs on one core at a time{waits}"
    if busy is not None and busy >= CPU_BUSY_SHARE.value:
        return "cpu", f"{format_share(min(1.0, busy))} of the usable cores were busy"
    if (
        usage is not None
        and usage.read_bytes is not None
        and busy is not None
        and busy < DISK_IDLE_CPU_SHARE.value
        and (base_type(worst.name) in FILE_SOURCES or any(op.op == "ReadFile" for op in worst.ops[:2]))
        and usage.read_bytes / usage.wall_ns * 1e9 >= DISK_BYTES_PER_S.value
    ):
        rate = format_bytes(usage.read_bytes / usage.wall_ns * 1e9)
        return "disk", f"storage delivered {rate}/s while only {format_share(busy)} of the cores were busy"
    return "node", ""


def _holds_python_lock(worst: Iterator, usage: Usage) -> bool:
    python_ns = sum(op.total_ns for op in worst.ops if op.op in PYTHON_OPS)
    if not worst.function_ns or python_ns < PYTHON_SHARE.value * worst.function_ns:
        return False
    contended = usage.gil_wait_share is not None and usage.gil_wait_share >= GIL_WAIT_SHARE.value
    # Python code that sleeps or waits for a file releases the GIL; the process then uses little CPU for its time in Python ops
    computes = usage.cpu_ns >= PYTHON_CPU_SHARE.value * min(python_ns, usage.wall_ns)
    return computes and (contended or python_ns >= GIL_HELD_SHARE.value * usage.wall_ns)
