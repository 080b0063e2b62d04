"""Recorded calls checked and bounded, so that what is computed of them ends and stays linear in their number.

In: a `Recording` as it stands in a file.  Out: the same, or one with fewer calls and a warning; `AdvisorError` for calls that
lead back to themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from advisor.model.errors import AdvisorError
from advisor.model.recording import Call, Recording

MAX_ANALYSED_CALLS = 500
"""Calls that the analysis looks at. Rules compare the calls of a pipeline with one another, which costs the square of their
number; real scripts record some dozens."""


def check_calls(recording: Recording, where: str) -> None:
    """Raise `AdvisorError` if a call is, through others, its own input or was made inside itself. `where` names the file."""
    by_id = {call.id: call for call in recording.calls}
    for links, what in (
        (lambda call: call.inputs, "its own input"),
        (lambda call: [owner for owner in (call.nested_in, call.made_by) if owner], "made inside itself"),
    ):
        cyclic = _find_cycle(by_id, links)
        if cyclic is not None:
            raise AdvisorError(
                f"{where} is damaged: call {cyclic} is {what}, directly or through others; capture the script again."
            )


def limit_calls(recording: Recording) -> Recording:
    """The recording with at most `MAX_ANALYSED_CALLS` calls, and a warning where some are left out.

    Calls that lead to a consumer are kept first, nearest to it first, together with those made inside them; then others in
    the order in which they were recorded.
    """
    calls = recording.calls
    if len(calls) <= MAX_ANALYSED_CALLS:
        return recording
    by_id = {call.id: call for call in calls}
    inside: dict[str, list[str]] = {}
    for call in calls:
        for owner in {call.nested_in, call.made_by} - {None}:
            inside.setdefault(owner or "", []).append(call.id)
    consumers = sorted(recording.consumers, key=lambda consumer: not consumer.is_main)
    waiting = deque(consumer.call_id for consumer in consumers if consumer.call_id is not None)
    kept: dict[str, None] = {}
    while waiting and len(kept) < MAX_ANALYSED_CALLS:
        call_id = waiting.popleft()
        if call_id in by_id and call_id not in kept:
            kept[call_id] = None
            call = by_id[call_id]
            waiting.extend((*call.inputs, *inside.get(call_id, ()), *filter(None, (call.nested_in, call.made_by))))
    for call in calls:
        if len(kept) >= MAX_ANALYSED_CALLS:
            break
        kept[call.id] = None
    warning = (
        f"{len(calls):,} dataset calls were recorded; the {len(kept):,} nearest to what was consumed are analysed. Make"
        " datasets once, outside loops, to have all of them analysed."
    )
    return replace(
        recording,
        calls=tuple(call for call in calls if call.id in kept),
        warnings=(*recording.warnings, warning),
    )


def _find_cycle(by_id: Mapping[str, Call], links: Callable[[Call], Iterable[str]]) -> str | None:
    """Id of a call that leads back to itself; None: there is none."""
    is_done: dict[str, bool] = {}
    for start in by_id:
        if start in is_done:
            continue
        is_done[start] = False
        path = [(start, iter(links(by_id[start])))]
        while path:
            current, following = path[-1]
            for call_id in following:
                if call_id in by_id and call_id not in is_done:
                    is_done[call_id] = False
                    path.append((call_id, iter(links(by_id[call_id]))))
                    break
                if is_done.get(call_id) is False:
                    return call_id
            else:
                is_done[current] = True
                path.pop()
    return None
