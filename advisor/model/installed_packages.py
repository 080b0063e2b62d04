"""Tells which modules in a folder were installed there by pip, also outside `site-packages` (`pip install --target`).

In: a folder.  Out: the names of the modules and packages that the distributions in it declare. Nothing is imported.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

_METADATA = ".dist-info"
_DECLARATIONS = ("top_level.txt", "RECORD")
"""Files of a distribution that name its modules. The first is short but optional; the second lists all files, one per line."""


@functools.lru_cache(maxsize=256)
def installed_names(folder: str) -> frozenset[str]:
    """Return the names that `import` finds in this folder because distributions were installed there.

    Args:
        folder: The folder. One that cannot be read holds nothing.
    """
    try:
        with os.scandir(folder) as entries:
            metadata = [entry.path for entry in entries if entry.name.endswith(_METADATA)]
    except OSError:
        return frozenset()
    return frozenset(name for path in metadata for name in _declared(Path(path)))


def installed_package(file: Path, folder: Path) -> str | None:
    """Return the installed package that a file is part of, None if it is not part of one in this folder."""
    try:
        name = file.relative_to(folder).parts[0].removesuffix(".py")
    except (ValueError, IndexError):
        return None
    return name if name in installed_names(str(folder)) else None


def _declared(metadata: Path) -> set[str]:
    for name in _DECLARATIONS:
        try:
            lines = (metadata / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        # of RECORD, `package/module.py,sha256=...,1234`
        paths = (line.lstrip('"').partition(",")[0].strip() for line in lines)
        return {path.partition("/")[0].removesuffix(".py") for path in paths if path and not path.startswith("..")}
    return set()
