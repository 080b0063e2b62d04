"""What the analysis of many hosts on a Dask cluster survives: a worker, a file, a scheduler that is lost.

In: a logdir of many hosts.  Out: one row of a table per fault, with the seconds; the benchmark ends if a report is not complete.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from local_cluster import Cluster, cluster
from replicated_hosts import Planted

from advisor.hosts import analyse_and_draw, analyze_hosts
from advisor.hosts.dask_executor import DaskExecutor
from advisor.hosts.executors import HostExecutor, P, T
from advisor.hosts.host_jobs import analyse_group
from advisor.hosts.merged_hosts import MergedHosts
from advisor.hosts.reduction import Reduction
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording
from advisor.profile.profile_files import find_profiles

WORKERS = 4
OnHost = Callable[[int, int], None]


def analyse_or_die(paths: Sequence[Path], first: int, recording: Recording | None) -> MergedHosts:
    """Analyse hosts, or end the worker if the file is as one that does not fit into its memory."""
    if any("poison" in path.name for path in paths):
        os.kill(os.getpid(), signal.SIGKILL)
    return analyse_group(paths, first, recording)


class Poisoned(HostExecutor):
    """A cluster whose workers do not survive some files."""

    def __init__(self, engine: str) -> None:
        self._inner = DaskExecutor(engine)
        self.max_running, self.max_bytes = self._inner.max_running, self._inner.max_bytes

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function."""
        replaced: Callable[..., T] = analyse_or_die if fn is analyse_group else fn  # type: ignore[assignment]
        return self._inner.submit(replaced, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster."""
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def survive(logdir: Path, planted: Planted, folder: Path) -> list[str]:
    """Analyse a run with each fault, and check the report."""
    rows = []
    for name, fault in FAULTS.items():
        with cluster(folder / name.replace(" ", "-"), WORKERS, path=[Path(__file__).parent]) as workers:
            start = time.perf_counter()
            result = fault(logdir, planted, workers)
            rows.append(f"{name} | {result} | {time.perf_counter() - start:.1f} s")
            print(f"  {rows[-1]}", flush=True)
    return rows


def _nothing(logdir: Path, planted: Planted, workers: Cluster) -> str:
    return _checked(_analysed(logdir, workers), planted)


def _worker(logdir: Path, planted: Planted, workers: Cluster) -> str:
    """A worker is killed when the first group of hosts is done."""
    return _checked(_analysed(logdir, workers, _once(workers.lose_a_worker)), planted)


def _scheduler(logdir: Path, planted: Planted, workers: Cluster) -> str:
    return _checked(_analysed(logdir, workers, _once(workers.lose_the_scheduler)), planted, ("was lost",))


def _corrupt(logdir: Path, planted: Planted, workers: Cluster) -> str:
    """The second half of a file is missing."""
    path = find_profiles(logdir).paths[0]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    try:
        return _checked(_analysed(logdir, workers), planted, (path.name,), missing=1)
    finally:
        path.write_bytes(data)


def _poison(logdir: Path, planted: Planted, workers: Cluster) -> str:
    """A further file ends every worker that reads it."""
    paths = find_profiles(logdir).paths
    extra = paths[0].with_name("poison.xplane.pb")
    extra.write_bytes(paths[0].read_bytes())
    try:
        with Poisoned(workers.engine) as executor:
            merged = Reduction((*paths, extra), None, lambda done, total: None).run(executor)
        return _checked(analyze_hosts.assemble(merged, None, "run"), planted, (extra.name,))
    finally:
        extra.unlink()


FAULTS: dict[str, Callable[[Path, Planted, Cluster], str]] = {
    "none": _nothing,
    "a worker killed": _worker,
    "a corrupt file": _corrupt,
    "a file that kills its workers": _poison,
    "the scheduler lost": _scheduler,
}


def _analysed(logdir: Path, workers: Cluster, on_host: OnHost = lambda done, total: None) -> Analysis:
    return analyse_and_draw(find_profiles(logdir), None, "run", on_host=on_host, engine=workers.engine)[0]


def _once(lose: Callable[[], None]) -> OnHost:
    calls: list[int] = []

    def on_host(done: int, total: int) -> None:
        if not calls:
            calls.append(done)
            lose()

    return on_host


def _checked(analysis: Analysis, planted: Planted, warned: Sequence[str] = (), missing: int = 0) -> str:
    """Describe a report; ends the benchmark if it is not complete, or does not name what was lost."""
    hosts = analysis.hosts.hosts if analysis.hosts is not None else ()
    stragglers = sorted(host.hostname for host in hosts if host.is_straggler)
    named = [text for text in analysis.warnings for word in warned if word in text]
    is_complete = len(hosts) == len(planted.sizes) - missing and stragglers == list(planted.stragglers)
    if not is_complete or len(named) != len(warned) or len(analysis.warnings) != len(warned):
        sys.exit(f"this was not to be: {len(hosts)} hosts, stragglers {stragglers}, {analysis.warnings}")
    said = f"; warning: {re.sub(r'/[^ ]*/', '.../', named[0])}" if named else ""
    return f"{len(hosts)} hosts, planted stragglers found{said}"
