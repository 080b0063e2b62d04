"""Analyses the hosts of a run on several cores or on a cluster.

In: `ProfileFiles`, a recording, a progress callback, the name of an engine.  Out: `Analysis` of all hosts that could be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.graph import analyse, combine
from advisor.graph.analysis import id_after
from advisor.host.calibration.hosts import MIN_BYTES_FOR_PROCESSES
from advisor.host.machine import usable_cores
from advisor.hosts.compare_hosts import compare, names_of, offsets_of
from advisor.hosts.executors import EngineLost, HostExecutor, InThisProcess, WorkerLost
from advisor.hosts.host_jobs import draw
from advisor.hosts.merged_hosts import MergedHosts
from advisor.hosts.process_executor import ProcessExecutor
from advisor.hosts.reduction import OnHost, Reduction
from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.trace import Trace
from advisor.model.units import format_count, format_many
from advisor.profile import ProfileFiles, choice_notes, find_profiles, read_host
from advisor.profile.profile_files import unpacked_size
from advisor.statistics import add_collected, add_statistics, without_statistics

if TYPE_CHECKING:
    from advisor.model.recording import Recording
    from advisor.model.window_timeline import HostView


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
    """Analyse all hosts together, with their statistics. A host that cannot be read causes a warning.

    Args:
        files: The profile files, one per host.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        target: Name of the target for the report.
        warnings: Sentences to add to the warnings of the analysis.
        on_host: Called with (finished hosts, total hosts).

    Raises:
        AdvisorError: No host can be read.
    """
    with _executor(files.paths, None) as executor:
        merged, more = _merged(files.paths, recording, executor, on_host)
    return assemble(merged, recording, target, (*warnings, *more))


def analyse_and_draw(
    files: ProfileFiles,
    recording: Recording | None,
    target: str,
    warnings: Sequence[str] = (),
    on_host: OnHost = lambda done, total: None,
    engine: str | None = None,
) -> tuple[Analysis, tuple[HostView, ...]]:
    """Analyse all hosts like `analyse_files`, and compute the lanes of their windows.

    Args:
        files: The profile files, one per host.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        target: Name of the target for the report.
        warnings: Sentences to add to the warnings of the analysis.
        on_host: Called with (finished hosts, total hosts).
        engine: The scheduler of a Dask cluster as `dask://HOST:PORT`; None: this machine.

    Returns:
        The analysis, and the lanes; with many hosts, only those of the most input-bound ones.

    Raises:
        AdvisorError: No host can be read, the cluster cannot be used, or there is only one host for it.
    """
    from advisor.profile.host_view import MAX_HOSTS, MAX_SPANS, draw_hosts

    if len(files.paths) == 1:  # one trace serves both
        if engine is not None:
            raise AdvisorError(f"--engine is for runs of several hosts, and {files.paths[0]} is one: leave it out.")
        trace = Trace((read_host(files.paths[0]),), tuple(warnings))
        return add_statistics(analyse(trace, recording, target), files.paths), draw_hosts(trace)
    if engine is not None and any(map(_is_in_this_process, files.paths)):
        raise AdvisorError(
            f"{files.paths[0]} is in the memory of this process, which workers of a cluster cannot read: leave --engine out."
        )
    # workers have other working directories
    paths = files.paths if engine is None else tuple(map(_absolute, files.paths))
    with _executor(paths, engine) as executor:
        merged, more = _merged(paths, recording, executor, on_host)
        analysis = assemble(merged, recording, target, (*warnings, *more))
        shown = _most_input_bound(paths, analysis)[:MAX_HOSTS]
        return analysis, _drawn(shown, MAX_SPANS // len(shown), InThisProcess() if more else executor)


def assemble(merged: MergedHosts, recording: Recording | None, target: str, warnings: Sequence[str] = ()) -> Analysis:
    """Return the analysis of all hosts of a run.

    Args:
        merged: The hosts.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        target: Name of the target for the report.
        warnings: Sentences that precede the warnings of the hosts.

    Raises:
        AdvisorError: No host could be read.
    """
    failures = list(merged.failures.texts)
    if not merged.rows:
        raise AdvisorError(failures[0])
    if merged.failures.count > len(failures):
        failures.append(f"{format_many(merged.failures.count - len(failures), 'more file')} could not be read.")
    names, offsets = names_of(merged.rows), offsets_of(merged.rows)
    parts = [
        replace(
            detail.part,
            hostname=names[detail.place],
            pipelines=tuple(replace(pipeline, host=names[detail.place]) for pipeline in detail.part.pipelines),
            has_marks=merged.has_marks,
        )
        for detail in merged.details
    ]
    analysis = combine(
        parts,
        recording,
        target,
        (*warnings, *failures, *merged.warnings.texts),
        [offsets[detail.place] for detail in merged.details],
    )
    if len(merged.rows) > 1:
        analysis = compare(analysis, merged)
    detailed = {detail.place for detail in merged.details}
    few = {
        id_after(row.few.id, offsets[row.place]) or "": row.few
        for row in merged.rows
        if row.few is not None and row.place not in detailed
    }
    return _with_statistics(analysis, merged, few)


def _with_statistics(analysis: Analysis, merged: MergedHosts, few: dict[str, Pipeline]) -> Analysis:
    """Add the statistics of all hosts; the steps are those of the hosts whose pipelines are kept."""
    if merged.damage:
        return without_statistics(analysis, merged.damage, few)
    collected = merged.collected
    collected.hosts = [detail.steps for detail in merged.details if detail.steps is not None]
    analysis = add_collected(analysis, collected, few)
    dropped = sum(row.summary.num_pipelines for row in merged.rows) - len(analysis.pipelines)
    if analysis.statistics is not None and dropped:
        left_out = {**analysis.statistics.left_out, "input.pipelines": dropped}
        analysis = replace(analysis, statistics=replace(analysis.statistics, left_out=left_out))
    return analysis


def _merged(
    paths: Sequence[Path], recording: Recording | None, executor: HostExecutor, on_host: OnHost
) -> tuple[MergedHosts, tuple[str, ...]]:
    """Return all hosts, and a warning if the engine was lost and this machine had to go on."""
    reduction = Reduction(paths, recording, on_host)
    try:
        return reduction.run(executor), ()
    except EngineLost as lost:
        done = f"{format_count(reduction.num_done)} of {format_many(len(paths), 'host')}"
        text = f"{lost} It had analysed {done}; this machine analysed the others."
        with _executor(paths, None) as local:
            return reduction.run(local), (text,)


def _executor(paths: Sequence[Path], engine: str | None) -> HostExecutor:
    """Return the engine for the files of a run."""
    if engine is not None:
        from advisor.hosts.dask_executor import DaskExecutor

        return DaskExecutor(engine)
    num_workers = min(len(paths), int(usable_cores()))
    is_small = sum(map(unpacked_size, paths)) < MIN_BYTES_FOR_PROCESSES.value
    if num_workers < 2 or is_small or any(map(_is_in_this_process, paths)):
        return InThisProcess()
    return ProcessExecutor(num_workers)


def _drawn(paths: Sequence[Path], budget: int, executor: HostExecutor) -> tuple[HostView, ...]:
    """Return the lanes of hosts; one at a time, because they are large."""
    views = []
    for path in paths:
        try:
            views.append(executor.reading(unpacked_size(path)).submit(draw, path, budget).result())
        except (WorkerLost, EngineLost):  # the analysis is complete without them
            continue
    return tuple(view for view in views if view is not None)


def _most_input_bound(paths: Sequence[Path], analysis: Analysis) -> list[Path]:
    """Return the files of the hosts that could be read, most input-bound first."""
    by_text = {str(path): path for path in paths}
    ranked = [by_text[host.path] for host in analysis.hosts.hosts if host.path in by_text] if analysis.hosts else []
    return ranked or list(paths)


def _absolute(path: Path) -> Path:
    return path if is_remote(path) else path.absolute()


def _is_in_this_process(path: Path) -> bool:
    """Whether a path is a `memory://` file, which other processes cannot read."""
    return is_remote(path) and str(path).startswith("memory:")
