"""Analyses the hosts of a run in parallel processes, limited by cores and memory.

In: `ProfileFiles`, a recording, a progress callback.  Out: `Analysis` of all hosts that could be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from advisor.graph import HostPart, analyse, combine
from advisor.host.machine import usable_cores
from advisor.hosts.compare_hosts import compare
from advisor.hosts.host_worker import HostWorker, Job, Result, work
from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote
from advisor.model.trace import Trace
from advisor.profile import ProfileFiles, choice_notes, find_profiles, read_host
from advisor.profile.profile_files import unpacked_size

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis
    from advisor.model.recording import Recording
    from advisor.model.window_timeline import HostView

OnHost = Callable[[int, int], None]
"""Called with (finished hosts, total hosts)."""

MIN_BYTES_FOR_PROCESSES = 8 << 20
"""Minimum total size for several processes: starting one takes as long as analysing a profile of a few MB."""
MAX_BYTES_IN_FLIGHT = 64 << 20
"""Maximum total size of the files that are read at the same time, unless a single file is larger."""


def analyse_path(
    path: Path,
    recording: Recording | None,
    target: str,
    run: str | None = None,
    hosts: Sequence[str] = (),
    on_host: OnHost = lambda done, total: None,
) -> Analysis:
    """Analyse all hosts of a run.

    Args:
        path: A run folder, a logdir or a profile file.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        target: Name of the target for the report.
        run: See `find_profiles`.
        hosts: See `find_profiles`.
        on_host: Called with (finished hosts, total hosts).

    Raises:
        AdvisorError: There is no profile, or no host can be read.
    """
    files = find_profiles(path, run, hosts)
    return analyse_files(files, recording, target, choice_notes(files, path, run), on_host)


def analyse_files(
    files: ProfileFiles,
    recording: Recording | None,
    target: str,
    warnings: Sequence[str] = (),
    on_host: OnHost = lambda done, total: None,
) -> Analysis:
    """Analyse all hosts together. A host that cannot be read causes a warning.

    Args:
        files: The profile files, one per host.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        target: Name of the target for the report.
        warnings: Sentences to add to the warnings of the analysis.
        on_host: Called with (finished hosts, total hosts).

    Raises:
        AdvisorError: No host can be read.
    """
    results: list[Result] = [""] * len(files.paths)
    for done, (place, result) in enumerate(_results(files.paths, recording), 1):
        results[place] = result
        on_host(done, len(files.paths))
    parts = _with_unique_names([result for result in results if isinstance(result, HostPart)])
    failures = [result for result in results if isinstance(result, str)]
    if not parts:
        raise AdvisorError(failures[0])
    analysis = combine(parts, recording, target, (*warnings, *failures))
    return compare(analysis, parts) if len(parts) > 1 else analysis


def analyse_and_draw(
    files: ProfileFiles,
    recording: Recording | None,
    target: str,
    warnings: Sequence[str] = (),
    on_host: OnHost = lambda done, total: None,
) -> tuple[Analysis, tuple[HostView, ...]]:
    """Analyse all hosts like `analyse_files`, and compute the lanes of their windows.

    Returns:
        The analysis, and the lanes; with many hosts, only those of the most input-bound ones.

    Raises:
        AdvisorError: No host can be read.
    """
    from advisor.profile.lanes import MAX_HOSTS, MAX_SPANS, draw_host, draw_hosts

    if len(files.paths) == 1:  # one trace serves both
        trace = Trace((read_host(files.paths[0]),), tuple(warnings))
        return analyse(trace, recording, target), draw_hosts(trace)
    analysis = analyse_files(files, recording, target, warnings, on_host)
    paths = _most_input_bound(files, analysis)[:MAX_HOSTS]
    views = []
    for path in paths:
        with suppress(AdvisorError):  # files that cannot be read have already caused a warning
            views.append(draw_host(read_host(path), MAX_SPANS // len(paths)))
    return analysis, tuple(view for view in views if view is not None)


def _most_input_bound(files: ProfileFiles, analysis: Analysis) -> list[Path]:
    """Return the files of the hosts that could be read, most input-bound first."""
    by_text = {str(path): path for path in files.paths}
    ranked = [by_text[host.path] for host in analysis.hosts.hosts if host.path in by_text] if analysis.hosts else []
    return ranked or list(files.paths)


def _results(paths: Sequence[Path], recording: Recording | None) -> Iterator[tuple[int, Result]]:
    """Yield (index in `paths`, result) in order of completion."""
    sizes = [unpacked_size(path) for path in paths]
    num_workers = min(len(paths), int(usable_cores()))
    if num_workers < 2 or sum(sizes) < MIN_BYTES_FOR_PROCESSES or any(_is_in_this_process(path) for path in paths):
        for place, path in enumerate(paths):
            yield place, work(Job(path, recording))
        return
    limit = max(*sizes, MAX_BYTES_IN_FLIGHT)
    idle: SimpleQueue[HostWorker] = SimpleQueue()
    workers = [HostWorker() for _ in range(num_workers)]
    for worker in workers:
        idle.put(worker)

    def run(path: Path) -> Result:
        worker = idle.get()
        try:
            return worker.work(Job(path, recording))
        finally:
            idle.put(worker)

    waiting = sorted(range(len(paths)), key=lambda place: sizes[place])  # a stack: the largest files start first
    running: dict[Future[Result], int] = {}
    with ThreadPoolExecutor(num_workers) as threads:
        try:
            while waiting or running:
                in_flight = sum(sizes[place] for place in running.values())
                while waiting and len(running) < num_workers and in_flight + sizes[waiting[-1]] <= limit:
                    place = waiting.pop()
                    in_flight += sizes[place]
                    running[threads.submit(run, paths[place])] = place
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
        finally:
            for worker in workers:
                worker.close()


def _with_unique_names(parts: Sequence[HostPart]) -> list[HostPart]:
    """Give the parts unique names: processes of one machine, and hosts named `localhost`, are named by their files."""
    names = [part.hostname for part in parts]
    if len(set(names)) == len(names):
        return list(parts)
    by_file = [Path(part.path).name.removesuffix(".gz").removesuffix(".xplane.pb") for part in parts]
    return [
        replace(part, hostname=name, pipelines=tuple(replace(p, host=name) for p in part.pipelines))
        for part, name in zip(parts, by_file, strict=True)
    ]


def _is_in_this_process(path: Path) -> bool:
    """Whether a path is a `memory://` file, which other processes cannot read."""
    return is_remote(path) and str(path).startswith("memory:")
