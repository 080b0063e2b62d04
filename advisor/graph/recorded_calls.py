"""Validates and limits recorded calls, so that the analysis terminates and stays linear in their number.

In: a `Recording` as read from a file.  Out: the same recording, or one with fewer calls and a warning; `AdvisorError` for calls
that form a cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from advisor.model.errors import AdvisorError
from advisor.model.recording import Call, Recording

MAX_ANALYSED_CALLS = 500
"""Maximum number of calls that are analysed. Rules compare the calls of a pipeline pairwise; real scripts record a few dozen."""


def check_calls(recording: Recording, where: str) -> None:
    """Check that no call is, directly or indirectly, its own input or created inside itself.

    Args:
        recording: The recording to check.
        where: The name of the file, for the message.

    Raises:
        AdvisorError: The calls form a cycle.
    """
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
    """Limit the recording to `MAX_ANALYSED_CALLS` calls, with a warning if calls are left out.

    Calls that lead to a consumer are kept first, nearest to it first, together with the calls made inside them; then the
    others in recording order.
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
        f"{len(calls):,} dataset calls were recorded; only the {len(kept):,} nearest to the consumed datasets are analysed."
        " Create datasets once, outside loops, to have all calls analysed."
    )
    return replace(
        recording,
        calls=tuple(call for call in calls if call.id in kept),
        warnings=(*recording.warnings, warning),
    )


def _find_cycle(by_id: Mapping[str, Call], links: Callable[[Call], Iterable[str]]) -> str | None:
    """Id of a call in a cycle; None if there is no cycle."""
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
