"""Whether a rewritten text has all tokens of the script outside the calls that were meant."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence

from advisor.model.calls import Call
from advisor.model.edits import Edit, MoveAfter
from tests.rewrite.snippets import Snippet


def check_tokens(snippet: Snippet, edits: Sequence[Edit], calls: dict[str, Call]) -> None:
    """All tokens outside the intended calls are there, in order, and nothing else but inside those and `added` lines."""
    spans = []
    for edit in edits:
        for call_id in (edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,):
            site = calls[call_id].site
            assert site is not None
            spans.append(((site.line, site.column - 1), (site.end_line, site.end_column - 1)))
    for outer in [
        span for span in spans for other in spans if span != other and span[0] <= other[0] and other[1] <= span[1]
    ]:
        spans = [span for span in spans if span != outer]  # the innermost are meant
    gone = [position for text in snippet.gone for position in places_of(snippet.before, text)]
    pieces: list[list[str]] = [[]]
    for token in tokens(snippet.before):
        is_inside = any(start <= token.start and token.end <= end for start, end in spans) or token.start in gone
        if is_inside:
            pieces.append([])
        else:
            pieces[-1].append(token.string)
    added = [position for text in snippet.added for position in places_of(snippet.after, text)]
    after = [token.string for token in tokens(snippet.after) if token.start not in added]
    kept = [[text for text in piece if text != "."] for piece in pieces]  # the dot of a link stands before its span
    after = [text for text in after if text != "."]
    position = 0
    for piece in (piece for piece in kept if piece):
        while after[position : position + len(piece)] != piece:
            position += 1
            assert position < len(after), f"{piece} is not in the text any more"
        position += len(piece)
    assert not kept[-1] or after[-len(kept[-1]) :] == kept[-1]
    assert kept[0] == after[: len(kept[0])]


def tokens(text: str) -> list[tokenize.TokenInfo]:
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    return [
        token for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline) if token.type not in skipped
    ]


def places_of(text: str, line: str) -> list[tuple[int, int]]:
    """Where the tokens of a line stand, the last time it does."""
    wanted = [token.string for token in tokens(line)]
    found = tokens(text)
    starts = [i for i in range(len(found)) if [token.string for token in found[i : i + len(wanted)]] == wanted]
    assert starts, f"{line!r} is not in the text"
    return [token.start for token in found[starts[-1] : starts[-1] + len(wanted)]]
