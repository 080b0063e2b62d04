"""Creates the private view of the disk: a mount namespace with overlays over all places to which a run may write.

In: a `View`: what to exclude, and which folders are important.  Out: `Outcome`: what is covered and how, and what is not covered.
After `enter`, the calling process (and the program it executes) reads the real files through the page cache and writes to a
folder that will be removed.

A process that may mount (root) covers the whole tree, through a new root folder. Otherwise a user namespace gives this right for
the user's own folders, which are covered individually.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from advisor.sandbox import syscalls
from advisor.sandbox.mounts import SHARED_MEMORY, SYSTEM, Mount, is_below, read_mounts, sockets, writable_places
from advisor.sandbox.temporary import remove_tree
from advisor.sandbox.working_copy import copy_folder

OVERLAID, COPIED, REDIRECTED, IN_PLACE = "overlaid", "copied", "redirected", "in place"
REFUSE = "TFDATA_ADVISOR_REFUSE"
"""Environment variable for tests: `namespace` or `overlay` makes this step fail as if the kernel refused it."""
_HANDLE = "/proc/self/fd/{}"


@dataclass(frozen=True, slots=True)
class View:
    """The requirements of a run for its view."""

    folder: str
    """An empty folder for written files; removed by the caller."""
    cwd: str
    """Current folder of the run."""
    keep: tuple[str, ...] = ()
    """Folders and files that are not covered, so that writes to them are permanent."""
    near: tuple[str, ...] = ()
    """Folders that the run certainly uses."""
    projects: tuple[str, ...] = ()
    """Those of `near` that are copied if an overlay is refused."""
    layers: dict[str, str] = field(default_factory=dict)
    """Place -> folder with files that earlier runs left there for later ones."""
    is_trial: bool = False
    """Only determine whether the view can be created: no working copies."""


@dataclass(slots=True)
class Outcome:
    """How the view was created; sent to the parent as JSON."""

    kind: str = OVERLAID
    reason: str = ""
    """Why the kernel refused an operation; empty if it did not."""
    uppers: dict[str, str] = field(default_factory=dict)
    """Place -> folder that receives the files written there; empty string if they are kept in memory."""
    copies: dict[str, str] = field(default_factory=dict)
    """Folder -> its working copy."""
    left_out: list[str] = field(default_factory=list)
    """Paths that are not in the working copies."""
    large: list[str] = field(default_factory=list)
    """Those of `left_out` to which the run may write."""
    real: list[str] = field(default_factory=list)
    """Places to which the run may write and that could not be covered."""
    is_whole: bool = False
    """Whether the whole tree is covered, not only the places to which the run was expected to write."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields for `json.dumps`."""
        return asdict(self)


def enter(view: View) -> Outcome:
    """Move this process into its private view.

    Raises:
        OSError: The kernel does not allow a mount namespace. Nothing has been changed.
    """
    return _Builder(view).build()


