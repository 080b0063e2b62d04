"""Hosts analysed in worker processes: the same result, one at a time in memory, and nothing is lost with a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.hosts import analyse_path, analyze_hosts
from advisor.hosts.host_worker import HostWorker, Job, work
from advisor.model.errors import AdvisorError
from tests.hosts.made_hosts import RUN, write_hosts


@pytest.fixture
def in_processes(monkeypatch):
    monkeypatch.setattr(analyze_hosts, "MIN_BYTES_FOR_PROCESSES", 0)
    monkeypatch.setattr(analyze_hosts, "usable_cores", lambda: 2.0)


def test_processes_give_the_same_analysis(tmp_path, in_processes, monkeypatch):
    logdir = write_hosts(tmp_path, {f"h{number}": 100 + 10 * number for number in range(7)})
    done = []
    several = analyse_path(logdir, None, "run", on_host=lambda count, total: done.append((count, total)))
    monkeypatch.setattr(analyze_hosts, "usable_cores", lambda: 1.0)
    assert analyse_path(logdir, None, "run") == several
    assert done == [(count, 7) for count in range(1, 8)]


def test_a_damaged_host_is_a_warning_from_a_process_too(tmp_path, in_processes):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100, "c": 100})
    (logdir / RUN / "b.xplane.pb").write_bytes(b"no profile")
    analysis = analyse_path(logdir, None, "run")
    assert [host.hostname for host in analysis.hosts.hosts] == ["a", "c"]
    assert any("b.xplane.pb is not a profile" in text for text in analysis.warnings)


def test_all_hosts_damaged_is_an_error(tmp_path, in_processes):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100})
    for name in "ab":
        (logdir / RUN / f"{name}.xplane.pb").write_bytes(b"no profile")
    with pytest.raises(AdvisorError, match="is not a profile"):
        analyse_path(logdir, None, "run")


def test_a_worker_that_is_killed_costs_its_host_alone(tmp_path):
    logdir = write_hosts(tmp_path, {"a": 100})
    job = Job(logdir / RUN / "a.xplane.pb", None)
    process = HostWorker()
    try:
        assert not isinstance(process.work(job), str)
        os.kill(process._process._process.pid, signal.SIGKILL)
        message = process.work(job)
        assert isinstance(message, str)
        assert "probably out of memory" in message
        assert not isinstance(process.work(job), str), "the next host has a process again"
    finally:
        process.close()


def test_large_files_are_not_read_at_the_same_time(tmp_path, in_processes, monkeypatch):
    """Two files fit into the limit together only if they are as large as it is at most."""
    logdir = write_hosts(tmp_path, {f"h{number}": 100 for number in range(4)})
    monkeypatch.setattr(analyze_hosts, "MAX_BYTES_IN_FLIGHT", 0)
    running, most = set(), []

    class Watched:
        def work(self, job):
            running.add(job.path)
            most.append(len(running))
            result = work(job)
            running.remove(job.path)
            return result

        def close(self):
            pass

    monkeypatch.setattr(analyze_hosts, "HostWorker", Watched)
    analyse_path(logdir, None, "run")
    assert max(most) == 1


def test_the_users_script_is_not_run_again(tmp_path):
    """`multiprocessing` would import it in every worker."""
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100})
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "with open('runs.txt', 'a') as file: file.write('x')\n"
        "from advisor.hosts import analyse_path, analyze_hosts\n"
        "analyze_hosts.MIN_BYTES_FOR_PROCESSES = 0\n"
        f"print(len(analyse_path(Path({str(logdir)!r}), None, 'run').hosts.hosts))\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.stdout == "2\n"
    assert done.stderr == ""
    assert (tmp_path / "runs.txt").read_text() == "x"
