"""The repository of a report: paths relative to its root, locations for findings without one, hashes of lines.

In: the dictionary of a report.json.  Out: SARIF artifact locations.
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
"""Maximum size of a file whose lines are hashed, in bytes; larger ones are not hand-written source."""


MAX_LABEL = 200
"""Maximum length of the label, in characters."""


@dataclass
class SourceTree:
    """The root of the repository (without one, the working folder or the script's) and the files below it."""

    BASE_ID: ClassVar[str] = "%SRCROOT%"
    root: Path
    label: str
    """The target as a label, percent-encoded."""
    fallback: Json
    """Location of findings without a call."""
    _hashes: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of_report(cls, report: Json) -> SourceTree:
        """Return the tree of the report's script; for a profile without one, that of its consumer or the working folder."""
        fallback = _main_site(report)
        tree = cls(_root_of(Path(fallback["file"])), "", fallback)
        tree.label = tree.location(_target_path(report))["uri"].removeprefix("file://").strip("/")[:MAX_LABEL] or "run"
        return tree

    @property
    def root_uri(self) -> str:
        """URI of the root; it ends with a slash, as SARIF requires for folders."""
        return self.root.as_uri().rstrip("/") + "/"

    def location(self, file: str) -> Json:
        """Return the location of a file: relative to the root if it is below it, as code scanning requires, else a file: URI."""
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
        """Return the hash by which code scanning recognises the line; None if the file or the line does not exist."""
        if file not in self._hashes:
            self._hashes[file] = _hashes_of(Path(file))
        hashes = self._hashes[file]
        return hashes[line - 1] if 0 < line <= len(hashes) else None


def _main_site(report: Json) -> Json:
    """Return the first line of the script; without a script, the site of the main consumer, or the target itself."""
    target = _target_path(report)
    if target.endswith(".py"):
        return {"file": target, "line": 1}
    pipelines = sorted(report["pipelines"], key=lambda pipeline: not pipeline["is_main"])
    consumers = [pipeline["consumer"] for pipeline in pipelines if pipeline["consumer"]]
    site = next((consumer for consumer in consumers if consumer.get("file")), None)
    return {"file": site["file"], "line": site["line"] or 1} if site else {"file": target, "line": 1}


def _target_path(report: Json) -> str:
    """Return the path in the target, without a script's arguments, which differ from one job to the next; `-m module` stays."""
    target = str(report["target"])
    words = target.split(" ")
    if words[0] == "-m":
        return " ".join(words[:2])
    scripts = [" ".join(words[:end]) for end in range(1, len(words) + 1) if words[end - 1].endswith(".py")]
    there = [script for script in scripts if _exists(_absolute(Path(script)))]
    if there or scripts:  # a path may contain blanks, and an argument may be a script
        return there[-1] if there else scripts[0]
    return target if target.strip() else "run"


def _root_of(file: Path) -> Path:
    """Return the repository of the file; without one, the working folder, or the file's folder if it is not below that."""
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
