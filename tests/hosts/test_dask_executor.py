"""Hosts analysed on a real Dask cluster: the same report, and a worker, a file or the scheduler may fail."""

from __future__ import annotations

import functools
import http.server
import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from advisor.host.calibration.constant import Constant
from advisor.hosts import analyse_and_draw, dask_executor, host_jobs, reduction
from advisor.hosts.dask_executor import DaskExecutor
from advisor.hosts.executors import EngineLost
from advisor.hosts.reduction import Reduction
from advisor.model.errors import AdvisorError
from advisor.model.locations import locate
from advisor.profile import find_profiles
from tests.hosts.dask_cluster import Cluster, cluster
from tests.hosts.faulty import Poisoned
from tests.hosts.made_hosts import RUN, write_hosts

pytestmark = pytest.mark.long


def waits(number: int) -> dict[str, float]:
    return {f"host-{place:03}": 600 if place == number // 2 else 100 + place % 5 for place in range(number)}


def names(merged) -> list[str]:
    return [row.summary.hostname for row in merged.rows]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


def test_a_cluster_gives_the_same_report(tmp_path, two_workers):
    files = find_profiles(write_hosts(tmp_path, waits(40), **{"host-007": {"parallelism": 1}}))
    done = []
    report = analyse_and_draw(files, None, "run", on_host=lambda *hosts: done.append(hosts), engine=two_workers.engine)
    assert report == analyse_and_draw(files, None, "run")
    assert report[0].hosts.stragglers and report[0].hosts.differences
    assert done[-1] == (40, 40)
    assert len(done) < 40, "hosts were merged in groups by the workers"


def test_relative_paths_are_read_by_workers_elsewhere(tmp_path, two_workers, monkeypatch):
    write_hosts(tmp_path / "logs", waits(4))
    monkeypatch.chdir(tmp_path)
    analysis, _ = analyse_and_draw(find_profiles(Path("logs")), None, "run", engine=two_workers.engine)
    assert len(analysis.hosts.hosts) == 4
    assert analysis.warnings == ()


def test_urls_are_read_by_the_workers(tmp_path, two_workers, monkeypatch):
    monkeypatch.setattr(host_jobs, "read_host", lambda path: pytest.fail("read by this process"))
    write_hosts(tmp_path / "logs", waits(6))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files = find_profiles(locate(f"http://127.0.0.1:{server.server_port}/logs"))
        with DaskExecutor(two_workers.engine) as executor:
            merged = Reduction(files.paths, None, lambda done, total: None).run(executor)
        server.shutdown()
    assert names(merged) == sorted(waits(6))


def test_a_corrupt_file_is_a_warning_that_names_it(tmp_path, two_workers):
    logdir = write_hosts(tmp_path, waits(12))
    (logdir / RUN / "host-003.xplane.pb").write_bytes(b"no profile")
    analysis, _ = analyse_and_draw(find_profiles(logdir), None, "run", engine=two_workers.engine)
    assert len(analysis.hosts.hosts) == 11
    (warning,) = analysis.warnings
    assert "host-003.xplane.pb is not a profile" in warning


def test_a_file_that_kills_its_workers_is_named_and_the_rest_is_read(tmp_path, two_workers, monkeypatch):
    monkeypatch.setattr(reduction, "GROUPS_PER_WORKER", 1)
    files = find_profiles(write_hosts(tmp_path, {**waits(12), "host-006-poison": 100}))
    with Poisoned(DaskExecutor(two_workers.engine)) as executor:
        merged = Reduction(files.paths, None, lambda done, total: None).run(executor)
    assert names(merged) == sorted(waits(12))
    (sentence,) = merged.failures.texts
    assert sentence.endswith(
        "host-006-poison.xplane.pb could not be read: 2 Dask workers ended while they read it, probably out of memory."
    )


def test_a_worker_that_is_killed_costs_nothing(tmp_path, two_workers):
    files = find_profiles(write_hosts(tmp_path, waits(40)))
    killed = []

    def kill_once(done, total):
        if not killed:
            killed.append(done)
            two_workers.lose_a_worker()

    report = analyse_and_draw(files, None, "run", on_host=kill_once, engine=two_workers.engine)
    assert killed
    assert report == analyse_and_draw(files, None, "run")


def test_without_the_scheduler_this_machine_goes_on(tmp_path):
    files = find_profiles(write_hosts(tmp_path / "logs", waits(40)))
    with cluster(tmp_path / "cluster", 1) as started:
        engine = started.engine

        def kill_once(done, total):
            if started.scheduler.poll() is None:
                started.lose_the_scheduler()

        analysis, views = analyse_and_draw(files, None, "run", on_host=kill_once, engine=engine)
    expected, drawn = analyse_and_draw(files, None, "run")
    (warning,) = analysis.warnings
    assert warning.startswith(f"The Dask scheduler at {engine.removeprefix('dask://')} was lost")
    assert warning.endswith("of 40 hosts; this machine analysed the others.")
    assert (analysis.hosts, analysis.statistics, views) == (expected.hosts, expected.statistics, drawn)


def test_a_cluster_without_workers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_executor, "LOST_S", Constant(3, "s"))
    monkeypatch.setattr(dask_executor, "CHECK_S", Constant(0.5, "s"))
    files = find_profiles(write_hosts(tmp_path / "logs", waits(8)))
    with cluster(tmp_path / "cluster", 1, "--no-nanny") as started, DaskExecutor(started.engine) as executor:
        reading = Reduction(files.paths, None, lambda done, total: stop(started))
        with pytest.raises(EngineLost, match=r"was lost \(it has no worker left\)"):
            reading.run(executor)


