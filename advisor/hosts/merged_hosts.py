"""The analysis of some hosts of a run, made to be merged with that of others.

In: a `HostPart` and the statistics of each host.  Out: `MergedHosts`.

Each host keeps one row of the table of hosts. Pipelines are kept of the `MAX_DETAILED` most input-bound hosts only; the rest is
sums and counts. Merging is associative: hosts may be grouped in any way, as long as the groups are merged in the hosts' order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from advisor.graph import HostPart
from advisor.graph.analysis import main_of_host, main_rank
from advisor.hosts.differences import Differences, differences_of
from advisor.hosts.services import Services, services_of
from advisor.model.pipeline import Pipeline
from advisor.model.profile_statistics import HostSteps
from advisor.model.run_hosts import HostSummary
from advisor.profile.profile_files import host_of
from advisor.statistics.collect import Collected
from advisor.statistics.few_steps import few_steps_of

MAX_DETAILED = 32
"""Maximum number of hosts whose pipelines and steps are kept; the figures of the overview show as many hosts."""
MAX_OTHERS = 8
"""Maximum number of further hosts that are kept for another reason: a straggler may wait a small share of very long steps."""
MAX_SENTENCES = 200
"""Maximum number of warnings about hosts, and of sentences on files that could not be read."""
_NOTHING = (False, False, -1.0)
"""Rank of a host on which no pipeline was consumed."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of every host."""

    place: int
    """Position of its file among the files of the run."""
    file: str
    """Name of the file, without suffixes."""
    summary: HostSummary
    """Its row in the report. The id of the pipeline is the one on the host; nothing is known about the other hosts yet."""
    serves: bool
    """Whether it runs a worker of a tf.data service."""
    few: Pipeline | None
    """See `few_steps_of`."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is kept of the most input-bound hosts."""

    place: int
    part: HostPart
    steps: HostSteps | None
    rank: tuple[bool, bool, float]
    """See `main_rank`."""
    few_share: float
    """Wait share of the few steps; -1 if the host has enough."""
    wait_ns: int
    """Wait per step; -1 if it is unknown."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Different sentences, in the order of the hosts."""

    texts: tuple[str, ...] = ()
    count: int = 0
    """Number of sentences, including those that are not kept and repetitions."""

    def plus(self, later: Sentences) -> Sentences:
        """Return these sentences and later ones."""
        texts = tuple(dict.fromkeys((*self.texts, *later.texts)))[:MAX_SENTENCES]
        return Sentences(texts, self.count + later.count)


@dataclass(frozen=True, slots=True)
class MergedHosts:
    """Some neighbouring hosts of a run."""

    rows: tuple[Row, ...] = ()
    details: tuple[Detail, ...] = ()
    """In the order of the hosts."""
    differences: Differences = field(default_factory=Differences)
    services: Services = field(default_factory=Services)
    warnings: Sentences = Sentences()
    failures: Sentences = Sentences()
    """Why files could not be read."""
    has_marks: bool = False
    """Whether the program marked its steps on some host."""
    collected: Collected = field(default_factory=Collected)
    """The statistics, without the steps of each host."""
    damage: str = ""
    """Why the statistics of a host could not be computed; of the first such host."""


def of_failure(sentence: str) -> MergedHosts:
    """Return a host that could not be read."""
    return MergedHosts(failures=Sentences((sentence,), 1))


