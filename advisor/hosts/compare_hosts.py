"""Compares the hosts of a run: the most input-bound one, stragglers, and differences.

In: the combined `Analysis` and the merged hosts.  Out: the same analysis with `hosts`, and its verdict naming the host.

A straggler is a host whose steps wait for input far longer than those of the others. If every step ends with an exchange between
the hosts, all steps take as long as that of the slowest host, so only the wait identifies the straggler, not the step time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.graph.analysis import id_after
from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.host.calibration.hosts import SAME_STEP
from advisor.hosts.differences import difference_sentences
from advisor.hosts.merged_hosts import MergedHosts, Row, slowest_pipeline, summarize
from advisor.hosts.services import service_bottleneck, service_sentences
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.robust import DEVIATIONS, median_and_deviation
from advisor.model.run_hosts import HostComparison, HostSummary
from advisor.model.units import format_ns
from advisor.model.wait_shares import MODERATE_WAIT_SHARE

MOST_DIFFERENCES = 10
"""Maximum number of sentences on differences between hosts."""


def names_of(rows: Sequence[Row]) -> dict[int, str]:
    """Return place -> unique name: processes of one machine, and hosts named `localhost`, are named by their files."""
    names = [row.summary.hostname for row in rows]
    if len(set(names)) < len(names):
        names = [row.file for row in rows]
    return {row.place: name for row, name in zip(rows, names, strict=True)}


def offsets_of(rows: Sequence[Row]) -> dict[int, int]:
    """Return place -> number of pipelines on the hosts before it, by which ids of pipelines are made unique."""
    offsets, offset = {}, 0
    for row in rows:
        offsets[row.place] = offset
        offset += row.summary.num_pipelines
    return offsets


def compare(analysis: Analysis, merged: MergedHosts) -> Analysis:
    """Add a comparison of the hosts to the analysis.

    Args:
        analysis: The analysis, with the pipelines of the most input-bound hosts.
        merged: All hosts.
    """
    names, offsets = names_of(merged.rows), offsets_of(merged.rows)
    detailed = {detail.place for detail in merged.details}
    by_host: dict[str, list[Pipeline]] = {names[place]: [] for place in detailed}
    for pipeline in analysis.pipelines:
        by_host.setdefault(pipeline.host, []).append(pipeline)
    hosts = _with_stragglers(
        [
            _summary(row, names[row.place], by_host)
            if row.place in detailed
            else _renamed(row, names[row.place], offsets[row.place])
            for row in merged.rows
        ]
    )
    hosts.sort(key=lambda host: (-(host.input_wait_share if host.input_wait_share is not None else -1), host.hostname))
    medians = [
        host.step_median_ns
        for host in hosts
        if host.step_median_ns is not None and host.steps >= MIN_VERDICT_STEPS.value
    ]
    together = max(medians) <= (1 + SAME_STEP.value) * min(medians) if len(medians) > 1 else None
    workers = [names[row.place] for row in merged.rows if row.serves]
    comparison = HostComparison(
        hosts=tuple(hosts),
        stragglers=tuple(_straggler_sentence(host, together) for host in hosts if host.is_straggler),
        differences=tuple(difference_sentences(merged.differences, names)[:MOST_DIFFERENCES]),
        services=service_sentences(merged.services, names, workers),
        service_bottleneck=service_bottleneck(merged.services, names),
        do_step_together=together,
        num_detailed=len(detailed),
    )
    verdict = analysis.verdict
    if analysis.main is not None and verdict.input_wait_share is not None:
        verdict = replace(
            verdict, sentence=f"{verdict.sentence} Host: {analysis.main.host}, the most input-bound of {len(hosts)}."
        )
    return replace(analysis, hosts=comparison, verdict=verdict)


def _summary(row: Row, name: str, by_host: Mapping[str, Sequence[Pipeline]]) -> HostSummary:
    """The row of a host whose pipelines are in the analysis, where the main one may have the steps of the recording."""
    pipelines = by_host[name]
    return summarize(name, row.summary.path, pipelines, slowest_pipeline(pipelines))


def _renamed(row: Row, name: str, offset: int) -> HostSummary:
    return replace(row.summary, hostname=name, pipeline_id=id_after(row.summary.pipeline_id, offset))


def _with_stragglers(hosts: Sequence[HostSummary]) -> list[HostSummary]:
    """Mark hosts that wait far longer per step than the median host, by an amount that is relevant for the step."""
    waits = [wait for host in hosts if (wait := _measured_wait(host)) is not None]
    if len(waits) < 2:
        return list(hosts)
    # two hosts are compared with the faster one, because their median lies between them
    middle, deviation = median_and_deviation(waits) if len(waits) > 2 else (float(min(waits)), 0.0)
    marked = []
    for host in hosts:
        wait = _measured_wait(host)
        if wait is not None and host.step_median_ns:
            excess = wait - middle
            matters = excess >= MODERATE_WAIT_SHARE * host.step_median_ns
            if matters and excess > DEVIATIONS * deviation:
                host = replace(host, is_straggler=True, excess_wait_ns=round(excess))
        marked.append(host)
    return marked


def _measured_wait(host: HostSummary) -> int | None:
    """The wait per step in ns; None if there are too few steps."""
    return host.wait_per_step_ns if host.steps >= MIN_VERDICT_STEPS.value else None


def _straggler_sentence(host: HostSummary, together: bool | None) -> str:
    bottleneck = f" (bottleneck: {host.bottleneck})" if host.bottleneck else ""
    sentence = (
        f"{host.hostname} is a straggler: its steps wait {format_ns(host.wait_per_step_ns or 0)} for input{bottleneck}, "
        f"{format_ns(host.excess_wait_ns)} longer than on the median host."
    )
    if together:
        sentence += " The steps of all hosts take equally long, so all hosts lose that time."
    return sentence
