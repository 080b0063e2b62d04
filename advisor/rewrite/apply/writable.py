"""Checks, before anything is measured, whether the files of a change may be written and have uncommitted changes.

In: paths of the user's files.  Out: a reason, or paths. Nothing is written here.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from advisor.rewrite.apply.exchange import obstacle_to_writing

_GIT_S = 10.0
_MAKES_DATASETS = re.compile(rb"\bdata\b|\bDataset\b|\btfds\b|_dataset_from_")


def first_obstacle(paths: Iterable[Path]) -> str:
    """Return why one of the files may not be changed, as the beginning of a sentence; empty if all may."""
    obstacles = (obstacle_to_writing(path) for path in paths if path.exists())
    return next((obstacle for obstacle in obstacles if obstacle), "")


def early_obstacle(script: Path) -> str:
    """Like `first_obstacle`, for a script that has not been run yet.

    Empty if another file may be the one to change: the script imports modules next to it, or creates no dataset itself.
    """
    try:
        text = script.read_bytes()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ""  # running the script reports the problem
    if not _MAKES_DATASETS.search(text) or _imports_neighbours(tree, script.parent):
        return ""
    return first_obstacle([script.resolve()])


def uncommitted(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files with uncommitted changes; none without git or a repository."""
    git = shutil.which("git")
    if git is None:
        return ()
    return tuple(path for path in paths if _is_uncommitted(git, path))


def _is_uncommitted(git: str, path: Path) -> bool:
    # Read only: do not refresh the index on disk and do not start the repository's file system monitor.
    options = ["-c", "core.fsmonitor=false", "--no-optional-locks", "-C", str(path.parent)]
    command = [git, *options, "status", "--porcelain", "--", path.name]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return result.returncode == 0 and bool(result.stdout.strip())


def _imports_neighbours(tree: ast.AST, folder: Path) -> bool:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return True
            names.add((node.module or "").partition(".")[0])
    return any((folder / f"{name}.py").exists() or (folder / name).is_dir() for name in names if name)
