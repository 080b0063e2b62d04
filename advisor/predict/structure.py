"""Which calls feed a call, and which iterators belong to one.

In: an `Analysis`.  Out: calls and iterators, nearest first.
"""

from __future__ import annotations

import re

from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call
from advisor.predict.call_index import index_of

_BLIND = frozenset({"shuffle", "repeat", "prefetch", "take", "skip", "shard", "with_options"})
"""Transformations that do not look at their elements: a map does the same before and behind them."""


def consumed_call(analysis: Analysis, pipeline: Pipeline) -> Call | None:
    """The call whose dataset the pipeline's consumer reads; None if that cannot be told.

    Where the consumer is unknown, it is the one call that the executed iterators lead to and that no other call builds on.
    """
    call_id = pipeline.consumer.call_id if pipeline.consumer else None
    for call in analysis.calls:
        if call.id == call_id:
            return call
    executed = {call.id for it in pipeline.iterators for call in it.calls}
    built_on = {call_id for call in analysis.calls for call_id in call.inputs}
    ends = [
        call
        for call in analysis.calls
        if call.id not in built_on
        and call.nested_in is None
        and call.made_by is None
        and any(each.id in executed for each in upstream_calls(analysis, call))
    ]
    return ends[0] if len(ends) == 1 else None


def upstream_calls(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """`call` and every call that feeds it, sources last; nested ones (inside functions) not among them."""
    by_id = index_of(analysis).by_id
    found: dict[str, Call] = {}
    level = [call]
    while level:
        found |= {each.id: each for each in level}
        wanted = dict.fromkeys(i for each in level for i in each.inputs if i in by_id and i not in found)
        level = [by_id[i] for i in wanted]
    return tuple(found.values())


def linear_chain(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """`call` and what feeds it, one after the other, until one has no input or several; nearest first."""
    by_id = index_of(analysis).by_id
    found = [call]
    while len(found[-1].inputs) == 1 and found[-1].inputs[0] in by_id and len(found) <= len(by_id):
        found.append(by_id[found[-1].inputs[0]])
    return tuple(found)


def iterators_of_call(pipeline: Pipeline, call: Call) -> tuple[Iterator, ...]:
    """The executed iterators that stand for `call`, alone or fused; nearest to the root first."""
    return tuple(it for it in pipeline.iterators if any(each.id == call.id for each in it.calls))


def file_count(analysis: Analysis, call: Call) -> int | None:
    """How many files a reader (`TFRecordDataset`, `TextLineDataset`, ...) is given; None: unknown."""
    files = call.arguments.get("filenames")
    if not isinstance(files, str):
        return None
    if files == "<dataset>":
        counts = [each.cardinality for each in analysis.calls if each.id in call.inputs]
        return counts[0] if len(counts) == 1 and counts[0] is not None and counts[0] >= 0 else None
    listed = re.fullmatch(r"<(?:list|tuple) of (\d+)>", files) or re.fullmatch(
        r"<(?:tensor|array) \w+ \((\d+),\)>", files
    )
    if listed:
        return int(listed[1])
    return None if files.startswith("<") else 1


def batch_behind(pipeline: Pipeline, iterator: Iterator) -> Call | None:
    """The `batch` that the elements of a map go into, if nothing in between looks at single elements; else None."""
    node: Iterator | None = iterator
    own = next((i for i, call in enumerate(iterator.calls) if call.method == "map"), 0)
    calls = list(iterator.calls[own + 1 :])
    while node is not None:
        for call in calls:
            if call.method == "batch":
                return call
            if call.method not in _BLIND:
                return None
        node = pipeline.parent(node)
        calls = list(node.calls) if node is not None else []
    return None


def nested_calls(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Calls made inside the function of `call`, at any depth, and those made by the call itself."""
    index = index_of(analysis)
    found: dict[str, Call] = {}
    level = [call]
    while level:
        made = {each.id: each for owner in level for each in index.inside.get(owner.id, ())}
        level = [each for each in made.values() if each.id not in found and each.id != call.id]
        level.sort(key=lambda each: index.place[each.id])
        found |= {each.id: each for each in level}
    return tuple(found.values())


def iterators_inside(analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call) -> list[Iterator]:
    """The iterator of an `interleave` call and everything that the call's function made; not its input."""
    outer = {each.id for each in upstream_calls(analysis, call) if each.id != call.id}
    inside = [it for it in pipeline.upstream(iterator) if not outer.intersection(each.id for each in it.calls)]
    return [iterator, *inside]
