"""What the tests of private runs share: a tree's exact state, and a folder for temporary files of their own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Tree = dict[str, tuple[int, int, bytes]]


def tree_of(folder: Path) -> Tree:
    """Names, modes, modification times and bytes of all that a folder holds, and of the folder itself."""
    state = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        state[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return state


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether the condition holds before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files; nothing of ours is left in it at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert [path.name for path in folder.iterdir()] == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any cache."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CACHE_HOME", "TFDS_DATA_DIR", "KERAS_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a project with one script and goes there."""

    def make(text: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "train.py").write_text(text)
        (folder / "log.csv").write_text("step,loss\n")
        os.utime(folder / "log.csv", ns=(1, 1))
        monkeypatch.chdir(folder)
        return folder

    return make
