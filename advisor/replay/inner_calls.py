"""Calls made inside another one while that is made again: by its function as it is traced, or by itself.

In: the kept calls, the edits laid out, and the `Replay` that makes the outer calls.  Out: datasets with the edits, handed to
the function as if TensorFlow had made them.

The recorder hands every wrapped call to `InnerCalls._make`, which knows it by its place in the order: a function that is traced
again makes the same calls in the same order.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import KeptCalls
from advisor.model.finding import MoveAfter
from advisor.replay.call_arguments import Arguments
from advisor.replay.dataset_objects import become, is_dataset, mark
from advisor.replay.edited import CannotReplay, EditedCalls, Link


class Outer(Protocol):
    """What is needed of the `Replay`."""

    def captured(self, value: Any) -> Any:  # noqa: ANN401
        """What a function uses, rebuilt if it is a dataset that an edit concerns."""
        ...

    def changed(
        self, call_id: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Arguments:
        """The arguments with those of the edits."""
        ...

    def with_files(
        self,
        call_id: str,
        method: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_touched: bool,
    ) -> Arguments:
        """The arguments with files of ours."""
        ...

    def link(self, link: Link, dataset: Any) -> Any:  # noqa: ANN401
        """The dataset with a link behind it."""
        ...

    def note(self, call_id: str) -> None:
        """The edits of that call have been applied."""
        ...

    def name(self, call_id: str) -> str:
        """The call for people."""
        ...


@dataclass(slots=True)
class _Frame:
    """A call under way whose inner calls are counted."""

    id: str
    made: Any
    """The object under construction, for constructors."""
    next: int = 0


class InnerCalls:
    """Stands in for the recorder's wrapped calls within `inside`."""

    def __init__(self, recorder: Recorder, kept: KeptCalls, laid: EditedCalls, outer: Outer) -> None:
        self._recorder, self._kept, self._laid = recorder, kept, laid
        self._outer: Outer = weakref.proxy(outer)  # no cycle: a filled cache goes when the replay that holds it goes
        self._frames: list[_Frame] = []

    @contextlib.contextmanager
    def inside(self, call_id: str, made: Any) -> Iterator[None]:  # noqa: ANN401
        """All wrapped calls in the block are made by that call. `made`: the object under construction, for constructors."""
        before = self._recorder.replacing
        self._recorder.replacing = self._make
        self._frames.append(_Frame(call_id, made))
        try:
            yield
        finally:
            self._frames.pop()
            self._recorder.replacing = before

    def _make(
        self,
        original: Callable[..., Any],
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_constructor: bool,
    ) -> Any:  # noqa: ANN401
        frame = self._frames[-1]
        if is_constructor and frame.made is args[0]:
            return original(*args, **kwargs)  # a subclass' constructor calling its base's
        known = self._kept.inner.get(frame.id, ())[frame.next : frame.next + 1]
        frame.next += 1
        call_id = known[0][0] if known and known[0][1] == method else None
        args = tuple(self._outer.captured(value) for value in args)
        kwargs = {name: self._outer.captured(value) for name, value in kwargs.items()}
        if call_id is None:
            with self.inside("", args[0] if is_constructor else None):
                return original(*args, **kwargs)
        return self._make_known(call_id, original, method, args, kwargs, is_constructor)

    def _make_known(
        self,
        call_id: str,
        original: Callable[..., Any],
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_constructor: bool,
    ) -> Any:  # noqa: ANN401
        outside: Any = args[0] if is_constructor else None
        made = outside
        links = self._laid.behind.get(call_id, ())
        if call_id in self._laid.absent:
            if is_constructor or not args or not is_dataset(args[0]):
                raise CannotReplay(self._outer.name(call_id), "it is no link of a chain, so it cannot be taken out")
            result = args[0]
        else:
            if is_constructor and links:
                # The caller keeps the object under construction: the links are made from another, and it becomes the last.
                made = object.__new__(type(outside))
                args = (made, *args[1:])
            if "name" in inspect.signature(original).parameters and kwargs.get("name") is None:
                kwargs["name"] = call_id
            target, kwargs = self._outer.changed(call_id, original, args, kwargs)
            target, kwargs = self._outer.with_files(call_id, method, original, target, kwargs, is_touched=True)
            with self.inside(call_id, made):
                result = original(*target, **kwargs)
            result = made if is_constructor else result
            if is_dataset(result):
                mark(result, call_id)
        for link in links:
            if isinstance(link.edit, MoveAfter):
                raise CannotReplay(self._outer.name(link.id), "calls inside a function cannot be moved")
            result = self._outer.link(link, result)
        if is_constructor and links:
            become(outside, result)
        self._outer.note(call_id)
        return None if is_constructor else result
