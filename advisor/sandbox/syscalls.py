"""Linux system calls that Python 3.11 does not have: `unshare`, `mount`, `umount2`, `pivot_root`, `prctl`.

All functions raise OSError if the kernel refuses the call, and on other systems.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 1 << 19
MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "riscv64": 41, "s390x": 217}
"""System call numbers by machine, because glibc has no wrapper."""


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount a file system.

    Args:
        source: Device or, for a bind mount, path.
        target: Mount point.
        kind: Type of the file system; None for a bind mount.
        flags: `MS_...` flags.
        options: Options of the file system.
    """
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _call("mount", words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])


def unmount(target: str) -> None:
    """Detach the mount at `target` from the tree. It is unmounted when it is no longer in use."""
    _call("umount2", os.fsencode(target), ctypes.c_int(MNT_DETACH))


def pivot_root(new_root: str) -> None:
    """Make `new_root` (a mount point) the root of this mount namespace and detach the old one."""
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.chdir(new_root)
    _call("syscall", ctypes.c_long(number), b".", b".")
    unmount(".")
    os.chdir("/")


def die_with_parent(parent: int) -> None:
    """Make the kernel send SIGKILL to this process when the thread that started it ends.

    If the process `parent` has already ended, this process ends immediately.
    """
    if sys.platform == "linux":
        _call("prctl", ctypes.c_int(_PR_SET_PDEATHSIG), ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _call(name: str, *args: object) -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
