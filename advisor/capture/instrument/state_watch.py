"""Watches what pipelines read beside their inputs: variables, tables, Python objects and files that the script may change.

In: recorded calls with what their functions capture; the beginning of each epoch.  Out: `ObservedState`s for the recording.

At the beginning of each epoch of a pipeline everything that it reads is compared with what it was in the epoch before, and
once more when the recording is written. Assignments and files opened for writing are seen when they happen (`state_hooks`).
Only what happens after the first epoch has begun is a change: filling a table before training is no reason against a cache.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from advisor.capture.instrument.captured_state import Captured, named_objects
from advisor.capture.instrument.fingerprints import file_fingerprint, fingerprint, python_fingerprint
from advisor.model import state
from advisor.model.lineage import Lineage
from advisor.model.recording import Call
from advisor.model.state import ObservedState, StateChange

MAX_FILES = 500
"""Files of one call that are compared, spread evenly over its names (a `stat` each: some milliseconds for all)."""
MAX_SHARE = 0.02
"""Comparing may take this share of the run's time; a comparison beyond it is left out, and its epoch is not counted."""
MAX_PYTHON_OBJECTS = 50

Place = tuple[str, int]
"""File and line of the script; ("", 0): unknown."""


@dataclass(slots=True)
class _Item:
    """One thing that is watched."""

    id: str
    kind: str
    name: str
    read: Callable[[], object | None]
    """What it holds now, in a form that can be compared; None: cannot be told."""
    call_ids: list[str] = field(default_factory=list)
    epochs: int = 0
    before: object | None = None
    is_compared: bool = True
    is_written_before: bool = False
    change: StateChange | None = None
    paths: dict[str, None] = field(default_factory=dict)

    def compare(self, begins_epoch: bool) -> None:
        if not begins_epoch and not self.epochs:
            return  # no pipeline has read it yet
        now = self.read()
        if now is None:
            self.is_compared = False
        elif self.epochs and self.before is not None and now != self.before:
            self.changed("changed", ("", 0), self._what_changed(now))
        self.before = now
        self.epochs += begins_epoch

    def changed(self, how: str, place: Place, name: str = "") -> None:
        """Keep the first change; one whose line is known is worth more than one that a comparison found."""
        if self.epochs and (self.change is None or (not self.change.file and place[0])):
            self.change = StateChange(how, self.epochs, *place)
            self.name = name or self.name

    def _what_changed(self, now: object) -> str:
        """Of several files, the first one that is not what it was."""
        if isinstance(now, dict) and isinstance(self.before, dict):
            return next((path for path in now if now[path] != self.before.get(path)), self.name)
        return ""


