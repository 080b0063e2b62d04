"""What `--engine` refuses, in one sentence each."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from advisor.cli import main
from advisor.host.calibration.constant import Constant
from advisor.hosts import analyse_and_draw, dask_executor
from advisor.hosts.dask_executor import check_engine
from advisor.model.errors import AdvisorError
from advisor.model.locations import locate
from advisor.profile import find_profiles
from tests.hosts.made_hosts import write_hosts


@pytest.fixture
def nobody():
    """An address where nothing listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        yield f"dask://127.0.0.1:{other.getsockname()[1]}"


def refusal(capsys, *args: str) -> str:
    assert main(["analyze", *args]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line


@pytest.mark.parametrize("engine", ["dask", "tcp://host:1", "dask://host", "dask://host:99999", "ray://host:1"])
def test_other_engines(engine, tmp_path, capsys):
    write_hosts(tmp_path, {"a": 100, "b": 100})
    text = refusal(capsys, "--engine", engine, str(tmp_path))
    assert f"There is no engine {engine}: name the scheduler of a Dask cluster as dask://HOST:PORT." in text


def test_addresses():
    assert check_engine("dask://scheduler:8786") == "scheduler:8786"
    assert check_engine("dask://[::1]:8786/") == "[::1]:8786"
    with pytest.raises(AdvisorError):
        check_engine("dask://a b:1")


def test_a_run_of_one_host(tmp_path, capsys, nobody):
    write_hosts(tmp_path, {"a": 100})
    assert "--engine is for runs of several hosts" in refusal(capsys, "--engine", nobody, str(tmp_path))


def test_files_in_the_memory_of_this_process(tmp_path, nobody):
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("upath")
    memory = fsspec.filesystem("memory")
    memory.put(str(write_hosts(tmp_path, {"a": 100, "b": 100})), "/of-this-process", recursive=True)
    files = find_profiles(locate("memory://of-this-process"))
    with pytest.raises(AdvisorError, match=r"xplane\.pb is in the memory of this process, .*: leave --engine out\."):
        analyse_and_draw(files, None, "run", engine=nobody)
    memory.rm("/of-this-process", recursive=True)


def test_a_script(tmp_path, capsys, nobody):
    (tmp_path / "train.py").touch()
    assert "--engine applies only to saved runs" in refusal(capsys, "--engine", nobody, str(tmp_path / "train.py"))


@pytest.mark.long
def test_a_scheduler_that_does_not_answer(tmp_path, capsys, nobody, monkeypatch):
    monkeypatch.setattr(dask_executor, "CONNECT_S", Constant(1, "s"))
    write_hosts(tmp_path, {"a": 100, "b": 100})
    text = refusal(capsys, "--engine", nobody, str(tmp_path))
    assert f"The Dask scheduler at {nobody.removeprefix('dask://')} did not answer within 1 s" in text


@pytest.mark.long
def test_without_the_package(tmp_path):
    write_hosts(tmp_path, {"a": 100, "b": 100})
    code = "import sys; sys.modules['distributed'] = None; from advisor.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", "--engine", "dask://127.0.0.1:1", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "needs the package distributed: pip install 'tfdata-advisor[cluster]'." in done.stderr
    assert "Traceback" not in done.stderr
