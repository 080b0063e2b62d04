"""Call sites for people: `train.py:42` as a link, the source line behind it, and text that cannot harm a terminal.

In: names and sites from recordings and profiles, which strangers may have written.  Out: `rich.text.Text` without markup,
control characters or escape sequences.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from rich.style import Style
from rich.text import Text

from advisor.model.long_lines import shorten_line
from advisor.model.pipeline import Iterator
from advisor.model.recording import Call, Site
from advisor.model.regular_files import read_regular

MAX_SOURCE_BYTES = 5_000_000
"""Larger files are no source a person wrote; not read for one line."""
MAX_CALL_LENGTH = 48
"""Longer calls are told by their method; the source line stands beside the one that matters."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that can move the cursor, hide or reverse text, or cannot be written."""


def clean(text: str, keep_newlines: bool = False) -> str:
    """`text` with every control, format and surrogate character shown as an escape (`\\x1b`); tabs become spaces."""
    return "".join(_visible(char, keep_newlines) for char in text)


def display_path(file: str) -> str:
    """The path from here where that is shorter to read, else as it is."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if relative.startswith("..") else relative


def place(site: Site) -> Text:
    """`train.py:42`, on a terminal a link to the file."""
    label = clean(f"{display_path(site.file)}:{site.line}")
    path = Path(site.file)
    link = f"{path.as_uri()}#{site.line}" if path.is_absolute() else None
    return Text(label, style=Style(bold=True, link=link), no_wrap=True, overflow="fold")


def call_text(call: Call) -> str:
    """The call as written (`.map(augment)`), on one line; its name alone (`.map(...)`) where it is long.

    A call that a library made at the user's line is told as such: `map in tensorflow_datasets`.
    """
    if call.library is not None:
        return clean(f"{call.method} in {call.library}")
    text = " ".join(call.text.split())
    if not 0 < len(text) <= MAX_CALL_LENGTH:
        text = f"{'.' if text.startswith('.') else ''}{call.method}(...)"
    return clean(text)


def iterator_text(iterator: Iterator) -> Text:
    """The calls that an iterator stands for with their line; its type where there is none."""
    call = iterator.main_call
    if call is None:
        return Text(clean(iterator.name))
    if call.site is None:
        return Text(call_text(call))
    return Text.assemble(place(call.site), " ", call_text(call))


def source_line(call: Call) -> str | None:
    """The line of the user's file where the call's method stands, cleaned; None if the file is not that script any more.

    The line is shown only if the recorded method stands at the recorded column: the file may have changed since, and a
    recording from elsewhere must not make us print lines of other files.
    """
    site = call.site
    if site is None:
        return None
    path = Path(site.file)
    try:
        if not path.is_file() or path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    if not 0 < site.line <= len(lines):
        return None
    line = lines[site.line - 1]
    begin = line[site.column - 1 :].lstrip(". (")
    return clean(shorten_line(line.strip())) if call.method in begin.split("(")[0] else None


def _visible(char: str, keep_newlines: bool) -> str:
    if char == "\n" and keep_newlines:
        return char
    if char == "\t":
        return "    "
    if unicodedata.category(char) in _INVISIBLE:
        return char.encode("unicode_escape").decode("ascii")
    return char
