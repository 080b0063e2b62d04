"""Finds the runs of a logdir: profiles of any origin, and run folders of the advisor.

In: the logdir, as TensorBoard knows it.  Out: `Listing`; a run by its id, which is only known for runs in such a listing.

Profiles lie where TensorFlow and XProf put them, in `plugins/profile/<run>/`, at any depth. Links to folders are not followed,
and files that are links to outside the logdir are left out, so nothing outside the logdir is found. No name that a browser sends
becomes part of a path. The walk is bounded, as anything may be below a logdir.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from advisor.model.locations import is_url
from advisor.model.regular_files import is_below, is_regular, real_path
from advisor.model.run_folder import PROFILE_SUFFIXES, RECORDING_NAME
from advisor.model.text import printable

MAX_FOLDERS = 20_000
"""Folders that are looked into."""
MAX_DEPTH = 16
"""Folders below each other, from the logdir to the folder with `plugins`."""
MAX_SECONDS = 10.0
"""Longest walk; a logdir may be on a slow disk."""
ACTIVE_SECONDS = 1.0
"""Longest walk of `has_runs`, for which TensorBoard's page waits."""
MAX_RUNS = 500
"""Runs in a listing; the newest are kept."""
_MAX_NAMED = 3
_TIME = re.compile(r"\d{4}(_\d\d){5}")
"""TensorFlow names the folder of a run after its time, so that sorting the names sorts by time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the logdir."""

    id: str
    """Stands for the run in requests. It is made from the run's path, which cannot be made from it."""
    name: str
    """Path below the logdir without `plugins/profile`, as XProf shows it, printable."""
    folder: Path
    """The run's folder: that of its profiles, or a run folder without any."""
    files: tuple[Path, ...]
    """Its profiles, one per host; empty for a run of the advisor without a profile."""
    is_recorded: bool
    """Whether it was captured by the advisor."""
    size_bytes: int
    written_ns: int
    """When its newest file was written."""

    @property
    def is_named_by_time(self) -> bool:
        """Whether the folder's name is the time of the run, as TensorFlow names it."""
        return _TIME.fullmatch(self.folder.name) is not None

    @property
    def age(self) -> tuple[bool, str, int]:
        """The sort key for the age: the time in the name, or else that of the files."""
        return self.is_named_by_time, self.folder.name if self.is_named_by_time else "", self.written_ns


