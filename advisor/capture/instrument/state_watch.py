"""Detects changes of the state that pipelines read: variables, tables, Python objects and files that the script may change.

In: recorded calls and what their functions capture; the start of each epoch.  Out: `ObservedState`s for the recording.

At the start of each epoch of a pipeline, and when the recording is written, all state that the pipeline reads is compared with
the previous epoch. Assignments and files opened for writing are reported as they happen by `state_hooks`. Only changes after
the start of the first epoch count: a table that is filled before training does not rule out a cache.
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
from advisor.host.calibration.capture import STATE_CHECK_SHARE
from advisor.host.file_clock import file_time_ns
from advisor.model import state
from advisor.model.calls import Call
from advisor.model.lineage import Lineage
from advisor.model.state import ObservedState, StateChange

MAX_FILES = 500
"""Maximum number of files per call that are compared, spread evenly over all of its files. Each needs a `stat`, which takes
some milliseconds in total."""
MAX_PYTHON_OBJECTS = 50

Place = tuple[str, int]
"""File and line of the script; ("", 0) if unknown."""


@dataclass(slots=True)
class _Item:
    """A variable, table, Python object or set of files that is watched."""

    id: str
    kind: str
    name: str
    read: Callable[[], object | None]
    """Returns its current content in a comparable form; None if it cannot be compared."""
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
        """Record the first change. A change with a known line replaces one without, which a comparison found."""
        if self.epochs and (self.change is None or (not self.change.file and place[0])):
            self.change = StateChange(how, self.epochs, *place)
            self.name = name or self.name

    def _what_changed(self, now: object) -> str:
        """Return the first file that has changed; for other kinds the empty string."""
        if isinstance(now, dict) and isinstance(self.before, dict):
            return next((path for path in now if now[path] != self.before.get(path)), self.name)
        return ""


class StateWatch:
    """The watched state of a run. Thread-safe; errors become warnings."""

    def __init__(self, calls: Callable[[], tuple[Call, ...]], warn: Callable[[str], None]) -> None:
        """Create a watch without any state.

        Args:
            calls: Returns the calls recorded so far.
            warn: Called with the text of each warning.
        """
        self.is_open = True
        self._calls, self._warn = calls, warn
        self._items: dict[str, _Item] = {}
        self._by_owner: dict[int, tuple[weakref.ref[Any], _Item]] = {}
        self._by_path: dict[str, list[_Item]] = {}
        self._of_call: dict[str, list[_Item]] = {}
        self._written: dict[str, None] = {}
        self._upstream: dict[str, tuple[int, list[_Item]]] = {}
        self._began_ns = file_time_ns()
        self._started, self._spent_s, self._checks = time.monotonic(), 0.0, 0
        self._thread: int | None = None
        self._lock = threading.RLock()

    # -- what is watched

    def resource_id(self, captured: Captured) -> str:
        """Start to watch a captured resource and return its id; the empty string if it cannot be watched."""
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
        """Start to watch the state that a recorded call reads.

        Args:
            call: The call.
            function: The user function passed to the call, if any. Its Python objects are watched if it runs in Python.
            files: Names of files that the call reads.
        """
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
            self._upstream.clear()

    def _note_files(self, call_id: str, names: list[str]) -> None:
        places = sorted({len(names) * part // MAX_FILES for part in range(MAX_FILES)}) if names else []
        # strings with a zero byte are data, such as encoded images, and `realpath` refuses them
        paths = [os.path.realpath(names[place]) for place in places if "\0" not in names[place]]
        paths = [path for path in dict.fromkeys(paths) if os.path.isfile(path)]  # noqa: PTH113
        if not paths:
            return
        item = self._add(state.FILE, paths[0], lambda: {path: file_fingerprint(path) for path in paths})
        item.paths = dict.fromkeys(paths)
        for path in paths:
            self._by_path.setdefault(path, []).append(item)
            current = file_fingerprint(path)
            if _is_prepared_dataset(path):
                continue
            if path in self._written or (current is not None and current[0] >= self._began_ns):
                item.is_written_before, item.name = True, path
        self._belongs(item, call_id)

    def _note_python(self, call_id: str, function: object) -> None:
        """Watch the names that a generator or `py_function` reads. Both rebinding a name and modifying its object are changes."""
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
        """Compare the state at the start of an epoch over the dataset that the call made."""
        if not self.is_open or call_id is None or not self._items:
            return
        try:
            with self._lock:
                self._thread = threading.get_ident()
                self._compare(self._items_upstream(call_id), begins_epoch=True)
        except Exception as error:  # an error of the watch must not stop the script
            self._warn(f"State that the pipeline reads could not be compared ({type(error).__name__}: {error}).")

    def assigned(self, owner: object, how: str, place: Callable[[], Place]) -> None:
        """Record that the script changed a variable or table.

        Args:
            owner: The variable or table.
            how: Description of the change, e.g. `was assigned`.
            place: Returns the line of the script.
        """
        known = self._by_owner.get(id(owner))
        if self.is_open and known is not None and known[0]() is owner and known[1].epochs:
            known[1].changed(how, place())

    def opened_for_writing(self, path: str, place: Callable[[], Place]) -> None:
        """Record that the script opens a file for writing, renames or removes it.

        Args:
            path: The file.
            place: Returns the line of the script.
        """
        if not self.is_open:
            return
        real = os.path.realpath(path)
        if len(self._written) < 10 * MAX_FILES:
            self._written[real] = None
        for item in self._by_path.get(real, ()):
            if item.epochs:
                item.changed("was opened for writing", place(), real)
            elif not _is_prepared_dataset(real):
                item.is_written_before, item.name = True, real

    # -- the result

    def observed(self) -> tuple[ObservedState, ...]:
        """Compare all state once more and return it."""
        with self._lock:
            if self._thread == threading.get_ident():  # another thread must not block in TensorFlow here
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

    def _items_upstream(self, call_id: str) -> list[_Item]:
        calls = self._calls()
        known = self._upstream.get(call_id)
        if known is None or known[0] != len(calls):
            upstream = Lineage(calls).upstream(call_id)
            items = {item.id: item for call in upstream for item in self._of_call.get(call.id, ())}
            known = self._upstream[call_id] = (len(calls), list(items.values()))
        return known[1]

    def _compare(self, items: list[_Item], begins_epoch: bool) -> None:
        tensorflow = sys.modules.get("tensorflow")
        is_eager = tensorflow is None or tensorflow.executing_eagerly()
        elapsed = time.monotonic() - self._started
        is_too_costly = self._checks > 2 and self._spent_s > STATE_CHECK_SHARE.value * elapsed
        if not items or not is_eager or (begins_epoch and is_too_costly):
            return
        start = time.monotonic()
        with (
            tensorflow.init_scope() if tensorflow is not None else contextlib.nullcontext()
        ):  # so that gradient tapes do not record the reads
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


def _is_prepared_dataset(path: str) -> bool:
    """Return whether the file belongs to a dataset that tensorflow-datasets has prepared.

    It writes such a folder once, and `dataset_info.json` last. That the script's first run prepares it says nothing about later
    writes; they are observed like those to any other file.
    """
    return os.path.isfile(os.path.join(os.path.dirname(path), "dataset_info.json"))  # noqa: PTH113, PTH118, PTH120
