"""Arranges edits by recorded call: changed arguments, removed calls and inserted calls.

In: `Edit`s, applied in order.  Out: `EditedCalls`, used by `advisor.replay.replay`. Each link directly follows its call, so of
two links after the same call that of the later edit comes first. `advisor.rewrite.source` uses the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from advisor.model.edits import (
    BuildOnce,
    Edit,
    InsertAfter,
    MoveAfter,
    Remove,
    SetArgument,
    SetFunction,
    SetOption,
    SplitFlatMap,
    SplitMap,
    Value,
    Vectorize,
    VectorizeParts,
    VectorizeRagged,
    WrapData,
    added_id,
)
from advisor.model.errors import AdvisorError


class CannotReplay(AdvisorError):
    """A dataset cannot be rebuilt with these edits.

    Args:
        name: The call or object that prevents it.
        reason: Why it does.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be replayed: {reason}.")
        self.name = name
        """The call or object that prevents the replay."""
        self.reason = reason


class CannotVectorize(CannotReplay):
    """The function of a `map` has no vectorised form, so a run of the whole script with this edit would fail too."""


class CannotSplit(CannotReplay):
    """The two halves of a function are not known to compute the same as the function."""


@dataclass(frozen=True, slots=True)
class Link:
    """A call that follows a recorded call: a new one, or one that was moved there."""

    id: str
    """`inserted_id` for a new call; the id of a moved call."""
    edit: InsertAfter | MoveAfter | SetOption | SplitMap
    number: int
    """Index of its edit in the tuple of edits."""


@dataclass(slots=True)
class EditedCalls:
    """The edits, arranged by recorded call."""

    arguments: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Id of a call or link -> changed arguments."""
    options: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Id of a recorded `with_options` -> changed options."""
    absent: set[str] = field(default_factory=set)
    """Ids of calls that were removed or moved to another place."""
    vectorized: dict[str, Vectorize] = field(default_factory=dict)
    """Id of a call -> the edit because of which its function is called once per batch."""
    functions: dict[str, str] = field(default_factory=dict)
    """Id of a call -> the text of the function that takes the place of its own."""
    data: dict[str, WrapData] = field(default_factory=dict)
    """Id of a source -> the edit that puts an expression around its data."""
    split: dict[str, SplitMap | SplitFlatMap] = field(default_factory=dict)
    """Id of a call -> the edit that splits its function. Of a `map`, the second half is a link; of a `flat_map`, the first half
    is a call before it, see `first_id`."""
    links_after: dict[str, list[Link]] = field(default_factory=dict)
    """Id of a recorded call -> the links that follow it, in order."""
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """Id of a call or link -> indices of the edits that have been applied once it is built (or left out)."""

    @property
    def targets(self) -> set[str]:
        """Ids of all recorded calls that an edit changes."""
        changed = (
            self.arguments,
            self.options,
            self.absent,
            self.vectorized,
            self.functions,
            self.data,
            self.split,
            self.links_after,
        )
        return {call_id for calls in changed for call_id in calls}


def inserted_id(edits: tuple[Edit, ...], number: int) -> str:
    """Return the id of the call that the `InsertAfter` at index `number` adds. Later edits may refer to it.

    Args:
        edits: All edits, in order.
        number: Index of the `InsertAfter`, from 0.
    """
    return added_id(edits[number].call_id, number)


def rest_id(call_id: str) -> str:
    """Return the id of the second `map` of a split function, given that of the first."""
    return f"{call_id}_rest"


def first_id(call_id: str) -> str:
    """Return the id of the `map` that gets the first half of the function of a `flat_map`."""
    return f"{call_id}_first"


def lay_out(edits: tuple[Edit, ...], option_calls: frozenset[str] = frozenset()) -> EditedCalls:
    """Arrange the edits by call.

    Args:
        edits: The edits, in order.
        option_calls: Ids of the recorded calls of `with_options`.

    Raises:
        CannotReplay: The edits contradict each other.
    """
    laid = EditedCalls()
    for number, edit in enumerate(edits):
        _apply(laid, edits, number, edit, option_calls)
    return laid