@dataclass(frozen=True, slots=True)
class Listing:
    """The runs of a logdir, newest first."""

    runs: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on what is not listed."""
    problem: str = ""
    """Why the logdir cannot be listed; empty if it can."""


class RunFinder:
    """The runs of one logdir.

    Args:
        logdir: TensorBoard's `--logdir`; empty if it was started without.
        logdir_spec: TensorBoard's `--logdir_spec`.
    """

    def __init__(self, logdir: str, logdir_spec: str = "") -> None:
        self._problem = _why_declined(logdir, logdir_spec)
        self.logdir = logdir
        self._root = Path(logdir).absolute() if logdir and not self._problem else None
        self._known: dict[str, Run] = {}
        self._has_runs = False

    @property
    def root(self) -> Path:
        """The logdir without links in its path; it need not exist yet."""
        assert self._root is not None
        return real_path(self._root)

    def listing(self) -> Listing:
        """Look for runs."""
        if self._root is None:
            return Listing(problem=self._problem)
        runs = find_runs(self.root)
        self._known = {run.id: run for run in runs.runs}
        self._has_runs = bool(runs.runs)
        return runs

    def has_runs(self) -> bool:
        """Return whether there is a run. Once there was one, this costs nothing."""
        if not self._has_runs and self._root is not None:
            self._has_runs = next(_Walk(self.root, ACTIVE_SECONDS).runs(), None) is not None
        return self._has_runs

    def run(self, run_id: str) -> Run | None:
        """Return the run with this id as it is now; None if there is none."""
        if self._root is None:
            return None
        known = self._known.get(run_id)
        if known is None:
            self.listing()
            known = self._known.get(run_id)
        if known is None or real_path(known.folder) != known.folder:  # a link has taken the folder's place
            return None
        return _run_without_profile(self.root, known.folder) if not known.files else _run(self.root, known.folder)


def find_runs(root: Path) -> Listing:
    """Look for runs below a folder.

    Args:
        root: The folder, without links in its path.
    """
    walk = _Walk(root)
    runs = sorted(walk.runs(), key=lambda run: (run.age, run.name), reverse=True)
    notes = walk.notes()
    if len(runs) > MAX_RUNS:
        notes = (
            *notes,
            f"{len(runs) - MAX_RUNS:,} older runs are not listed: start TensorBoard on a folder further below.",
        )
    return Listing(tuple(runs[:MAX_RUNS]), notes)


@dataclass
class _Walk:
    """One walk over the folders below a logdir, those near it first, and what it left out."""

    root: Path
    seconds: float = MAX_SECONDS
    unreadable: list[Path] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)
    is_cut: bool = False

    def runs(self) -> Iterator[Run]:
        waiting = deque([(self.root, 0)])
        seen, end = 0, time.monotonic() + self.seconds
        while waiting:
            folder, depth = waiting.popleft()
            seen += 1
            if seen > MAX_FOLDERS or time.monotonic() > end:
                self.is_cut = True
                return
            folders, names = self._entries(folder)
            profiled = list(self._profiled(folder)) if "plugins" in names else []
            yield from profiled
            if RECORDING_NAME in names and not profiled:
                run = _run_without_profile(self.root, folder)
                if run is not None:
                    yield run
            inner = [name for name in folders if name != "plugins"]
            if depth < MAX_DEPTH:
                waiting.extend((folder / name, depth + 1) for name in inner)
            elif inner:
                self.is_cut = True

    def notes(self) -> tuple[str, ...]:
        """Sentences on what the walk left out."""
        notes = []
        if self.outside:
            notes.append(
                f"Links that lead out of the logdir are not followed ({self._few(self.outside)}): start TensorBoard on the"
                " folder to which they lead."
            )
        if self.unreadable:
            notes.append(f"Some folders cannot be read ({self._few(self.unreadable)}): change their permissions.")
        if self.is_cut:
            notes.append(
                f"Only a part of the logdir was looked into (at most {MAX_FOLDERS:,} folders, {MAX_DEPTH} below each other, for"
                f" {MAX_SECONDS:.0f} s): start TensorBoard on a folder further below."
            )
        return tuple(notes)

    def _profiled(self, folder: Path) -> Iterator[Run]:
        for place in (folder / "plugins", folder / "plugins/profile"):
            if place.is_symlink() or not place.is_dir():
                self._note_link(place)
                return
        for name in self._entries(folder / "plugins/profile")[0]:
            run = _run(self.root, folder / "plugins/profile" / name, self.outside)
            if run is not None:
                yield run

    def _entries(self, folder: Path) -> tuple[list[str], set[str]]:
        """Return the names of the folders in a folder, sorted, and those of all entries."""
        folders, names = [], set()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    names.add(entry.name)
                    if entry.is_symlink():
                        self._note_link(folder / entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
        except FileNotFoundError:  # removed in between, or the logdir is not there yet
            pass
        except OSError:
            self.unreadable.append(folder)
        return sorted(folders), names

    def _note_link(self, path: Path) -> None:
        """Remember a link to a folder outside; one to a folder inside is of no interest, as the folder itself is found."""
        if path.is_symlink() and _is_folder(path) and not is_below(path, self.root) and path not in self.outside:
            self.outside.append(path)

    def _few(self, paths: list[Path]) -> str:
        names = [printable(str(path.relative_to(self.root))) for path in paths[:_MAX_NAMED]]
        more = len(paths) - len(names)
        return ", ".join(names) + (f" and {more:,} more" if more else "")


def _run(root: Path, folder: Path, outside: list[Path] | None = None) -> Run | None:
    """Return the run of a folder `plugins/profile/<run>`; None if it has no profile inside the logdir."""
    by_host: dict[str, Path] = {}
    try:
        names = sorted(os.listdir(folder), reverse=True)  # noqa: PTH208  undecodable names stay as they are
    except OSError:
        return None
    for name in names:
        path = folder / name
        suffix = next((suffix for suffix in PROFILE_SUFFIXES if name.endswith(suffix)), None)
        if suffix is None or not is_regular(path):
            continue
        if is_below(path, root):
            by_host[name.removesuffix(suffix)] = path  # of `a.xplane.pb.gz` and `a.xplane.pb`, the latter
        elif outside is not None:
            outside.append(path)
    if not by_host:
        return None
    owner = folder.parent.parent.parent
    return _described(root, folder, tuple(by_host[host] for host in sorted(by_host)), _is_recorded(owner, folder))


def _run_without_profile(root: Path, folder: Path) -> Run | None:
    """Return a run of the advisor that was not profiled; None if the folder is something else."""
    recording = folder / RECORDING_NAME
    if not is_regular(recording) or not is_below(recording, root):
        return None
    return _described(root, folder, (), True)


def _described(root: Path, folder: Path, files: tuple[Path, ...], is_recorded: bool) -> Run | None:
    relative = folder.relative_to(root)
    parts = relative.parts
    if files:  # .../plugins/profile/<run>
        parts = (*parts[:-3], parts[-1])
    try:
        facts = [path.stat() for path in files or (folder / RECORDING_NAME,)]
    except OSError:  # removed in between
        return None
    return Run(
        id=hashlib.sha256(os.fsencode(relative)).hexdigest()[:24],
        name=printable("/".join(parts)) or ".",
        folder=folder,
        files=files,
        is_recorded=is_recorded,
        size_bytes=sum(fact.st_size for fact in facts),
        written_ns=max(fact.st_mtime_ns for fact in facts),
    )


def _is_recorded(owner: Path, folder: Path) -> bool:
    """Whether the recording beside `plugins` belongs to this run: to the oldest one, as capture starts in an empty folder."""
    if not is_regular(owner / RECORDING_NAME):
        return False
    try:
        return folder.name == min(path.name for path in folder.parent.iterdir() if path.is_dir())
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _why_declined(logdir: str, logdir_spec: str) -> str:
    if logdir_spec and not logdir:
        return "The tab tf.data does not read --logdir_spec: start TensorBoard with --logdir and one folder."
    if not logdir:
        return "TensorBoard was started without a logdir: start it with --logdir and a folder."
    if is_url(logdir):
        return (
            f"The tab tf.data reads folders of this machine only: copy {printable(logdir)}, or run `advisor analyze"
            f" {printable(logdir)}`."
        )
    return ""
