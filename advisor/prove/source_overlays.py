"""Both sides of a comparison as overlays: neither run touches a file of the user, nor sees what is edited meanwhile.

In: the patches of the two sides (`advisor.rewrite.patch`).  Out: overlays for `CaptureRequest`, in a folder that is gone
afterwards.
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
    """(the files with `base`, the files with `patch`). A file that only one of them changes is unchanged in the other.

    `base` is empty to compare with the script as it is; `patch` holds the whole change from the user's own bytes on.
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
