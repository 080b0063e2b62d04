"""Changed texts as they would be if no call were broken because of its length."""

from __future__ import annotations

import re

_BROKEN = re.compile(
    r"^(?P<indent>[ \t]*)(?P<head>[^\r\n]*\()\r?\n"
    r"(?P<lines>(?:(?P=indent)[ \t]+\S[^\r\n]*(?<!\()\r?\n)+)"
    r"(?P=indent)\)(?P<tail>[^\r\n]*)",
    re.MULTILINE,
)
_LIMIT = 88


def in_one_line(text: str) -> str:
    """Return the text with every broken chain, and all arguments that are too long for one line, in one line."""
    before = None
    while before != text:
        before, text = text, _BROKEN.sub(_joined, text)
    return text


def _joined(found: re.Match[str]) -> str:
    lines = [line.strip() for line in found["lines"].splitlines()]
    inner = lines[0] + "".join(line if line.startswith(".") else f" {line}" for line in lines[1:])
    if (
        len(lines) > 1
        and all(line.startswith(".") for line in lines[1:])
        and re.search(r"(?:[=\s]|^)\($", found["head"])
    ):
        return f"{found['indent']}{found['head'][:-1]}{inner}{found['tail']}"
    whole = f"{found['indent']}{found['head']}{inner.removesuffix(',')}){found['tail']}"
    return whole if len(whole) > _LIMIT else found[0]
