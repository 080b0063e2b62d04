"""Analyses the input pipeline for a training that does not exist here: each step is replaced by a wait of a given length.

In: a script, and a step time or how much faster the training is to be.  Out: a `Report` as on a training with such steps.

The script runs up to its first element and is held there; its model is never run. The wait takes no core, as a step on an
accelerator does, so that a pipeline can be tuned on a small machine for the one that it will feed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.capture.request import CaptureRequest
from advisor.host.calibration.proof import UNLIMITED_SESSION_S
from advisor.model.errors import AdvisorError
from advisor.model.run_folder import new_run_folder
from advisor.model.units import NS_PER_S
from advisor.prove.session.proof_session import ProofSession
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import Request, analyze, analyze_run, write_reports
from advisor.workflows.calibrate import calibrate_run

if TYPE_CHECKING:
    from advisor.capture.request import Progress
    from advisor.engine import LoadedRule
    from advisor.model.calls import Call
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings


@dataclass(frozen=True, slots=True)
class AsIf:
    """The imagined training. Exactly one of the two is set."""

    step_s: float | None = None
    """Seconds of a step."""
    speedup: float | None = None
    """How much faster than here a step is, without its wait for input."""


@dataclass(frozen=True, slots=True)
class Imagined:
    """The step that replaces those of the training, and the dataset that the training reads."""

    step_ns: int
    consumed: Call | None = None
    """The call whose dataset it is; None: the first one that the script reads, because its training was not run."""
    calls: tuple[Call, ...] = ()
    """All calls of the analysed training."""


def imagined(
    as_if: AsIf,
    request: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    on_progress: Callable[[Progress], None],
) -> Imagined:
    """Return the imagined step; for a speedup, the training is analysed first.

    Args:
        as_if: The length of a step, or the speedup of the training.
        request: The script, and how to run it; its `out` is not used.
        rules: Rules for that analysis.
        settings: Settings of the run and its window.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: The step time of the training is unknown.
    """
    if as_if.step_s is not None:
        return Imagined(max(1, round(as_if.step_s * NS_PER_S)))
    assert as_if.speedup is not None
    analysis = analyze(replace(request, out=None), rules, settings, on_progress).analysis
    verdict, recording = analysis.verdict, analysis.recording
    if verdict.steps is None or verdict.input_wait_share is None:
        raise AdvisorError(
            f"The step time of the training is unknown ({verdict.sentence.rstrip('.')}), so no step can be imagined that is "
            f"{as_if.speedup:g}x faster: name its length with --as-if-step."
        )
    step_ns = max(1, round(verdict.steps.mean_ns * (1 - verdict.input_wait_share) / as_if.speedup))
    if recording is None:
        return Imagined(step_ns)
    call_id = next((consumer.call_id for consumer in recording.consumers if consumer.is_main), None)
    return Imagined(step_ns, next((call for call in recording.calls if call.id == call_id), None), recording.calls)


def analyze_as_if(
    as_if: AsIf,
    request: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    on_progress: Callable[[Progress], None],
) -> Report:
    """Analyse the pipeline of a script for an imagined step, and write the report into the run folder.

    Args:
        as_if: The step.
        request: The script.
        rules: The rules to ask.
        settings: The settings, as returned by `advisor.workflows.analyze.load`.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: The script consumes no dataset, or its pipeline cannot be rebuilt.
        ScriptFailed: The script failed before its first element.
    """
    step = imagined(as_if, request, rules, settings, on_progress)
    name = (request.module or "module") if request.path is None else request.path.stem
    with new_run_folder(request.out, name) as run_folder:
        with temporary_folder("as-if") as folder:
            held = CaptureRequest(
                folder / "run",
                request.path,
                request.module,
                request.args,
                show_output=request.show_output,
                in_place=request.in_place,
            )
            with ProofSession(
                held, step.consumed, UNLIMITED_SESSION_S.value, on_progress, step.calls, as_if_step_ns=step.step_ns
            ) as session:
                for part in session.profile(()).iterdir():
                    shutil.move(part, run_folder / part.name)
        calibrate_run(run_folder, None, on_progress)
        report = analyze_run(run_folder, rules, settings)
        write_reports(report, run_folder)
        return report
