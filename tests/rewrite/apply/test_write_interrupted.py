"""Processes that are killed, interrupted or fail while they change files: each file is whole, and undo works."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from tests.rewrite.changed_files import AFTER, BEFORE, contents, names_in, patch_of

CHILD = """
    import os, sys, time
    from pathlib import Path
    from advisor.model.errors import AdvisorError
    from advisor.rewrite.patch import Patch
    from advisor.rewrite.apply.undo import undo
    from advisor.rewrite.apply.write import write_patch
    from advisor.model.termination import cleaning_up_when_terminated

    folder, run, action = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    before, after = {before!r}, {after!r}
    patch = Patch({{path: (before, after) for path in sorted(folder.glob("*.py"))}})
    {setup}
    try:
        with cleaning_up_when_terminated():
            write_patch(patch, run, folder / "a.py") if action == "write" else undo(run)
    except AdvisorError as error:
        sys.exit(f"AdvisorError: {{error}}")
"""

PAUSE_AFTER = """
    left = [int(sys.argv[4])]
    def pause(event, args):
        if event == "os.rename" and os.fspath(args[1]).endswith(".py"):
            left[0] -= 1
            if left[0] < 0:
                print("paused", flush=True)
                time.sleep(60)
    sys.addaudithook(pause)
"""
"""Stops the process before the n-th file takes its new bytes."""

PAUSE_ON_OPEN = """
    left = [int(sys.argv[4])]
    def pause(event, args):
        if event == "open" and str(folder) in str(args[0]) and args[2] & os.O_CREAT:
            left[0] -= 1
            if left[0] < 0:
                print("paused", flush=True)
                time.sleep(60)
    sys.addaudithook(pause)
"""
"""Stops the process before it writes the n-th temporary file."""


def child(setup: str, folder: Path, run: Path, action: str, *arguments: str, **kwargs) -> subprocess.Popen[str]:
    code = textwrap.dedent(CHILD).format(before=BEFORE, after=AFTER, setup=textwrap.dedent(setup).strip())
    command = [sys.executable, "-c", code, str(folder), str(run), action, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def wait_for_pause(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "paused\n", process.communicate()[1]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("recovery", ["undo", "undo by name", "write again", "write to another folder"])
def test_killed_between_two_files(project, run_folder, tmp_path, number, recovery):
    process = child(PAUSE_AFTER, project, run_folder, "write", str(number))
    wait_for_pause(process)
    process.kill()
    process.communicate()
    assert contents(project) == [AFTER] * number + [BEFORE] * (3 - number)  # each whole
    if recovery == "undo":
        undo(run_folder)
    elif recovery == "undo by name":
        undo(project / "a.py")
    else:
        target = run_folder if recovery == "write again" else tmp_path / "other"
        write_patch(patch_of(*sorted(project.glob("*.py"))), target)
        assert contents(project) == [AFTER] * 3
        undo(target)
    assert contents(project) == [BEFORE] * 3
    assert names_in(project) == {"a.py", "b.py", "c.py"}


@pytest.mark.parametrize("number", range(3))
def test_killed_while_new_bytes_are_written(project, run_folder, number):
    process = child(PAUSE_ON_OPEN, project, run_folder, "write", str(number))
    wait_for_pause(process)
    process.kill()
    process.communicate()
    assert contents(project) == [BEFORE] * 3
    undo(run_folder)
    assert names_in(project) == {"a.py", "b.py", "c.py"}


@pytest.mark.parametrize("recovery", ["undo", "write to another folder"])
def test_killed_while_undoing(project, run_folder, tmp_path, recovery):
    patch = patch_of(*sorted(project.glob("*.py")))
    write_patch(patch, run_folder)
    process = child(PAUSE_AFTER, project, run_folder, "undo", "1")
    wait_for_pause(process)
    process.kill()
    process.communicate()
    assert contents(project) == [BEFORE, AFTER, AFTER]
    if recovery == "undo":
        undo(run_folder)
    else:
        write_patch(patch, tmp_path / "other")
        assert contents(project) == [AFTER] * 3
        undo(tmp_path / "other")
    assert contents(project) == [BEFORE] * 3
    assert names_in(project) == {"a.py", "b.py", "c.py"}


def test_another_process_at_work_is_not_disturbed(project, run_folder, tmp_path):
    process = child(PAUSE_AFTER, project, run_folder, "write", "1")
    wait_for_pause(process)
    try:
        with pytest.raises(AdvisorError, match=f"process {process.pid}"):
            write_patch(patch_of(project / "b.py"), tmp_path / "other")
    finally:
        process.kill()
        process.communicate()
    undo(run_folder)
    assert contents(project) == [BEFORE] * 3


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize(
    ("setup", "number"),
    [
        (PAUSE_ON_OPEN, 1),
        (PAUSE_AFTER, 1),
        *(pytest.param(PAUSE_AFTER, number, marks=pytest.mark.long) for number in (0, 2)),
    ],
)
def test_a_signal_leaves_all_or_none_changed(project, run_folder, setup, number, signum):
    setup = setup.replace("time.sleep(60)", "time.sleep(0.5)")
    process = child(setup, project, run_folder, "write", str(number))
    wait_for_pause(process)
    time.sleep(0.1)
    process.send_signal(signum)
    _, error = process.communicate(timeout=20)
    assert ("KeyboardInterrupt" in error) == (signum == signal.SIGINT)
    assert process.returncode == -signum
    is_swapping = setup.startswith(PAUSE_AFTER[:20]) and "os.rename" in setup
    assert contents(project) == [AFTER if is_swapping else BEFORE] * 3
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    if is_swapping:
        undo(run_folder)
    else:
        assert not (run_folder / "source").exists()
    assert contents(project) == [BEFORE] * 3


FAIL = """
    import errno
    left = [int(sys.argv[4])]
    def fail(event, args):
        if event == "os.rename" and os.fspath(args[1]).endswith(".py"):
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.EIO, "Input/output error", os.fspath(args[1]))
    sys.addaudithook(fail)
