"""The phases of `advisor compare`: saved runs are read; scripts are analysed and then run alternately.

In: two `Request`s.  Out: `RunComparison`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import CaptureRequest, Progress
from advisor.host.calibration.proof import MAX_WINDOW_S, MIN_WINDOW_S, WINDOW_STEPS
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.prove.measure.compare_runs import compare_reports
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.whole_epochs import epoch_of, in_whole_epochs
from advisor.workflows.analyze import Request, analyze, analyze_run

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.run_comparison import RunComparison
    from advisor.model.settings import Settings


def announcement() -> str:
    """Say how often the scripts will run and what happens to their files, to be shown before the first run."""
    return (
        f"Each script will be run {1 + MIN_PAIRS} to {1 + MAX_PAIRS} times: once for analysis, then alternating with the other "
        "until the answer is clear. Each run is stopped after its window. Files written by the scripts are discarded, except "
        "with --in-place."
    )


def compare(
    before: Request,
    after: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    on_progress: Callable[[Progress], None],
) -> RunComparison:
    """Compare two scripts or two saved runs.

    Args:
        before: The first script or run.
        after: The second, of the same kind.
        rules: The rules to ask.
        settings: The settings of the first target.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: A target cannot be analysed.
        ScriptFailed: A script failed before anything was measured.
    """
    if before.is_saved_run and after.is_saved_run:
        paths = [request.path for request in (before, after) if request.path is not None]
        old, new = (analyze_run(path, rules, settings) for path in paths)
        return compare_reports(old, new)
    old = analyze(before, rules, settings, on_progress)
    new = analyze(after, rules, settings, on_progress)
    requests = [timed_request(request, settings, (old, new), own) for request, own in ((before, old), (after, new))]
    return compare_reports(old, new, measure_end_to_end(requests[0], requests[1], on_progress, may_give_up=False))


def timed_request(request: Request, settings: Settings, reports: Sequence[Report], own: Report) -> CaptureRequest:
    """Return a run whose steps are timed, with the window that suits the slowest of the reports unless the settings have one.

    Args:
        request: The script, and how to run it.
        settings: The settings; `steps` or `seconds` decide the window if they are set.
        reports: Reports of earlier runs, whose step times the window suits; without steps, the shortest window is taken.
        own: The one on this script, whose epochs the window suits.
    """
    steps = [report.analysis.verdict.steps for report in reports]
    step_s = max((stats.mean_ns / 1e9 for stats in steps if stats is not None), default=0.0)
    window_s = min(MAX_WINDOW_S.value, max(MIN_WINDOW_S.value, WINDOW_STEPS.value * step_s))
    timed = CaptureRequest(
        out=Path("unused"),
        script=request.path,
        module=request.module,
        args=request.args,
        steps=settings.steps,
        warmup=settings.warmup,
        seconds=settings.seconds if settings.seconds is not None else None if settings.steps is not None else window_s,
        in_place=request.in_place,
    )
    recording = own.analysis.recording
    return timed if recording is None else in_whole_epochs(timed, epoch_of(recording))