def stop(started: Cluster) -> None:
    started.workers[0].kill()


def test_more_memory_than_any_worker_offers_is_a_sentence(tmp_path):
    logdir = write_hosts(tmp_path / "logs", waits(4))
    with (logdir / RUN / "host-009.xplane.pb").open("wb") as file:
        file.truncate(64 << 20)
    with cluster(tmp_path / "cluster", 1, "--resources", "MEMORY=200e6") as started:
        analysis, _ = analyse_and_draw(find_profiles(logdir), None, "run", engine=started.engine)
    assert len(analysis.hosts.hosts) == 4
    (warning,) = analysis.warnings
    assert "host-009.xplane.pb could not be read: it needs about" in warning
    assert "no worker offers more than" in warning


def test_reading_waits_until_the_memory_of_a_worker_is_free(tmp_path):
    """Two tasks of 150 MB do not run at the same time on a worker with two threads and 200 MB."""
    options = ("--nthreads", "2", "--resources", "MEMORY=200e6")
    with cluster(tmp_path, 1, *options) as started, DaskExecutor(started.engine) as executor:
        assert executor.max_running == 4
        reading = executor.reading(10 << 20)
        spans = [future.result() for future in [reading.submit(span) for _ in range(3)]]
    spans.sort()
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))


def span() -> tuple[float, float]:
    import time

    start = time.time()
    time.sleep(0.3)
    return start, time.time()


@pytest.mark.parametrize("whose", ["scheduler at", "worker tcp://"])
def test_another_version_is_refused(tmp_path, whose):
    other = tmp_path / "path" / "tfdata_advisor-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: tfdata-advisor\nVersion: 0.0.1\n")
    with cluster(tmp_path / "cluster", 0, path=[other.parent] if whose.startswith("scheduler") else []) as started:
        started.path = (other.parent,)
        started.add_worker()
        started.wait()
        message = rf"^The Dask {whose}.* has tfdata-advisor 0\.0\.1, and this machine has"
        with pytest.raises(AdvisorError, match=message):
            DaskExecutor(started.engine)


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_executor, "CONNECT_S", Constant(1, "s"))
    with cluster(tmp_path, 0) as started, pytest.raises(AdvisorError, match="has no worker: start some with"):
        DaskExecutor(started.engine)


def test_the_command_reads_a_run_on_a_cluster(tmp_path, two_workers):
    write_hosts(tmp_path, waits(6))
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "analyze", "--engine", two_workers.engine, str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "host-003 is a straggler" in done.stdout
    assert "Traceback" not in done.stderr
    assert "distributed" not in done.stderr
