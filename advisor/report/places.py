"""Formats call sites (`train.py:42` as a link, its source line) and makes untrusted text safe for a terminal.

In: names and sites from recordings and profiles, which may come from untrusted sources.  Out: `rich.text.Text` without markup,
control characters or escape sequences.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from rich.style import Style
from rich.text import Text

from advisor.model.calls import Call, Site
from advisor.model.long_lines import shorten_line
from advisor.model.pipeline import Iterator
from advisor.model.regular_files import read_regular
from advisor.model.text import printable

MAX_SOURCE_BYTES = 5_000_000
"""Larger files are not read for a source line, as no one writes such a file by hand."""
MAX_CALL_LENGTH = 48
"""Longer calls, in characters, are abbreviated to their method; the bottleneck's source line is shown in full."""


def clean(text: str, keep_newlines: bool = False) -> str:
    r"""Return `text` with control, format and surrogate characters as escapes (`\x1b`) and tabs as spaces."""
    return printable(text.replace("\t", "    "), keep="\n" if keep_newlines else "")


def display_path(file: str) -> str:
    """Return the path relative to the current folder if the file is inside it, else unchanged."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if relative.startswith("..") else relative


def place(site: Site, most: int | None = None) -> Text:
    """Return `train.py:42`; on a terminal it links to the file.

    Args:
        site: The position in the source.
        most: Number of characters above which the folder is left out.
    """
    label = clean(f"{display_path(site.file)}:{site.line}")
    if most is not None and len(label) > most:
        label = clean(f"{PurePath(site.file.replace(chr(92), '/')).name}:{site.line}")
    path = Path(site.file)
    link = f"{path.as_uri()}#{site.line}" if path.is_absolute() else None
    return Text(label, style=Style(bold=True, link=link), no_wrap=True, overflow="fold")


def call_text(call: Call) -> str:
    """Return the call as written (`.map(augment)`) on one line, or abbreviated (`.map(...)`) if it is long.

    A call made by a library at the user's line names the library: `map in tensorflow_datasets`.
    """
    if call.library is not None:
        return clean(f"{call.method} in {call.library}")
    text = " ".join(call.text.split())
    if not 0 < len(text) <= MAX_CALL_LENGTH:
        text = f"{'.' if text.startswith('.') else ''}{call.method}(...)"
    return clean(text)


def iterator_text(iterator: Iterator, most: int | None = None) -> Text:
    """Return the iterator's main call with its line; without a call, the iterator's type.

    Args:
        iterator: The iterator.
        most: As in `place`.
    """
    call = iterator.main_call
    if call is None:
        return Text(clean(iterator.name))
    if call.site is None:
        return Text(call_text(call))
    return Text.assemble(place(call.site, most), " ", call_text(call))


def source_line(call: Call) -> str | None:
    """Return the source line of the call, cleaned; None if the file no longer contains the call there.

    The line is returned only if the recorded method is at the recorded column: the file may have changed since, and a crafted
    recording must not cause lines of unrelated files to be printed.
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
