"""Whether the function of a random `map` can be split so that its deterministic first half is cached, and what that takes.

In: an `Analysis` and a `map` whose function draws random numbers.  Out: `Split`: the fix, or the reason why there is none and the
line at which it could be cut by hand.
"""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from advisor.model.call_names import of_file
from advisor.model.calls import Call, FunctionFacts
from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove, SetArgument, SplitFunction, SplitMap
from advisor.model.finding import Fix, Safety
from advisor.model.op_effects import RESOURCE_READERS
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.regular_files import read_regular
from advisor.predict.cache_size import elements_per_epoch
from advisor.predict.caching import cache_places, movable_shuffles
from advisor.predict.determinism import (
    assumptions_of_function,
    cache_assumptions,
    cache_obstacles,
    reason_against_function,
)
from advisor.predict.structure import linear_chain
from advisor.splitting import CannotSplitError, Halves, split_function

E = TypeVar("E", bound=SplitFunction)


@dataclass(frozen=True, slots=True)
class Split:
    """A possible split of the function of one `map`."""

    line: int | None
    """The line at which the function is cut, or would be by an author; None if unknown."""
    reason: str = ""
    """Why there is no fix, as a clause; empty if there is one."""
    fix: Fix | None = None
    file: str = ""
    """The file of that line, if it is not that of the call."""
    names: tuple[str, ...] = ()
    """The values that the first half passes on."""
    ops: dict[str, int] | None = None
    """Op type -> number of such ops in the first half; None if unknown."""
    element_bytes: int | None = None
    """Size of these values for one element; None if unknown."""
    bytes: int | None = None
    """Size of the cache; None if unknown."""
    replaced: Call | None = None
    """The cache before the `map` that the new one replaces; None if there is none, or if it has to stay."""
    replaced_bytes: int | None = None
    """Size of that cache; None if there is none or if it is unknown."""

    @property
    def where(self) -> str:
        """The place of the cut in a sentence: `line 12`, `line 12 of data.py`; empty if it is unknown."""
        return "" if self.line is None else f"line {self.line}{of_file(self.file)}"

    @property
    def added_bytes(self) -> int | None:
        """Memory that the cache takes in addition to the one it replaces; None if unknown."""
        return None if self.bytes is None else max(0, self.bytes - (self.replaced_bytes or 0))


def split_of(analysis: Analysis, pipeline: Pipeline, call: Call, max_bytes: float) -> Split:
    """Return how the function of a `map` can be split.

    Args:
        analysis: The analysis.
        pipeline: The pipeline of the `map`.
        call: A call of `map` whose function draws random numbers.
        max_bytes: The largest cache.
    """
    chain = linear_chain(analysis, call)
    site = call.function.random_site if call.function is not None else None
    line, file = (None, "") if site is None else (site.line, file_beside(call, site.file))
    text = text_of_file(analysis, call)
    if text is None or call.function is None or len(chain) < 2:
        return Split(line, "its file cannot be read", file=file)
    try:
        read = partial(text_of, analysis)
        halves = split_function(text, call, chain[1].element_spec, is_in_script(analysis, call), read)
    except CannotSplitError as error:
        return Split(error.line or line, error.reason, file=file)
    count = elements_per_epoch(analysis, pipeline, call)
    size = None if halves.bytes is None or count is None else count * halves.bytes
    file = "" if halves.imported is None else halves.imported.file
    split = Split(halves.line, "", None, file, halves.names, halves.ops, halves.bytes, size)
    return _with_fix(analysis, pipeline, call, chain[1], halves, split, max_bytes)


def file_beside(call: Call, file: str) -> str:
    """Return a file if it is another one than that of the call; otherwise nothing."""
    return file if call.site is not None and call.site.file != file else ""


