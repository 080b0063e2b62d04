"""A file of a user's before and after a change: with a byte order mark and Windows line ends, for both have to survive."""

from __future__ import annotations

from pathlib import Path

from advisor.rewrite.patch import Patch

BEFORE, AFTER = b"\xef\xbb\xbfds = ds.map(f)\r\n", b"\xef\xbb\xbfds = ds.map(f).cache()\r\n"


def patch_of(*paths: Path) -> Patch:
    return Patch(dict.fromkeys(paths, (BEFORE, AFTER)))


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def contents(folder: Path) -> list[bytes]:
    return [(folder / f"{name}.py").read_bytes() for name in "abc"]
