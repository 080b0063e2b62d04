"""What tf.data would do by itself, and what keeps it from doing so.

In: an `Analysis` and one of its pipelines.  Out: the options that forbid a rewrite, and what runs otherwise for it.
"""

from __future__ import annotations

from collections.abc import Iterator as Iter

from advisor.model import catalog
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call
from advisor.predict.structure import consumed_call, upstream_calls

FORBIDDING_OPTIONS = (
    "autotune.enabled",
    "experimental_optimization.autotune",
    "experimental_optimization.apply_default_optimizations",
)
"""Set to False, each keeps tf.data from parallelising maps and from putting a prefetch at the end."""


def forbidding_options(analysis: Analysis, pipeline: Pipeline) -> Iter[tuple[Call, str]]:
    """The calls of the pipeline that switch autotuning or the default optimizations off, with the option's name."""
    consumed = consumed_call(analysis, pipeline)
    for call in upstream_calls(analysis, consumed) if consumed else ():
        for option in FORBIDDING_OPTIONS:
            if call.options.get(option) is False:
                yield call, option


def is_rewrite_forbidden(analysis: Analysis, pipeline: Pipeline) -> bool:
    """Whether some option forbids them: then the option is the cause of what is missing, and `autotune-off` speaks."""
    return any(True for _ in forbidding_options(analysis, pipeline))


def is_sequential_stateless_map(iterator: Iterator) -> bool:
    """Whether tf.data would run this map in parallel if it might."""
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
    """The last iterator before the consumer that does something."""
    return next(
        (it for it in pipeline.iterators if catalog.base_type(it.name) not in ("Root", "Model", "Options")), None
    )


def serial_maps(iterator: Iterator) -> tuple[Call, ...]:
    """The map calls that run one at a time in this iterator, none of which was told a number of parallel calls."""
    kind = catalog.base_type(iterator.name)
    if kind != "Map" and not (kind == "MapAndBatch" and iterator.parallelism == 1 and not iterator.is_autotuned):
        return ()
    calls = tuple(call for call in iterator.calls if call.method == "map")
    return calls if all(call.arguments.get("num_parallel_calls") is None for call in calls) else ()
