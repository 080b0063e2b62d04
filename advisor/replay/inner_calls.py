"""Replays the calls made inside another call: by its user function while that is traced, or by its implementation.

In: the kept calls, the arranged edits, and the `Replay`, which replays the outer calls.  Out: datasets with the edits, returned
to the function as if TensorFlow had made them.

The recorder passes all wrapped calls to `InnerCalls._make`, which identifies them by their order: a function that is traced again
makes the same calls in the same order.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from advisor.capture.instrument.dataset_ids import is_dataset
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.edits import MoveAfter
from advisor.replay.call_arguments import Arguments
from advisor.replay.dataset_objects import become, mark
from advisor.replay.edited import CannotReplay, EditedCalls, Link


class Outer(Protocol):
    """The interface of `Replay` that is used here."""

    def captured(self, value: Any) -> Any:  # noqa: ANN401
        """Return a value that a function uses; a dataset that an edit changes is rebuilt."""
        ...

    def changed(
        self, call_id: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Arguments:
        """Return the arguments with the changes of the edits.

        Args:
            call_id: The call that is made again.
            function: What it calls, for the names of its parameters.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
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
        """Return the arguments with paths that do not belong to the script.

        Args:
            call_id: The call that is made again.
            method: Name of the tf.data method, which tells whether an argument is a path.
            function: What it calls, for the names of its parameters.
            args: Positional arguments.
            kwargs: Keyword arguments.
            is_touched: An edit changes the call or one upstream of it, so that files written by the script do not fit.
        """
        ...

    def link(self, link: Link, dataset: Any) -> Any:  # noqa: ANN401
        """Return the dataset with a link applied to it.

        Args:
            link: The edit that adds or moves the link, with the link's id.
            dataset: The dataset that the link follows.
        """
        ...

    def note(self, call_id: str) -> None:
        """Note that the edits of the call have been applied."""
        ...

    def name(self, call_id: str) -> str:
        """Return a name of the call for error messages."""
        ...


@dataclass(slots=True)
class _Frame:
    """A call that has not returned, with the number of its inner calls so far."""

    id: str
    made: Any
    """The object under construction, for constructors."""
    next: int = 0


class InnerCalls:
    """Handles the recorder's wrapped calls within `inside`."""

    def __init__(self, recorder: Recorder, log: ReplayLog, laid: EditedCalls, outer: Outer) -> None:
        self._recorder, self._log, self._laid = recorder, log, laid
        self._outer: Outer = weakref.proxy(outer)  # without a reference cycle, filled caches are freed with the replay
        self._frames: list[_Frame] = []

    @contextlib.contextmanager
    def inside(self, call_id: str, made: Any) -> Iterator[None]:  # noqa: ANN401
        """Treat all wrapped calls in the block as made by a call.

        Args:
            call_id: Id of the outer call.
            made: The object under construction if the outer call is a constructor, else None.
        """
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
            return original(*args, **kwargs)  # a subclass constructor calls the base constructor
        known = self._log.inner.get(frame.id, ())[frame.next : frame.next + 1]
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
        links = self._laid.links_after.get(call_id, ())
        if call_id in self._laid.vectorized and call_id not in self._laid.absent:  # otherwise it was moved out
            raise CannotReplay(self._outer.name(call_id), "calls inside a function cannot be vectorised")
        if call_id in self._laid.split:
            raise CannotReplay(self._outer.name(call_id), "calls inside a function cannot be split")
        if call_id in self._laid.functions:
            raise CannotReplay(self._outer.name(call_id), "calls inside a function cannot get another function")
        if call_id in self._laid.absent:
            if is_constructor or not args or not is_dataset(args[0]):
                raise CannotReplay(self._outer.name(call_id), "it is not a transformation, so it cannot be removed")
            result = args[0]
        else:
            if is_constructor and links:
                # The caller keeps the object under construction, so the links are applied to another object, and the object
                # under construction becomes a copy of the last one.
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
