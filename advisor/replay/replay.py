"""Rebuilds a recorded dataset with edits.

In: the calls kept by the recorder, and the `Edit`s.  Out: a new `tf.data.Dataset`, built in the script's process by the same
calls of TensorFlow as in the script, or `CannotReplay` with the call that cannot be replayed.

User functions are traced again and capture the same lookup tables, variables and other objects as before. Calls made by such a
function (inside `interleave`) or by the implementation of another call (`from_generator`) are edited in the process, by
`advisor.replay.inner_calls`.

Seeds: an unseeded op gets its seed from TensorFlow's eager random state when it is made. `AS_RECORDED` restores the state before
the recorded call, so that a script with `tf.random.set_seed` gets the same numbers, and a script without remains random. `TWIN`
uses a seed that depends only on the call if the script sets none, so that two replays draw the same numbers and can be compared
element by element. A function that already is a `tf.function` keeps the seeds of its earlier trace.

Datasets that no edit changes are reused instead of rebuilt if they hold no state that two users could disturb: no cache, no
shuffle, no random numbers and no function with side effects. File caches and snapshots are written to a separate folder and never
to the script's path; complete ones of the script are read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE, call_id_of, is_dataset
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import DATA_SOURCES, LoggedCall, Seeds
from advisor.model.edits import (
    Edit,
    InsertAfter,
    MoveAfter,
    SetOption,
    SplitFlatMap,
    SplitMap,
    adds_cache,
)
from advisor.replay.attempt import attempted
from advisor.replay.call_arguments import Arguments, value_of, with_changes, with_own_files
from advisor.replay.dataset_objects import has_dataset, mark
from advisor.replay.dataset_options import changed_options
from advisor.replay.edited import CannotReplay, CannotSplit, Link, first_id, lay_out
from advisor.replay.halves import check_halves
from advisor.replay.inner_calls import InnerCalls
from advisor.replay.new_function import with_new_function, with_wrapped_data
from advisor.replay.seeding import eager_seeds
from advisor.replay.seedings import AS_RECORDED, OTHER, TWIN
from advisor.replay.split_calls import call_with_second_half, map_with_first_half, parallel_map_with_first_half
from advisor.replay.upstream import Upstream
from advisor.replay.vectorized_calls import vectorized_call


@dataclass(frozen=True, slots=True)
class Built:
    """A dataset of a replay, made by a replayed call or by a link."""

    id: str
    method: str
    input: Any
    """Its input dataset; None for sources and calls with several inputs."""
    dataset: Any
    is_new: bool
    """False: the recorded object itself was reused."""
    is_inside: bool = False
    """Whether it was made while a function was traced, so that it cannot be iterated outside of the function."""


class Replay:
    """One replay of recorded calls. Each call is made at most once."""

    def __init__(
        self,
        recorder: Recorder,
        edits: tuple[Edit, ...],
        seeding: str = AS_RECORDED,
        files: Path | None = None,
        names: Mapping[str, str] | None = None,
        skipped: frozenset[str] | None = None,
    ) -> None:
        """Prepares a replay without making any calls.

        Args:
            recorder: A closed recorder that has kept its calls.
            edits: The edits, in order.
            seeding: `AS_RECORDED`, `TWIN` or `OTHER`.
            files: Folder for file caches and snapshots; None: pipelines that write them cannot be replayed.
            names: Names of calls from which their seeds are derived instead of their ids: ids differ between two texts of a
                script.
            skipped: Ids of the script's caches to leave out, and with them each cache in memory that an edit adds; None: none.

        Raises:
            CannotReplay: The calls were not kept, or the edits contradict each other.
        """
        import tensorflow as tf

        if recorder.replay_log is None:
            raise CannotReplay("The dataset", "its calls were not kept")
        self._tf = tf
        self._recorder, self._log, self._files = recorder, recorder.replay_log, files
        self._edits, self._seeding, self._names = edits, seeding, names or {}
        options = frozenset(c.id for c in self._log.calls.values() if c.method == "with_options")
        self.laid = lay_out(edits, options)
        self._skips_new_caches, self.skipped = skipped is not None, skipped or frozenset[str]()
        """`skipped`: ids of the script's caches that are left out."""
        self._upstream = Upstream(recorder, self._log, self.laid.targets | self.skipped)
        self._done: dict[str, Any] = {}
        self._building: set[str] = set()
        self._seen: set[int] = set()
        """Indices of the edits that have been applied."""
        self._inner = InnerCalls(recorder, self._log, self.laid, self)
        self.built: list[Built] = []
        """In the order in which they were built, inputs first; of the datasets inside functions only the links."""

    def dataset(self, call_id: str) -> Any:  # noqa: ANN401
        """Return the dataset that replaces that of a call, including the links that follow the call.

        Raises:
            CannotReplay: The dataset cannot be rebuilt, or an edit changes a call that is not upstream of it.
        """
        try:
            with self._tf.init_scope(), self._recorder.paused():
                dataset = self._at(call_id)
        except RecursionError:
            raise CannotReplay(self.name(call_id), "its chain of calls is too long") from None
        missing = [n for n in range(len(self._edits)) if n not in self._seen and not self._has_twin(n)]
        if missing:
            call = self._edits[missing[0]].call_id
            raise CannotReplay(
                self.name(call), "it is not upstream of the dataset, or only through a function that captures it"
            )
        return dataset

    def output_id(self, call_id: str) -> str:
        """Return the id of the call or link that makes the dataset which replaces that of a call."""
        return str(getattr(self._done.get(call_id), ID_ATTRIBUTE, call_id))

    def _has_twin(self, number: int) -> bool:
        """Return whether the same edit was applied to another dataset made by the same source line (a helper called twice)."""
        edit = self._edits[number]
        call = self._recorder.call(edit.call_id)
        for other in (self._edits[n] for n in self._seen):
            known = self._recorder.call(other.call_id)
            if (
                type(other) is type(edit)
                and call is not None
                and known is not None
                and known.site is not None
                and (known.site, known.method) == (call.site, call.method)
            ):
                return True
        return False

    # -- recorded calls

    def _at(self, call_id: str) -> Any:  # noqa: ANN401
        if call_id in self._done:
            return self._done[call_id]
        logged = self._log.calls.get(call_id)
        if logged is None:
            raise CannotReplay(call_id, "it was not recorded")
        if logged.parent in self._log.calls:
            raise CannotReplay(self.name(call_id), f"it was made inside {self.name(logged.parent or '')}")
        self._building.add(call_id)
        dataset = self._own(logged)
        for link in self.laid.links_after.get(call_id, ()):
            dataset = self.link(link, dataset)
        self._building.discard(call_id)
        self.note(call_id)
        self._done[call_id] = dataset
        return dataset

    def _own(self, logged: LoggedCall) -> Any:  # noqa: ANN401
        if logged.id in self.laid.absent or logged.id in self.skipped:
            return self._input(logged)
        if logged.method in DATA_SOURCES or (
            not self._upstream.is_touched(logged.id) and self._upstream.is_free(logged.id)
        ):
            if logged.id in self.laid.arguments:
                raise CannotReplay(self.name(logged.id), "the data passed to it was not kept")
            wrapping = self.laid.data.get(logged.id)
            dataset = logged.dataset if wrapping is None else with_wrapped_data(self.name(logged.id), wrapping, logged)
            self.built.append(Built(logged.id, logged.method, None, dataset, is_new=wrapping is not None))
            return dataset
        input_dataset = None
        if logged.args and not logged.is_constructor and is_dataset(logged.args[0]):
            input_dataset = self._swap(logged.args[0])
        return self._call(logged, input_dataset)

    def _input(self, logged: LoggedCall) -> Any:  # noqa: ANN401
        if logged.is_constructor or not logged.args or not is_dataset(logged.args[0]):
            raise CannotReplay(self.name(logged.id), "it is not a transformation, so it cannot be removed")
        return self._swap(logged.args[0])

    def _call(self, logged: LoggedCall, input_dataset: Any) -> Any:  # noqa: ANN401
        """Replay a call with rebuilt datasets and edited arguments."""
        if input_dataset is None:
            args = logged.args[1:] if logged.is_constructor else logged.args
            args = tuple(self._swap(value) for value in args)
        else:
            args = (input_dataset, *(self._swap(value) for value in logged.args[1:]))
        kwargs = {name: self._swap(value) for name, value in logged.kwargs.items()}
        made = None
        if logged.is_constructor:
            cls = type(logged.args[0])
            made = object.__new__(cls)
            args = (made, *args)
        args, kwargs = self.changed(logged.id, logged.original, args, kwargs)
        args, kwargs = self.with_files(
            logged.id, logged.method, logged.original, args, kwargs, self._upstream.is_touched(logged.id)
        )
        if logged.id in self.laid.options:
            args, kwargs = self._with_options(logged, args, kwargs)
        split = self.laid.split.get(logged.id)
        name = self._names.get(logged.id, logged.id)
        # The calls that a new function makes are not those that were recorded.
        inside = "" if logged.id in self.laid.functions else logged.id
        with eager_seeds(self._seeding, logged.seeds, name), self._inner.inside(inside, made):
            if logged.id in self.laid.functions:
                result = with_new_function(self.name(logged.id), self.laid.functions[logged.id], logged, args, kwargs)
            elif logged.id in self.laid.vectorized:
                edit, is_first = self.laid.vectorized[logged.id], self._seeding == AS_RECORDED
                result = vectorized_call(self.name(logged.id), edit, logged, args, kwargs, is_first)
            elif isinstance(split, SplitFlatMap):
                input_dataset, result = self._split_flat_map(logged, split, args, kwargs)
            elif split is not None:
                if self._log.inner.get(logged.id):
                    raise CannotSplit(self.name(logged.id), "its function creates datasets")
                is_first = self._seeding == AS_RECORDED
                result = map_with_first_half(self.name(logged.id), split, logged, args, kwargs, is_first)
            else:
                result = attempted(self.name(logged.id), logged.original, args, kwargs)
        dataset = made if logged.is_constructor else result
        mark(dataset, logged.id)
        self._note_built(logged.id, logged.method, input_dataset, dataset)
        return dataset

    def _split_flat_map(
        self, logged: LoggedCall, edit: SplitFlatMap, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Return a parallel `map` with the first half of the function of a `flat_map`, and the `flat_map` with the second."""
        name, own_id = self.name(logged.id), first_id(logged.id)
        if self._seeding == AS_RECORDED:
            with self._inner.inside("", None):
                check_halves(name, edit, logged, args, kwargs)
        with self._inner.inside(own_id, None):
            mapped = parallel_map_with_first_half(name, edit, logged, args, kwargs, own_id)
        mark(mapped, own_id)
        self._note_built(own_id, "map", args[0], mapped)
        return mapped, call_with_second_half(name, edit, logged, (mapped, *args[1:]), kwargs)

    def _second_half(self, link_id: str, edit: SplitMap, dataset: Any) -> Any:  # noqa: ANN401
        logged, name = self._log.calls[edit.call_id], self.name(edit.call_id)
        args = (dataset, *(self._swap(value) for value in logged.args[1:]))
        kwargs = {key: self._swap(value) for key, value in logged.kwargs.items()}
        args, kwargs = self.changed(edit.call_id, logged.original, args, kwargs)
        kwargs["name"] = link_id
        with eager_seeds(self._seeding, logged.seeds, logged.id), self._inner.inside(link_id, None):
            result = call_with_second_half(name, edit, logged, args, kwargs)
        mark(result, link_id)
        return result

    def _swap(self, value: Any, depth: int = 4) -> Any:  # noqa: ANN401
        """Return `value` with its recorded datasets replaced by rebuilt ones."""
        if is_dataset(value):
            call_id = getattr(value, ID_ATTRIBUTE, None)
            if call_id is not None:
                return self._at(call_id)
            nearest = call_id_of(value)
            if nearest is not None and self._upstream.is_touched(nearest):
                raise CannotReplay(f"A {type(value).__name__}", "it was made by a call that is not recorded")
            return value
        if depth and isinstance(value, (list, tuple)) and any(has_dataset(item, depth) for item in value):
            items = [self._swap(item, depth - 1) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if depth and isinstance(value, dict) and any(has_dataset(item, depth) for item in value.values()):
            return type(value)((key, self._swap(item, depth - 1)) for key, item in value.items())
        return value

    def captured(self, value: Any) -> Any:  # noqa: ANN401
        """Return a value that a function uses; a dataset from outside of the function is rebuilt if an edit changes it."""
        if not is_dataset(value):
            return value
        call_id = getattr(value, ID_ATTRIBUTE, None)
        logged = self._log.calls.get(call_id) if isinstance(call_id, str) else None
        if logged is None or logged.dataset is not value or logged.id in self._building:
            return value  # a rebuilt dataset, or the one that is being built
        if logged.parent in self._log.calls or not self._upstream.is_touched(logged.id):
            return value
        with self._tf.init_scope(), self._recorder.paused():
            return self._at(logged.id)

    # -- links

    def link(self, link: Link, dataset: Any) -> Any:  # noqa: ANN401
        """Return the dataset with a link applied to it."""
        edit = link.edit
        if link.id in self.skipped or (self._skips_new_caches and adds_cache(edit)):
            result = dataset
            self.note(link.id)
        elif isinstance(edit, MoveAfter):
            logged = self._log.calls.get(link.id)
            if logged is None or logged.is_constructor or not logged.args or not is_dataset(logged.args[0]):
                raise CannotReplay(self.name(link.id), "it is not a transformation, so it cannot be moved")
            result = self._call(logged, dataset)
            self.note(link.id)
        elif isinstance(edit, SetOption):
            options = changed_options(self._tf.data.Options(), {edit.option: value_of(edit.value, self._tf)})
            with self._inner.inside(link.id, None):
                result = dataset.with_options(options, name=link.id)
            mark(result, link.id)
            self._note_built(link.id, "with_options", dataset, result)
        elif isinstance(edit, SplitMap):
            result = self._second_half(link.id, edit, dataset)
            self._note_built(link.id, "map", dataset, result)
            self.note(link.id)
        else:
            result = self._insert(link.id, edit, dataset)
            self._note_built(link.id, edit.method, dataset, result)
            self.note(link.id)
        self._seen.add(link.number)
        return result

    def _insert(self, link_id: str, edit: InsertAfter, dataset: Any) -> Any:  # noqa: ANN401
        method = getattr(type(dataset), edit.method, None)
        if method is None:
            raise CannotReplay(f".{edit.method}()", "datasets do not have this method")
        args = (dataset, *(value_of(value, self._tf) for name, value in edit.arguments if not name))
        kwargs = {name: value_of(value, self._tf) for name, value in edit.arguments if name}
        if "name" in inspect.signature(method).parameters:
            kwargs.setdefault("name", link_id)
        args, kwargs = self.changed(link_id, method, args, kwargs)
        args, kwargs = self.with_files(link_id, edit.method, method, args, kwargs, is_touched=True)
        with eager_seeds(self._seeding, self._anchor_seeds(edit.call_id), link_id), self._inner.inside(link_id, None):
            result = attempted(f".{edit.method}()", method, args, kwargs)
        mark(result, link_id)
        return result

    def _anchor_seeds(self, call_id: str) -> Seeds:
        logged = self._log.calls.get(call_id)
        return logged.seeds if logged is not None else Seeds(None, None)

    # -- arguments

    def changed(
        self, call_id: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Arguments:
        """Return the arguments with the changes of the `SetArgument` edits.

        Args:
            call_id: The call that is made again.
            function: What it calls, for the names of its parameters.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
        edited = self.laid.arguments.get(call_id, {})
        changes = {name: value_of(value, self._tf) for name, value in edited.items()}
        return with_changes(self.name(call_id), function, args, kwargs, changes)

    def _with_options(self, logged: LoggedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        changes = {name: value_of(value, self._tf) for name, value in self.laid.options[logged.id].items()}
        if len(args) > 1:
            return (args[0], changed_options(args[1], changes), *args[2:]), kwargs
        return args, {**kwargs, "options": changed_options(kwargs["options"], changes)}

    def with_files(
        self,
        call_id: str,
        method: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_touched: bool,
    ) -> Arguments:
        """Return the arguments with paths in the folder `files` instead of the script's.

        Args:
            call_id: The call that is made again; its path is named after it.
            method: Name of the tf.data method, which tells whether an argument is a path.
            function: What it calls, for the names of its parameters.
            args: Positional arguments.
            kwargs: Keyword arguments.
            is_touched: As in `with_own_files`.
        """
        own = None if self._files is None else self._files / call_id
        return with_own_files(self.name(call_id), method, function, args, kwargs, own, is_touched)

    # -- facts about calls

    def _note_built(self, call_id: str, method: str, input_dataset: Any, dataset: Any) -> None:  # noqa: ANN401
        is_inside = not self._tf.executing_eagerly()
        self.built.append(Built(call_id, method, input_dataset, dataset, is_new=True, is_inside=is_inside))

    def note(self, call_id: str) -> None:
        """Note that the edits of a call or link have been applied."""
        self._seen.update(self.laid.numbers.get(call_id, ()))

    def name(self, call_id: str) -> str:
        """Return a name of the call for error messages."""
        call = self._recorder.call(call_id)
        if call is None:
            return call_id
        return f"{call.method} at line {call.site.line}" if call.site is not None else call.method


__all__ = ["AS_RECORDED", "OTHER", "TWIN", "Built", "CannotReplay", "Replay"]
