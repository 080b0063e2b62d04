"""Applies changes to a text by character position.

In: `Splice`s and `Cut`s, in order.  Out: the new text; CannotRewriteError if two of them change the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from advisor.rewrite.cannot_rewrite import CannotRewriteError


class Splice(NamedTuple):
    """Replace the characters from start to end by a text."""

    start: int
    end: int
    text: str


class Cut(NamedTuple):
    """Move text: remove the characters from `start` to `end`, and insert those from `text_start` to `text_end` at `place`.

    The inserted range lies within the removed one, follows the text `before`, and takes along the changes inside it.
    """

    start: int
    end: int
    text_start: int
    text_end: int
    place: int
    before: str = ""


def lines_of(text: str) -> list[str]:
    """Return the lines with their line breaks, split only where Python does (not at a form feed)."""
    return [line for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text) if line]


def apply_changes(text: str, changes: Sequence[Splice | Cut]) -> str:
    """Return the text with all changes.

    Changes at the same position are applied in the given order; equal replacements are applied once.

    Args:
        text: The text before all changes.
        changes: The changes; their positions count in `text`, in characters.

    Raises:
        CannotRewriteError: Two changes overlap.
    """
    cuts = [change for change in changes if isinstance(change, Cut)]
    inside = {cut: [change for change in changes if change != cut and _is_inside(change, cut)] for cut in cuts}
    nested = {change for moved_along in inside.values() for change in moved_along}
    splices: list[Splice] = []
    for change in changes:
        if change in nested:
            continue
        if isinstance(change, Splice):
            splices.append(change)
            continue
        moved = apply_changes(
            text[change.text_start : change.text_end], [_shifted(inner, change.text_start) for inner in inside[change]]
        )
        splices += [Splice(change.start, change.end, ""), Splice(change.place, change.place, change.before + moved)]
    return _apply(text, splices)


def _is_inside(change: Splice | Cut, cut: Cut) -> bool:
    """Whether a change affects nothing but the text that the cut moves."""
    places = (change.start, change.end) if isinstance(change, Splice) else (change.start, change.end, change.place)
    return cut.text_start < min(places) and max(places) < cut.text_end


def _shifted(change: Splice | Cut, by: int) -> Splice | Cut:
    """The change for the text from position `by` on."""
    if isinstance(change, Splice):
        return Splice(change.start - by, change.end - by, change.text)
    start, end, text_start, text_end, place, before = change
    return Cut(start - by, end - by, text_start - by, text_end - by, place - by, before)


def _apply(text: str, splices: Sequence[Splice]) -> str:
    pieces: list[str] = []
    position, is_gap = 0, False
    done: set[Splice] = set()
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end > splice.start)):  # insertions first
        if splice.end > splice.start and splice in done:
            continue
        done.add(splice)
        if splice.start < position and not splice.text and is_gap and not text[splice.start : position].strip():
            # Two removed links that share the line break between them.
            position = max(position, splice.end)
            continue
        is_gap = not splice.text
        if splice.start < position:
            raise CannotRewriteError("Two changes affect the same characters of the text.")
        pieces += [text[position : splice.start], splice.text]
        position = splice.end
    return "".join([*pieces, text[position:]])
