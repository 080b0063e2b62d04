"""A disk that is full under the run folder: one sentence and exit code 2, never our traceback or the blame of the script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from advisor.cli import main

QUIET = """import sys
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
"""
"""Leaves no room for the recording."""
LOUD = """while True:
    print("x" * 4096, flush=True)
"""
"""Its own output fills the disk, and it fails of that."""
FAILING = "raise ValueError('mine')\n"


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        is_mounted = False
    if not is_mounted:
        pytest.skip("mounting is not allowed")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("text", [QUIET, LOUD])
@pytest.mark.parametrize("show_output", [False, True])
def test_a_full_disk_under_the_run_folder_is_one_sentence(disk, tmp_path, capfd, text, show_output):
    if show_output and text == LOUD:
        pytest.skip("its output does not go to the disk")
    script = tmp_path / "base.py"
    script.write_text(text)
    options = ["--in-place"]  # in a private view of the disk the filler would not be written to this one
    options += ["--show-output"] if show_output else []
    code = main(["analyze", *options, "--out", str(disk / "run"), str(script), str(disk / "filler")])
    captured = capfd.readouterr()
    assert code == 2
    assert "Traceback" not in captured.err
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert (
        str(disk / "run") in line and "No space left on device; free some disk space or choose another folder" in line
    )
    assert not (disk / "run").exists()


@pytest.mark.long
def test_a_script_that_fails_by_itself_is_still_blamed(tmp_path, capfd):
    script = tmp_path / "base.py"
    script.write_text(FAILING)
    assert main(["analyze", "--out", str(tmp_path / "run"), str(script)]) == 3
    assert "ValueError: mine" in capfd.readouterr().err
    assert not Path(tmp_path / "run").exists()
