"""Edits laid out per recorded call: what is passed, what is gone, which links stand behind it.

In: `Edit`s, applied one after the other.  Out: `EditedCalls`, read by `advisor.replay.replay`. Each link goes directly behind
its call, so that of two behind the same call the later edit comes first, as `advisor.rewrite.source` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from advisor.model.errors import AdvisorError
from advisor.model.finding import Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption, Value


class CannotReplay(AdvisorError):
    """A dataset cannot be rebuilt with these edits; what stands in the way is named."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be replayed: {reason}.")
        self.name = name
        """The call or object that stands in the way."""
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Link:
    """Something that stands behind a call: a new call, or one that was moved there."""

    id: str
    """A new call's own (`inserted_id`), or the moved call's."""
    edit: InsertAfter | MoveAfter | SetOption
    number: int
    """Place of its edit in the tuple."""


@dataclass(slots=True)
class EditedCalls:
    """The edits by the call they concern."""

    arguments: dict[str, dict[str, Value]] = field(default_factory=dict)
    options: dict[str, dict[str, Value]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    """Removed, or moved to another place."""
    behind: dict[str, list[Link]] = field(default_factory=dict)
    """Recorded call -> its links, the nearest first."""
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """Id -> places in the tuple of the edits that are done when that call or link is built (or left out)."""

    @property
    def targets(self) -> set[str]:
        """Ids of all recorded calls that an edit concerns."""
        return {*self.arguments, *self.options, *self.absent, *self.behind}


def inserted_id(edits: tuple[Edit, ...], number: int) -> str:
    """Id of the call that the InsertAfter at that place of `edits` adds; later edits may name it."""
    return f"{edits[number].call_id}_added{number}"


def lay_out(edits: tuple[Edit, ...], option_calls: frozenset[str] = frozenset()) -> EditedCalls:
    """Apply the edits in order; `option_calls` are the ids of the recorded `with_options`.

    Raises CannotReplay for edits that contradict each other.
    """
    laid = EditedCalls()
    for number, edit in enumerate(edits):
        _apply(laid, edits, number, edit, option_calls)
    return laid


def _apply(laid: EditedCalls, edits: tuple[Edit, ...], number: int, edit: Edit, option_calls: frozenset[str]) -> None:
    if edit.call_id in laid.absent and not (isinstance(edit, SetArgument) and _find(laid, edit.call_id)):
        raise CannotReplay(edit.call_id, "an earlier edit has taken it away")
    match edit:
        case SetArgument():
            laid.arguments.setdefault(edit.call_id, {})[edit.name] = edit.value
            laid.numbers.setdefault(edit.call_id, []).append(number)
        case InsertAfter():
            _put_behind(laid, edit.call_id, Link(inserted_id(edits, number), edit, number))
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
                raise CannotReplay(edit.call_id, "it cannot be moved behind itself")
            laid.absent.add(edit.call_id)
            laid.numbers.setdefault(edit.call_id, [])
            _put_behind(laid, edit.after_id, Link(edit.call_id, edit, number))
        case SetOption():
            if edit.call_id in option_calls:
                laid.options.setdefault(edit.call_id, {})[edit.option] = edit.value
                laid.numbers.setdefault(edit.call_id, []).append(number)
            elif edit.value is None:
                raise CannotReplay(edit.call_id, f"it sets no options, so {edit.option} cannot be removed there")
            else:
                _put_behind(laid, edit.call_id, Link(inserted_id(edits, number), edit, number))
        case _:
            assert_never(edit)


def _put_behind(laid: EditedCalls, call_id: str, link: Link) -> None:
    place = _find(laid, call_id)
    if place is not None:
        links, index = place
        links.insert(index + 1, link)
    elif call_id in laid.absent:
        raise CannotReplay(call_id, "an earlier edit has taken it away")
    else:
        laid.behind.setdefault(call_id, []).insert(0, link)


def _find(laid: EditedCalls, link_id: str) -> tuple[list[Link], int] | None:
    """Where the link of that id stands."""
    for links in laid.behind.values():
        for index, link in enumerate(links):
            if link.id == link_id:
                return links, index
    return None


def _anchor(laid: EditedCalls, links: list[Link]) -> str:
    return next(call_id for call_id, found in laid.behind.items() if found is links)