def of_host(place: int, part: HostPart, collected: Collected | None = None, damage: str = "") -> MergedHosts:
    """Return one host.

    Args:
        place: Position of its file among the files of the run.
        part: Its pipelines.
        collected: Its statistics; it is not used by the caller any more.
        damage: Why there are none; empty if there are.
    """
    collected = Collected() if collected is None else collected
    steps = collected.hosts[0] if collected.hosts else None
    collected.hosts = []
    slowest, main = slowest_pipeline(part.pipelines), main_of_host(part.pipelines)
    few = few_steps_of(slowest, steps) if slowest is not None else None
    row = Row(
        place,
        host_of(Path(part.path)),
        summarize(part.hostname, part.path, part.pipelines, slowest),
        any(pipeline.serves_elements for pipeline in part.pipelines),
        few,
    )
    detail = Detail(
        place,
        replace(part, warnings=()),
        steps,
        _NOTHING if main is None else main_rank(main),
        -1.0 if few is None else few.wait_share,
        -1 if row.summary.wait_per_step_ns is None else row.summary.wait_per_step_ns,
    )
    return MergedHosts(
        rows=(row,),
        details=(detail,),
        differences=differences_of(place, slowest),
        services=services_of(place, part.pipelines),
        warnings=Sentences(part.warnings, len(part.warnings)),
        has_marks=part.has_marks,
        collected=collected,
        damage=damage,
    )


def merge(hosts: MergedHosts, later: MergedHosts) -> MergedHosts:
    """Return neighbouring hosts together; neither argument is changed."""
    collected = Collected()
    collected.merge(hosts.collected)
    collected.merge(later.collected)
    return MergedHosts(
        rows=(*hosts.rows, *later.rows),
        details=_most_input_bound((*hosts.details, *later.details)),
        differences=hosts.differences.plus(later.differences),
        services=hosts.services.plus(later.services),
        warnings=hosts.warnings.plus(later.warnings),
        failures=hosts.failures.plus(later.failures),
        has_marks=hosts.has_marks or later.has_marks,
        collected=collected,
        damage=hosts.damage or later.damage,
    )


def merge_all(hosts: Iterable[MergedHosts]) -> MergedHosts:
    """Return all hosts together, in order."""
    return reduce(merge, hosts, MergedHosts())


def slowest_pipeline(pipelines: Iterable[Pipeline]) -> Pipeline | None:
    """Return the pipeline of a host whose consumer waited longest; None if none was consumed."""
    consumed = [p for p in pipelines if p.steps is not None or p.wait_ns]
    return max(
        consumed, key=lambda p: (not p.serves_elements, p.wait_ns, p.steps.count if p.steps else 0), default=None
    )


def summarize(hostname: str, path: str, pipelines: Sequence[Pipeline], slowest: Pipeline | None) -> HostSummary:
    """Return the row of one host.

    Args:
        hostname: Its name.
        path: Its profile.
        pipelines: Its pipelines.
        slowest: The one that the row describes; see `slowest_pipeline`.
    """
    summary = HostSummary(hostname, path, num_pipelines=len(pipelines))
    if slowest is None:
        return summary
    summary = replace(summary, pipeline_id=slowest.id, is_data_service_worker=slowest.serves_elements)
    if slowest.bottleneck is not None:
        worst = slowest.iterator(slowest.bottleneck.iterator_id)
        summary = replace(summary, bottleneck=worst.name, bottleneck_share=slowest.bottleneck.blame_share)
    if slowest.steps is None or not slowest.span_ns:
        return summary
    if slowest.serves_elements:  # its thread always waits for the next element, which is not a step
        return replace(summary, elements_per_s=slowest.elements_per_s)
    return replace(
        summary,
        steps=slowest.steps.count,
        step_median_ns=slowest.steps.median_ns,
        input_wait_share=slowest.wait_share,
        wait_per_step_ns=slowest.wait_ns // slowest.steps.count,
        elements_per_s=slowest.elements_per_s,
    )


def _most_input_bound(details: Sequence[Detail]) -> tuple[Detail, ...]:
    """Return the hosts that the verdict may be about, and those that may be stragglers."""
    if len(details) <= MAX_DETAILED:
        return tuple(details)
    # sorting is stable, so of equal hosts the first ones are kept
    few = [detail for detail in details if detail.few_share >= 0]
    kept = [
        *sorted(details, key=lambda detail: detail.rank, reverse=True)[:MAX_DETAILED],
        *sorted(few, key=lambda detail: -detail.few_share)[:MAX_OTHERS],
        *sorted(details, key=lambda detail: -detail.wait_ns)[:MAX_OTHERS],
    ]
    places = {detail.place for detail in kept}
    return tuple(detail for detail in details if detail.place in places)
