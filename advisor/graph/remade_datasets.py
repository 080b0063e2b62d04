"""Joins the datasets that the script makes again at one place with equal arguments, for example in every epoch.

In: a `HostTrace` and the recording.  Out: the same trace, in which the iterators of these datasets have one dataset name, so that
they become one node as the iterators of one dataset do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.recorded_graph import RecordedGraph
from advisor.model.recording import Recording
from advisor.model.shared_text import Span, span_of
from advisor.model.trace import HostTrace

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def join_remade(host: HostTrace, recording: Recording | None) -> HostTrace:
    """Return the trace with the dataset names of `joined_names` in place of those of equal datasets."""
    names = joined_names(recording) if recording is not None else {}
    if not names:
        return host
    iterators = {
        number: replace(facts, dataset_name=_NAME.sub(lambda name: names.get(name[0], name[0]), facts.dataset_name))
        for number, facts in host.iterators.items()
    }
    return replace(host, iterators=iterators)


def joined_names(recording: Recording) -> dict[str, str]:
    """Return call id -> id of the equal call whose dataset a consumer has read last.

    Two calls are equal if the same text made them, with equal arguments, from equal inputs. Where two consumers read datasets
    of one text, nothing is joined: a helper may make the data for training and for validation.
    """
    graph = RecordedGraph(recording.calls)
    by_id = graph.by_id
    consumed = [by_id[c.call_id] for c in recording.consumers if c.call_id is not None and c.call_id in by_id]
    chains = [{call.id for call in graph.upstream(last)} for last in consumed]
    by_span: dict[Span, list[Call]] = {}
    inside: dict[str, list[Call]] = {}
    for call in recording.calls:
        owner = call.nested_in or call.made_by
        if owner is not None:
            inside.setdefault(owner, []).append(call)
        elif call.site is not None:
            by_span.setdefault(span_of(call.id, by_id), []).append(call)
    names: dict[str, str] = {}
    for number, chain in enumerate(chains):
        read = set().union(*chains[:number], *chains[number + 1 :])
        for last in recording.calls:  # inputs before what is made of them
            if last.id not in chain or not last.identity:
                continue
            same = by_span.get(span_of(last.id, by_id), [])
            if any(other.id in read for other in same):
                continue
            for other in same:
                inputs = tuple(names.get(input_id, input_id) for input_id in other.inputs)
                if other is not last and other.identity == last.identity and inputs == last.inputs:
                    _join(other, last, inside, names)
    return names


def _join(other: Call, last: Call, inside: Mapping[str, Sequence[Call]], names: dict[str, str]) -> None:
    """Join two calls and, if they correspond, the calls that their functions and implementations made."""
    pairs = [(other, last)]
    while pairs:
        one, two = pairs.pop()
        names[one.id] = two.id
        made, again = inside.get(one.id, ()), inside.get(two.id, ())
        if _methods(made) == _methods(again):
            pairs.extend(zip(made, again, strict=True))


def _methods(calls: Iterable[Call]) -> list[str]:
    return [call.method for call in calls]
