"""Hands the hosts of a run to an executor and merges the results as they arrive.

In: profile files.  Out: `MergedHosts`.

Workers analyse groups of neighbouring hosts and merge each group; here, neighbouring groups are merged as soon as both are done.
Groups start in the order of the files (only very large files start first), so there are never many unmerged results: memory
does not grow with the number of hosts except by their rows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

from advisor.hosts.executors import HostExecutor, WorkerLost
from advisor.hosts.host_jobs import analyse_group
from advisor.hosts.merged_hosts import MergedHosts, merge, of_failure
from advisor.model.recording import Recording
from advisor.profile.profile_files import unpacked_size

OnHost = Callable[[int, int], None]
"""Called with (finished hosts, total hosts)."""

GROUPS_PER_WORKER = 8
"""Minimum number of groups per worker, so that all workers end at about the same time."""
MAX_GROUP = 32
"""Maximum number of hosts of a group. Progress is shown by group, and a group is repeated host by host if its worker ends."""
MAX_LOST = 16
"""Number of files that may end their workers; then the cluster is too small for these files, and no further one is repeated."""


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring files."""

    first: int
    """Place of the first one."""
    paths: tuple[Path, ...]
    num_bytes: int
    """Size of the largest one."""

    @property
    def end(self) -> int:
        """Return the place after the last one."""
        return self.first + len(self.paths)


class Reduction:
    """The hosts of a run on their way to one `MergedHosts`.

    If an executor is lost, `run` can be called again with another one.

    Args:
        paths: The files, one per host.
        recording: The recording of the run; None if the profile was not captured by the advisor.
        on_host: Called with (finished hosts, total hosts).
    """

    def __init__(self, paths: Sequence[Path], recording: Recording | None, on_host: OnHost) -> None:
        self._paths = paths
        self._sizes = [unpacked_size(path) for path in paths]
        self._recording = recording
        self._on_host = on_host
        self._runs: dict[int, tuple[int, MergedHosts]] = {}
        """Place of the first host -> (place after the last host, neighbouring hosts that are merged)."""
        self._num_lost = 0
        self.num_done = 0
        """Number of finished hosts."""

    def run(self, executor: HostExecutor) -> MergedHosts:
        """Analyse the hosts that are not done yet, and return all of them.

        Raises:
            EngineLost: The executor was lost.
        """
        suspects = self._run_groups(executor)
        while suspects:  # alone, so that no other file can be the reason
            self._run_alone(executor, suspects.popleft())
        ((_, merged),) = self._runs.values()
        return merged

    def _run_groups(self, executor: HostExecutor) -> deque[Group]:
        """Run all groups; returns the files of those whose workers ended, one by one."""
        suspects: deque[Group] = deque()
        waiting = deque(self._groups(executor.max_running))
        running: dict[Future[MergedHosts], Group] = {}
        while waiting or running:
            in_flight = sum(group.num_bytes for group in running.values())
            while waiting and len(running) < executor.max_running:
                if running and in_flight + waiting[0].num_bytes > executor.max_bytes:
                    break
                group = waiting.popleft()
                in_flight += group.num_bytes
                running[self._submit(executor, group)] = group
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                group = running.pop(future)
                try:
                    self._add(group, future.result())
                except WorkerLost as lost:
                    if lost.is_certain and len(group.paths) == 1:
                        self._fail(group, lost)
                    else:
                        suspects += self._one_by_one(group)
        return suspects

    def _run_alone(self, executor: HostExecutor, group: Group) -> None:
        if self._num_lost >= MAX_LOST:
            text = f"was not read, because {MAX_LOST} other files ended their workers: use workers with more memory."
            self._add(group, of_failure(f"{group.paths[0]} {text}"))
            return
        try:
            self._add(group, self._submit(executor, group).result())
        except WorkerLost as lost:
            self._num_lost += 1
            self._fail(group, lost)

    def _submit(self, executor: HostExecutor, group: Group) -> Future[MergedHosts]:
        job = executor.reading(group.num_bytes)
        return job.submit(analyse_group, group.paths, group.first, self._recording)

    def _fail(self, group: Group, lost: WorkerLost) -> None:
        self._add(group, of_failure(f"{group.paths[0]} could not be read: {lost.reason}."))

    def _add(self, group: Group, merged: MergedHosts) -> None:
        """Merge finished hosts with their neighbours."""
        first, end = group.first, group.end
        before = next((start for start, (stop, _) in self._runs.items() if stop == first), None)
        if before is not None:
            merged = merge(self._runs.pop(before)[1], merged)
            first = before
        if end in self._runs:
            end, later = self._runs.pop(end)
            merged = merge(merged, later)
        self._runs[first] = end, merged
        self.num_done += len(group.paths)
        self._on_host(self.num_done, len(self._paths))

    def _groups(self, num_workers: int) -> list[Group]:
        """Divide the files that are not done into groups, the largest files first and alone."""
        done = {place for first, (end, _) in self._runs.items() for place in range(first, end)}
        places = [place for place in range(len(self._paths)) if place not in done]
        most = min(MAX_GROUP, math.ceil(len(places) / (GROUPS_PER_WORKER * num_workers))) if num_workers > 1 else 1
        share = sum(self._sizes[place] for place in places) / (2 * num_workers)
        large: list[Group] = []
        groups: list[Group] = []
        for place in places:
            last = groups[-1] if groups else None
            if self._sizes[place] > share:
                large.append(self._group(place, place + 1))
            elif last is not None and last.end == place and len(last.paths) < most:
                groups[-1] = self._group(last.first, place + 1)
            else:
                groups.append(self._group(place, place + 1))
        return [*sorted(large, key=lambda group: -group.num_bytes), *groups]

    def _group(self, first: int, end: int) -> Group:
        return Group(first, tuple(self._paths[first:end]), max(self._sizes[first:end]))

    def _one_by_one(self, group: Group) -> list[Group]:
        return [self._group(place, place + 1) for place in range(group.first, group.end)]