class StateWatch:
    """One per run; used from the script's threads. Never raises."""

    def __init__(self, calls: Callable[[], tuple[Call, ...]], warn: Callable[[str], None]) -> None:
        """`calls` gives the calls recorded so far."""
        self.is_open = True
        self._calls, self._warn = calls, warn
        self._items: dict[str, _Item] = {}
        self._by_owner: dict[int, tuple[weakref.ref[Any], _Item]] = {}
        self._by_path: dict[str, list[_Item]] = {}
        self._of_call: dict[str, list[_Item]] = {}
        self._written: dict[str, None] = {}
        self._behind: dict[str, tuple[int, list[_Item]]] = {}
        self._began_ns = time.time_ns()
        self._started, self._spent_s, self._checks = time.monotonic(), 0.0, 0
        self._thread: int | None = None
        self._lock = threading.RLock()

    # -- what is watched

    def resource_id(self, captured: Captured) -> str:
        """The id of a captured resource, which is watched from now on; empty: it cannot be."""
        if captured.owner is None or captured.kind not in state.OBSERVABLE_KINDS:
            return ""
        with self._lock:
            known = self._by_owner.get(id(captured.owner))
            if known is not None and known[0]() is captured.owner:
                return known[1].id
            owner, kind = weakref.ref(captured.owner), captured.kind
            item = self._add(kind, captured.name, lambda: fingerprint(owner(), kind) if owner() is not None else None)
            self._by_owner[id(captured.owner)] = (owner, item)
            return item.id

    def note_call(self, call: Call, function: object, files: Iterable[str]) -> None:
        """A call was recorded; `function`: the script's, if it runs in Python; `files`: names among its arguments."""
        with self._lock:
            for resource in call.function.resources if call.function is not None else ():
                if resource.id in self._items:
                    self._belongs(self._items[resource.id], call.id)
            self._note_files(call.id, list(files))
            is_python = call.method == "from_generator" or (call.function is not None and call.function.python_ops)
            if is_python and function is not None:
                self._note_python(call.id, function)

    def _add(self, kind: str, name: str, read: Callable[[], object | None]) -> _Item:
        item = _Item(f"s{len(self._items) + 1}", kind, name, read)
        self._items[item.id] = item
        return item

    def _belongs(self, item: _Item, call_id: str) -> None:
        if call_id not in item.call_ids:
            item.call_ids.append(call_id)
            self._of_call.setdefault(call_id, []).append(item)
            self._behind.clear()

    def _note_files(self, call_id: str, names: list[str]) -> None:
        places = sorted({len(names) * part // MAX_FILES for part in range(MAX_FILES)}) if names else []
        paths = [os.path.realpath(names[place]) for place in places]
        paths = [path for path in dict.fromkeys(paths) if os.path.isfile(path)]  # noqa: PTH113
        if not paths:
            return
        item = self._add(state.FILE, paths[0], lambda: {path: file_fingerprint(path) for path in paths})
        item.paths = dict.fromkeys(paths)
        for path in paths:
            self._by_path.setdefault(path, []).append(item)
            found = file_fingerprint(path)
            if path in self._written or (found is not None and found[0] >= self._began_ns):
                item.is_written_before, item.name = True, path
        self._belongs(item, call_id)

    def _note_python(self, call_id: str, function: object) -> None:
        """Names that a generator or `py_function` reads: rebinding one is a change as much as filling a list is."""
        try:
            is_method = inspect.ismethod(function)
            reference: weakref.ref[Any] = weakref.WeakMethod(function) if is_method else weakref.ref(function)
        except TypeError:
            return
        for name, value in list(named_objects(function)):
            if len(self._of_call.get(call_id, ())) >= MAX_PYTHON_OBJECTS:
                return
            if python_fingerprint(value) is None or name == "an argument":
                continue
            item = self._add(state.PYTHON_OBJECT, name, _reader(reference, name))
            self._belongs(item, call_id)

    # -- what happens

    def epoch(self, call_id: str | None) -> None:
        """An epoch over the dataset that this call made begins."""
        if not self.is_open or call_id is None or not self._items:
            return
        try:
            with self._lock:
                self._thread = threading.get_ident()
                self._compare(self._items_behind(call_id), begins_epoch=True)
        except Exception as error:  # the script goes on whatever happens here
            self._warn(f"State that the pipeline reads could not be compared ({type(error).__name__}: {error}).")

    def assigned(self, owner: object, how: str, place: Callable[[], Place]) -> None:
        """The script called a method of a variable or table that changes it."""
        known = self._by_owner.get(id(owner))
        if self.is_open and known is not None and known[0]() is owner and known[1].epochs:
            known[1].changed(how, place())

    def opened_for_writing(self, path: str, place: Callable[[], Place]) -> None:
        """The script opens, renames or removes a file."""
        if not self.is_open:
            return
        real = os.path.realpath(path)
        if len(self._written) < 10 * MAX_FILES:
            self._written[real] = None
        for item in self._by_path.get(real, ()):
            if item.epochs:
                item.changed("was opened for writing", place(), real)
            else:
                item.is_written_before, item.name = True, real

    # -- the result

    def observed(self) -> tuple[ObservedState, ...]:
        """Everything that was watched, compared once more."""
        with self._lock:
            if self._thread == threading.get_ident():  # other threads must not wait for TensorFlow here
                try:
                    self._compare(list(self._items.values()), begins_epoch=False)
                except Exception as error:
                    self._warn(
                        f"State that the pipeline reads could not be compared ({type(error).__name__}: {error})."
                    )
            return tuple(
                ObservedState(
                    item.id,
                    item.kind,
                    item.name,
                    tuple(item.call_ids),
                    item.epochs,
                    item.is_compared,
                    item.is_written_before,
                    item.change,
                )
                for item in self._items.values()
            )

    def _items_behind(self, call_id: str) -> list[_Item]:
        calls = self._calls()
        known = self._behind.get(call_id)
        if known is None or known[0] != len(calls):
            behind = Lineage(calls).behind(call_id)
            items = {item.id: item for call in behind for item in self._of_call.get(call.id, ())}
            known = self._behind[call_id] = (len(calls), list(items.values()))
        return known[1]

    def _compare(self, items: list[_Item], begins_epoch: bool) -> None:
        tensorflow = sys.modules.get("tensorflow")
        is_eager = tensorflow is None or tensorflow.executing_eagerly()
        elapsed = time.monotonic() - self._started
        is_too_costly = self._checks > 2 and self._spent_s > MAX_SHARE * elapsed
        if not items or not is_eager or (begins_epoch and is_too_costly):
            return
        start = time.monotonic()
        with (
            tensorflow.init_scope() if tensorflow is not None else contextlib.nullcontext()
        ):  # unseen by gradient tapes
            for item in items:
                item.compare(begins_epoch)
        self._checks += 1
        self._spent_s += time.monotonic() - start


def _reader(reference: weakref.ref[Any], name: str) -> Callable[[], object | None]:
    def read() -> object | None:
        function = reference()
        return None if function is None else python_fingerprint(_named(named_objects(function), name))

    return read


def _named(objects: Iterator[tuple[str, Any]], wanted: str) -> object:
    return next((value for name, value in objects if name == wanted), object())
