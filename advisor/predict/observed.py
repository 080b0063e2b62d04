"""Evaluates recorded observations of state outside the pipeline: changes, and the assumptions that a cache requires.

In: a `Recording` and its calls.  Out: changes as reasons, assumptions as clauses, for `predict/determinism.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from advisor.host.calibration.analysis import MIN_PYTHON_REPEATS
from advisor.model import state
from advisor.model.calls import Call, FunctionFacts
from advisor.model.op_effects import FILE_READING_OPS
from advisor.model.recording import GeneratorPasses, Recording, RepeatedCalls
from advisor.model.state import CapturedResource, ObservedState
from advisor.model.units import format_count

_FILE_METHODS = frozenset({"CsvDataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset", "load"})
_WHILE = "while training runs"
_VERBS = {state.VARIABLE: "assigned", state.MUTABLE_TABLE: "changed"}


class Observations:
    """The observed state of one recording, by id and by call."""

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        observed = recording.state if recording is not None else None
        self._by_id: dict[str, ObservedState] = {item.id: item for item in observed or ()}
        self._by_call: dict[str, list[ObservedState]] = {}
        self._generators = {item.call_id: item for item in recording.generators} if recording is not None else {}
        self._python = {item.call_id: item for item in recording.python_calls} if recording is not None else {}
        for item in observed or ():
            for call_id in item.call_ids:
                self._by_call.setdefault(call_id, []).append(item)

    def change_of(self, call: Call) -> str | None:
        """Describe the first change of state that the call reads, with the call as the subject; None if none was observed."""
        return next((_sentence(item) for item in self._states(call) if item.change is not None), None)

    def passes_of(self, call: Call) -> GeneratorPasses | None:
        """Return the passes over a Python generator whose elements were the same in at least two; None for all others."""
        seen = self._generators.get(call.id)
        if seen is None or seen.passes < 2 or not seen.is_same or not seen.elements or self.change_of(call) is not None:
            return None
        return seen

    def repeats_of(self, call: Call) -> RepeatedCalls | None:
        """Return the calls of the Python functions in a call's function, if enough were repeated and returned the same."""
        seen = self._python.get(call.id)
        if (
            seen is None
            or not seen.is_same
            or seen.repeats < MIN_PYTHON_REPEATS.value
            or self.change_of(call) is not None
        ):
            return None
        return seen

    def reason_against_reading_ahead(self, call: Call) -> str | None:
        """Why the elements of the call may depend on when it runs, with the call as the subject; None: no change was seen."""
        changed = self.change_of(call)
        if changed is not None or self._recording is None or self._recording.state is not None:
            return changed
        for resource in call.function.resources if call.function is not None else ():
            if resource.kind in state.OBSERVABLE_KINDS:
                name = f" `{resource.name}`" if resource.name else ""
                return f"reads the {resource.kind}{name}, which was not watched"
        return None

    def assumptions(self, call: Call, dependencies: Iterable[Call]) -> Iterator[str]:
        """Describe the conditions for equal elements in every epoch that no observation established.

        Args:
            call: The call that reads the state.
            dependencies: All calls upstream of the cache; one of them may name the files that `call` reads.

        Yields:
            Clauses such as "the variable `scale` is not assigned while training runs".
        """
        for resource in call.function.resources if call.function is not None else ():
            if resource.kind in state.OBSERVABLE_KINDS:
                yield self._of_resource(resource)
        passes = self.passes_of(call)
        if passes is not None:
            yield _of_generator(call, passes)
        repeats = self.repeats_of(call)
        if repeats is not None:
            yield _of_python(call, repeats)
        for item in self._by_call.get(call.id, ()):
            if item.kind == state.FILE and item.is_written_before and item.change is None:
                yield f"{_file_name(item.name)}, which the script writes before the first epoch, is not written again {_WHILE}"
        if self._recording is not None:
            yield from self._of_files(call, dependencies)

    def reads_mutable_state(self, function: FunctionFacts) -> bool:
        """Return whether the function captures a resource of a kind that can change."""
        return any(item.kind not in (*state.CONSTANT_KINDS, state.DATASET) for item in function.resources)

    def _states(self, call: Call) -> Iterator[ObservedState]:
        for resource in call.function.resources if call.function is not None else ():
            if resource.id in self._by_id:
                yield self._by_id[resource.id]
        yield from self._by_call.get(call.id, ())

    def _of_resource(self, resource: CapturedResource) -> str:
        name = f" `{resource.name}`" if resource.name else ""
        subject = f"the {resource.kind}{name} that the function reads" if not name else f"the {resource.kind}{name}"
        seen = self._by_id.get(resource.id)
        if seen is None or not seen.is_compared:
            evidence = "its contents were not compared"
        elif seen.epochs < 2:
            evidence = "fewer than two epochs were observed"
        else:
            evidence = f"it was the same at the beginning of {seen.epochs} epochs"
        return f"{subject} is not {_VERBS[resource.kind]} {_WHILE} ({evidence})"

    def _of_files(self, call: Call, dependencies: Iterable[Call]) -> Iterator[str]:
        ops = FILE_READING_OPS & (call.function.ops.keys() if call.function is not None else frozenset())
        name = call.function.name if call.function is not None and call.function.name else call.method
        if "MatchingFiles" in ops:
            yield f"no file is added to or removed from those that `{name}` lists {_WHILE}"
        if not ops and call.method not in _FILE_METHODS:
            return
        watched = {item.id for item in dependencies} & {
            call_id for call_id, states in self._by_call.items() if any(item.kind == state.FILE for item in states)
        }
        if self._recording is not None and self._recording.state is None:
            yield f"the files that `{name}` reads are not rewritten {_WHILE} (they were not observed)"
        elif not watched:
            yield f"the files that `{name}` reads are not rewritten {_WHILE} (their names are unknown)"


def _of_generator(call: Call, seen: GeneratorPasses) -> str:
    name = f" `{call.function.name}`" if call.function is not None and call.function.name else ""
    compared = "all" if seen.compared == seen.elements else f"{format_count(seen.compared)} compared ones of its"
    return (
        f"the Python generator{name} yields the same elements in every epoch and is run for them alone ({compared} "
        f"{format_count(seen.elements)} elements were bit-identical in {seen.passes} epochs)"
    )


def _of_python(call: Call, seen: RepeatedCalls) -> str:
    name = f" in `{call.function.name}`" if call.function is not None and call.function.name else ""
    return (
        f"the Python code{name} returns the same for the same element and is run for its result alone "
        f"({format_count(seen.repeats)} repeated calls were bit-identical)"
    )


def _sentence(seen: ObservedState) -> str:
    """`reads the mutable table `table`, which was changed after epoch 1 had begun (train.py:31)`."""
    change = seen.change
    assert change is not None
    name = _file_name(seen.name) if seen.kind == state.FILE else f"`{seen.name}`" if seen.name else "without a name"
    where = f" ({PurePath(change.file.replace(chr(92), '/')).name}:{change.line})" if change.file else ""
    return f"reads the {seen.kind} {name}, which {change.how} after epoch {change.epoch} had begun{where}"


def _file_name(path: str) -> str:
    return PurePath(path.replace("\\", "/")).name
