"""Prepares and cleans up a run of the user's script without permanent effects; the parent's side.

In: what to run, and which folders to exclude.  Out: the command prefix and the environment variables to start it with; after the
run, sentences on what could not be protected. At the end of the block, the remaining processes of the run are ended and the files
it wrote are removed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from advisor.sandbox import caches
from advisor.sandbox.guarding import marker_of_next_run
from advisor.sandbox.mounts import SYSTEM, is_below
from advisor.sandbox.namespace import COPIED, IN_PLACE, OVERLAID, REDIRECTED, Outcome
from advisor.sandbox.processes import MARKER, end_processes
from advisor.sandbox.temporary import temporary_folder
from advisor.sandbox.trackers import TRACKER_FOLDERS, offline_variables
from advisor.sandbox.written import read_log

_LAUNCHER = Path(__file__).with_name("launcher.py")
_OUTCOME, _WRITTEN = "outcome.json", "written"
_GRACE_S = 2.0
"""Time for helper processes of a script (a tracker's service, workers) to end after it."""
_MAX_NAMED = 5
_seen: dict[str, None] = {}
"""Folders outside the private view to which runs of this program have written; they are covered from the next run on."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to run."""

    script: Path | None
    """None: a module."""
    args: tuple[str, ...] = ()
    keep: tuple[Path, ...] = ()
    """Folders of the advisor to which the run writes its results."""
    is_in_place: bool = False
    """Let the run write to the real files."""


class PrivateRun:
    """How to start a run, and facts about its view afterwards."""

    def __init__(
        self, command: tuple[str, ...], variables: dict[str, str], report: Path, keep: tuple[Path, ...]
    ) -> None:
        self.command = command
        """Prefix of the command that starts the script."""
        self.variables = variables
        """Environment variables to add to the environment."""
        self._outcome, self._written, self._keep = report / _OUTCOME, report / _WRITTEN, keep

    def outcome(self) -> Outcome:
        """Return how the run was protected; its kind is `in place` until the run has been started."""
        try:
            return Outcome(**json.loads(self._outcome.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return Outcome(IN_PLACE)

    def really_written(self) -> tuple[str, ...]:
        """Return the known paths to which the run wrote without protection."""
        outcome = self.outcome()
        if outcome.kind == IN_PLACE:
            return ()
        own_folders = [os.path.realpath(path) for path in (self._outcome.parents[1], *self._keep)]
        return tuple(
            path
            for path in read_log(self._written)
            if not any(is_below(path, folder) for folder in own_folders)
            and not self._is_covered(path, outcome)
            and os.path.lexists(path)
        )

    def notes(self) -> tuple[str, ...]:
        """Return sentences for the user on what could not be protected."""
        return _sentences(self.outcome(), self.really_written())

    def _is_covered(self, path: str, outcome: Outcome) -> bool:
        if any(is_below(path, folder) for folder in SYSTEM):
            return True  # devices and sockets, not permanent files
        places = dict.fromkeys((*outcome.real, *outcome.large), False) | dict.fromkeys(
            (*outcome.uppers, *outcome.copies), True
        )
        innermost = max((place for place in places if is_below(path, place)), key=len, default=None)
        return outcome.is_whole if innermost is None else places[innermost]


@contextmanager
def private_run(target: Target) -> Iterator[PrivateRun]:
    """Prepare a run and clean up after it. The caller starts the run inside the block.

    Args:
        target: What to run.

    Raises:
        OSError: No temporary folder can be created.
    """
    marker = marker_of_next_run()
    with temporary_folder("view") as folder:
        report, view = folder / "report", folder / "view"
        for path in (report, view):
            path.mkdir()
        plan = {
            "parent": os.getpid(),
            "outcome": str(report / _OUTCOME),
            "written": str(report / _WRITTEN),
            "view": None if target.is_in_place else _view(target, view, report),
        }
        (report / "plan.json").write_text(json.dumps(plan), "utf-8")
        command = (sys.executable, "-I", "-S", str(_LAUNCHER), str(report / "plan.json"))
        variables = {MARKER: marker}
        if not target.is_in_place:
            variables |= offline_variables(os.environ, view / "trackers")
            for name in TRACKER_FOLDERS:
                (view / "trackers" / name).mkdir(parents=True)
        run = PrivateRun(command, variables, report, target.keep)
        try:
            yield run
            _learn(run)
        finally:
            if not target.is_in_place:
                end_processes(marker, _GRACE_S)


def _view(target: Target, folder: Path, report: Path) -> dict[str, object]:
    cwd = os.getcwd()  # noqa: PTH109  # as the script sees it
    projects = _projects(cwd, target.script)
    keep = [os.path.realpath(path) for path in (*target.keep, report) if path.exists()]
    return {
        "folder": os.path.realpath(folder),
        "cwd": cwd,
        "keep": [*caches.real_caches(os.environ, projects), *keep],
        "near": _near(cwd, target),
        "projects": projects,
        "layers": caches.layers(),
    }


def _projects(cwd: str, script: Path | None) -> tuple[str, ...]:
    """Return the folders that are copied if an overlay is not possible: the current one and the script's."""
    home = os.path.realpath(Path("~").expanduser())
    folders = [os.path.realpath(cwd)]
    if script is not None:
        folders.append(os.path.realpath(script if script.is_dir() else script.parent))
    small = [folder for folder in folders if not is_below(home, folder)] or folders[-1:]
    return tuple(
        dict.fromkeys(
            folder for folder in small if not any(folder != other and is_below(folder, other) for other in small)
        )
    )


def _near(cwd: str, target: Target) -> list[str]:
    """Return the folders that the run certainly uses; see `mounts.writable_places`."""
    words = [part for arg in target.args for part in (arg, arg.partition("=")[2]) if part.startswith(("/", "~"))]
    paths = [
        Path(cwd),
        *([target.script.parent] if target.script else []),
        Path("~"),
        Path(os.environ.get("TMPDIR") or "/tmp"),
    ]
    paths += [Path(word) for word in words] + [Path(folder) for folder in _seen]
    folders = []
    for path in paths:
        real = Path(os.path.realpath(path.expanduser()))
        folders.append(str(next((parent for parent in (real, *real.parents) if parent.is_dir()), Path("/"))))
    return list(dict.fromkeys(folders))


def _learn(run: PrivateRun) -> None:
    """Keep what the next runs of this program need: datasets prepared by this run, and places to which it wrote."""
    outcome = run.outcome()
    if outcome.kind == OVERLAID:
        caches.keep_filled(outcome.uppers, os.environ)
    for path in run.really_written():
        _seen[str(Path(path).parent)] = None


def _sentences(outcome: Outcome, real: Sequence[str]) -> tuple[str, ...]:
    sentences = []
    copies = " and ".join(outcome.copies)
    if outcome.kind == COPIED:
        used = f"used a copy of {copies}" if copies else "used the real files"
        sentences.append(
            f"The kernel refused an overlay ({outcome.reason}), so each run {used} and its own TMPDIR; files that it writes "
            "elsewhere are permanent, except TensorFlow's checkpoints and summaries."
            if outcome.real
            else f"The kernel refused an overlay of {copies} ({outcome.reason}), so each run used a copy of it."
        )
    elif outcome.kind == REDIRECTED:
        where = f"used a copy of {copies} and its own TMPDIR" if copies else "used its own TMPDIR"
        sentences.append(
            f"This system refused a private view of the disk ({outcome.reason}), so each run {where}; files that it writes "
            "elsewhere are permanent, except TensorFlow's checkpoints and summaries."
        )
    elif outcome.real:
        sentences.append(
            f"The kernel refused an overlay of {_named(outcome.real)} ({outcome.reason}), so files that runs write there are "
            "permanent."
        )
    if outcome.large:
        sentences.append(f"Files that runs write to {_named(outcome.large)} are permanent: it was too large to copy.")
    if real:
        sentences.append(f"Runs of the script changed files that could not be protected: {_named(real)}.")
    return tuple(sentences)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more