"""


@pytest.mark.parametrize("number", range(3))
def test_a_failure_between_two_files_gives_the_first_ones_back(project, run_folder, number):
    numbers = [path.stat().st_ino for path in sorted(project.glob("*.py"))]
    process = child(FAIL, project, run_folder, "write", str(number))
    _, error = process.communicate(timeout=20)
    assert "input/output error; no file was changed" in error
    assert contents(project) == [BEFORE] * 3
    assert [path.stat().st_ino for path in sorted(project.glob("*.py"))] == numbers  # the very same files
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    assert not (run_folder / "source").exists()


NO_LINKS = """
    import errno
    def no_links(event, args):
        if event == "os.link":
            raise OSError(errno.EPERM, "Operation not permitted", os.fspath(args[0]))
    sys.addaudithook(no_links)
"""


def test_without_hard_links_a_copy_restores_the_first_files(project, run_folder):
    """Some file systems (FAT, some network shares) have no hard links."""
    process = child(NO_LINKS + FAIL, project, run_folder, "write", "2")
    _, error = process.communicate(timeout=20)
    assert "input/output error; no file was changed" in error
    assert contents(project) == [BEFORE] * 3
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    assert not (run_folder / "source").exists()


EDIT = """
    def edit(event, args):
        if event == "os.rename" and os.fspath(args[1]).endswith("a.py"):
            (folder / "b.py").write_bytes(b"mine")
    sys.addaudithook(edit)
"""


def test_an_edit_between_two_files_stays_and_the_first_ones_are_given_back(project, run_folder, tmp_path):
    process = child(EDIT, project, run_folder, "write")
    _, error = process.communicate(timeout=20)
    assert "b.py has just been changed by another program, so no file was changed" in error
    assert contents(project) == [BEFORE, b"mine", BEFORE]
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    assert not (run_folder / "source").exists()
    write_patch(patch_of(project / "a.py"), tmp_path / "other")
    assert contents(project) == [AFTER, b"mine", BEFORE]


LIMIT = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = int(sys.argv[4])
    def restrict(event, args):
        if event == "open" and str(folder) in str(args[0]) and args[2] & os.O_CREAT:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sys.addaudithook(restrict)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no such limit")
def test_new_bytes_that_cannot_be_written_whole_change_nothing(project, run_folder):
    process = child(LIMIT, project, run_folder, "write", "5")
    _, error = process.communicate(timeout=20)
    assert "cannot be written: file too large; no file was changed" in error
    assert "Traceback" not in error
    assert contents(project) == [BEFORE] * 3
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    assert not (run_folder / "source").exists()


FAIL_FOR_GOOD = FAIL.replace("if left[0] == -1:", "if left[0] <= -1:")
"""From the n-th name on, no file can be given another one: none of those before gets its old bytes back either."""


@pytest.mark.parametrize("number", range(3))
def test_names_that_cannot_be_exchanged_any_more_are_told_one_by_one(project, run_folder, number):
    process = child(FAIL_FOR_GOOD, project, run_folder, "write", str(number))
    _, error = process.communicate(timeout=20)
    assert contents(project) == [AFTER] * number + [BEFORE] * (3 - number)
    assert ("no file was changed" in error) == (number == 0)
    if number:
        changed, unchanged = error.split("; not changed: ")
        assert "Changed: " in changed
        assert [name for name in "abc" if f"/{name}.py" in changed.split("Changed: ")[1]] == list("abc"[:number])
        assert [name for name in "abc" if f"/{name}.py" in unchanged.split(". advisor")[0]] == list("abc"[number:])
        assert f"--undo {run_folder}" in error
    assert names_in(project) == {"a.py", "b.py", "c.py"}
    if number:
        undo(project / "a.py")
    assert contents(project) == [BEFORE] * 3


@pytest.mark.parametrize("number", range(3))
def test_an_undoing_that_stops_half_way_says_which_files_are_restored(project, run_folder, number):
    write_patch(patch_of(*sorted(project.glob("*.py"))), run_folder)
    process = child(FAIL_FOR_GOOD, project, run_folder, "undo", str(number))
    _, error = process.communicate(timeout=20)
    assert contents(project) == [BEFORE] * number + [AFTER] * (3 - number)
    assert ("no file was changed" in error) == (number == 0)
    if number:
        restored = error.split(" could be restored")[0]
        assert [name for name in "abc" if f"/{name}.py" in restored] == list("abc"[:number])
    undo(run_folder)
    assert contents(project) == [BEFORE] * 3


def test_a_note_of_a_change_that_was_never_made_hides_no_earlier_one(project, run_folder, tmp_path):
    from advisor.rewrite.apply import backup_index

    path = project / "a.py"
    write_patch(patch_of(path), run_folder)
    (tmp_path / "later").mkdir()
    backup_index.add([path], tmp_path / "later")  # as a kill between the note and the journal leaves it
    assert undo(path) == (path,)
    assert path.read_bytes() == BEFORE
