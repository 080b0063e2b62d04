"""All hosts of a run analysed with all their pipelines in memory: what the merging of hosts is compared with.

In: profile files.  Out: `Analysis`.

This is how hosts were combined before they were merged in groups. It is slow and needs memory for every host, and it is simple.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.graph import HostPart, analyse_host, combine
from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.hosts.services import Services, service_bottleneck, services_of
from advisor.model.catalog import base_type
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.robust import DEVIATIONS, median_and_deviation
from advisor.model.run_hosts import HostComparison, HostSummary, ServiceBottleneck
from advisor.model.units import format_ns, format_rate, format_share
from advisor.model.wait_shares import MODERATE_WAIT_SHARE
from advisor.profile import read_host
from advisor.profile.profile_files import few
from advisor.statistics import add_statistics

SAME_STEP = 0.05
MOST_DIFFERENCES = 10
MAX_LINKS = 12
_ARROW = " -> "
_Read = Callable[[Iterator], str]


def analyse_all(paths: Sequence[Path]) -> Analysis:
    """The analysis of all hosts that can be read, with their statistics."""
    parts, failures = [], []
    for path in paths:
        try:
            parts.append(analyse_host(read_host(path), None))
        except AdvisorError as error:
            failures.append(str(error))
    if not parts:
        raise AdvisorError(failures[0])
    parts = _with_unique_names(parts)
    analysis = combine(parts, None, "run", failures)
    analysis = compare(analysis, parts) if len(parts) > 1 else analysis
    return add_statistics(analysis, paths)


def _with_unique_names(parts: Sequence[HostPart]) -> list[HostPart]:
    names = [part.hostname for part in parts]
    if len(set(names)) == len(names):
        return list(parts)
    by_file = [Path(part.path).name.removesuffix(".gz").removesuffix(".xplane.pb") for part in parts]
    return [
        replace(part, hostname=name, pipelines=tuple(replace(p, host=name) for p in part.pipelines))
        for part, name in zip(parts, by_file, strict=True)
    ]


def compare(analysis: Analysis, parts: Sequence[HostPart]) -> Analysis:
    """Add a comparison of the hosts to the analysis."""
    by_host: dict[str, list[Pipeline]] = {part.hostname: [] for part in parts}
    for pipeline in analysis.pipelines:
        by_host.setdefault(pipeline.host, []).append(pipeline)
    slowest = {name: slowest_pipeline(pipelines) for name, pipelines in by_host.items()}
    consuming = {name: p for name, p in slowest.items() if p is None or not p.serves_elements}
    hosts = _with_stragglers([_summary(part, by_host[part.hostname], slowest[part.hostname]) for part in parts])
    hosts.sort(key=lambda host: (-(host.input_wait_share if host.input_wait_share is not None else -1), host.hostname))
    medians = [
        host.step_median_ns
        for host in hosts
        if host.step_median_ns is not None and host.steps >= MIN_VERDICT_STEPS.value
    ]
    together = max(medians) <= (1 + SAME_STEP) * min(medians) if len(medians) > 1 else None
    comparison = HostComparison(
        hosts=tuple(hosts),
        stragglers=tuple(_straggler_sentence(host, together) for host in hosts if host.is_straggler),
        differences=tuple(_differences(consuming)[:MOST_DIFFERENCES]),
        services=_services(analysis.pipelines),
        service_bottleneck=_service_bottleneck(analysis.pipelines),
        do_step_together=together,
    )
    verdict = analysis.verdict
    if analysis.main is not None and verdict.input_wait_share is not None:
        verdict = replace(
            verdict, sentence=f"{verdict.sentence} Host: {analysis.main.host}, the most input-bound of {len(parts)}."
        )
    return replace(analysis, hosts=comparison, verdict=verdict)


def slowest_pipeline(pipelines: Iterable[Pipeline]) -> Pipeline | None:
    """Return the pipeline of a host whose consumer waited longest; None if none was consumed."""
    consumed = [p for p in pipelines if p.steps is not None or p.wait_ns]
    return max(
        consumed, key=lambda p: (not p.serves_elements, p.wait_ns, p.steps.count if p.steps else 0), default=None
    )


def _summary(part: HostPart, pipelines: Sequence[Pipeline], slowest: Pipeline | None) -> HostSummary:
    summary = HostSummary(part.hostname, part.path, num_pipelines=len(pipelines))
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


def _with_stragglers(hosts: Sequence[HostSummary]) -> list[HostSummary]:
    """Mark hosts that wait far longer per step than the median host, by an amount that is relevant for the step."""
    measured = [h for h in hosts if h.wait_per_step_ns is not None and h.steps >= MIN_VERDICT_STEPS.value]
    if len(measured) < 2:
        return list(hosts)
    waits = [h.wait_per_step_ns or 0 for h in measured]
    # two hosts are compared with the faster one, because their median lies between them
    middle, deviation = median_and_deviation(waits) if len(waits) > 2 else (float(min(waits)), 0.0)
    marked = []
    for host in hosts:
        if host in measured and host.wait_per_step_ns is not None and host.step_median_ns:
            excess = host.wait_per_step_ns - middle
            matters = excess >= MODERATE_WAIT_SHARE * host.step_median_ns
            if matters and excess > DEVIATIONS * deviation:
                host = replace(host, is_straggler=True, excess_wait_ns=round(excess))
        marked.append(host)
    return marked


def _straggler_sentence(host: HostSummary, together: bool | None) -> str:
    bottleneck = f" (bottleneck: {host.bottleneck})" if host.bottleneck else ""
    sentence = (
        f"{host.hostname} is a straggler: its steps wait {format_ns(host.wait_per_step_ns or 0)} for input{bottleneck}, "
        f"{format_ns(host.excess_wait_ns)} longer than on the median host."
    )
    if together:
        sentence += " The steps of all hosts take equally long, so all hosts lose that time."
    return sentence


def _services(pipelines: Sequence[Pipeline]) -> tuple[str, ...]:
    """Describe which workers produce the elements for tf.data service consumers, if it is unambiguous."""
    workers = [p for p in pipelines if p.serves_elements]
    consumers = [p for p in pipelines if any(base_type(it.name) == "DataService" for it in p.iterators)]
    if not workers or not consumers:
        return ()
    kinds = {tuple(it.name for it in p.iterators) for p in workers}
    names = few(sorted({p.host for p in workers}))
    if len(kinds) > 1:
        return (
            f"The tf.data service workers {names} run {len(kinds)} different pipelines: their profiles do not show which "
            "worker serves which consumer.",
        )
    slowest = Counter(p.iterator(p.bottleneck.iterator_id).name for p in workers if p.bottleneck).most_common(1)
    behind = f", most of whose time goes to {slowest[0][0]}" if slowest else ""
    rates = [p.elements_per_s for p in workers if p.span_ns]
    rate = f", {format_rate(statistics.fmean(rates))} each" if rates else ""
    sentences = []
    for consumer in consumers:
        share = sum(it.blame_share for it in consumer.iterators if base_type(it.name) == "DataService")
        sentences.append(
            f"{consumer.host} gets its elements from the tf.data service workers ({names}; {format_share(share)} of its wait"
            f" is for them): {_short_chain(_chain(workers[0]))}{rate}{behind}."
        )
    return tuple(sentences)


def _service_bottleneck(pipelines: Sequence[Pipeline]) -> ServiceBottleneck | None:
    services = Services()
    for place, pipeline in enumerate(pipelines):
        services = services.plus(services_of(place, [pipeline]))
    return service_bottleneck(services, {place: pipeline.host for place, pipeline in enumerate(pipelines)})


def _chain(pipeline: Pipeline) -> str:
    """The iterators from the sources to the root; repeated neighbours as `Range (50 times)`."""
    names = (it.name for it in reversed(pipeline.iterators))
    groups = [(name, sum(1 for _ in group)) for name, group in itertools.groupby(names)]
    return _ARROW.join(name if count == 1 else f"{name} ({count} times)" for name, count in groups)


def _short_chain(chain: str) -> str:
    """A chain as text; only the two ends of a long one."""
    links = chain.split(_ARROW)
    if len(links) <= MAX_LINKS:
        return chain
    half = MAX_LINKS // 2
    return _ARROW.join([*links[:half], f"... {len(links) - 2 * half} more ...", *links[-half:]])


def _differences(slowest: dict[str, Pipeline | None]) -> list[str]:
    """The differences of the hosts' slowest pipelines: structure, parallelism, buffers and budgets."""
    consumed = {name: pipeline for name, pipeline in slowest.items() if pipeline is not None}
    without = [name for name, pipeline in slowest.items() if pipeline is None]
    sentences = [f"No pipeline was consumed on {few(without)}."] if without and consumed else []
    shapes = {name: _chain(p) for name, p in consumed.items()}
    sentences += _odd_ones("the slowest pipeline is", shapes, _short_chain)
    common = Counter(shapes.values()).most_common(1)
    alike = {name: p for name, p in consumed.items() if common and shapes[name] == common[0][0]}
    if len(alike) < 2:
        return sentences
    first = next(iter(alike.values()))
    for place, iterator in enumerate(first.iterators):
        same = {name: p.iterators[place] for name, p in alike.items()}
        for what, read in _COMPARED:
            sentences += _odd_ones(f"the {what} of {iterator.name} is", {name: read(it) for name, it in same.items()})
    return sentences


def _of_root(name: str) -> _Read:
    return lambda it: _text(it.parameters.get(name)) if it.parent_id is None else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)


_COMPARED: tuple[tuple[str, _Read], ...] = (
    ("parallelism", lambda it: _text(it.parallelism)),
    ("buffer size", lambda it: _text(it.buffer_size)),
    ("batch size", lambda it: _text(it.parameters.get("batch_size"))),
    ("CPU budget", _of_root("cpu_budget")),
    ("thread pool size", _of_root("threadpool_size")),
)


def _odd_ones(what: str, values: dict[str, str], show: Callable[[str], str] = str) -> list[str]:
    """A sentence for each value that differs from the usual one; several values of similar frequency are listed together."""
    known = {name: value for name, value in values.items() if value}
    counts = Counter(known.values()).most_common()
    if len(counts) < 2:
        return []
    usual, number = counts[0]
    if number * 2 <= len(known) or len(counts) > 4:
        listed = ", ".join(f"{show(value)} on {count}" for value, count in counts[:6])
        return [f"Between hosts {what} not the same: {listed} hosts."]
    return [
        f"On {few([name for name, own in known.items() if own == value])} {what} {show(value)}, "
        f"on {number} others {show(usual)}."
        for value, _ in counts[1:]
    ]
