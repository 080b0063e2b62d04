"""Which calls the user can edit, and after which calls a transformation can be inserted."""

from __future__ import annotations

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.structure import consumed_call, upstream_calls


def is_editable(call: Call) -> bool:
    """Whether the call is in the user's own code, so that it can be edited."""
    return call.site is not None and call.library is None and call.made_by is None


def takes_link(analysis: Analysis, call: Call) -> bool:
    """Whether a transformation can be inserted after the call.

    If a library made the call, the transformation goes after the user's own call of the library, provided that this is
    the last dataset made there.
    """
    if is_editable(call):
        return True
    goes_on = any(later.library and later.site == call.site and call.id in later.inputs for later in analysis.calls)
    return call.site is not None and call.made_by is None and call.nested_in is None and not goes_on


def last_editable_call(analysis: Analysis, pipeline: Pipeline) -> Call | None:
    """The last call before the consumer after which a transformation can be inserted; None if there is none."""
    call = consumed_call(analysis, pipeline)
    return (
        next((upstream for upstream in upstream_calls(analysis, call) if takes_link(analysis, upstream)), None)
        if call
        else None
    )
