"""The repository that a report speaks of: paths relative to its root, places for findings without one, hashes of its lines.

In: the dictionary of a report.json.  Out: artifact locations as SARIF has them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from advisor.export.line_hashes import line_hashes

Json = dict[str, Any]

MAX_SOURCE_BYTES = 5_000_000
"""Larger files are no source that a person wrote; their lines are not hashed."""


MAX_LABEL = 200


@dataclass
class SourceTree:
    """The root of the repository (without one: the working folder, or the script's) and what lies below it."""

    BASE_ID: ClassVar[str] = "%SRCROOT%"
    root: Path
    label: str
    """The target for people and programs, in the characters of a URI."""
    fallback: Json
    """Where findings without a call stand."""
    _hashes: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of_report(cls, report: Json) -> SourceTree:
        """The tree of the report's script; of a profile from elsewhere that of its consumer, else the working folder."""
        fallback = _main_site(report)
        tree = cls(_root_of(Path(fallback["file"])), "", fallback)
        tree.label = tree.location(_target_path(report))["uri"].removeprefix("file://").strip("/")[:MAX_LABEL] or "run"
        return tree

    @property
    def root_uri(self) -> str:
        """Ends with a slash, as SARIF wants it of a folder."""
        return self.root.as_uri().rstrip("/") + "/"

    def location(self, file: str) -> Json:
        """A file below the root relative to it, as code scanning wants it; another one as a file: URI."""
        path = Path(file)
        if not path.is_absolute() and not _exists(_absolute(path)):
            is_inside = ".." not in path.parts  # recorded elsewhere, relative to the folder of that run
            return {"uri": _quoted(path.as_posix())} | ({"uriBaseId": self.BASE_ID} if is_inside else {})
        path = _absolute(path)
        real_root, real_path = Path(os.path.realpath(self.root)), Path(os.path.realpath(path))
        # a file reached through a link is reported as the file itself: code scanning shows no result at a link
        for root, place in ((real_root, real_path), (self.root, path)):
            if place.is_relative_to(root):
                return {"uri": _quoted(place.relative_to(root).as_posix()), "uriBaseId": self.BASE_ID}
        return {"uri": path.as_uri()}

    def line_hash(self, file: str, line: int) -> str | None:
        """What code scanning recognises the line by; None where the file is not there or has no such line."""
        if file not in self._hashes:
            self._hashes[file] = _hashes_of(Path(file))
        hashes = self._hashes[file]
        return hashes[line - 1] if 0 < line <= len(hashes) else None


def _main_site(report: Json) -> Json:
    """The first line of the script; where the target is none, where the main pipeline is consumed, else the target itself."""
    target = _target_path(report)
    if target.endswith(".py"):
        return {"file": target, "line": 1}
    pipelines = sorted(report["pipelines"], key=lambda pipeline: not pipeline["is_main"])
    consumers = [pipeline["consumer"] for pipeline in pipelines if pipeline["consumer"]]
    site = next((consumer for consumer in consumers if consumer.get("file")), None)
    return {"file": site["file"], "line": site["line"] or 1} if site else {"file": target, "line": 1}


def _target_path(report: Json) -> str:
    """The target without a script's arguments or what is no path."""
    target = str(report["target"])
    return target if target.strip() else "run"


def _root_of(file: Path) -> Path:
    """The repository that holds the file; without one the working folder, or the file's own where it lies elsewhere."""
    path, here = _absolute(file), Path.cwd()
    if not _exists(path.parent):
        path = here / "anything"
    for folder in path.parents:
        if _exists(folder / ".git"):
            return folder
    return here if Path(os.path.realpath(path)).is_relative_to(here.resolve()) else path.parent


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  # links are resolved where the root is known


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110  # false also for names that no system takes


def _hashes_of(path: Path) -> list[str]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_SOURCE_BYTES:
            return []
        return line_hashes(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return []


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "backslashreplace"))
