"""Reads the texts of another revision from git, so that it can run beside the working tree without a checkout.

In: a revision and the script's folder.  Out: `BaseTexts`. Nothing is written: neither the working tree nor git's index.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from advisor.gate.git_command import GitFailed, git_output
from advisor.model.errors import AdvisorError
from advisor.model.regular_files import read_regular
from advisor.prove.measure.source_overlays import Files

_REGULAR = ("100644", "100755")
"""Modes of regular files; links and submodules are not compared."""


@dataclass(frozen=True, slots=True)
class BaseTexts:
    """The Python files whose text differs between the working tree and a revision."""

    revision: str
    """As the user named it."""
    commit: str
    top: Path
    """Top folder of the repository."""
    files: Files
    """Path -> (bytes in the working tree, bytes in the revision); the former are empty for a file that exists only there."""
    only_in_base: tuple[Path, ...] = ()
    only_in_head: tuple[Path, ...] = ()
    has_script: bool = True
    """Whether the revision contains the script."""

    @property
    def is_same_text(self) -> bool:
        """Whether the revision has the same Python files."""
        return not (self.files or self.only_in_base or self.only_in_head)

    @property
    def names(self) -> tuple[str, ...]:
        """The files that differ, relative to the top of the repository, sorted."""
        paths = {*self.files, *self.only_in_base, *self.only_in_head}
        return tuple(sorted(path.relative_to(self.top).as_posix() for path in paths))


def read_base(revision: str, folder: Path, script: Path | None = None, option: str = "--against") -> BaseTexts:
    """Read the Python files that differ between the working tree and a revision.

    Args:
        revision: A commit, branch or tag.
        folder: A folder of the repository.
        script: The script, whose presence in the revision is looked up; None for a module.
        option: The option that names the revision, for messages.

    Raises:
        AdvisorError: There is no git, no repository or no such revision.
    """
    top = Path(os.fsdecode(git_output(folder, "rev-parse", "--show-toplevel", option=option).rstrip(b"\n")))
    try:
        commit = git_output(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitFailed:
        raise AdvisorError(
            f"{option} {revision}: {top} has no such revision; fetch it first (a shallow clone lacks most revisions)."
        ) from None
    name = commit.decode("ascii", "replace").strip()
    files: dict[Path, tuple[bytes, bytes]] = {}
    only_in_base: list[Path] = []
    only_in_head: list[Path] = []
    for old_mode, new_mode, blob, path in _changes(top, name):
        if old_mode in _REGULAR and (new_mode in _REGULAR or not new_mode.strip("0")):
            text = git_output(top, "cat-file", "blob", blob)
            is_there = bool(new_mode.strip("0"))
            files[path] = (read_file(path) if is_there else b"", text)
            if not is_there:
                only_in_base.append(path)
        elif new_mode in _REGULAR:
            only_in_head.append(path)
    same = [path for path, (head, base) in files.items() if head == base and path not in only_in_base]
    for path in same:  # git compares the mode, too
        del files[path]
    has_script = script is None or _contains(top, name, script)
    return BaseTexts(revision, name, top, files, tuple(only_in_base), tuple(only_in_head), has_script)


def _changes(top: Path, commit: str) -> list[tuple[str, str, str, Path]]:
    """Return (mode in the revision, mode in the working tree, blob in the revision, path) of each Python file that differs."""
    options = ("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
    words = git_output(top, "diff", *options, commit, "--", "*.py").split(b"\0")
    changes = []
    for head, path in zip(words[0::2], words[1::2], strict=False):
        old_mode, new_mode, blob, *_ = head.decode("ascii", "replace").removeprefix(":").split()
        changes.append((old_mode, new_mode, blob, top / os.fsdecode(path)))
    return changes


def _contains(top: Path, commit: str, script: Path) -> bool:
    path = script.resolve()
    if not path.is_relative_to(top):
        return False
    return bool(git_output(top, "ls-tree", "--name-only", "-z", commit, "--", str(path.relative_to(top))))


def read_file(path: Path) -> bytes:
    """Read a file.

    Raises:
        AdvisorError: It cannot be read, or is not a regular file.
    """
    try:
        return read_regular(path)
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read: {error.strerror or error}.") from None
