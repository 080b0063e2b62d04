"""Tells apart the two speedups of a tried fix: of the pipeline alone and of a training step.

In: an attempt, the first analysis, the measurement of the whole script.  Out: a `Gain` of each, as predicted and as measured.
"""

from __future__ import annotations

from advisor.model.outcome import Gain, Report
from advisor.predict.pipeline_alone import predict_pipeline_alone
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.rewrite.fix_plan import is_untuning


def gains_of(attempt: Attempt, report: Report, loop: LoopResult, whole: EndToEnd | None) -> tuple[Gain, Gain]:
    """Return the speedups by one fix of the pipeline alone and of a training step.

    A finding of the first analysis predicts the training step, unless that analysis was of the pipeline alone. Later analyses are
    always of the pipeline alone.

    Args:
        attempt: The attempt.
        report: The first analysis.
        loop: All attempts.
        whole: The measurement of the whole script with all kept fixes; None if it was not measured.
    """
    analysis, finding = report.analysis, attempt.finding.as_proposed
    alone, step = finding.prediction, None
    is_of_training = analysis.recording is None or not analysis.recording.is_pipeline_alone
    if analysis.recording is not None and analysis.recording.as_if_step_ns is not None:
        alone, step = None, finding.prediction  # every analysis is of the pipeline with the imagined step
    if is_of_training:
        first = next(
            (
                reported
                for reported in (*report.findings, *report.hints)
                if reported.fix and finding.fix and reported.fix.changes == finding.fix.changes
            ),
            None,
        )
        step = first.prediction if first is not None else step
        if first is None and finding.fix is not None and is_untuning(finding.fix):
            alone, step = None, finding.prediction  # of the time between epochs, which the pipeline alone does not have
        if first is not None and first.prediction == finding.prediction:
            alone = predict_pipeline_alone(analysis, analysis.main, step) if analysis.main and step else None
    measured = attempt.trial.speedup
    if attempt.is_end_to_end:
        return Gain(alone), Gain(step, measured)
    is_only = loop.kept == (attempt.finding,) and whole is not None
    return Gain(alone, measured), Gain(step, whole.speedup if is_only and whole is not None else None)
