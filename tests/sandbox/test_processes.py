"""The tool is killed without a chance to clean up: its runs end, their helpers too, and no temporary folder stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.sandbox.processes import MARKER, end_processes, processes_of
from advisor.sandbox.temporary import temporary_folder
from tests.sandbox.conftest import is_alive, wait_until

LAUNCHER = Path(__file__).parents[2] / "advisor" / "sandbox" / "launcher.py"
SLEEPS = """
import os, subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(os.getpid(), helper.pid, flush=True)
time.sleep(600)
"""


def started(folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """The tool with a script that sleeps; ids of the script and of its helper."""
    command = [sys.executable, "-m", "advisor.capture.launch", "--out", "../run", "train.py"]
    tool = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL),  # a shell ignores it for what it runs in the background
    )  # fmt: skip
    out = folder.parent / "run" / "script.out"
    assert wait_until(lambda: out.exists() and out.read_text().endswith("\n"))
    return tool, [int(word) for word in out.read_text().split()]


def guard_of(tool: subprocess.Popen[bytes]) -> int:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.endswith(b"guard.py") for word in words) and str(tool.pid).encode() in words:
                return int(folder.name)
    raise AssertionError("there is no guard")


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGQUIT, marks=pytest.mark.long)])
def test_a_killed_tool_leaves_no_process_and_no_folder(
    project: Callable[[str], Path], temporary: Path, home: Path, number: int
) -> None:
    tool, pids = started(project(SLEEPS))
    assert list(temporary.iterdir()) != []
    tool.send_signal(number)
    assert tool.wait(20) == -number
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert wait_until(lambda: not list(temporary.iterdir()))


@pytest.mark.long
def test_without_its_guard_the_run_dies_and_the_next_start_cleans_up(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    tool, (script, helper) = started(project(SLEEPS))
    try:
        os.kill(guard_of(tool), signal.SIGKILL)
        tool.kill()
        tool.wait()
        assert wait_until(lambda: not is_alive(script))
        assert any(path.name.startswith("advisor-view-") for path in temporary.iterdir())
        program = "from advisor.sandbox.temporary import temporary_folder\nwith temporary_folder('next'): pass"
        subprocess.run([sys.executable, "-c", program], check=True)
        assert list(temporary.iterdir()) == []
    finally:
        os.kill(helper, signal.SIGKILL)  # only the guard knows of it


def test_a_run_whose_parent_died_before_it_was_there_does_not_begin(tmp_path: Path) -> None:
    """Between fork and exec: the parent that the plan names is not the one that the launcher finds."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"parent": 1, "view": None, "outcome": "", "written": ""}))
    made = tmp_path / "made"
    command = [sys.executable, "-I", "-S", str(LAUNCHER), str(plan), sys.executable, "-c", f"open({str(made)!r}, 'w')"]
    assert subprocess.run(command, check=False).returncode == 137
    assert not made.exists()
    plan.write_text(json.dumps({"parent": os.getpid(), "view": None, "outcome": "", "written": ""}))
    assert subprocess.run(command, check=False).returncode == 0
    assert made.exists()


def test_processes_are_found_by_their_marker_alone() -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, MARKER: marker})
        for marker in ("first/1", "first/10", "second/1")
    ]
    try:
        pids = [child.pid for child in children]
        assert wait_until(lambda: len(processes_of("first")) == 2)
        assert processes_of("first/1") == pids[:1]
        assert end_processes("first/1", 0.0) == 1
        assert [child.poll() is None for child in children] == [False, True, True]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_folders_in_use_and_of_others_are_left_alone(temporary: Path) -> None:
    program = (
        "from advisor.sandbox.temporary import temporary_folder\nwith temporary_folder('busy') as folder:\n"
        "    (folder / 'part').write_text('x'); print(folder, flush=True); input()"
    )
    busy = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert busy.stdout is not None
    folder = Path(busy.stdout.readline().strip())
    other = temporary / "advisor-mine"
    other.mkdir()
    next_start = "from advisor.sandbox.temporary import temporary_folder\nwith temporary_folder('next'): pass"
    subprocess.run([sys.executable, "-c", next_start], check=True)
    assert (folder / "part").exists()
    busy.kill()
    busy.wait()
    subprocess.run([sys.executable, "-c", next_start], check=True)
    assert [path.name for path in temporary.iterdir()] == ["advisor-mine"]
    other.rmdir()


def test_removal_stays_in_the_folder(temporary: Path, tmp_path: Path) -> None:
    """Links are removed, not followed; folders that may not be entered are no obstacle."""
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_text("gold")
    with temporary_folder("part") as folder:
        (folder / "link").symlink_to(treasure)
        (folder / "closed").mkdir()
        (folder / "closed" / "file").write_text("x")
        (folder / "closed").chmod(0)
    assert not folder.exists()
    assert (treasure / "gold").read_text() == "gold"


def test_an_unfinished_run_folder_goes_with_a_killed_tool(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    """A folder of `new_run_folder` in which nothing was recorded is of no use; a recorded run is kept."""
    for has_recording in (False, True):
        out = home / f"run-{has_recording}"
        program = (
            "import os, signal\nfrom pathlib import Path\nfrom advisor.model.run_folder import new_run_folder\n"
            f"with new_run_folder(Path({str(out)!r}), 'x') as folder:\n    (folder / 'script.out').write_text('x')\n"
            f"    if {has_recording}: (folder / 'recording.json').write_text('x')\n    os.kill(os.getpid(), signal.SIGKILL)"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    with temporary_folder("next"):
        pass
    from advisor.sandbox.temporary import remove_stale_folders

    remove_stale_folders()
    assert [path.name for path in home.iterdir()] == ["run-True"]
