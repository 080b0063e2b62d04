"""Disks that are full or read-only while files change: each file is whole, and undo works."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from tests.rewrite.changed_files import AFTER, BEFORE, contents, names_in, patch_of


def mounted(folder: Path, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    if not mounted(folder, "size=64k"):
        pytest.skip("mounting is not allowed")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return filler


def test_a_full_disk_under_the_script(small_disk, run_folder):
    paths = [small_disk / "a.py", small_disk / "b.py"]
    for path in paths:
        path.write_bytes(BEFORE)
    filler = fill(small_disk)
    with pytest.raises(AdvisorError, match="the disk is full; no file was changed"):
        write_patch(patch_of(*paths), run_folder)
    assert [path.read_bytes() for path in paths] == [BEFORE, BEFORE]
    assert names_in(small_disk) == {"a.py", "b.py", "filler"}
    filler.unlink()
    write_patch(patch_of(*paths), run_folder)
    filler = fill(small_disk)
    with pytest.raises(AdvisorError, match="the disk is full; no file was changed"):
        undo(run_folder)
    assert [path.read_bytes() for path in paths] == [AFTER, AFTER]
    filler.unlink()
    undo(run_folder)
    assert [path.read_bytes() for path in paths] == [BEFORE, BEFORE]
    assert names_in(small_disk) == {"a.py", "b.py"}


def test_a_full_disk_under_the_run_folder(small_disk, script):
    fill(small_disk)
    with pytest.raises(AdvisorError, match="No backup can be written"):
        write_patch(patch_of(script), small_disk / "run")
    assert script.read_bytes() == BEFORE
    assert not (small_disk / "run" / "source").exists()


def test_a_disk_that_fills_up_after_the_backup_still_undoes(small_disk, script):
    run = small_disk / "run"
    write_patch(patch_of(script), run)
    fill(small_disk)
    undo(run)
    assert script.read_bytes() == BEFORE


def test_a_read_only_file_system(tmp_path, run_folder):
    folder = tmp_path / "disk"
    if not mounted(folder, "size=64k"):
        pytest.skip("mounting is not allowed")
    try:
        script = folder / "train.py"
        script.write_bytes(BEFORE)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(AdvisorError, match="read-only"):
            write_patch(patch_of(script), run_folder)
        assert script.read_bytes() == BEFORE
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_note_for_undo_that_cannot_be_written_stops_the_change(project, small_disk, run_folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk / "state"))
    paths = sorted(project.glob("*.py"))
    filler = fill(small_disk)
    with pytest.raises(
        AdvisorError, match=r"entry that advisor fix --undo needs .* the disk is full; no file was changed"
    ):
        write_patch(patch_of(*paths), run_folder)
    assert contents(project) == [BEFORE] * 3
    assert not (run_folder / "source").exists()
    filler.unlink()
    write_patch(patch_of(*paths), run_folder)
    assert undo(project / "b.py") == tuple(paths)
    assert contents(project) == [BEFORE] * 3
