"""What is no regular file is refused with one sentence, before anything waits for it."""

import os
import shutil
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.model.regular_files import is_regular, read_regular

RUN = Path(__file__).parents[1] / "data" / "keras_fit"
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "train.py"
    os.mkfifo(path)
    return path


@pytest.fixture
def run_with_pipe(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    (tmp_path / "run" / "report.json").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "run" / "report.json")
    return tmp_path / "run"


def test_reading(pipe, tmp_path):
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(Path("/dev/zero"))
    with pytest.raises(OSError):
        read_regular(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "b") == b"text"
    assert is_regular(tmp_path / "b")
    assert not is_regular(pipe)
    assert not is_regular(tmp_path / "missing")


@pytest.mark.parametrize("command", ["analyze", "fix"])
@pytest.mark.parametrize("what", ["pipe", "/dev/zero"])
def test_a_script(command, what, pipe, capsys):
    code = main([command, str(pipe) if what == "pipe" else what])
    assert code == 2
    assert "is not a regular file" in " ".join(capsys.readouterr().err.split())


def test_a_report_in_a_run_folder(run_with_pipe, capsys):
    for arguments in (["analyze", str(run_with_pipe)], ["export", str(run_with_pipe), "--to", "sarif"]):
        assert main(arguments) == 2
        assert "report.json is not a regular file" in " ".join(capsys.readouterr().err.split())
