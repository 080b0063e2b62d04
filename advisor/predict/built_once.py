"""Judges whether a dataset that the script makes again in every epoch may be made once, before the loop.

In: an `Analysis` and the `Remade` dataset.  Out: `BuiltOnce`: the effect on the data and the memory, or the reason why not.

An iteration over the same dataset reads the same files and calls the same functions as one over an equal new dataset. What
differs is what a dataset keeps between its iterations: the order of a shuffle, the state of random ops, and the elements of a
cache. What the script does while it makes the dataset is judged from its text (`advisor.rewrite.build_once`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.model.calls import Call
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.cache_size import cache_bytes
from advisor.predict.determinism import ORDER, cache_assumptions, own_obstacles
from advisor.predict.limit_names import call_and_line
from advisor.predict.remade_calls import Remade
from advisor.predict.splits import text_of_file

_SHUFFLES = ("shuffle", "list_files")


@dataclass(frozen=True, slots=True)
class BuiltOnce:
    """The effect of making a dataset once."""

    reason: str = ""
    """Why it is not known to give the same data, as a clause; empty if it is."""
    safety: Safety = Safety.EXACT
    assumptions: tuple[str, ...] = ()
    bytes: int | None = 0
    """Size of the caches that are kept from then on; None if unknown."""


def built_once(analysis: Analysis, pipeline: Pipeline, again: Remade) -> BuiltOnce:
    """Return the effect of making the dataset once.

    Args:
        analysis: The analysis.
        pipeline: The pipeline that reads the dataset.
        again: What the script makes again.
    """
    if not again.is_all_equal:
        return BuiltOnce("some of the datasets were made with other arguments")
    if pipeline.consumer is None or pipeline.consumer.site is None:
        return BuiltOnce("the line that reads it is unknown")
    reason = next(_reasons(analysis, again), "")
    if reason:
        return BuiltOnce(reason)
    is_redrawn = any(_draws_an_order(call) for call in again.calls)
    sizes = [cache_bytes(analysis, pipeline, cache) for cache in again.caches]
    assumptions = dict.fromkeys(clause for cache in again.caches for clause in cache_assumptions(analysis, cache))
    if any(call.method == "list_files" for call in again.calls):
        assumptions["no file is added to or removed from those that list_files lists while training runs"] = None
    return BuiltOnce(
        safety=Safety.RERANDOMIZED if is_redrawn else Safety.EXACT,
        assumptions=tuple(assumptions),
        bytes=None if None in sizes else sum(size for size in sizes if size is not None),
    )


def are_in_one_statement(analysis: Analysis, calls: Sequence[Call]) -> bool:
    """Return whether the text of all calls is in the same statement of a file, so that they can be moved and reordered at once.

    Args:
        analysis: The analysis.
        calls: Some calls.
    """
    text = text_of_file(analysis, calls[0]) if calls else None
    try:
        statements = [node for node in ast.walk(ast.parse(text or "")) if isinstance(node, ast.stmt)]
    except (SyntaxError, ValueError):
        return False
    found = set[int | None]()
    for call in calls:
        around = [
            number
            for number, node in enumerate(statements)
            if call.site is not None
            and call.site.file == (calls[0].site.file if calls[0].site is not None else "")
            and (node.lineno, node.col_offset) < (call.site.line, call.site.column)
            and (call.site.end_line, call.site.end_column - 1) <= (node.end_lineno or 0, node.end_col_offset or 0)
        ]
        found.add(max(around, default=None))  # `ast.walk` goes from the outside in
    return len(found) == 1 and None not in found


def _reasons(analysis: Analysis, again: Remade) -> Iterator[str]:
    ids = {call.id for call in again.calls}
    for obstacle in own_obstacles(analysis, again.calls[0]):
        is_shuffle = obstacle.kind == ORDER and obstacle.call.method in _SHUFFLES
        if obstacle.call.id in ids and not is_shuffle:
            yield f"{call_and_line(obstacle.call)} {obstacle.reason}"
    for call in again.calls:
        if call.method == "from_generator" or (call.function is not None and call.function.python_ops):
            yield f"{call_and_line(call)} runs Python code"
        is_one_order = call.method == "shuffle" and call.arguments.get("reshuffle_each_iteration") is False
        if is_one_order and call.arguments.get("seed") is None:
            yield f"{call_and_line(call)} draws one order when it is made, so that every epoch would have that of the first"
    yield from _reasons_of_caches(analysis, again.caches)


def _reasons_of_caches(analysis: Analysis, caches: Sequence[Call]) -> Iterator[str]:
    """Why a cache must not keep the elements of the first epoch."""
    for cache in caches:
        for obstacle in own_obstacles(analysis, cache):
            yield (
                f"{call_and_line(cache)} would keep the elements of the first epoch, and {call_and_line(obstacle.call)} before "
                f"it {obstacle.reason}"
            )


def _draws_an_order(call: Call) -> bool:
    """Whether a call shuffles, so that the orders of later epochs depend on how often the dataset was made before."""
    if call.method == "list_files":
        return call.arguments.get("shuffle") is not False
    return call.method == "shuffle" and call.arguments.get("reshuffle_each_iteration") is not False
