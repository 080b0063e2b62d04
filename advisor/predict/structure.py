"""Which calls feed a call, and which iterators belong to one.

In: an `Analysis`.  Out: calls and iterators, nearest first.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call


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
    by_id = {each.id: each for each in analysis.calls}
    found: dict[str, Call] = {}
    level = [call]
    while level:
        found |= {each.id: each for each in level}
        level = [by_id[i] for each in level for i in each.inputs if i in by_id and i not in found]
    return tuple(found.values())


def nested_calls(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Calls made inside the function of `call`, at any depth, and those made by the call itself."""
    found: dict[str, Call] = {}
    owners = {call.id}
    while owners:
        level = [
            each
            for each in analysis.calls
            if each.id not in found and each.id != call.id and (each.nested_in in owners or each.made_by in owners)
        ]
        found |= {each.id: each for each in level}
        owners = {each.id for each in level}
    return tuple(found.values())


def iterators_inside(analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call) -> list[Iterator]:
    """The iterator of an `interleave` call and everything that the call's function made; not its input."""
    outer = {each.id for each in upstream_calls(analysis, call) if each.id != call.id}
    inside = [it for it in pipeline.upstream(iterator) if not outer.intersection(each.id for each in it.calls)]
    return [iterator, *inside]
