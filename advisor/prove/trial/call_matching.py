"""Which call of this run is which call of the first: usually that of the same number.

In: the calls of the first run, and this run's.  Out: edits that name this run's calls.

Where a script makes its datasets in another order than the first time (threads), calls are told apart by method and site, and by
their order among those that share both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from advisor.model.finding import Edit, MoveAfter
from advisor.model.recording import Call
from advisor.replay.edited import CannotReplay

_Key = tuple[str, str, int, int]
_PEEKS = (0, 1, 2)
"""Elements of a dataset that a script looks at (`for x in dataset.take(1)`) and does not train on."""


class Numbering:
    """Translates ids."""

    def __init__(self, consumer: dict[str, Any] | None, calls: Sequence[dict[str, Any]]) -> None:
        """Both as `as_message` wrote them; `calls` may be empty, then ids must be the same in both runs. `consumer` None: any."""
        self.is_consumer_known = consumer is not None
        self._consumer_id: str = "" if consumer is None else consumer["id"]
        self._consumer_key: _Key | None = None if consumer is None else _key_of(consumer)
        self._first = {each["id"]: _key_of(each) for each in calls}
        self._now: dict[str, str] = {}

    def is_consumer(self, call: Call) -> bool:
        """Whether this is the call whose dataset the training consumes."""
        if self._consumer_key is None:
            return call.cardinality not in _PEEKS
        key = _key_of(as_message(call))
        return key == self._consumer_key and (call.id == self._consumer_id or key[1] != "")

    def learn(self, calls: Sequence[Call]) -> None:
        """The calls of this run."""
        now = {call.id: _key_of(as_message(call)) for call in calls}
        if not self._first or all(now.get(call_id, key) == key for call_id, key in self._first.items()):
            self._now = {}
            return
        places: dict[_Key, list[str]] = {}
        for call_id, key in now.items():
            places.setdefault(key, []).append(call_id)
        for call_id, key in self._first.items():
            found = places.get(key)
            if found:
                self._now[call_id] = found.pop(0)

    def translate(self, edit: Edit) -> Edit:
        """The edit of this run's call. Raises CannotReplay if this run made no such call."""
        if isinstance(edit, MoveAfter):
            return replace(edit, call_id=self._id(edit.call_id), after_id=self._id(edit.after_id))
        return replace(edit, call_id=self._id(edit.call_id))

    def first_ids(self) -> dict[str, str] | None:
        """This run's id of a call -> the first run's; None: they are the same."""
        return {now: first for first, now in self._now.items()} or None

    def _id(self, call_id: str) -> str:
        if not self._now or call_id not in self._first:
            return call_id
        if call_id not in self._now:
            method = self._first[call_id][0]
            raise CannotReplay(method, "the script did not make this call when it was run again")
        return self._now[call_id]


def as_message(call: Call) -> dict[str, Any]:
    """What tells a call from others."""
    site = call.site
    return {
        "id": call.id,
        "method": call.method,
        "file": "" if site is None else site.file,
        "line": 0 if site is None else site.line,
        "column": 0 if site is None else site.column,
    }


def _key_of(message: dict[str, Any]) -> _Key:
    return message["method"], message["file"], message["line"], message["column"]
