"""Compares two runs: step time, input wait, rate, memory, and every iterator of the main pipeline.

In: two reports, and alternating runs if both are scripts.  Out: `RunComparison`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from advisor.host.calibration.proof import SAME_WITHIN
from advisor.model.intervals import MIN_VALUES, Mean, mean_of, ratio_of
from advisor.model.outcome import Interval, Report
from advisor.model.pipeline import Iterator, Pipeline
from advisor.model.proof_result import Side
from advisor.model.recording import steps_in_whole_epochs
from advisor.model.run_comparison import ComparedRun, NodeChange, RunComparison
from advisor.predict import rows_per_step
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps, main_series, median_of
from advisor.prove.trial.trial_result import REFUSED, SAME, judge

UNKNOWN = "unknown"
_ONE_WINDOW = (
    "The interval covers the steps of these two windows, but not the variation between runs of a script; "
    "`advisor compare BEFORE.py AFTER.py` runs both alternately."
)


def compare_reports(before: Report, after: Report, whole: EndToEnd | None = None) -> RunComparison:
    """Compare two analysed runs.

    Args:
        before: Report on the first run.
        after: Report on the second run.
        whole: Alternating runs of the same two scripts, whose step times take precedence.
    """
    notes: list[str] = []
    if whole is None:
        speedup = _speedup_of_windows(before, after)
        verdict = UNKNOWN if speedup is None else judge(speedup)[0]
        if speedup is not None:
            notes.append(_ONE_WINDOW)
    else:
        speedup, verdict = whole.speedup, verdict_of(whole)
        notes += filter(None, (whole.note, whole.how))
        recordings = [report.analysis.recording for report in (before, after)]
        notes += dict.fromkeys(note for recording in recordings if recording for note in recording.disk_notes)
    if speedup is None and whole is None:
        notes.append(f"One of the runs has fewer than {MIN_VALUES} steps, so step times cannot be compared.")
    if speedup is not None and verdict == SAME and not is_narrow(speedup):
        verdict = UNKNOWN
        notes.append(
            f"The runs vary too much for a verdict: the true ratio of step times may be anything from {speedup.low:.2f} to "
            f"{speedup.high:.2f}."
        )
    rows = rows_per_step(before.analysis), rows_per_step(after.analysis)
    if speedup is not None and None not in rows and rows[0] != rows[1]:
        speedup, verdict = None, UNKNOWN
        notes.append(
            f"A step takes {rows[0]} elements before and {rows[1]} after, so step times do not show which trains faster: compare "
            "the time per epoch."
        )
    notes += _doubts(before, after)
    return RunComparison(
        before=_run(before, () if whole is None else whole.before),
        after=_run(after, () if whole is None else whole.after),
        verdict=verdict,
        step_speedup=speedup,
        turns=min(len(whole.before), len(whole.after)) if whole is not None else 0,
        nodes=tuple(match_nodes(before.analysis.main, after.analysis.main)),
        notes=tuple(notes),
        test=None if whole is None or speedup is None else whole.test,
    )


def verdict_of(whole: EndToEnd) -> str:
    """Return the verdict of alternating runs; `unknown` if they have none.

    If the time was used up before the test had decided, the interval of its latest look may still say that both are the same.
    """
    if whole.verdict != REFUSED:
        return whole.verdict
    return SAME if whole.speedup is not None and is_narrow(whole.speedup) else UNKNOWN


def is_narrow(speedup: Interval) -> bool:
    """Return whether an interval around 1 is narrow enough to call two scripts the same."""
    return 1 / SAME_WITHIN.value < speedup.low and speedup.high < SAME_WITHIN.value


def match_nodes(before: Pipeline | None, after: Pipeline | None) -> list[NodeChange]:
    """Pair iterators by call, then by long name; among equal ones, the k-th with the k-th."""
    old = list(before.iterators) if before is not None else []
    new = list(after.iterators) if after is not None else []
    partner: dict[str, Iterator] = {}
    for key in (_call_key, _name_key):
        waiting: dict[Hashable, list[Iterator]] = defaultdict(list)
        for iterator in old:
            if not any(iterator is taken for taken in partner.values()):
                waiting[key(iterator)].append(iterator)
        for iterator in new:
            value = key(iterator)
            if iterator.id not in partner and value is not None and waiting[value]:
                partner[iterator.id] = waiting[value].pop(0)
    changes = [_change(partner.get(iterator.id), before, iterator, after) for iterator in new]
    taken = [id(iterator) for iterator in partner.values()]
    return changes + [_change(iterator, before, None, after) for iterator in old if id(iterator) not in taken]


def _call_key(iterator: Iterator) -> Hashable:
    """Identifies a call independently of its line, which may move between two versions of a script."""
    call = iterator.main_call
    if call is None:
        return None
    return call.method, call.function.name if call.function else "", call.library


def _name_key(iterator: Iterator) -> Hashable:
    return None if iterator.main_call is not None else iterator.long_name


def _change(
    before: Iterator | None, before_of: Pipeline | None, after: Iterator | None, after_of: Pipeline | None
) -> NodeChange:
    return NodeChange(before, after, _busy_per_element(before, before_of), _busy_per_element(after, after_of))


def _busy_per_element(iterator: Iterator | None, pipeline: Pipeline | None) -> float | None:
    if iterator is None or pipeline is None or not pipeline.num_elements:
        return None
    return iterator.busy_ns / pipeline.num_elements


def _run(report: Report, runs: Sequence[RunSteps]) -> ComparedRun:
    analysis = report.analysis
    steps, main, usage = analysis.verdict.steps, analysis.main, analysis.usage
    step_ns = median_of(runs, lambda run: run.step_ns)
    share = median_of(runs, lambda run: run.wait_share)
    peak = median_of(runs, lambda run: run.peak_rss_bytes)
    count = median_of(runs, lambda run: run.count)
    figures = Side(
        elements_per_s=main.elements_per_s if main is not None and main.span_ns else None,
        step_ns=step_ns if step_ns is not None else float(steps.mean_ns) if steps else None,
        wait_share=share if share is not None else analysis.verdict.input_wait_share,
        peak_rss_bytes=int(peak) if peak is not None else usage.peak_rss_bytes if usage else None,
    )
    mean = None if runs else _mean_step(report)
    return ComparedRun(
        analysis.target,
        report.run_folder,
        figures,
        int(count) if count else steps.count if steps else 0,
        0 if mean is None else mean.stretches,
    )


def _speedup_of_windows(before: Report, after: Report) -> Interval | None:
    """Ratio of the mean step times of two windows, with an interval from the variation between segments of steps."""
    old, new = _mean_step(before), _mean_step(after)
    return None if old is None or new is None else ratio_of(old, new)


def _mean_step(report: Report) -> Mean | None:
    """Mean step time in ns; None if there are too few steps."""
    mean = mean_of(_durations(report))
    steps = report.analysis.verdict.steps
    if mean is None and steps is not None and steps.mean_error is not None:
        return Mean(float(steps.mean_ns), steps.mean_error, steps.mean_stretches)
    return mean


def _durations(report: Report) -> list[int]:
    """Durations in ns of steps without the profiler, if the run timed any."""
    recording = report.analysis.recording
    series = main_series(recording) if recording is not None else None
    window = recording.window if recording is not None else None
    if series is None or window is None or not window.plain_steps:
        return []
    first = max(0, window.warmup_steps - series.first_step)
    last = max(0, window.warmup_steps + window.plain_steps - series.first_step)
    last = first + steps_in_whole_epochs(max(0, last - first), series.epoch_steps)
    return [end - start for start, end in zip(series.start_ns[first:last], series.end_ns[first:last], strict=False)]


def _doubts(before: Report, after: Report) -> list[str]:
    """Sentences on differences that limit the comparison."""
    notes: list[str] = []
    hosts = before.analysis.host, after.analysis.host
    if hosts[0] is None or hosts[1] is None:
        return notes
    if (hosts[0].hostname, hosts[0].cores) != (hosts[1].hostname, hosts[1].cores):
        notes.append("The runs used different machines.")
    if hosts[0].tensorflow_version != hosts[1].tensorflow_version:
        notes.append(
            f"The runs used different versions of TensorFlow ({hosts[0].tensorflow_version}, {hosts[1].tensorflow_version})."
        )
    return notes
