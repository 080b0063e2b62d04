"""How many other processes run the same script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from advisor.host.other_runs import other_runs, target_of

SCRIPT = "import os, sys, time\nif 'fork' in sys.argv: os.fork()\nos.write(1, b'ready\\n')\ntime.sleep(60)\n"


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("python train.py --epochs 3", ("train.py", "")),
        ("/usr/bin/python3.11 -u -X dev -W ignore train.py", ("train.py", "")),
        ("python -m package.train train.py", ("", "package.train")),
        ("python -Wignore -mpackage train.py", ("", "package")),
        ("python -um package train.py", ("", "package")),
        ("python -uBW ignore -X dev train.py", ("train.py", "")),
        ("python --check-hash-based-pycs always --help train.py", ("train.py", "")),
        ("python -uc pass train.py", ("", "")),
        ("python -c pass train.py", ("", "")),
        ("python - train.py", ("", "")),
        ("python", ("", "")),
        ("python -m", ("", "")),
        ("vim train.py", ("", "")),
        ("", ("", "")),
    ],
)
def test_what_a_command_line_runs(command: str, target: tuple[str, str]) -> None:
    assert target_of(command.split()) == target


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[None]:
    """Run Python in a folder until the script says that it is ready."""
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            for _ in range(2 if "fork" in arguments else 1):
                assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_other_runs_of_the_same_file_are_counted(tmp_path: Path) -> None:
    for name in ("train.py", "other.py", "package/train.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SCRIPT)
    script = tmp_path / "train.py"
    assert other_runs(script, None) == 0
    with ExitStack() as stack:
        stack.enter_context(running(tmp_path, "train.py"))
        assert other_runs(script, None) == 1
        stack.enter_context(running(tmp_path / "package", "../train.py", "--trial", "2"))
        assert other_runs(script, None) == 2
        stack.enter_context(running(tmp_path, "other.py"))
        stack.enter_context(running(tmp_path, "package/train.py"))
        assert other_runs(script, None) == 2
    assert other_runs(script, None) == 0


def test_a_process_and_what_it_forks_count_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    with running(tmp_path, "train.py", "fork"):
        assert other_runs(tmp_path / "train.py", None) == 1


def test_runs_of_a_module_are_counted(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(SCRIPT)
    with running(tmp_path, "-m", "trainer"):
        assert other_runs(None, "trainer") == 1
        assert other_runs(None, "another") == 0
        assert other_runs(tmp_path / "trainer.py", None) == 0
