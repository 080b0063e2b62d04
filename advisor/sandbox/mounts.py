"""Lists the mounts of the system and the places to which a run may write.

In: `/proc/self/mountinfo`.  Out: `Mount`s, and the places that a private view has to cover.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PSEUDO = frozenset(
    (
        "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl",
        "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
    )
)  # fmt: skip
"""Types of file systems that do not hold files of users."""
SYSTEM = ("/proc", "/sys", "/dev", "/run")
"""Folders with devices, sockets and kernel state, which the private view does not cover."""
SHARED_MEMORY = "/dev/shm"
_MAX_SOCKETS = 200
"""Maximum number of sockets that are mounted."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount, i.e. one line of mountinfo."""

    path: str
    kind: str
    """File system type."""
    is_read_only: bool

    @property
    def holds_files(self) -> bool:
        """Whether files that a run writes there would be permanent."""
        if self.kind in _PSEUDO or self.is_read_only or not Path(self.path).is_dir():
            return False
        if self.path == SHARED_MEMORY:
            return True
        is_system = any(is_below(self.path, folder) for folder in SYSTEM)
        return not is_system or (
            is_below(self.path, "/run") and self.kind != "tmpfs"
        )  # disks are mounted in /run/media


def read_mounts(text: str | None = None) -> list[Mount]:
    """Return all visible mounts, parents first. If several are mounted at one path, the last one hides the others.

    Args:
        text: Content of a mountinfo file; None: that of this process.
    """
    if text is None:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    mounts: dict[str, Mount] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if "-" not in words:
            continue
        rest = words[words.index("-") + 1 :]
        path = _unescaped(words[4])
        options = {*words[5].split(","), *rest[2].split(",")}
        mounts.pop(path, None)
        mounts[path] = Mount(path, rest[0], "ro" in options)
    return sorted(mounts.values(), key=lambda mount: (mount.path.count("/") if mount.path != "/" else 0, mount.path))


def is_below(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def writable_places(near: list[str], mounts: list[Mount]) -> list[str]:
    """Return the folders that the private view of an unprivileged user has to cover, parents first.

    The overlay of an unprivileged user cannot copy up folders of other users. Therefore there are several overlays, over the
    topmost folders to which the user may write, among those near the script, at the top of the tree and at mount points.

    Args:
        near: Folders that the run certainly uses: the current folder, the script's, the user's home, those given by arguments.
        mounts: All mounts.
    """
    tops = [mount.path for mount in mounts if mount.holds_files]
    tops += [path for top in ("/", *tops) for path in _folders_in(top)]
    tops += [path for top in _folders_in("/") for path in _folders_in(top)]
    places: dict[str, None] = {}
    own = os.geteuid()
    for path in dict.fromkeys([*near, *tops]):
        if any(is_below(path, folder) for folder in SYSTEM) and path != SHARED_MEMORY:
            continue
        covered = False
        for folder in [*reversed(Path(path).parents), Path(path)]:
            try:
                status = folder.stat()
            except OSError:
                break
            is_writable = folder.is_dir() and os.access(folder, os.W_OK)
            if is_writable and (not covered or status.st_uid != own):
                places[str(folder)] = None
            covered = is_writable
    places |= {mount.path: None for mount in mounts if mount.holds_files and os.access(mount.path, os.W_OK)}
    return sorted(places, key=lambda place: (place.count("/"), place))


def sockets() -> list[str]:
    """Return the paths of Unix sockets outside the system's folders, because sockets do not work through an overlay."""
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    paths = {line.split(maxsplit=7)[7] for line in lines if line.count(" ") >= 7 and "/" in line}
    candidates = (path for path in paths if path.startswith("/") and not any(is_below(path, top) for top in SYSTEM))
    return [path for path in candidates if Path(path).is_socket()][:_MAX_SOCKETS]


def _folders_in(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)][:1000]
    except OSError:
        return []


def _unescaped(text: str) -> str:
    return (
        text.encode("latin-1", "surrogateescape")
        .decode("unicode_escape")
        .encode("latin-1")
        .decode("utf-8", "surrogateescape")
        if "\\" in text
        else text
    )
