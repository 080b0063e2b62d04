"""What `advisor watch` shows while the script runs: a table on a terminal, lines elsewhere; then a summary.

In: a `WatchedRun` and the changes that it found.  Out: rich renderables and sentences. Names are made safe for a terminal.
"""

from __future__ import annotations

import time
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from advisor.live.watched_run import WatchedConsumer, WatchedRun
from advisor.model import units
from advisor.model.live import SlowPeriod
from advisor.report.places import clean

MAX_ROWS = 8
"""Consumers shown at once, those with the most steps."""
_UNKNOWN = "-"


def table(run: WatchedRun, note: str = "") -> RenderableType:
    """Return the present state for a live display.

    Args:
        run: The run.
        note: A sentence below the table; empty for none.
    """
    rows = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("where", "steps", "epoch", "step", "waits for input", "buffer"):
        rows.add_column(name, justify="left" if name == "where" else "right", no_wrap=True)
    for each in _shown(run):
        rows.add_row(
            Text(_name(each), "bold" if each is run.main else ""),
            units.format_count(each.latest.steps),
            str(each.latest.passes or _UNKNOWN),
            _UNKNOWN if each.latest.step_ns is None else units.format_ns(each.latest.step_ns),
            _share(each.latest.wait_share),
            _buffer(each),
        )
    parts: list[RenderableType] = [Text(_process(run), "dim"), rows if run.consumers else Text("no steps yet", "dim")]
    parts += [Text(describe_period(period, run), "yellow") for period in run.slow_periods if period.last_step is None]
    return Group(*parts, *([Text(clean(note))] if note else []))


def line(run: WatchedRun) -> str:
    """Return the present state of the training loop as one line, for logs."""
    parts = [units.format_ns(run.elapsed_ns)]
    main = run.main
    if main is None:
        parts.append("no steps yet")
    else:
        latest = main.latest
        parts.append(f"{_name(main)}: {units.format_many(latest.steps, 'step')}")
        if latest.step_ns is not None:
            parts.append(f"{units.format_ns(latest.step_ns)} per step")
        if latest.wait_share is not None:
            parts.append(f"{units.format_share(latest.wait_share)} of it waiting for input")
        if latest.buffered is not None:
            parts.append(f"buffer {_buffer(main)}")
    if run.latest is not None:
        parts.append(f"{run.latest.cores:.1f} cores")
        if run.latest.rss_bytes is not None:
            parts.append(units.format_bytes(run.latest.rss_bytes))
    return ", ".join(parts)


def describe_period(period: SlowPeriod, run: WatchedRun) -> str:
    """Return a slow period as a sentence, with the steps between which it began."""
    consumer = run.consumers.get(period.consumer_id)
    where = f" of {_name(consumer)}" if consumer is not None and len(run.consumers) > 1 else ""
    clock = datetime.fromtimestamp(period.began_ns / units.NS_PER_S).strftime("%H:%M:%S")
    began = (
        f"Between steps {units.format_count(period.after_step)} and {units.format_count(period.first_step)}{where} "
        f"(epoch {period.pass_number}, {clock})"
    )
    text = (
        f"{began}, a step became {units.format_ratio(period.slowdown)} as long: {units.format_ns(period.step_ns)} instead of "
        f"{units.format_ns(period.step_before_ns)}"
    )
    if period.wait_ns is not None and period.wait_before_ns is not None:
        what = "most of it is waiting for input" if period.is_input else "the wait for input is not the reason"
        text += f"; {what} ({units.format_ns(period.wait_ns)}, before {units.format_ns(period.wait_before_ns)})"
    if period.last_step is not None:
        text += f". Since step {units.format_count(period.last_step)}, steps are as short as before"
    return f"{text}."


def summary(run: WatchedRun) -> list[str]:
    """Return sentences on the whole run, most important first."""
    lines = []
    for each in _shown(run):
        text = f"{_name(each)}: {units.format_many(each.latest.steps, 'step')}"
        if each.latest.passes > 1:
            text += f" in {units.format_epochs(each.latest.passes)}"
        if each.step_ns is not None:
            text += f", {units.format_ns(each.step_ns)} on average"
        share = each.wait_share
        if share is not None:
            text += f", {units.format_share(share)} of the time waiting for input"
        lines.append(f"{text}.")
    lines += [describe_period(period, run) for period in run.slow_periods]
    memory = f", at most {units.format_bytes(run.peak_rss_bytes)} of memory" if run.peak_rss_bytes else ""
    lines.append(
        f"The process used {run.cores:.1f} cores on average{memory}; sampling took {units.format_share(run.own_share)} of a core."
    )
    if run.is_incomplete:
        lines.append("More places of the script take elements than are told apart here.")
    return lines


class Throttle:
    """Tells when the next line of a log is due."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, time.monotonic()

    def is_due(self) -> bool:
        """Whether the interval has passed; if so, it begins anew."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._every_s
        return True


def _shown(run: WatchedRun) -> list[WatchedConsumer]:
    ranked = sorted(run.consumers.values(), key=lambda each: (each.latest.is_main, each.latest.steps), reverse=True)
    return ranked[:MAX_ROWS]


def _name(consumer: WatchedConsumer) -> str:
    kind = clean(consumer.latest.kind)
    return f"{clean(consumer.latest.where)} {kind}" if consumer.latest.where else kind


def _share(share: float | None) -> str:
    return _UNKNOWN if share is None else units.format_share(share)


def _buffer(consumer: WatchedConsumer) -> str:
    latest = consumer.latest
    if latest.buffered is None or latest.buffer_size is None:
        return _UNKNOWN
    return f"{latest.buffered:g}/{latest.buffer_size:g}"


def _process(run: WatchedRun) -> str:
    text = units.format_ns(run.elapsed_ns)
    if run.latest is None:
        return text
    text += f"  {run.latest.cores:.1f} cores"
    if run.latest.rss_bytes is not None:
        text += f"  {units.format_bytes(run.latest.rss_bytes)}"
    return text
