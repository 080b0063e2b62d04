"""Finds edits that cannot be written regardless of the text, from where and by what the call was made.

In: an edit and the recorded calls.  Out: one sentence, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.model.calls import Call
from advisor.model.edits import Edit, InsertAfter, MoveAfter, SetOption


def obstacle_to(edit: Edit, calls: Mapping[str, Call]) -> str | None:
    """Return one sentence on why an edit cannot be written regardless of the text; None if there is no such reason.

    Args:
        edit: The edit.
        calls: The recorded calls by id.
    """
    ids = (edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,)
    for call_id in ids:
        call = calls.get(call_id)
        if call is None:
            return "The call to change was not recorded."
        if call.site is None:
            return f"The call of {call.method} is not in a file."
        maker = calls.get(call.made_by) if call.made_by is not None else None
        if maker is not None:  # not for `apply`: its result is created by its function, which belongs to the script
            return f"{call.method} is called inside {maker.method}, not by a line of the script."
        outer = calls.get(call.nested_in) if call.nested_in is not None else None
        if outer is not None and outer.site == call.site:
            return f"{call.method} is called inside the function of {outer.method}, not by a line of the script."
        if call.library is None:
            continue
        is_applied = call.made_by is not None  # `ds.apply(functools.partial(...))`: judged from the text
        if not _is_link(edit) and not is_applied:
            return f"{call.method} is called inside {call.library}, which is not the script's own code."
        if any(call.id in other.inputs and other.library and other.site == call.site for other in calls.values()):
            return f"{call.library} makes further calls after {call.method} in the same line of the script."
    return None


def _is_link(edit: Edit) -> bool:
    """Whether the edit only adds something after a call."""
    return isinstance(edit, InsertAfter) or (isinstance(edit, SetOption) and edit.value is not None)
