"""Computes the calls that would have been recorded if the script had the edits.

In: a finished `Replay`.  Out: `Call`s. Changed calls keep their ids, new calls have their `inserted_id`, and removed calls are
missing. So the profile of an edited pipeline can be analyzed like any other, and findings refer to calls of the script.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.traced_functions import function_facts
from advisor.capture.instrument.value_summaries import describe, element_facts
from advisor.model.calls import Call, FunctionFacts, Scalar
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetOption, SplitFlatMap, SplitFunction, SplitMap, Value
from advisor.replay.call_arguments import INTEGERS
from advisor.replay.edited import Link, first_id
from advisor.replay.replay import Replay

_AUTOTUNE = INTEGERS["tf.data.AUTOTUNE"]


def edited_calls(recorder: Recorder, work: Replay) -> tuple[Call, ...]:
    """Return all recorded calls with the edits.

    Args:
        recorder: The recorder of the original calls.
        work: The finished replay.
    """
    calls = {call.id: call for call in recorder.calls()}
    links = {link.id: (anchor, link) for anchor, followers in work.laid.links_after.items() for link in followers}
    firsts = {first_id(split_id): edit for split_id, edit in work.laid.split.items() if isinstance(edit, SplitFlatMap)}
    for built in work.built:
        call = calls.get(built.id)
        if call is None and built.id in firsts:
            call = _new_call(built.id, built.method, firsts[built.id], calls.get(firsts[built.id].call_id))
        elif call is None:
            anchor, link = links[built.id]
            call = _new_call(built.id, built.method, link.edit, calls.get(anchor))
        elif built.id in links:  # it may have been moved out of a function
            call = replace(call, nested_in=calls[links[built.id][0]].nested_in)
        half = firsts[built.id].first_name or "<lambda>" if built.id in firsts else _name_of_half(work, built.id, links)
        spec, size, cardinality = element_facts(built.dataset)
        if call.nested_in is not None:
            cardinality = None
        if built.id in work.laid.functions:
            half = "<lambda>"
        if half is not None:
            call = replace(call, function=_facts_of_half(half, built.dataset))
        inputs = (_id(built.input),) if built.input is not None else tuple(work.output_id(i) for i in call.inputs)
        calls[built.id] = replace(call, inputs=inputs, element_spec=spec, element_bytes=size, cardinality=cardinality)
    for call_id in work.laid.arguments.keys() & calls.keys():
        calls[call_id] = _with_arguments(calls[call_id], work.laid.arguments[call_id])
    for call_id in work.laid.options.keys() & calls.keys():
        options = {**calls[call_id].options, **{n: _scalar(v) for n, v in work.laid.options[call_id].items()}}
        calls[call_id] = replace(calls[call_id], options={n: v for n, v in options.items() if v is not None})
    _rewire_nested(calls, {call.id: call for call in recorder.calls()}, work)
    moved = {link.id for _, link in links.values() if isinstance(link.edit, MoveAfter)}
    return tuple(
        call
        for call in calls.values()
        if (call.id not in work.laid.absent or call.id in moved)
        and call.id not in work.skipped
        and call.nested_in not in work.laid.functions
    )


def _name_of_half(work: Replay, call_id: str, links: Mapping[str, tuple[str, Link]]) -> str | None:
    """Return the name of the half of a split function that a call applies; None if it applies none."""
    edit = links[call_id][1].edit if call_id in links else None
    if isinstance(edit, SplitMap):
        return edit.second_name or "<lambda>"
    split = work.laid.split.get(call_id)
    if split is None:
        return None
    return (split.first_name if isinstance(split, SplitMap) else split.second_name) or "<lambda>"


def _facts_of_half(name: str, dataset: Any) -> FunctionFacts | None:  # noqa: ANN401
    facts = function_facts(dataset, None, None)
    return None if facts is None else replace(facts, name=name)


def _new_call(
    call_id: str, method: str, edit: InsertAfter | MoveAfter | SetOption | SplitFunction, anchor: Call | None
) -> Call:
    arguments: dict[str, Scalar] = {}
    options: dict[str, Scalar] = {}
    if isinstance(edit, InsertAfter):
        arguments = {name or f"arg{i}": _scalar(value) for i, (name, value) in enumerate(edit.arguments)}
    elif isinstance(edit, SetOption):
        options = {edit.option: _scalar(edit.value)}
    elif isinstance(edit, SplitFlatMap):
        arguments = {"num_parallel_calls": _AUTOTUNE}
    elif isinstance(edit, SplitMap) and anchor is not None:
        arguments = {name: value for name, value in anchor.arguments.items() if name != "name"}
    if method == "prefetch" and "arg0" in arguments:
        arguments["buffer_size"] = arguments.pop("arg0")
    return Call(
        id=call_id,
        method=method,
        site=anchor.site if anchor is not None else None,
        arguments=arguments,
        explicit=tuple(arguments),
        nested_in=anchor.nested_in if anchor is not None else None,
        options=options,
        text=f".{method}(...)" if arguments or options else f".{method}()",
    )


def _with_arguments(call: Call, changed: dict[str, Value]) -> Call:
    arguments = {**call.arguments, **{name: _scalar(value) for name, value in changed.items()}}
    explicit = (*call.explicit, *(name for name in changed if name not in call.explicit))
    return replace(call, arguments=arguments, explicit=explicit)


def _rewire_nested(calls: dict[str, Call], recorded: Mapping[str, Call], work: Replay) -> None:
    """Change the inputs of calls inside functions. The replay does not build these, so the inputs follow from the edits.

    Args:
        calls: The calls with the edits, by id.
        recorded: The calls without them.
        work: The finished replay.
    """
    for anchor, followers in work.laid.links_after.items():
        call = calls.get(anchor)
        if call is None or call.nested_in is None or not followers:
            continue
        link_ids = {link.id for link in followers}
        for other in list(calls.values()):
            if other.id not in link_ids and other.nested_in == call.nested_in and anchor in other.inputs:
                inputs = tuple(followers[-1].id if i == anchor else i for i in other.inputs)
                calls[other.id] = replace(other, inputs=inputs)
    for other in list(calls.values()):
        if other.nested_in is not None:
            inputs = tuple(_present(call_id, recorded, work.laid.absent) for call_id in other.inputs)
            calls[other.id] = replace(other, inputs=inputs)


def _present(call_id: str, recorded: Mapping[str, Call], absent: Container[str]) -> str:
    """The nearest call upstream of a call inside a function, or the call itself, that is still there."""
    while call_id in absent and call_id in recorded:
        call = recorded[call_id]
        if call.nested_in is None or not call.inputs:
            break
        call_id = call.inputs[0]
    return call_id


def _scalar(value: Value) -> Scalar:
    if isinstance(value, Code):
        return INTEGERS.get(value.text, describe(value.text))
    return value


def _id(dataset: Any) -> str:  # noqa: ANN401
    return str(getattr(dataset, ID_ATTRIBUTE, ""))
