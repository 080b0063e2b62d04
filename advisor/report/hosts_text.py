"""Text for runs on several hosts, and for profiles without a recording.

In: a `HostComparison`, or pipelines.  Out: rich tables and text.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.run_hosts import HostComparison, HostSummary
from advisor.report.places import clean

WIDE = 90
"""Minimum terminal width at which all columns of the table fit."""
MAX_HOSTS = 12
"""Hosts shown, the most input-bound first; stragglers are always shown. report.json lists all of them."""
MAX_PIPELINES = 3
MAX_ITERATORS = 12
MAX_PARAMETERS = 8
_HIDDEN_PARAMETERS = frozenset(
    {"autotune", "interleave_depth", "autotune_mode", "use_unbounded_threadpool", "warm_start"}
)
"""Parameters that add nothing to the others."""


def hosts_table(comparison: HostComparison, console: Console) -> Table:
    """One row per host, the most input-bound first; a straggler's wait is followed by its excess over the median host."""
    is_wide = console.width >= WIDE
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("host", overflow="fold")
    table.add_column("wait share", justify="right", no_wrap=True)
    table.add_column("wait per step", justify="right", no_wrap=True)
    if is_wide:
        for title in ("step (median)", "steps", "elements/s"):
            table.add_column(title, justify="right", no_wrap=True)
    table.add_column("waits for", overflow="fold")
    for host in _shown(comparison):
        table.add_row(*_row(host, is_wide), style="bold" if host.is_straggler else "")
    return table


def host_sentences(comparison: HostComparison) -> list[str]:
    """Sentences on stragglers, differences, tf.data services, and the number of hosts that the table omits."""
    sentences = [*comparison.stragglers, *comparison.differences, *comparison.services]
    if comparison.service_bottleneck is not None:
        sentences.append(comparison.service_bottleneck.sentence)
    if len(_shown(comparison)) < len(comparison.hosts):
        sentences.append(f"{units.format_count(len(comparison.hosts))} hosts in total; report.json lists all of them")
    if 0 < comparison.num_detailed < len(comparison.hosts):
        count = units.format_count(comparison.num_detailed)
        sentences.append(f"report.json has the pipelines of the {count} most input-bound hosts")
    return sentences


def iterator_lines(analysis: Analysis) -> list[str]:
    """Describe iterators by long name and parameters, for profiles without calls.

    The main pipeline comes first. With several hosts, only the pipelines on the main pipeline's host are listed.
    """
    lines: list[str] = []
    main = analysis.main
    of_host = [p for p in analysis.pipelines if analysis.hosts is None or main is None or p.host == main.host]
    pipelines = sorted(of_host, key=lambda pipeline: not pipeline.is_main)
    for pipeline in pipelines[:MAX_PIPELINES]:
        shown = pipeline.iterators[:MAX_ITERATORS]
        lines += [_iterator_line(iterator, pipeline) for iterator in shown]
        if len(shown) < len(pipeline.iterators):
            lines.append(
                f"{units.format_count(len(pipeline.iterators) - len(shown))} more iterators of {pipeline.root.long_name}"
            )
    if len(pipelines) > MAX_PIPELINES:
        lines.append(f"{units.format_count(len(pipelines))} pipelines in total; report.json lists all of them")
    return lines


def _shown(comparison: HostComparison) -> list[HostSummary]:
    return [host for place, host in enumerate(comparison.hosts) if place < MAX_HOSTS or host.is_straggler]


def _row(host: HostSummary, is_wide: bool) -> Iterable[Text]:
    yield Text(clean(host.hostname) + (" (straggler)" if host.is_straggler else ""))
    if host.is_data_service_worker:
        yield Text("data service worker", "dim")
    elif host.input_wait_share is None:
        yield Text("no whole step" if host.pipeline_id else "no pipeline", "dim")
    else:
        yield Text(units.format_share(host.input_wait_share))
    excess = f" (+{units.format_ns(host.excess_wait_ns)})" if host.is_straggler else ""
    yield Text("" if host.wait_per_step_ns is None else units.format_ns(host.wait_per_step_ns) + excess)
    if is_wide:
        yield Text("" if host.step_median_ns is None else units.format_ns(host.step_median_ns))
        yield Text(units.format_count(host.steps) if host.steps else "")
        yield Text("" if host.elements_per_s is None else units.format_rate(host.elements_per_s, "").removesuffix("/s"))
    share = "" if host.bottleneck_share is None else f" {units.format_share(host.bottleneck_share)}"
    yield Text(f"{clean(host.bottleneck)}{share}" if host.bottleneck else "")


def _iterator_line(iterator: Iterator, pipeline: Pipeline) -> str:
    names = [name for name in iterator.parameters if name not in _HIDDEN_PARAMETERS]
    facts = [f"{name} {_parameter_text(name, iterator)}" for name in names][:MAX_PARAMETERS]
    if iterator.num_calls:
        facts.insert(0, units.format_many(iterator.num_calls, "call"))
    if iterator.is_upstream_unseen:
        facts.append("its input was not observed")
    device = " on a device" if pipeline.is_device and iterator.parent_id is None else ""
    return f"{iterator.long_name}{device}: {', '.join(facts) or 'no parameters recorded'}"


def _parameter_text(name: str, iterator: Iterator) -> str:
    value = iterator.parameters[name]
    text = (
        str(value).lower()
        if isinstance(value, bool)
        else units.format_count(value)
        if isinstance(value, int)
        else str(value)
    )
    is_chosen = iterator.is_autotuned and name in ("parallelism", "buffer_limit")
    return f"{text} (chosen by AUTOTUNE)" if is_chosen else text