class _Builder:
    def __init__(self, view: View) -> None:
        self._view = view
        self._outcome = Outcome()
        self._options = "xattr"
        self._handles: dict[str, int] = {}
        self._memory: str | None = None

    def build(self) -> Outcome:
        if os.environ.get(REFUSE) == "namespace":
            raise PermissionError(1, "Operation not permitted")
        is_privileged = _unshare()
        syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_SLAVE)  # mounts do not propagate to the system
        self._options = "redirect_dir=on" if is_privileged else "userxattr"
        mounts = read_mounts()
        for path in (*self._view.keep, *sockets()):
            self._open(path)
        if not (is_privileged and self._cover_all(mounts)):
            self._cover_places(mounts)
        os.chdir(self._view.cwd)
        for handle in self._handles.values():
            os.close(handle)
        return self._outcome

    def _cover_all(self, mounts: list[Mount]) -> bool:
        """Cover all mounts, in a new root; return False if the root itself cannot be covered."""
        root = str(Path(self._view.folder) / "root")
        Path(root).mkdir()
        self._open("/")
        try:
            self._overlay("/", root)
        except OSError as error:
            self._outcome.reason = error.strerror or str(error)
            return False
        for folder in SYSTEM:
            if Path(folder).is_dir():
                syscalls.mount(folder, root + folder, None, syscalls.MS_BIND | syscalls.MS_REC)
        for mount in mounts:
            is_done = mount.path == "/" or (_is_system(mount.path) and not mount.holds_files)
            if is_done or not Path(root + mount.path).exists():
                continue
            if self._open(mount.path) < 0:
                continue
            if mount.holds_files:
                self._cover(mount.path, root + mount.path, is_recursive=False)
            else:
                self._bind(mount.path, root + mount.path, is_recursive=False)
        self._bind_kept(root)
        syscalls.pivot_root(root)
        self._outcome.is_whole = True
        return True

    def _cover_places(self, mounts: list[Mount]) -> None:
        """Cover each place to which the user may write, without a new root."""
        self._outcome.uppers.clear()
        places = writable_places([*self._view.near, *self._view.layers], mounts)
        inner = [mount.path for mount in mounts if any(is_below(mount.path, place) for place in places)]
        places = [path for path in places if self._open(path) >= 0]
        inner = [path for path in inner if self._open(path) >= 0]
        for path in sorted({*places, *inner}, key=lambda path: (path.count("/"), path)):
            if path in places:
                self._cover(path, path, is_recursive=True)
            else:
                self._bind(path, path, is_recursive=True)
        self._bind_kept("")

    def _cover(self, place: str, target: str, is_recursive: bool) -> None:
        try:
            self._overlay(place, target)
            return
        except OSError as error:
            self._outcome.reason = error.strerror or str(error)
        if target != "/":
            self._bind(place, target, is_recursive)
        copied = [folder for folder in self._view.projects if is_below(folder, place)]
        for folder in copied:
            self._copy(folder, target + folder.removeprefix(place))
        if place not in copied and os.access(place, os.W_OK):
            self._outcome.real.append(place)

    def _overlay(self, place: str, target: str) -> None:
        """Mount an overlay of `place` at `target`. If the file system cannot hold its upper folder, that is kept in memory."""
        if os.environ.get(REFUSE) == "overlay":
            raise OSError(22, "Invalid argument")
        try:
            if place == SHARED_MEMORY:
                raise OSError(95, "shared memory stays in memory")
            self._mount_overlay(place, target, self._view.folder)
        except OSError:
            self._mount_overlay(place, target, self._in_memory())

    def _mount_overlay(self, place: str, target: str, folder: str) -> None:
        base = Path(folder) / f"place-{len(self._outcome.uppers)}"
        folders = [base / name for name in ("upper", "work")]
        handles: list[int] = []
        try:
            for path in folders:
                path.mkdir(parents=True)
                handles.append(os.open(path, os.O_PATH))
            folders[0].chmod(Path(_HANDLE.format(self._handles[place])).stat().st_mode & 0o7777)
            lower = _HANDLE.format(self._handles[place])
            if folder == self._view.folder and not self._view.is_trial:
                self._fill(place, folders[0])
            upper, work = (_HANDLE.format(handle) for handle in handles)
            options = f"lowerdir={lower},upperdir={upper},workdir={work},{self._options}"
            syscalls.mount("overlay", target, "overlay", 0, options)
            if folder == self._view.folder:
                self._outcome.uppers[place] = str(folders[0])
            else:
                self._outcome.uppers[place] = ""
        except OSError:
            remove_tree(base)
            raise
        finally:
            for handle in handles:
                os.close(handle)

    def _fill(self, place: str, upper: Path) -> None:
        """Move the files that earlier runs left for this one into `upper`.

        They cannot be an additional lower layer, because their folder is inside another layer.
        """
        if place in self._view.layers:
            for path in list(Path(self._view.layers[place]).iterdir()):
                path.rename(upper / path.name)

    def _in_memory(self) -> str:
        if self._memory is None:
            path = Path(self._view.folder) / "memory"
            path.mkdir()
            syscalls.mount("tmpfs", str(path), "tmpfs", 0, "mode=0755")
            self._memory = str(path)
        return self._memory

    def _copy(self, folder: str, target: str) -> None:
        """Mount a working copy of `folder` over it, and mount the files that are not in the copy into the copy."""
        path = Path(self._view.folder) / f"copy-{len(self._outcome.copies)}"
        self._outcome.kind = COPIED
        if self._view.is_trial:
            return
        try:
            copy = copy_folder(Path(folder), path)
        except OSError:
            self._outcome.real.append(folder)
            return
        left_out = [(name, self._open(f"{folder.rstrip('/')}/{name}")) for name in copy.left_out]
        for name, handle in left_out:
            mount_point = path / name
            source = Path(_HANDLE.format(handle))
            mount_point.mkdir() if source.is_dir() else mount_point.touch()
        syscalls.mount(str(path), target, None, syscalls.MS_BIND)
        for name, handle in left_out:
            syscalls.mount(
                _HANDLE.format(handle), f"{target.rstrip('/')}/{name}", None, syscalls.MS_BIND | syscalls.MS_REC
            )
        self._outcome.copies[folder] = str(path)
        self._outcome.left_out += [f"{folder.rstrip('/')}/{name}" for name in copy.left_out]
        self._outcome.large += [f"{folder.rstrip('/')}/{name}" for name in copy.large]

    def _bind_kept(self, root: str) -> None:
        for path in (*self._view.keep, *sockets()):
            if path in self._handles and Path(root + path).exists():
                self._bind(path, root + path, is_recursive=True)

    def _bind(self, path: str, target: str, is_recursive: bool) -> None:
        flags = syscalls.MS_BIND | (syscalls.MS_REC if is_recursive else 0)
        syscalls.mount(_HANDLE.format(self._handles[path]), target, None, flags)

    def _open(self, path: str) -> int:
        """Open `path` before anything is mounted over it; return the file descriptor, or -1 if it cannot be opened."""
        if path not in self._handles:
            try:
                self._handles[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # removed in the meantime, or in a folder without search permission
                return -1
        return self._handles[path]


def _unshare() -> bool:
    """Enter a new mount namespace; return whether this was possible without a user namespace."""
    try:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        return True
    except PermissionError:
        pass
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return False


def _is_system(path: str) -> bool:
    return any(is_below(path, folder) for folder in SYSTEM)
