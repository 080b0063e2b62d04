"""Changes of a text by place.

In: `Splice`s, in the order in which they were made.  Out: the new text; CannotRewriteError where two change the same
characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from advisor.rewrite.cannot_rewrite import CannotRewriteError


class Splice(NamedTuple):
    """Replace the characters from start to end by a text."""

    start: int
    end: int
    text: str


class Cut(NamedTuple):
    """Take the characters from start to end out of the text, and put those from `text_start` to `text_end` (which lie within)
    in at `place`, behind a text; splices within them move with them.
    """

    start: int
    end: int
    text_start: int
    text_end: int
    place: int
    before: str = ""


def apply_changes(text: str, changes: Sequence[Splice | Cut]) -> str:
    """The text with all changes; those at one place come in the order given, equal replacements count once."""
    cuts = [each for each in changes if isinstance(each, Cut)]
    inside: dict[Cut, list[Splice]] = {
        cut: [
            each
            for each in changes
            if isinstance(each, Splice) and cut.text_start < each.start and each.end < cut.text_end
        ]
        for cut in cuts
    }
    nested = {splice for splices in inside.values() for splice in splices}
    splices: list[Splice] = []
    for each in changes:
        if isinstance(each, Splice):
            splices += [each] if each not in nested else []
            continue
        moved = _apply(
            text[each.text_start : each.text_end],
            [Splice(s.start - each.text_start, s.end - each.text_start, s.text) for s in inside[each]],
        )
        splices += [Splice(each.start, each.end, ""), Splice(each.place, each.place, each.before + moved)]
    return _apply(text, splices)


def _apply(text: str, splices: Sequence[Splice]) -> str:
    pieces: list[str] = []
    position, is_gap = 0, False
    done: set[Splice] = set()
    for splice in sorted(splices, key=lambda each: (each.start, each.end > each.start)):  # what is put in comes first
        if splice.end > splice.start and splice in done:
            continue
        done.add(splice)
        if splice.start < position and not splice.text and is_gap and not text[splice.start : position].strip():
            # Two links gone, both with the line break between them.
            position = max(position, splice.end)
            continue
        is_gap = not splice.text
        if splice.start < position:
            raise CannotRewriteError("Two changes concern the same characters of the text.")
        pieces += [text[position : splice.start], splice.text]
        position = splice.end
    return "".join([*pieces, text[position:]])
