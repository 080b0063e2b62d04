"""Runs the text of another revision and that of the working tree alternately, in one job on one machine.

In: how to run the script, and the texts that differ.  Out: `BaseComparison`. Nothing is checked out: the texts are overlays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.capture.request import Progress
from advisor.gate.base_revision import BaseTexts
from advisor.model.check_result import BaseComparison, LoopRatio
from advisor.model.errors import ScriptFailed
from advisor.model.outcome import Interval, Report
from advisor.model.paired_test import PairedTest
from advisor.model.sequential_test import LOOKS, interval_at
from advisor.model.settings import Settings
from advisor.model.text import message_of
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import LoopSteps, RunSteps, median_of
from advisor.prove.measure.source_overlays import overlays
from advisor.workflows.analyze import Request
from advisor.workflows.compare import timed_request


def compare_with_base(
    request: Request,
    texts: BaseTexts,
    head: Report,
    limit: float,
    settings: Settings,
    on_progress: Callable[[Progress], None],
) -> BaseComparison:
    """Run base and head alternately until it is clear on which side of the limit the ratio of their step times is.

    Args:
        request: How to run the script.
        texts: The files that differ.
        head: The report on the working tree, for the length of the window.
        limit: The ratio of step times, head to base, that is allowed.
        settings: The settings of the script.
        on_progress: Called with progress messages.
    """
    compared = BaseComparison(texts.revision, texts.commit, texts.names, is_same_text=texts.is_same_text)
    if not texts.has_script:
        return replace(compared, is_same_text=False, note=f"{request.path} does not exist there.")
    if texts.is_same_text:
        return compared
    timed = timed_request(request, settings, [head], head)
    with overlays(texts.files, {}) as (base, same):
        mine = tuple(pair for pair in same if pair[0] not in texts.only_in_base)
        try:
            whole = measure_end_to_end(
                replace(timed, overlay=base),
                replace(timed, overlay=mine),
                on_progress,
                names=(f"text of {texts.revision}", "working tree"),
                limit=limit,
                may_give_up=False,
            )
        except ScriptFailed as error:
            return replace(compared, note=f"Its script fails: {message_of(error)}.")
    return _result(compared, whole, texts.revision)


def _result(compared: BaseComparison, whole: EndToEnd, revision: str) -> BaseComparison:
    base, head = whole.before, whole.after
    compared = replace(
        compared,
        turns=min(len(base), len(head)),
        base_step_ns=median_of(base, lambda run: run.step_ns),
        head_step_ns=median_of(head, lambda run: run.step_ns),
    )
    if whole.speedup is None:
        return replace(compared, note=whole.note)
    rows = base[0].rows, head[0].rows
    if None not in rows and rows[0] != rows[1]:
        note = f"A step takes {rows[0]} elements in {revision} and {rows[1]} now, so step times cannot be compared."
        return replace(compared, note=note)
    step_ratio = Interval(1 / whole.speedup.value, 1 / whole.speedup.high, 1 / whole.speedup.low)
    return replace(
        compared,
        note=whole.note if whole.is_out_of_time else "",
        step_ratio=step_ratio,
        test=_inverted(whole.test),
        memory_ratio=_ratio([(old.peak_rss_bytes, new.peak_rss_bytes) for old, new in zip(base, head, strict=False)]),
        loops=tuple(_loops(base, head)),
    )


def _inverted(test: PairedTest | None) -> PairedTest | None:
    """The test with the ratio of head to base."""
    if test is None or test.median is None:
        return test
    value, low, high = test.median
    return replace(test, median=(1 / value, 1 / high, 1 / low))


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> Interval | None:
    """Return the ratio of (base, head) values with the interval of the last look of the test; None if a run lacks one."""
    ratios = [new / old for old, new in pairs if old and new]
    if len(ratios) < len(pairs) or len(ratios) < LOOKS[0].pairs:
        return None
    error = next((look.error for look in LOOKS if look.pairs == len(ratios)), LOOKS[-1].error)
    ratio = interval_at(ratios, error)
    return ratio if math.isfinite(ratio.high) else None


def _loops(base: Sequence[RunSteps], head: Sequence[RunSteps]) -> Iterator[LoopRatio]:
    """Yield the ratios of the loops that were timed in every run of both sides; they are identified by kind and order."""
    runs = [{(loop.kind, loop.number): loop for loop in run.other_loops} for run in (*base, *head)]
    for key, loop in runs[-1].items():
        if not all(key in run for run in runs):
            continue
        turns = zip(runs[: len(base)], runs[len(base) :], strict=False)
        ratio = _ratio([(old[key].step_ns, new[key].step_ns) for old, new in turns])
        if ratio is not None:
            yield LoopRatio(_name(loop), ratio)


def _name(loop: LoopSteps) -> str:
    if loop.site is None:
        return loop.kind
    return f"{loop.site.file.replace(chr(92), '/').rpartition('/')[2]}:{loop.site.line} ({loop.kind})"
