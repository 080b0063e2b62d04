"""Finds the profile files for a path: the runs of a logdir, the hosts of a run.

In: a run folder, a logdir, a `plugins/profile/<time>` folder, or a `.xplane.pb` file (gzipped or not), local or remote.
Out: paths, one per host.  Every failure is one `AdvisorError` sentence that names the path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote, reading

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
MOST_NAMED = 10
"""Maximum number of runs or hosts named in a sentence; a logdir can contain hundreds."""
_TIME = re.compile(r"\d{4}(_\d\d){5}")
"""TensorFlow names the folder of a run after its time, so that sorting the names sorts by time."""
_SUMMARIES = ("trace.json.gz", "input_pipeline.pb", "overview_page.pb")
"""Files that a run folder may contain besides a profile, or instead of one before TensorFlow 2.3."""
_PROFILE_FOLDERS = ("plugins", "profile")


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """The files of one run, one per host, and the alternatives."""

    paths: tuple[Path, ...]
    run: str = ""
    """The chosen run, as accepted by `--run`; empty if a file was named."""
    runs: tuple[str, ...] = ()
    """All runs, newest first."""
    hosts: tuple[str, ...] = ()
    """All hosts of the chosen run, sorted by name."""

    @property
    def num_runs(self) -> int:
        """The number of runs to choose from."""
        return max(1, len(self.runs))


def find_profiles(path: Path, run: str | None = None, hosts: Sequence[str] = ()) -> ProfileFiles:
    """Find the profile files for a path.

    Args:
        path: A run folder, a logdir, a `plugins/profile/<time>` folder or a `.xplane.pb` file.
        run: Name of the run, or an unambiguous prefix of it; None: the newest run.
        hosts: Names of the hosts, or unambiguous prefixes of them; empty: all hosts of the run.

    Raises:
        AdvisorError: There is no profile, or no or several runs or hosts match; the message lists those that exist.
    """
    with reading(path):
        if not _exists(path):
            if is_remote(path):  # most remote file systems also report this if the server does not respond
                raise FileNotFoundError
            raise AdvisorError(f"{path} does not exist: give a run folder, a logdir or a .xplane.pb file.")
        if not path.is_dir():
            if run is not None or hosts:
                raise AdvisorError(f"{path} is one file: --run and --host choose from a logdir.")
            return ProfileFiles((path,))
        folders = _runs_in(path)
        if not folders:
            raise AdvisorError(_nothing_in(path))
        by_name = {_run_name(folder, path): folder for folder in folders}
        names = sorted(by_name, key=lambda name: _age(by_name[name], alone=len(by_name) == 1), reverse=True)
        chosen = names[0] if run is None else _choose(run, names, f"run in {path}")
        by_host = {
            host_of(child): child for child in sorted(by_name[chosen].iterdir(), reverse=True) if _is_file(child)
        }
    all_hosts = tuple(sorted(by_host))
    wanted = tuple(dict.fromkeys(_choose(host, all_hosts, f"host in run {chosen}") for host in hosts)) or all_hosts
    return ProfileFiles(tuple(by_host[host] for host in wanted), chosen, tuple(names), all_hosts)


def host_of(path: Path) -> str:
    """Return the host that a profile file is named after."""
    return path.name.removesuffix(".gz").removesuffix(".xplane.pb")


def unpacked_size(path: Path) -> int:
    """Return the size of a profile in bytes, 0 if unknown. A gzipped file counts three times, the typical compression ratio."""
    try:
        size = int(path.stat().st_size or 0)
    except Exception:  # errors of a remote file system are reported when the file is read
        return 0
    return 3 * size if path.name.endswith(".gz") else size


def few(names: Sequence[str]) -> str:
    """List names in a sentence; only the first ones of many."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a parent folder without permission, a name that is too long
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from None


def _is_file(path: Path) -> bool:
    """Whether a file has the name of a profile; its contents are checked when it is read."""
    try:
        return path.name.endswith(SUFFIXES) and path.is_file()
    except OSError:
        return False


def _runs_in(path: Path) -> list[Path]:
    return list({file.parent: None for pattern in _patterns() for file in path.glob(pattern) if _is_file(file)})


def _run_name(folder: Path, logdir: Path) -> str:
    """Return the name of a run: `2026_01_02_03_04_05`, or `train/2026_01_02_03_04_05` below one of several roles."""
    try:
        parts = PurePosixPath(folder.relative_to(logdir).as_posix()).parts
    except ValueError:  # some remote file systems write a path in two ways
        parts = ()
    named = [part for part in parts if part not in _PROFILE_FOLDERS]
    return "/".join(named) or folder.name or str(folder)


def _age(folder: Path, alone: bool) -> tuple[bool, str, float]:
    """The sort key for the age of a run: the time in its name, or else the modification time of its profiles."""
    if _TIME.fullmatch(folder.name):
        return True, folder.name, 0.0
    if alone:
        return False, "", 0.0
    written = [child.stat().st_mtime for child in folder.iterdir() if _is_file(child)]
    return False, "", max(written, default=0.0)


def _choose(wanted: str, names: Sequence[str], what: str) -> str:
    """Return the name that matches `wanted`: its full name, its last part, or an unambiguous prefix of either."""
    for matches in (
        [name for name in names if name == wanted],
        [name for name in names if name.rpartition("/")[2] == wanted],
        [name for name in names if name.startswith(wanted) or name.rpartition("/")[2].startswith(wanted)],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise AdvisorError(f"{wanted} names more than one {what}: {few(matches)}.")
    raise AdvisorError(f"There is no {what} called {wanted}; there is {few(names)}.")


def _nothing_in(path: Path) -> str:
    if not is_remote(path):
        folders = [path, *(match for folder in _FOLDERS if folder for match in path.glob(folder.removesuffix("/")))]
        for folder in folders:
            if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK, effective_ids=_CAN_ASK_FOR_EFFECTIVE_IDS):
                return f"{folder} cannot be read (Permission denied)."
    if any(_has_summaries(path)):
        return (
            f"{path} contains no .xplane.pb, only summaries of a profile (such as trace.json.gz), as TensorFlow before 2.3"
            " wrote them: they do not say which iterator waits for which; profile again with TensorFlow 2.3 or later."
        )
    return (
        f"{path} contains no profile (no plugins/profile/*/*.xplane.pb in it): give a run folder, a logdir or a"
        " .xplane.pb file, or make one with `advisor analyze SCRIPT`."
    )


def _has_summaries(path: Path) -> Iterable[bool]:
    return (True for folder in _FOLDERS for end in _SUMMARIES for _ in path.glob(f"{folder}*{end}"))


_CAN_ASK_FOR_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_FOLDERS = ("", "*/", "profile/*/", "plugins/profile/*/", "*/plugins/profile/*/", "*/*/plugins/profile/*/")
"""Locations of profiles below a folder, from the run's own folder to a logdir with one folder per job and role."""


def _patterns() -> list[str]:
    return [f"{folder}*{suffix}" for folder in _FOLDERS for suffix in SUFFIXES]
