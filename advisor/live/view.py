"""What `advisor watch` shows while the script runs: a table on a terminal, lines elsewhere; then a summary.

In: a `WatchedRun` and the changes that it found.  Out: rich renderables and sentences. Names are made safe for a terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from advisor.live.watched_run import Change, WatchedConsumer, WatchedRun
from advisor.model import units
from advisor.model.live import BottleneckStretch, SlowPeriod, WindowFinding
from advisor.report.places import clean

MAX_ROWS = 8
"""Consumers shown at once, those with the most steps."""
MAX_STRETCHES = 12
"""Changes of the bottleneck in the summary, the latest ones."""
_UNKNOWN = "-"


def table(run: WatchedRun, note: str = "") -> RenderableType:
    """Return the present state for a live display.

    Args:
        run: The run.
        note: A sentence below the table; empty for none.
    """
    rows = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("where", "steps", "epoch", "step (mean)", "input wait (mean)", "buffer", "pauses"):
        rows.add_column(name, justify="left" if name == "where" else "right", no_wrap=True)
    for consumer in _shown(run):
        rows.add_row(
            Text(_name(consumer), "bold" if consumer is run.main else ""),
            units.format_count(consumer.latest.steps),
            str(consumer.latest.passes or _UNKNOWN),
            _with_mean(consumer.latest.step_ns, consumer.step_ns, units.format_ns),
            _wait(consumer, run),
            _buffer(consumer),
            _pauses(consumer) or _UNKNOWN,
        )
    parts: list[RenderableType] = [Text(_process(run), "dim"), rows if run.consumers else Text("no steps yet", "dim")]
    current = run.bottlenecks.current
    if current is not None:
        parts.append(Text(_current(current, run)))
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
        if latest.step_ns is not None and main.step_ns is not None:
            mean = units.format_ns(main.step_ns)
            parts.append(f"{units.format_ns(latest.step_ns)} per step ({mean} in the whole run)")
        if latest.wait_share is not None and main.wait_share is not None:
            mean = units.format_share(main.wait_share)
            parts.append(f"{units.format_share(latest.wait_share)} of it waiting for input ({mean})")
        elif (profiled := _profiled_wait(main, run)) is not None:
            parts.append(f"{units.format_share(profiled)} of it waiting for input in the latest window")
        if latest.buffered is not None:
            parts.append(f"buffer {_buffer(main)}")
        if main.pauses:
            parts.append(f"pauses {_pauses(main)}")
    if run.latest is not None:
        parts.append(f"{run.latest.cores:.1f} cores")
        if run.latest.rss_bytes is not None:
            parts.append(units.format_bytes(run.latest.rss_bytes))
    return ", ".join(parts)


def describe(change: Change, run: WatchedRun) -> str:
    """Return a change as a sentence."""
    return describe_period(change, run) if isinstance(change, SlowPeriod) else describe_stretch(change, run)


def describe_stretch(stretch: BottleneckStretch, run: WatchedRun, is_over: bool = False) -> str:
    """Return a bottleneck as a sentence, with the steps from which on it was seen.

    Args:
        stretch: The windows with this bottleneck.
        run: The run.
        is_over: Another bottleneck followed.
    """
    first, last = units.format_count(stretch.first_step), units.format_count(stretch.last_step)
    began, latest = units.format_clock(stretch.began_ns), units.format_clock(stretch.latest_ns)
    times = began if began == latest else f"{began} to {latest}"
    if stretch.last_step:
        since = f"In steps {first} to {last} ({times})" if is_over else f"Since step {first} ({began})"
    else:  # inside a tf.function
        since = f"At {times}" if is_over else f"Since {began}"
    since += _of(stretch.consumer_id, run)
    finding, be = stretch.finding, "was" if is_over else "is"
    wait = "" if finding.wait_share is None else f"{units.format_share(finding.wait_share)} of a step"
    if not finding.is_input_bound:
        return f"{since}, input {be} not the bottleneck: steps wait for it {wait}."
    if not finding.bottleneck:
        return f"{since}, steps wait for input {wait}; no single call is the reason."
    share = units.format_share(finding.blame_share)
    return f"{since}, the bottleneck {be} {clean(finding.bottleneck)}, with {share} of the wait, which {be} {wait}."


def describe_finding(finding: WindowFinding) -> str:
    """Return what one profiled window shows as a line: steps, step time, input wait, bottleneck."""
    if finding.problem:
        return clean(finding.problem)
    parts = [units.format_many(finding.steps, "step")]
    if finding.step_ns is not None:
        parts.append(f"{units.format_ns(finding.step_ns)} per step")
    if finding.wait_share is not None:
        parts.append(f"{units.format_share(finding.wait_share)} of it waiting for input")
    if finding.is_input_bound and finding.bottleneck:
        share = units.format_share(finding.blame_share)
        parts.append(f"bottleneck {clean(finding.bottleneck)} ({share} of the wait)")
    return ", ".join(parts)


def describe_windows(run: WatchedRun) -> list[str]:
    """Return sentences on the bottlenecks of a run, and on what its profiled windows cost."""
    bottlenecks = run.bottlenecks
    lines = []
    for stretch in bottlenecks.stretches[-MAX_STRETCHES:]:
        later = bottlenecks.stretches[bottlenecks.stretches.index(stretch) + 1 :]
        is_over = any(later_stretch.consumer_id == stretch.consumer_id for later_stretch in later)
        lines.append(describe_stretch(stretch, run, is_over))
    if bottlenecks.windows:
        lines.append(
            f"{units.format_many(bottlenecks.windows, 'profiled window')} took {units.format_share(run.window_share)} of the run "
            f"({units.format_ns(bottlenecks.inside_ns)}, of which {units.format_ns(bottlenecks.writing_ns)} to write profiles); "
            f"analysing them took {units.format_ns(bottlenecks.analysis_cpu_ns)} of a core, at low priority."
        )
    return [*lines, *(clean(problem) for problem in bottlenecks.problems)]


def describe_period(period: SlowPeriod, run: WatchedRun) -> str:
    """Return a slow period as a sentence, with the steps between which it began."""
    began = (
        f"Between steps {units.format_count(period.after_step)} and {units.format_count(period.first_step)}"
        f"{_of(period.consumer_id, run)} (epoch {period.pass_number}, {units.format_clock(period.began_ns)})"
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
    lines: list[str] = []
    for consumer in _shown(run):
        text = f"{_name(consumer)}: {units.format_many(consumer.latest.steps, 'step')}"
        if consumer.latest.passes > 1:
            text += f" in {units.format_epochs(consumer.latest.passes)}"
        if consumer.step_ns is not None:
            text += f", {units.format_ns(consumer.step_ns)} on average"
        share = consumer.wait_share
        if share is not None:
            text += f", {units.format_share(share)} of the time waiting for input"
        elif (profiled := _profiled_wait(consumer, run)) is not None:
            text += f", {units.format_share(profiled)} of the time in the latest window waiting for input"
        if consumer.pauses:
            mean = units.format_ns(consumer.pause_ns / consumer.pauses)
            text += f"; {units.format_many(consumer.pauses, 'pause')} between steps, {mean} on average"
        lines.append(f"{text}.")
    lines += [describe_period(period, run) for period in run.slow_periods]
    lines += describe_windows(run)
    memory = f", at most {units.format_bytes(run.peak_rss_bytes)} of memory" if run.peak_rss_bytes else ""
    if memory and run.bottlenecks.windows:
        memory += " outside profiled windows"
    lines.append(
        f"The process used {run.cores:.1f} cores on average{memory}; sampling took {units.format_share(run.own_share)} of a core."
    )
    if run.is_incomplete:
        lines.append("The script takes elements in more places than are listed separately.")
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
    ranked = sorted(
        run.consumers.values(), key=lambda consumer: (consumer.latest.is_main, consumer.latest.steps), reverse=True
    )
    return ranked[:MAX_ROWS]


def _name(consumer: WatchedConsumer) -> str:
    kind = clean(consumer.latest.kind)
    return f"{clean(consumer.latest.where)} {kind}" if consumer.latest.where else kind


def _of(consumer_id: str, run: WatchedRun) -> str:
    """Return ` of train.py:7 for`, if there are several consumers."""
    consumer = run.consumers.get(consumer_id)
    return f" of {_name(consumer)}" if consumer is not None and len(run.consumers) > 1 else ""


def _current(stretch: BottleneckStretch, run: WatchedRun) -> str:
    """Return the latest bottleneck as a line of the live display."""
    latest = units.format_clock(stretch.latest_ns)
    return f"bottleneck: {_bottleneck(stretch.finding)} (window at {latest}{_of(stretch.consumer_id, run)})"


def _bottleneck(finding: WindowFinding) -> str:
    wait = "" if finding.wait_share is None else f"steps wait {units.format_share(finding.wait_share)}"
    if not finding.is_input_bound:
        return f"not the input, {wait}"
    if not finding.bottleneck:
        return f"no single call, {wait}"
    return f"{clean(finding.bottleneck)}, {units.format_share(finding.blame_share)} of the wait, {wait}"


def _with_mean(latest: float | None, mean: float | None, form: Callable[[float], str]) -> str:
    """Return the figure of the latest sample, and that of the whole run in parentheses."""
    if latest is None:
        return _UNKNOWN
    return form(latest) if mean is None else f"{form(latest)} ({form(mean)})"


def _wait(consumer: WatchedConsumer, run: WatchedRun) -> str:
    """Return the share of a step spent waiting for input. Where the samples do not tell it, a profiled window does."""
    profiled = _profiled_wait(consumer, run)
    if profiled is not None:
        return f"{units.format_share(profiled)} in a window"
    return _with_mean(consumer.latest.wait_share, consumer.wait_share, units.format_share)


def _profiled_wait(consumer: WatchedConsumer, run: WatchedRun) -> float | None:
    """Return the share that the latest window measured; None if the samples tell it, or no window does."""
    stretch = run.bottlenecks.of(consumer.latest.id)
    return None if stretch is None or consumer.wait_share is not None else stretch.finding.wait_share


def _pauses(consumer: WatchedConsumer) -> str:
    """Return `3 x 126 ms`; empty if there were none."""
    if not consumer.pauses:
        return ""
    return f"{units.format_count(consumer.pauses)} x {units.format_ns(consumer.pause_ns / consumer.pauses)}"


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
