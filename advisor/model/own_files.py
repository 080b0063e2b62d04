"""Recognises files that this tool wrote; only such files may be replaced.

In: a path and the kind of the new file.  Out: a boolean. Files are recognised by their first bytes, which costs one short read.
"""

from __future__ import annotations

import re
import zlib
from enum import Enum
from pathlib import Path

HEAD_BYTES = 16_384
"""Number of bytes within which every format identifies its generator."""
TRACE_GENERATOR = GRAPH_GENERATOR = "tfdata-advisor"
MARKDOWN_MARK = "<!-- tfdata-advisor report -->"
_GZIP = b"\x1f\x8b"
_GZIP_WBITS = 31


class FileKind(Enum):
    """The kinds of files that this tool writes; the value is a pattern for the beginning of the file."""

    REPORT = rb'\s*\{\s*"schema_version":\s*\d+,\s*"advisor_version":\s*(?:"[^"]*"|null),\s*"target":'
    COMPARISON = rb'\s*\{\s*"schema_version":\s*\d+,\s*"advisor_version":\s*(?:"[^"]*"|null),\s*"verdict":'
    CHECK = rb'\s*\{\s*"schema_version":\s*\d+,\s*"advisor_version":\s*(?:"[^"]*"|null),\s*"result":'
    CHANGE = rb'\s*\{\s*"schema_version":\s*\d+,\s*"advisor_version":\s*(?:"[^"]*"|null),\s*"change":'
    BASELINE = rb'\s*\{\s*"generator":\s*"advisor check",'
    HTML = rb'\s*<!doctype html>[\s\S]*?<meta name="generator" content="tfdata-advisor[ "]'
    SARIF = rb'\s*\{\s*"\$schema":\s*"[^"]*sarif[^"]*",[\s\S]*?"driver":\s*\{\s*"name":\s*"tfdata-advisor"'
    TRACE = rb'\{"displayTimeUnit":"ns","otherData":\{"generator":"tfdata-advisor"'
    GRAPH = rb'\{"directed": true, "multigraph": false, "graph": \{"generator": "tfdata-advisor"'
    MARKDOWN = rb"<!-- tfdata-advisor report -->"
    SKILL = rb"---\nname: tfdata-advisor\n"
    RECORDING = rb'\{"target":"(?:[^"\\]|\\.)*","host":\{"hostname":'


def is_own_file(path: Path, kind: FileKind) -> bool:
    """Return whether this tool wrote the file as that kind; False if it cannot be read."""
    return re.match(kind.value, read_head(path)) is not None


def read_head(path: Path) -> bytes:
    """Return the first bytes of a regular file, decompressed if it is gzipped; empty if it cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(_GZIP):
            return zlib.decompressobj(wbits=_GZIP_WBITS).decompress(head, HEAD_BYTES)
    except (OSError, zlib.error):
        return b""
    return head