def _with_fix(
    analysis: Analysis, pipeline: Pipeline, call: Call, feeding: Call, halves: Halves, split: Split, max_bytes: float
) -> Split:
    assert call.function is not None
    first = facts_of_first(call.function, halves)
    reason = reason_against_function(analysis, call, first)
    if reason is not None:
        return replace(split, reason=f"its first half {reason}")
    place = next((place for place in cache_places(analysis, pipeline) if place.call.id == call.id), None)
    if place is None:
        return replace(split, reason="a cache there would not be read to its end in every epoch")
    split = replace(split, replaced=place.replaced, replaced_bytes=place.replaced_bytes)
    if split.added_bytes is not None and split.added_bytes > max_bytes:
        return replace(split, reason="what the first half passes on does not fit in memory")
    is_unordered = call.arguments.get("deterministic") is False or any(
        other.options.get("deterministic") is False for other in analysis.calls
    )
    if is_unordered:
        return replace(
            split, reason="its elements have no fixed order (deterministic=False), which a cache would freeze"
        )
    if any(other.method == "ignore_errors" for other in analysis.calls):
        return replace(split, reason="errors are ignored after it, and a cache does not store an element that fails")
    obstacles = cache_obstacles(analysis, feeding)
    movable = movable_shuffles(analysis, feeding)
    if len(movable) != len(obstacles):
        return replace(split, reason=f"{obstacles[0].call.method} before it cannot be moved after the cache")
    if call.library is not None or call.made_by is not None:
        return replace(split, reason="its map is called by a library")
    moves: list[Edit] = []
    for shuffle in movable:  # nearest first: each insertion directly after the call precedes the previous one
        if shuffle.method != "list_files":
            moves.append(MoveAfter(shuffle.id, call.id))
        else:
            moves.append(SetArgument(shuffle.id, "shuffle", False))
            moves.append(InsertAfter(call.id, "shuffle", (("", shuffle.cardinality),)))
    is_redrawn = any(shuffle.method == "list_files" for shuffle in movable)
    assumptions = tuple(
        dict.fromkeys(
            (
                *cache_assumptions(analysis, feeding),
                *assumptions_of_function(analysis, call, first),
                *halves.assumptions,
            )
        )
    )
    edit = split_edit(SplitMap, call, halves)
    removed = () if split.replaced is None else (Remove(split.replaced.id),)
    fix = Fix(
        (edit, *moves, InsertAfter(call.id, "cache"), *removed),
        Safety.RERANDOMIZED if is_redrawn else Safety.EXACT,
        is_auto=split.bytes is not None and not assumptions,
        assumptions=assumptions,
    )
    return replace(split, fix=fix)


def split_edit(kind: type[E], call: Call, halves: Halves) -> E:
    """Return the edit that writes these halves of the function of a call.

    Args:
        kind: `SplitMap` or `SplitFlatMap`, or another edit with the same fields.
        call: The call whose function is split.
        halves: Names and texts of both functions.
    """
    texts = halves.texts
    return kind(
        call.id,
        texts.first,
        texts.second,
        halves.names,
        texts.first_name,
        texts.second_name,
        texts.original,
        texts.line,
        texts.is_replaced,
        texts.wrapped,
        halves.imported.file if halves.imported is not None else "",
        halves.imported.beside if halves.imported is not None else "",
    )


def facts_of_first(function: FunctionFacts, halves: Halves) -> FunctionFacts:
    """Return what is known about the first half: its ops, and all resources of the function if it may read one of them.

    Args:
        function: The facts about the whole function.
        halves: The split, which counts the ops of the first half.
    """
    ops = halves.ops
    reads = any(op in RESOURCE_READERS for op in ops)
    return replace(
        function,
        ops=ops,
        random_ops=(),
        python_ops=tuple(op for op in function.python_ops if op in ops),
        stateful_ops=None if function.stateful_ops is None else tuple(op for op in function.stateful_ops if op in ops),
        resources=function.resources if reads else (),
        captured=function.captured if reads else (),
        is_stateful=False,
    )


def text_of_file(analysis: Analysis, call: Call) -> str | None:
    """Return the text of the file that contains the call; None if it cannot be read."""
    return None if call.site is None else text_of(analysis, call.site.file)


def text_of(analysis: Analysis, file: str) -> str | None:
    """Return the text of a file; None if it cannot be read.

    Args:
        analysis: The analysis, which may hold the text.
        file: The file, as recorded calls name it.
    """
    if file in analysis.texts:
        return analysis.texts[file]
    try:
        data = read_regular(Path(file))
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (OSError, SyntaxError, UnicodeError, LookupError):
        return None


def is_in_script(analysis: Analysis, call: Call) -> bool:
    """Return whether the call is in the script itself, whose functions no other file imports."""
    recording = analysis.recording
    if recording is None or call.site is None or not recording.argv:
        return False
    return (Path(recording.cwd) / recording.argv[0]).resolve() == Path(call.site.file).resolve()
