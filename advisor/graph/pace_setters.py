"""Finds out whether parallel work upstream sets the pace of the node that has the most blame.

In: the iterators of one pipeline.  Out: the iterators that set the pace, and why; None if the blame names the right node.

Blame divides time: while a node works, the time is its own, although work for its next element goes on in other threads. If all
threads upstream are busy all the time, and the node waits for them between its elements, it would only wait longer if it worked
faster: by the utilisation law (Denning and Buzen 1978), the station that is always busy sets the pace.
"""

from __future__ import annotations

from collections.abc import Iterator as Iter
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.graph.thread_teams import FUNCTION_PARALLEL
from advisor.host.calibration.analysis import PACE_BUSY_SHARE, PACE_MARGIN
from advisor.model.catalog import base_type
from advisor.model.pipeline import Iterator
from advisor.model.units import format_many, format_share

_SLOTTED = "ParallelInterleave"
"""The type whose inputs run in slots, each in a thread of its own."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The work that sets the pace."""

    iterators: tuple[Iterator, ...]
    why: str
    """A clause with the iterator as its subject."""


def pace_of(named: Iterator, iterators: Sequence[Iterator], span_ns: int) -> Pace | None:
    """Return what sets the pace of a node: other threads upstream that are busier than its own.

    Args:
        named: The node with the most blame, sequential or with parallel calls of a function.
        iterators: All iterators of its pipeline.
        span_ns: Wall time in which they ran.
    """
    tree = _Tree(iterators)
    is_parallel = base_type(named.name) in FUNCTION_PARALLEL
    if span_ns <= 0 or (named.is_async and not is_parallel) or tree.runs_in_slots(named):
        return None
    own, own_slots = tree.work_of(named) if is_parallel else (tree.thread_of(named), 1)
    own_share = sum(it.busy_ns for it in own) / span_ns / own_slots
    faster = []
    for parallel in tree.nearest_async(named):
        work, slots = tree.work_of(parallel)
        share = sum(it.busy_ns for it in work) / span_ns / slots
        if share >= PACE_BUSY_SHARE.value and share > own_share + PACE_MARGIN.value:
            faster.append((share, work, slots))
    if not faster:
        return None
    share, work, slots = max(faster, key=lambda entry: entry[0])
    who = "its thread was" if slots == 1 else f"its {format_many(slots, 'parallel call')} were"
    why = (
        f"{who} busy {format_share(min(1.0, share))} of the time, so it sets the pace; {named.name}, which follows it, works "
        f"{format_share(own_share)} of the time and waits for the rest"
    )
    return Pace(work, why)


class _Tree:
    """The iterators of a pipeline by their consumers."""

    def __init__(self, iterators: Sequence[Iterator]) -> None:
        self._by_id = {it.id: it for it in iterators}
        self._inputs: dict[str | None, list[Iterator]] = {}
        for it in iterators:
            self._inputs.setdefault(it.parent_id, []).append(it)

    def runs_in_slots(self, it: Iterator) -> bool:
        """Whether several threads run the node at once, in slots of an interleave."""
        consumer = self._by_id.get(it.parent_id or "")
        while consumer is not None and not consumer.is_async:
            consumer = self._by_id.get(consumer.parent_id or "")
        return consumer is not None and base_type(consumer.name) == _SLOTTED

    def thread_of(self, it: Iterator) -> tuple[Iterator, ...]:
        """The sequential nodes that run in the same thread as this one."""
        first = it
        while (consumer := self._by_id.get(first.parent_id or "")) is not None and not consumer.is_async:
            first = consumer
        return (first, *self._upstream(first))

    def nearest_async(self, it: Iterator) -> Iter[Iterator]:
        """The asynchronous nodes that the thread of a sequential node takes elements from."""
        for node in (it, *self._upstream(it)):
            yield from (upstream for upstream in self._inputs.get(node.id, ()) if upstream.is_async)

    def work_of(self, it: Iterator) -> tuple[tuple[Iterator, ...], int]:
        """The nodes whose work an asynchronous node does in threads of its own, and the number of these threads."""
        slots = max(1, it.parallelism or 1)
        if base_type(it.name) in FUNCTION_PARALLEL:
            return (it,), slots
        return tuple(self._upstream(it)), slots if base_type(it.name) == _SLOTTED else 1

    def _upstream(self, it: Iterator) -> Iter[Iterator]:
        """The sequential nodes upstream, up to the next asynchronous ones."""
        for node in self._inputs.get(it.id, ()):
            if not node.is_async:
                yield node
                yield from self._upstream(node)
