"""Provides both sides of a comparison as overlays, so that runs neither change the user's files nor see later edits of them.

In: the patches of the two sides (`advisor.rewrite.patch`).  Out: overlays for `CaptureRequest`, in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from advisor.sandbox.temporary import temporary_folder

Files = Mapping[Path, tuple[bytes, bytes]]
"""Path -> (bytes before, bytes after)."""
Overlay = tuple[tuple[Path, Path], ...]


@contextmanager
def overlays(base: Files, patch: Files) -> Iterator[tuple[Overlay, Overlay]]:
    """Yield the overlays (with `base`, with `patch`); a file that only one of them changes is unchanged in the other.

    Args:
        base: The change on the first side; empty for the unchanged script.
        patch: The change on the second side, relative to the user's files.
    """
    with temporary_folder("overlay") as folder:
        sides: tuple[list[tuple[Path, Path]], list[tuple[Path, Path]]] = ([], [])
        for number, path in enumerate({**base, **patch}):
            original = (base.get(path) or patch[path])[0]
            for side, files, name in zip(sides, (base, patch), ("before", "after"), strict=True):
                text = folder / f"{name}-{number}.py"
                text.write_bytes(files[path][1] if path in files else original)
                side.append((path, text))
        yield tuple(sides[0]), tuple(sides[1])
