"""The child process that analyses the windows of a running script, at low priority.

In: a `Job`.  Out: a `WindowFinding`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.host.process_limits import give_way, set_limits
from advisor.model.errors import AdvisorError
from advisor.model.live import WindowFinding
from advisor.model.text import message_of

if TYPE_CHECKING:
    from advisor.model.outcome import Report


@dataclass(frozen=True, slots=True)
class Job:
    """A window to analyse."""

    folder: Path
    """Its run folder, or a logdir with one run."""
    source: Path | None = None
    """Script whose calls are matched to a profile without a recording."""
    seconds: float = 120.0
    """Longest time for the analysis."""


def work(job: Job) -> WindowFinding:
    """Analyse a window. Whatever goes wrong becomes a sentence."""
    from advisor.model.settings import Settings
    from advisor.workflows.analyze import Choice, analyze_run

    try:
        give_way()
        set_limits(job.seconds)
        report = analyze_run(job.folder, [], Settings(), Choice(source=job.source))
        return finding_of(report)
    except AdvisorError as error:
        return WindowFinding(problem=str(error), cpu_ns=time.process_time_ns())
    except Exception as error:
        text = f"{type(error).__name__}: {message_of(error)[:300]}"
        return WindowFinding(problem=f"A window could not be analysed ({text}).", cpu_ns=time.process_time_ns())


def finding_of(report: Report) -> WindowFinding:
    """Return what the report on a window says about its main pipeline."""
    from advisor.report.places import iterator_text

    verdict, main = report.analysis.verdict, report.analysis.main
    if main is None or main.steps is None or verdict.input_wait_share is None:
        return WindowFinding(problem=verdict.sentence, cpu_ns=time.process_time_ns())
    bottleneck = main.bottleneck
    return WindowFinding(
        wait_share=verdict.input_wait_share,
        step_ns=main.step_ns,
        steps=main.steps.count,
        bottleneck="" if bottleneck is None else iterator_text(main.iterator(bottleneck.iterator_id)).plain,
        blame_share=0.0 if bottleneck is None else bottleneck.blame_share,
        is_input_bound=verdict.is_input_bound,
        cpu_ns=time.process_time_ns(),
    )
