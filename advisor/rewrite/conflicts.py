"""Says why two fixes cannot both be made.

In: two fixes and the recorded calls.  Out: a reason, or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard, assert_never

from advisor.model.calls import Call
from advisor.model.edits import (
    BuildOnce,
    DecorateFunction,
    Edit,
    InsertAfter,
    MoveAfter,
    Remove,
    SetArgument,
    SetBatchSize,
    SetCompileArgument,
    SetFitArgument,
    SetFunction,
    SetFunctionArgument,
    SetOption,
    SetPolicy,
    SplitFunction,
    StepEdit,
    Vectorize,
)
from advisor.model.finding import Fix
from advisor.model.shared_text import span_of


def clash_of(fix: Fix, other: Fix, calls: Mapping[str, Call], is_later: bool = False) -> str | None:
    """Return why two fixes cannot both be made, or None.

    Args:
        fix: A fix.
        other: Another one.
        calls: The recorded calls by id.
        is_later: Whether `fix` was proposed for the pipeline that the other one had changed. A cache after a call that was moved
            is one at its new place then.
    """
    for step_edit in fix.step_edits:
        for earlier in other.step_edits:
            if step_edit != earlier and _target(step_edit) == _target(earlier):
                return "both set the same argument or policy"
    for edit in fix.edits:
        for before in other.edits:
            if (
                is_later
                and is_insertion(edit, "cache")
                and isinstance(before, MoveAfter)
                and before.call_id == edit.call_id
            ):
                continue
            reason = _clash_of_edits(edit, before, calls) or _clash_of_edits(before, edit, calls)
            if edit != before and reason is not None:
                return reason
    return None


def _target(edit: StepEdit) -> object:
    """What an edit of the training step sets."""
    match edit:
        case SetCompileArgument() | SetFitArgument():
            return edit.site, edit.name
        case SetPolicy():
            return edit.file
        case SetFunctionArgument():
            return edit.file, edit.function, edit.name
        case SetBatchSize():
            return edit.site
        case DecorateFunction():
            return edit.file, edit.function
        case _:
            assert_never(edit)


def _clash_of_edits(edit: Edit, other: Edit, calls: Mapping[str, Call]) -> str | None:
    """Return why `edit` conflicts with `other`, or None; called for both orders of the pair."""
    call = calls.get(edit.call_id)
    name = f"{call.method} at line {call.site.line}" if call is not None and call.site is not None else "the same call"
    spans = {span_of(edit.call_id, calls)}
    touched = set(_spans(other, calls))
    match edit:
        case SetArgument():
            if isinstance(other, SetArgument) and other.name == edit.name and span_of(other.call_id, calls) in spans:
                return f"both set {edit.name} of {name}" if other.value != edit.value else None
        case SetOption():
            if isinstance(other, SetOption) and other.option == edit.option and other.value != edit.value:
                return f"both set the option {edit.option}"
        case Remove():
            is_same = isinstance(other, Remove) and span_of(other.call_id, calls) in spans
            if not is_same and spans & touched:
                return f"one removes {name}, the other changes it"
        case MoveAfter():
            is_same = isinstance(other, MoveAfter) and list(_spans(edit, calls)) == list(_spans(other, calls))
            if is_insertion(other, "prefetch") and other.call_id == edit.call_id:
                return None  # `combine` takes it along
            if not is_same and not isinstance(other, SetArgument) and spans & touched:
                return f"one moves {name}, the other changes the call after it"
        case SplitFunction():
            is_change = isinstance(other, SplitFunction | Vectorize | Remove) or (
                isinstance(other, MoveAfter) and span_of(other.call_id, calls) in spans
            )
            if is_change and spans & touched:
                return (
                    f"both change the function of {name}"
                    if isinstance(other, SplitFunction | Vectorize)
                    else f"one moves {name}"
                )
        case SetFunction():
            inner = {
                call_id for call_id in _ids(other) if call_id in calls and calls[call_id].nested_in == edit.call_id
            }
            if inner or (isinstance(other, SetFunction | SplitFunction | Vectorize) and spans & touched):
                return f"both change the function of {name}"
        case BuildOnce():
            if isinstance(other, BuildOnce) and span_of(other.call_id, calls) in spans:
                return f"both make the dataset that ends with {name} once, for different loops"
        case InsertAfter():
            pass
    return None


def is_insertion(edit: Edit, method: str) -> TypeGuard[InsertAfter]:
    """Return whether an edit adds a call of a method."""
    return isinstance(edit, InsertAfter) and edit.method == method


def _ids(edit: Edit) -> tuple[str, ...]:
    return (edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,)


def _spans(edit: Edit, calls: Mapping[str, Call]) -> Iterator[object]:
    for call_id in _ids(edit):
        yield span_of(call_id, calls)
