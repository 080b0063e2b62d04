"""Finds the upstream calls of a call and the iterators that belong to it.

In: an `Analysis`.  Out: calls and iterators, nearest first.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.call_index import graph_of

_BLIND = frozenset({"shuffle", "repeat", "prefetch", "take", "skip", "shard", "with_options"})
"""Transformations that do not inspect their elements, so that a map before them is equivalent to a map after them."""


STAYING = frozenset({"prefetch"})
"""Calls that may follow a map inside a function and stay there if the map leaves it: they do not care what elements hold."""


def consumed_call(analysis: Analysis, pipeline: Pipeline) -> Call | None:
    """Return the call whose dataset the consumer reads; None if it cannot be determined.

    If the consumer is unknown, it is the only call with executed iterators that no other call consumes.
    """
    call_id = pipeline.consumer.call_id if pipeline.consumer else None
    for call in analysis.calls:
        if call.id == call_id:
            return call
    executed = {call.id for it in pipeline.iterators for call in it.calls}
    graph = graph_of(analysis)
    ends = [
        call
        for call in analysis.calls
        if not graph.is_consumed(call)
        and call.nested_in is None
        and call.made_by is None
        and any(other.id in executed for other in graph.upstream(call))
    ]
    return ends[0] if len(ends) == 1 else None


def upstream_calls(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Return `call` and its upstream calls, sources last, without calls nested in functions."""
    return graph_of(analysis).upstream(call)


def linear_chain(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Return `call` and its upstream calls, nearest first, up to a call that has no input or several."""
    return graph_of(analysis).line(call)


def iterators_of_call(pipeline: Pipeline, call: Call) -> tuple[Iterator, ...]:
    """Return the iterators that represent `call`, alone or fused with others, nearest to the root first."""
    return tuple(it for it in pipeline.iterators if any(other.id == call.id for other in it.calls))


def copies_of(pipeline: Pipeline, iterator: Iterator) -> tuple[Iterator, ...]:
    """Return the iterators that run the calls of `iterator` as it does, itself among them.

    A dataset that is used twice runs as several iterators; what its call costs is the sum.

    Args:
        pipeline: The executed pipeline.
        iterator: One of its iterators; an iterator without calls has no copies.
    """
    calls = {call.id for call in iterator.calls}
    return tuple(
        it
        for it in pipeline.iterators
        if it.id == iterator.id or (calls and it.name == iterator.name and {call.id for call in it.calls} == calls)
    )


def wait_share_of(pipeline: Pipeline, call: Call) -> float:
    """Return the share of the wait that a call causes: a dataset that is used twice runs as several iterators.

    Args:
        pipeline: The executed pipeline.
        call: One of its calls.

    Returns:
        The share, 0 to 1; 0 if no iterator represents the call.
    """
    return sum(it.blame_share for it in iterators_of_call(pipeline, call))


def share_of_wait(pipeline: Pipeline, iterator: Iterator) -> float:
    """Return the share of the wait that an iterator causes together with its copies.

    Args:
        pipeline: The executed pipeline.
        iterator: One of its iterators.

    Returns:
        The share, 0 to 1.
    """
    return sum(it.blame_share for it in copies_of(pipeline, iterator))


def file_count(analysis: Analysis, call: Call) -> int | None:
    """Return the number of files that are passed to a reader (`TFRecordDataset`, ...); None if unknown."""
    files = call.arguments.get("filenames")
    if not isinstance(files, str):
        return None
    if files == "<dataset>":
        counts = [other.cardinality for other in analysis.calls if other.id in call.inputs]
        return counts[0] if len(counts) == 1 and counts[0] is not None and counts[0] >= 0 else None
    listed = re.fullmatch(r"<(?:list|tuple) of (\d+)>", files) or re.fullmatch(
        r"<(?:tensor|array) \w+ \((\d+),\)>", files
    )
    if listed:
        return int(listed[1])
    return None if files.startswith("<") else 1


def batch_after(pipeline: Pipeline, iterator: Iterator, methods: Collection[str] = ("batch",)) -> Call | None:
    """Return the `batch` that follows a map, if no call in between inspects single elements; otherwise None.

    A map that comes last inside the function of an `interleave` or `flat_map`, but for a `prefetch`, is followed by what follows
    that call.

    Args:
        pipeline: The pipeline.
        iterator: The map's iterator.
        methods: The methods that count as a batch.
    """
    own = next((i for i, call in enumerate(iterator.calls) if call.method == "map"), 0)
    following = (iterator.calls[own + 1 :], *(node.calls for node in pipeline.downstream(iterator)))
    outer = iterator.calls[own].nested_in if iterator.calls else None
    is_last = True
    for call in chain.from_iterable(following):
        if call.method in methods:
            return call if call.nested_in in (None, outer) else None
        if call.id == outer and is_last:
            continue
        if call.method not in _BLIND:
            return None
        is_last = is_last and (outer is None or call.nested_in != outer or call.method in STAYING)
    return None


def users_inside(analysis: Analysis, call: Call) -> tuple[Call, ...] | None:
    """Return the calls that follow a call inside the same function, nearest first; None if one is followed by more than one."""
    return graph_of(analysis).line_after(call)


def nested_calls(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Return the calls made inside the function of `call`, at any depth, and those made by the call itself."""
    return graph_of(analysis).nested(call)


def iterators_inside(analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call) -> list[Iterator]:
    """Return the iterator of an `interleave` call and the iterators of the datasets that it opens, without its input.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        iterator: The iterator of the `interleave`, or a copy of it.
        call: The `interleave` call that it runs.
    """
    outer = {other.id for other in upstream_calls(analysis, call) if other.id != call.id}
    inside = [it for it in pipeline.upstream(iterator) if not outer.intersection(other.id for other in it.calls)]
    return [iterator, *inside]
