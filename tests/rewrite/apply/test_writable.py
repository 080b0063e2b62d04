"""What cannot be written is refused before anything is run, and only where it is sure to be what would change."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from advisor.cli import main
from advisor.rewrite.apply.writable import early_obstacle, first_obstacle, uncommitted

MAKES_ONE = "import tensorflow as tf\nopen('ran', 'w')\nds = tf.data.Dataset.range(3)\n"


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(MAKES_ONE)
    return path


def read_only(path):
    path.chmod(0o444)
    return "is read-only"


def hard_linked(path):
    path.with_name("copy").hardlink_to(path)
    return "2 hard links"


@pytest.mark.parametrize("spoil", [read_only, hard_linked])
def test_a_script_that_cannot_be_written_is_refused_before_it_is_run(train, spoil, capsys):
    reason = spoil(train)
    assert main(["fix", "--write", "train.py"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line and "so nothing was run" in line
    assert not train.with_name("ran").exists()


@pytest.mark.parametrize(
    "text", [f"import helper\n{MAKES_ONE}", f"from helper import f\n{MAKES_ONE}", "import runner\n", "def broken(:\n"]
)
def test_where_another_file_may_be_the_one_to_change_nothing_is_refused_yet(train, text):
    train.with_name("helper.py").touch()
    train.write_text(text)
    train.chmod(0o444)
    assert early_obstacle(train) == ""
    assert "is read-only" in first_obstacle([train])
    train.chmod(0o644)
    assert first_obstacle([train, train.with_name("helper.py"), train.with_name("absent.py")]) == ""


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_changes_that_are_not_committed_are_seen_and_nothing_is_written(train):
    assert uncommitted([train]) == ()  # no repository

    def git(*args):
        options = ["-c", "user.name=n", "-c", "user.email=e", "-C", str(train.parent)]
        subprocess.run(["git", *options, *args], check=True, capture_output=True)

    git("init")
    assert uncommitted([train]) == (train,)
    git("add", "train.py")
    git("commit", "-m", "first")
    assert uncommitted([train]) == ()
    index = (train.parent / ".git/index").read_bytes()
    train.write_text(MAKES_ONE + "# more\n")
    train.with_name("other.py").touch()
    assert uncommitted([train, train.with_name("other.py")]) == (train, train.with_name("other.py"))
    git("checkout", "train.py")
    assert uncommitted([train]) == ()
    assert len((train.parent / ".git/index").read_bytes()) == len(index)
