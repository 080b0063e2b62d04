"""Profiles behind URLs: read through fsspec's memory and HTTP file systems, and one sentence where that fails."""

from __future__ import annotations

import builtins
import functools
import http.server
import threading
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote, is_url, locate
from advisor.profile import read_trace
from tests.hosts.made_hosts import RUN, profile_of, write_hosts

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("upath")
pytest.importorskip("aiohttp")


@pytest.fixture
def memory():
    """An empty memory file system."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture
def server(tmp_path):
    """The URL of a web server over `tmp_path`."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


@pytest.mark.parametrize("text", ["gs://b/x", "s3://b/x", "https://h/x.xplane.pb", "memory://x", "github://o:r@m/x"])
def test_urls(text):
    assert is_url(text)


@pytest.mark.parametrize("text", ["train.py", "/logs/run", "C:\\logs", "a:b", "-m", "./gs:/x"])
def test_paths(text):
    assert not is_url(text)
    assert locate(text) == Path(text)


def test_file_urls_are_local(tmp_path):
    path = profile_of("h", 10).write(tmp_path / "h.xplane.pb")
    assert locate(f"file://{path}") == path
    assert not is_remote(locate(f"file://{path}"))


@pytest.mark.parametrize(
    "target", ["memory://logs/train", f"memory://logs/train/{RUN}", f"memory://logs/train/{RUN}/a.xplane.pb"]
)
def test_memory(memory, target):
    for host in "ab":
        memory.pipe(f"/logs/train/{RUN}/{host}.xplane.pb", profile_of(host, 100).to_bytes())
    assert [host.hostname for host in read_trace(locate(target)).hosts] in (["a", "b"], ["a"])


def test_the_newest_run_behind_a_url(memory):
    for year in (2024, 2026, 2025):
        memory.pipe(f"/logs/plugins/profile/{year}_01_01_00_00_00/h{year}.xplane.pb", profile_of("", 9).to_bytes())
    trace = read_trace(locate("memory://logs"))
    assert [host.hostname for host in trace.hosts] == ["h2026"]
    assert "3 profiled runs" in trace.warnings[0]


def test_the_command_reads_a_web_server(server, tmp_path, capsys):
    write_hosts(tmp_path / "logs", {"a": 100, "b": 400})
    assert main(["analyze", f"{server}/logs/"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Input is the problem: 40 %" in out
    assert "Host: b, the most input-bound of 2." in out


def test_the_command_reads_one_file_of_a_web_server(server, tmp_path, capsys):
    profile_of("h", 400).write(tmp_path / "h.xplane.pb")
    assert main(["analyze", f"{server}/h.xplane.pb"]) == 0
    assert "Input is the problem: 40 %" in capsys.readouterr().out


def test_nothing_is_written_behind_a_url(memory):
    memory.pipe(f"/logs/{RUN}/h.xplane.pb", profile_of("h", 100).to_bytes())
    before = set(memory.find("/"))
    assert main(["analyze", "--quiet", "memory://logs"]) == 0
    assert set(memory.find("/")) == before


RECORDED = Path(__file__).parents[1] / "data/keras_fit"


@pytest.mark.long
def test_the_recording_of_a_run_folder_behind_a_web_server_is_read_too(server, tmp_path, capsys):
    for part in ("plugins", "recording.json"):
        (tmp_path / "logs/advisor-1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs/advisor-1" / part).symlink_to(RECORDED / part)
    before = sorted(tmp_path.rglob("*"))
    for target in (f"{server}/logs/", f"{server}/logs/advisor-1/"):
        assert main(["analyze", target]) == 0
        assert "keras_fit.py:" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("target", ["memory://nothing", "http://127.0.0.1:1/logs", "nonsense://bucket/logs"])
def test_what_cannot_be_read_is_one_sentence(target, capsys):
    assert main(["analyze", target]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert target in err


def test_a_missing_file_system_says_what_to_install(capsys):
    assert main(["analyze", "gs://bucket/logs"]) == 2
    assert "gcsfs" in capsys.readouterr().err


def test_without_fsspec_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "upath":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AdvisorError, match=r"tfdata-advisor\[remote\]"):
        locate("gs://bucket/logs")