def _apply(laid: EditedCalls, edits: tuple[Edit, ...], number: int, edit: Edit, option_calls: frozenset[str]) -> None:
    # An earlier edit may have moved the call that this one changes or follows.
    is_change = isinstance(edit, SetArgument | Vectorize | InsertAfter)
    if edit.call_id in laid.absent and not (is_change and _find(laid, edit.call_id)):
        raise CannotReplay(edit.call_id, "an earlier edit has removed it")
    match edit:
        case SetArgument():
            laid.arguments.setdefault(edit.call_id, {})[edit.name] = edit.value
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case Vectorize() | VectorizeParts() | VectorizeRagged():
            if edit.call_id in laid.split:
                raise CannotReplay(edit.call_id, "an earlier edit has split its function")
            if edit.call_id in laid.functions:
                raise CannotReplay(edit.call_id, "an earlier edit has changed its function")
            laid.vectorized[edit.call_id] = edit
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case SetFunction():
            if edit.call_id in (*laid.split, *laid.vectorized, *laid.functions):
                raise CannotReplay(edit.call_id, "an earlier edit has changed its function")
            laid.functions[edit.call_id] = edit.text
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case WrapData():
            if edit.call_id in laid.data:
                raise CannotReplay(edit.call_id, "an earlier edit has changed its data")
            laid.data[edit.call_id] = edit
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case SplitMap() | SplitFlatMap():
            if edit.call_id in (*laid.split, *laid.vectorized, *laid.functions):
                raise CannotReplay(edit.call_id, "an earlier edit has changed its function")
            laid.split[edit.call_id] = edit
            if isinstance(edit, SplitMap):
                _put_after(laid, edit.call_id, Link(rest_id(edit.call_id), edit, number))
            else:
                laid.numbers.setdefault(edit.call_id, []).append(number)
        case InsertAfter():
            _put_after(laid, edit.call_id, Link(inserted_id(edits, number), edit, number))
        case Remove():
            place = _find(laid, edit.call_id)
            if place is not None:
                links, index = place
                laid.numbers.setdefault(_anchor(laid, links), []).extend((links.pop(index).number, number))
            else:
                laid.absent.add(edit.call_id)
                laid.numbers.setdefault(edit.call_id, []).append(number)
        case MoveAfter():
            if edit.call_id == edit.after_id:
                raise CannotReplay(edit.call_id, "it cannot be moved after itself")
            laid.absent.add(edit.call_id)
            laid.numbers.setdefault(edit.call_id, [])
            _put_after(laid, edit.after_id, Link(edit.call_id, edit, number))
        case SetOption():
            if edit.call_id in option_calls:
                laid.options.setdefault(edit.call_id, {})[edit.option] = edit.value
                laid.numbers.setdefault(edit.call_id, []).append(number)
            elif edit.value is None:
                raise CannotReplay(edit.call_id, f"it sets no options, so {edit.option} cannot be removed there")
            else:
                _put_after(laid, edit.call_id, Link(inserted_id(edits, number), edit, number))
        case BuildOnce():  # the dataset stays as it is
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case _:
            assert_never(edit)


def _put_after(laid: EditedCalls, call_id: str, link: Link) -> None:
    place = _find(laid, call_id)
    if place is not None:
        links, index = place
        links.insert(index + 1, link)
    elif call_id in laid.absent:
        raise CannotReplay(call_id, "an earlier edit has removed it")
    else:
        laid.links_after.setdefault(call_id, []).insert(0, link)


def _find(laid: EditedCalls, link_id: str) -> tuple[list[Link], int] | None:
    """Return the list that contains the link with this id, and its index in the list."""
    for links in laid.links_after.values():
        for index, link in enumerate(links):
            if link.id == link_id:
                return links, index
    return None


def _anchor(laid: EditedCalls, links: list[Link]) -> str:
    return next(call_id for call_id, followers in laid.links_after.items() if followers is links)
