"""Hosts analysed in worker processes: the same result, one at a time in memory, and nothing is lost with a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.host.calibration.constant import Constant
from advisor.hosts import analyse_and_draw, analyse_path, analyze_hosts, reduction
from advisor.hosts.executors import EngineLost, InThisProcess, WorkerLost
from advisor.hosts.process_executor import ProcessExecutor
from advisor.hosts.reduction import Reduction
from advisor.model.errors import AdvisorError
from advisor.profile import find_profiles
from tests.hosts.faulty import Poisoned, Watched
from tests.hosts.made_hosts import RUN, write_hosts


@pytest.fixture
def in_processes(monkeypatch):
    monkeypatch.setattr(analyze_hosts, "MIN_BYTES_FOR_PROCESSES", Constant(0, "bytes"))
    monkeypatch.setattr(analyze_hosts, "usable_cores", lambda: 2.0)


def test_processes_give_the_same_analysis(tmp_path, in_processes, monkeypatch):
    logdir = write_hosts(tmp_path, {f"h{number}": 100 + 10 * number for number in range(7)})
    done = []
    several = analyse_path(logdir, None, "run", on_host=lambda count, total: done.append((count, total)))
    monkeypatch.setattr(analyze_hosts, "usable_cores", lambda: 1.0)
    assert analyse_path(logdir, None, "run") == several
    assert several.statistics.overview.environment.num_hosts == 7
    assert done == [(count, 7) for count in range(1, 8)]


@pytest.mark.long
def test_processes_draw_the_same_lanes(tmp_path, in_processes, monkeypatch):
    files = find_profiles(write_hosts(tmp_path, {"a": 100, "b": 300, "c": 200}))
    several = analyse_and_draw(files, None, "run")
    monkeypatch.setattr(analyze_hosts, "usable_cores", lambda: 1.0)
    assert analyse_and_draw(files, None, "run") == several
    assert [view.host for view in several[1]] == ["b", "c", "a"], "the most input-bound first"


@pytest.mark.long
def test_a_damaged_host_is_a_warning_from_a_process_too(tmp_path, in_processes):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100, "c": 100})
    (logdir / RUN / "b.xplane.pb").write_bytes(b"no profile")
    analysis = analyse_path(logdir, None, "run")
    assert [host.hostname for host in analysis.hosts.hosts] == ["a", "c"]
    assert any("b.xplane.pb is not a profile" in text for text in analysis.warnings)


@pytest.mark.long
def test_all_hosts_damaged_is_an_error(tmp_path, in_processes):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100})
    for name in "ab":
        (logdir / RUN / f"{name}.xplane.pb").write_bytes(b"no profile")
    with pytest.raises(AdvisorError, match="is not a profile"):
        analyse_path(logdir, None, "run")


@pytest.mark.long
def test_a_process_that_is_killed_is_replaced():
    with ProcessExecutor(1) as executor:
        first = executor.submit(os.getpid).result()
        with pytest.raises(WorkerLost, match="probably out of memory"):
            executor.submit(os.kill, first, signal.SIGKILL).result()
        assert executor.submit(os.getpid).result() not in (first, os.getpid())


@pytest.mark.long
def test_what_a_function_raises_is_raised_by_its_future():
    with ProcessExecutor(1) as executor:
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
        assert executor.submit(divmod, 7, 2).result() == (3, 1), "the process is still there"


@pytest.mark.long
def test_no_process_is_left_behind():
    executor = ProcessExecutor(2)
    number = executor.submit(os.getpid).result()
    executor.shutdown()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.long
@pytest.mark.parametrize("most", [1, 32], ids=["alone", "in a group"])
def test_a_file_that_ends_its_worker_costs_no_other_host(tmp_path, monkeypatch, most):
    monkeypatch.setattr(reduction, "MAX_GROUP", most)
    monkeypatch.setattr(reduction, "GROUPS_PER_WORKER", 1)
    waits = {**{f"h{number}": 100 + number for number in range(6)}, "poison": 100}
    files = find_profiles(write_hosts(tmp_path, waits))
    with Poisoned(ProcessExecutor(2)) as executor:
        merged = Reduction(files.paths, None, lambda done, total: None).run(executor)
    assert [row.summary.hostname for row in merged.rows] == [f"h{number}" for number in range(6)]
    (sentence,) = merged.failures.texts
    assert sentence.endswith("poison.xplane.pb could not be read: its process was ended (probably out of memory).")


@pytest.mark.long
def test_after_many_files_that_end_their_workers_no_more_are_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(reduction, "MAX_LOST", 2)
    monkeypatch.setattr(reduction, "GROUPS_PER_WORKER", 1)
    files = find_profiles(write_hosts(tmp_path, {f"poison{number}": 100 for number in range(6)}))
    with Poisoned(ProcessExecutor(2)) as executor:
        merged = Reduction(files.paths, None, lambda done, total: None).run(executor)
    assert len(merged.failures.texts) == 6
    assert sum("use workers with more memory" in text for text in merged.failures.texts) == 4


@pytest.mark.long
def test_large_files_are_not_read_at_the_same_time(tmp_path):
    """Two files fit into the limit together only if they are as large as it is at most."""
    files = find_profiles(write_hosts(tmp_path, {f"h{number}": 100 for number in range(8)}))
    size = files.paths[0].stat().st_size
    for limit, most in ((0, 1), (2 * size, 2), (100 * size, 4)):
        executor = Watched(4, limit)
        Reduction(files.paths, None, lambda done, total: None).run(executor)
        assert executor.most == most


@pytest.mark.long
def test_the_largest_files_start_first_and_the_rest_in_order(tmp_path):
    logdir = write_hosts(tmp_path, {f"h{number}": 100 for number in range(9)})
    for name, size in (("h5", 100), ("h7", 200)):
        file = logdir / RUN / f"{name}.xplane.pb"
        file.write_bytes(file.read_bytes() * size)  # repeated planes
    executor = Watched(2, 1 << 40)
    Reduction(find_profiles(logdir).paths, None, lambda done, total: None).run(executor)
    assert executor.groups[:2] == [("h7",), ("h5",)]
    assert [name for group in executor.groups[2:] for name in group] == ["h0", "h1", "h2", "h3", "h4", "h6", "h8"]


def test_another_executor_goes_on_where_one_was_lost(tmp_path):
    files = find_profiles(write_hosts(tmp_path, {f"h{number}": 100 for number in range(5)}))
    done = []

    class Lost(InThisProcess):
        def submit(self, fn, /, *args, **kwargs):
            if len(done) == 2:
                raise EngineLost("It is gone.")
            return super().submit(fn, *args, **kwargs)

    reading = Reduction(files.paths, None, lambda count, total: done.append(count))
    with pytest.raises(EngineLost):
        reading.run(Lost())
    merged = reading.run(InThisProcess())
    assert done == [1, 2, 3, 4, 5], "no host was read twice"
    assert [row.summary.hostname for row in merged.rows] == ["h0", "h1", "h2", "h3", "h4"]


@pytest.mark.long
def test_the_users_script_is_not_run_again(tmp_path):
    """`multiprocessing` would import it in every worker. It prints, and has no `if __name__ == "__main__"`."""
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100})
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "with open('runs.txt', 'a') as file: file.write('x')\n"
        "print('at import')\n"
        "import advisor\n"
        "from advisor.host.calibration.constant import Constant\n"
        "from advisor.hosts import analyze_hosts\n"
        "analyze_hosts.MIN_BYTES_FOR_PROCESSES = Constant(0, 'bytes')\n"
        "analyze_hosts.usable_cores = lambda: 2.0\n"
        f"print(len(advisor.analyze_run({str(logdir)!r}).analysis.hosts.hosts))\n"
        "print('loky' in sys.modules)\n"
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
    assert done.stdout == "at import\n2\nTrue\n"
    assert done.stderr == ""
    assert (tmp_path / "runs.txt").read_text() == "x"
