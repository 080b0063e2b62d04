"""Finds the rewrites that tf.data would apply by itself and the options that prevent them.

In: an `Analysis` and one of its pipelines.  Out: the options that forbid a rewrite, and the affected calls.
"""

from __future__ import annotations

from collections.abc import Iterator as Iter

from advisor.model import catalog
from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.structure import consumed_call, upstream_calls

FORBIDDING_OPTIONS = (
    "autotune.enabled",
    "experimental_optimization.autotune",
    "experimental_optimization.apply_default_optimizations",
)
"""Options that, set to False, keep tf.data from parallelizing maps and from adding a prefetch at the end."""


def forbidding_options(analysis: Analysis, pipeline: Pipeline) -> Iter[tuple[Call, str]]:
    """Yield the calls of the pipeline that disable autotuning or the default optimizations, with the name of the option."""
    consumed = consumed_call(analysis, pipeline)
    for call in upstream_calls(analysis, consumed) if consumed else ():
        for option in FORBIDDING_OPTIONS:
            if call.options.get(option) is False:
                yield call, option


def is_rewrite_forbidden(analysis: Analysis, pipeline: Pipeline) -> bool:
    """Return whether an option prevents the rewrites; the rule `autotune-off` then reports the option."""
    return any(True for _ in forbidding_options(analysis, pipeline))


def is_sequential_stateless_map(iterator: Iterator) -> bool:
    """Return whether this is a serial map that tf.data would run in parallel if its rewrites were enabled."""
    kind = catalog.base_type(iterator.name)
    maps = [call for call in iterator.calls if call.method == "map" and call.nested_in is None]
    is_sequential = kind == "Map" or (kind == "MapAndBatch" and iterator.parallelism == 1)
    return (
        is_sequential
        and bool(maps)
        and all(
            call.arguments.get("num_parallel_calls") is None
            and call.function is not None
            and not call.function.is_stateful
            for call in maps
        )
    )


def top_iterator(pipeline: Pipeline) -> Iterator | None:
    """Return the last iterator before the consumer that does work; None if there is none."""
    return next(
        (it for it in pipeline.iterators if catalog.base_type(it.name) not in ("Root", "Model", "Options")), None
    )


def serial_maps(iterator: Iterator) -> tuple[Call, ...]:
    """Return the map calls that run serially in this iterator; empty if one of them sets `num_parallel_calls`."""
    kind = catalog.base_type(iterator.name)
    if kind != "Map" and not (kind == "MapAndBatch" and iterator.parallelism == 1 and not iterator.is_autotuned):
        return ()
    calls = tuple(call for call in iterator.calls if call.method == "map")
    return calls if all(call.arguments.get("num_parallel_calls") is None for call in calls) else ()
