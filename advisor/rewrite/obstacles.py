"""What stands against writing an edit, before anybody looks at the text: who made the call, and where.

In: an edit and the recorded calls.  Out: one sentence, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.model.finding import Edit, InsertAfter, MoveAfter, SetOption
from advisor.model.recording import Call


def obstacle_to(edit: Edit, calls: Mapping[str, Call]) -> str | None:
    """Why an edit cannot be written whatever the text looks like, in one sentence; None if nothing is known against it."""
    ids = (edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,)
    for call_id in ids:
        call = calls.get(call_id)
        if call is None:
            return "The call it would change was not recorded."
        if call.site is None:
            return f"The call of {call.method} stands in no file."
        maker = calls.get(call.made_by) if call.made_by is not None else None
        if maker is not None:  # `apply` is none: what it gives was made by its function, which is the script's
            return f"{call.method} is made inside {maker.method}, not by a line of the script."
        outer = calls.get(call.nested_in) if call.nested_in is not None else None
        if outer is not None and outer.site == call.site:
            return f"{call.method} is called inside the function of {outer.method}, by no line of the script."
        if call.library is None:
            continue
        is_applied = call.made_by is not None  # `ds.apply(functools.partial(...))`: the text tells
        if not _is_link(edit) and not is_applied:
            return f"{call.method} is called inside {call.library}, which is not the script's own code."
        if any(call.id in each.inputs and each.library and each.site == call.site for each in calls.values()):
            return f"{call.library} goes on behind {call.method} inside the same line of the script."
    return None


def _is_link(edit: Edit) -> bool:
    """Whether the edit only adds something behind a call."""
    return isinstance(edit, InsertAfter) or (isinstance(edit, SetOption) and edit.value is not None)
