"""Changed texts as they would be if no chain of calls were broken because of its length."""

from __future__ import annotations

import re

_BROKEN = re.compile(
    r"^(?P<indent>[ \t]*)(?P<head>[^\r\n]*)\(\r?\n(?P<lines>(?:(?P=indent)[ \t]+\S[^\r\n]*\r?\n)+)(?P=indent)\)",
    re.MULTILINE,
)


def in_one_line(text: str) -> str:
    """Return the text with every chain that stands in parentheses, one call per line, in one line."""
    return _BROKEN.sub(_joined, text)


def _joined(found: re.Match[str]) -> str:
    lines = [line.strip() for line in found["lines"].splitlines()]
    is_chain = len(lines) > 1 and all(line.startswith(".") for line in lines[1:])
    return f"{found['indent']}{found['head']}{''.join(lines)}" if is_chain else found[0]
