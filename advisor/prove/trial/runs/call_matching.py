"""Matches the calls of this run with those of the first run.

In: the calls of both runs.  Out: edits that name this run's calls.

Usually the ids are the same. If a script with threads creates its datasets in another order than the first time, calls are
matched by method and call site, and by their order among the calls that share both. If the script makes its dataset again for
every epoch, the first run consumed a later one than this run, which is held at its first element: their calls are matched alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.edits import Edit, InsertAfter, MoveAfter, WrapData
from advisor.model.lineage import Lineage
from advisor.replay.edited import CannotReplay

_Key = tuple[str, str, int, int]
_PEEK_CARDINALITIES = (0, 1, 2)
"""Cardinalities of datasets that a script only inspects (`for x in dataset.take(1)`) and does not train on."""


class CallMatching:
    """Translates the ids of calls between the first run and this one."""

    def __init__(self, consumer: Call | None, calls: Sequence[Call]) -> None:
        """Create the matching; it is the identity until `learn` is called.

        Args:
            consumer: The call of the first run whose dataset the training consumes; None: unknown, any dataset of more than
                two elements counts.
            calls: The calls of the first run; empty: the ids are the same in both runs.
        """
        self.is_consumer_known = consumer is not None
        self._consumer_id: str = "" if consumer is None else consumer.id
        self._consumer_key: _Key | None = None if consumer is None else _key_of(consumer)
        self._calls = {call.id: call for call in calls}
        self._first = {call.id: _key_of(call) for call in calls}
        self._now: dict[str, str] = {}

    def is_consumer(self, call: Call) -> bool:
        """Whether this is the call whose dataset the training consumes."""
        if self._consumer_key is None:
            return call.cardinality not in _PEEK_CARDINALITIES
        key = _key_of(call)
        return key == self._consumer_key and (call.id == self._consumer_id or key[1] != "")

    def learn(self, calls: Sequence[Call]) -> None:
        """Match the calls of this run with those of the first."""
        now = {call.id: _key_of(call) for call in calls}
        places: dict[_Key, list[str]] = {}
        for call_id, key in now.items():
            places.setdefault(key, []).append(call_id)
        self._now = {}
        if not self._first or all(now.get(call_id, key) == key for call_id, key in self._first.items()):
            if self._consumer_id in self._first and self._consumer_id not in now:
                self._match_last(places)
            return
        for call_id, key in self._first.items():
            candidates = places.get(key)
            if candidates:
                self._now[call_id] = candidates.pop(0)

    def _match_last(self, places: dict[_Key, list[str]]) -> None:
        """Match the consumed dataset of the first run with the last one that this run has made at the same places."""
        consumed: dict[_Key, list[str]] = {}
        for call_id in self._consumed():
            consumed.setdefault(self._first[call_id], []).append(call_id)
        self._now = {call_id: call_id for now in places.values() for call_id in now if call_id in self._first}
        for key, call_ids in consumed.items():
            candidates = places.get(key, [])
            if len(candidates) >= len(call_ids):  # later entries take precedence in `first_ids`
                self._now |= dict(zip(call_ids, candidates[-len(call_ids) :], strict=True))

    def _consumed(self) -> list[str]:
        """The ids of the calls that make the consumed dataset of the first run, calls inside their functions included."""
        ids = {call.id for call in Lineage(self._calls.values()).upstream(self._consumer_id)}
        return [call_id for call_id in self._calls if call_id in ids]

    def translate(self, edit: Edit) -> Edit:
        """Return the edit with the ids of this run.

        Raises:
            CannotReplay: This run made no such call.
        """
        if isinstance(edit, MoveAfter):
            return replace(edit, call_id=self._id(edit.call_id), after_id=self._id(edit.after_id))
        if isinstance(edit, InsertAfter | WrapData):
            return replace(edit, call_id=self._id(edit.call_id), reader_id=self._id(edit.reader_id))
        return replace(edit, call_id=self._id(edit.call_id))

    def now_id(self, call_id: str) -> str:
        """Return the id of this run for that of a call of the first run.

        Raises:
            CannotReplay: This run made no such call.
        """
        return self._id(call_id)

    def now_ids(self, call_ids: Iterable[str]) -> frozenset[str]:
        """Return the ids of this run for those of the first run, without calls that this run did not make."""
        ids = set()
        for call_id in call_ids:
            with contextlib.suppress(CannotReplay):
                ids.add(self._id(call_id))
        return frozenset(ids)

    def first_ids(self) -> dict[str, str] | None:
        """Return a mapping from this run's ids to those of the first run; None if they are the same."""
        return {now: first for first, now in self._now.items()} or None

    def _id(self, call_id: str) -> str:
        if not self._now or call_id not in self._first:
            return call_id
        if call_id not in self._now:
            method = self._first[call_id][0]
            raise CannotReplay(method, "the script did not make this call when it was run again")
        return self._now[call_id]


def _key_of(call: Call) -> _Key:
    site = call.site
    return (call.method, "", 0, 0) if site is None else (call.method, site.file, site.line, site.column)
