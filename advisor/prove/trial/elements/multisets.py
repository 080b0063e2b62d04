"""Compares the elements of two local passes with those of a pass through several workers, regardless of their order.

In: `Stream`s.  Out: whether they are equal as multisets, and one sentence. Pure Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from advisor.model.units import format_count, format_many
from advisor.prove.trial.elements.streams import Row, Stream


def compared(local: Stream, again: Stream, served: Stream, times: int, workers: int) -> tuple[bool | None, str]:
    """Compare a pass through the service with a local one.

    Args:
        local: One complete local pass.
        again: Another one: components that differ between the two are random, and are not compared.
        served: The pass through the service.
        times: How often the service produces every element.
        workers: The number of workers.

    Returns:
        Whether they are equal, None if that could not be decided, and the sentence.
    """
    through = f"through {format_many(workers, 'worker')}"
    wanted = times * len(local.rows)
    if not served.is_complete:
        return None, f"The pass {through} did not end in time, so the elements were not compared."
    if len(again.rows) != len(local.rows):
        return None, "Two local passes have different numbers of elements, so those of the workers were not compared."
    if len(served.rows) != wanted:
        return (
            False,
            f"A pass {through} has {format_count(len(served.rows))} elements instead of {format_count(wanted)}.",
        )
    if not local.rows:
        return None, "The dataset has no elements, so nothing was compared."
    fixed = _fixed(local, again)
    if not fixed:
        return None, (
            f"A pass {through} has {format_count(wanted)} elements, as it should; their values are random, and were not compared."
        )
    if Counter(_parts(local, fixed)) != Counter(_parts(again, fixed)):
        return None, "The components of the elements are combined at random, so those of the workers were not compared."
    expected = _expected(local, fixed, times)
    counts = Counter(_parts(served, fixed))
    if counts != expected:
        missing = sum((expected - counts).values())
        return (
            False,
            f"A pass {through} lacks {format_many(missing, 'element')} of the local one, and has as many others.",
        )
    components = len(local.rows[0])
    which = "" if len(fixed) == components else f" in {len(fixed)} of {components} components, the others are random"
    return (
        True,
        f"A pass {through} has the same {format_count(wanted)} elements as a local one{which}, in another order.",
    )


def compared_after_loss(
    local: Stream, again: Stream, served: Stream, times: int, workers: int, lost: Sequence[str]
) -> tuple[bool | None, str]:
    """Compare a pass in which workers ended: elements may be missing, but none may be new.

    Args:
        local: As for `compared`.
        again: As for `compared`.
        served: The pass through the service.
        times: As for `compared`.
        workers: The number of workers at the beginning.
        lost: Addresses of those that ended.

    Returns:
        As for `compared`: True only if nothing is missing.
    """
    wanted, fixed = times * len(local.rows), _fixed(local, again)
    if Counter(_parts(local, fixed)) != Counter(
        _parts(again, fixed)
    ):  # combined at random: nothing can be called strange
        fixed = []
    which = f"{len(lost)} of {format_many(workers, 'worker')} ended during the pass ({', '.join(lost)})"
    arrived = f"{format_count(len(served.rows))} of {format_count(wanted)} elements arrived"
    strangers = sum((Counter(_parts(served, fixed)) - _expected(local, fixed, times)).values()) if fixed else 0
    if strangers:
        return (
            False,
            f"{which}; {arrived}, and {format_many(strangers, 'element')} of them are not those of a local pass.",
        )
    missing = wanted - len(served.rows)
    if missing > 0:
        return None, (
            f"{which}; {arrived}. The other {format_count(missing)} were lost with the workers that held them, as each element "
            "is sent at most once; none is wrong or came twice."
        )
    return (True if fixed else None), f"{which}, and nothing was lost: {arrived}."


def _fixed(local: Stream, again: Stream) -> list[int]:
    """The components that are the same in two local passes."""
    opaque = set(local.opaque)
    return [
        component
        for component in range(len(local.rows[0]) if local.rows else 0)
        if component not in opaque and Counter(local.column(component)) == Counter(again.column(component))
    ]


def _expected(local: Stream, fixed: list[int], times: int) -> Counter[Row]:
    return Counter({row: count * times for row, count in Counter(_parts(local, fixed)).items()})


def _parts(stream: Stream, components: list[int]) -> list[Row]:
    return [tuple(row[component] for component in components) for row in stream.rows]
