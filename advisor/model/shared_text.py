"""Which recorded calls the same text of the script makes: a loop, or a helper that is called for training and validation.

In: recorded calls.  Out: what identifies a call in the source, and the calls that share it.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.model.calls import Call, Site

Span = tuple[Site, str, bool] | str
"""A call in the source: its site, its method and whether a library made it; or the id of a call that has no site."""


def span_of(call_id: str, calls: Mapping[str, Call]) -> Span:
    """What identifies the call in the source: equal for all datasets that the same text makes."""
    call = calls.get(call_id)
    if call is None or call.site is None:
        return call_id
    return call.site, call.method, call.library is not None


def siblings_of(call: Call, calls: Mapping[str, Call]) -> tuple[Call, ...]:
    """The other calls that the same text makes, in the order of the recording; a change of the text changes them too."""
    if call.site is None or call.made_by is not None:
        return ()
    span = span_of(call.id, calls)
    return tuple(
        other
        for other in calls.values()
        if other.id != call.id
        and other.site == call.site
        and other.made_by is None
        and span_of(other.id, calls) == span
    )
