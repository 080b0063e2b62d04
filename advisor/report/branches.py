"""Names the branch of rows that would read the same: a dataset that is used twice, or a helper that is called twice.

In: the iterators of a pipeline, each with the words of its row.  Out: `input 2 of Zip` for the rows that need it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An iterator in a table."""

    id: str
    parent_id: str | None
    type: str
    words: str
    """What its row says of the call."""


def name_branches(rows: Sequence[Row], shown: Collection[str]) -> dict[str, str]:
    """Return id -> branch for the rows that would read like another one.

    Args:
        rows: All iterators of the pipeline, inputs in their order.
        shown: Ids of those that are in the table.
    """
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.id in shown:
            alike[row.words, row.type].append(row)
    branches: dict[str, str] = {}
    for group in alike.values():
        if len(group) > 1:
            paths = {row.id: tuple(_junctions(row, rows)) for row in group}
            longest = max(map(len, paths.values()))
            least = next(
                (n for n in range(longest) if len({path[:n] for path in paths.values()}) == len(group)), longest
            )
            branches |= {row_id: ", ".join(path[:least]) for row_id, path in paths.items() if path[:least]}
    return branches


def _junctions(row: Row, rows: Sequence[Row]) -> Iterator[str]:
    """The inputs through which the elements of a row reach the consumer, where it has several; the nearest first."""
    by_id = {other.id: other for other in rows}
    passed = set()
    while row.id not in passed and (consumer := by_id.get(row.parent_id or "")) is not None:
        passed.add(row.id)
        inputs = [other.id for other in rows if other.parent_id == consumer.id]
        if len(inputs) > 1:
            yield f"input {inputs.index(row.id) + 1} of {consumer.type}"
        row = consumer
