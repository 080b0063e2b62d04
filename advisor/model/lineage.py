"""Determines which recorded calls the elements of a call depend on: inputs, datasets made by its functions, captured datasets.

In: recorded calls.  Out: calls, nearest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from advisor.model.calls import Call
from advisor.model.state import DATASET


class Lineage:
    """The relations between the calls of a recording."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._calls: Mapping[str, Call] = {call.id: call for call in calls}
        self._children: dict[str, list[str]] = {}
        for call in self._calls.values():
            for owner in {call.nested_in, call.made_by} - {None, call.id}:
                self._children.setdefault(str(owner), []).append(call.id)

    def upstream(self, call_id: str) -> tuple[Call, ...]:
        """Return the call and every call that its elements depend on."""
        return self._closure([call_id])

    def inside(self, call: Call) -> tuple[Call, ...]:
        """Return the calls that the call's functions make or capture, and every call that these depend on.

        The call's inputs are included only if a function captures them.
        """
        return tuple(other for other in self._closure(self._own(call)) if other.id != call.id)

    def _closure(self, ids: Iterable[str]) -> tuple[Call, ...]:
        closure: dict[str, Call] = {}
        level = [self._calls[i] for i in ids if i in self._calls]
        while level:
            closure |= {call.id: call for call in level}
            upstream = dict.fromkeys(i for call in level for i in (*call.inputs, *self._own(call)))
            level = [self._calls[i] for i in upstream if i in self._calls and i not in closure]
        return tuple(closure.values())

    def _own(self, call: Call) -> Iterator[str]:
        yield from self._children.get(call.id, ())
        for resource in call.function.resources if call.function is not None else ():
            if resource.kind == DATASET and resource.id:
                yield resource.id
