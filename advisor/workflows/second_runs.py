"""Second runs of a script, which measure what the run of its training does not show: the ceiling and the headroom.

In: the capture request of the first run, whose run folder is written.  Out: the first run's recording with the measurement, or
with a warning that says why there is none. A second run never fails the analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import labelled
from advisor.host.calibration.proof import HEADROOM_RUN_S
from advisor.model.codec import encode
from advisor.model.errors import AdvisorError
from advisor.model.run_folder import RECORDING_NAME, write_whole
from advisor.model.settings import Settings
from advisor.model.text import message_of
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.saved_recording import read_recording

if TYPE_CHECKING:
    from advisor.capture.request import CaptureRequest, Progress
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.recording import Recording

OnProgress = Callable[["Progress"], None]
Analyze = Callable[[Path, Sequence["LoadedRule"], Settings], "Report"]
"""`advisor.workflows.analyze.analyze_run`, which imports this module."""


def measure_ceiling(request: CaptureRequest, recording: Recording, on_progress: OnProgress) -> Recording:
    """Run the script again with its first element repeated, and store the step times in the first run's recording.

    Args:
        request: The request of the first run.
        recording: Its recording.
        on_progress: Called with progress messages.

    Returns:
        The recording as it is stored now.
    """
    from advisor.capture.launch import capture

    call_id = next((consumer.call_id for consumer in recording.consumers if consumer.is_main), None)
    step_ns: tuple[int, ...] = ()
    why = "the call that creates the consumed dataset is unknown"
    if call_id is not None:
        with temporary_folder("ceiling") as folder:  # its training is meaningless, so it never runs to the end
            second = replace(request, out=folder / "run", ceiling_for=call_id, to_end=False)
            try:
                capture(second, labelled(on_progress, "ceiling"))
                second_recording = read_recording(second.out)
                step_ns = second_recording.ceiling_step_ns if second_recording else ()
                why = "the second run had no steps"
            except AdvisorError as error:
                why = message_of(error)
    if step_ns:
        return _stored(request, replace(recording, ceiling_step_ns=step_ns))
    warning = f"The ceiling could not be measured ({why}): it is estimated as 1 / (1 - wait share)."
    return _stored(request, _warned(recording, warning))


def measure_headroom(
    request: CaptureRequest, recording: Recording, analyze: Analyze, on_progress: OnProgress
) -> Recording:
    """Run the script up to its first element, read its pipeline without training, and store the time per element.

    Args:
        request: The request of the first run.
        recording: Its recording.
        analyze: Analyses the run folder of the pipeline that is read alone.
        on_progress: Called with progress messages.

    Returns:
        The recording as it is stored now.
    """
    from advisor.prove.session.proof_session import ProofSession

    call_id = next((consumer.call_id for consumer in recording.consumers if consumer.is_main), None)
    call = next((call for call in recording.calls if call.id == call_id), None)
    if call is None:
        why = "the call that creates the consumed dataset is unknown"
        return _stored(request, _warned(recording, f"The headroom could not be measured: {why}."))
    with temporary_folder("headroom") as folder:
        held = replace(request, out=folder / "run", to_end=False)
        try:
            progress = labelled(on_progress, "headroom")
            with ProofSession(held, call, HEADROOM_RUN_S.value, progress, recording.calls) as session:
                steps = analyze(session.profile(()), [], Settings()).analysis.verdict.steps
        except AdvisorError as error:
            return _stored(request, _warned(recording, f"The headroom could not be measured: {message_of(error)}"))
    if steps is None:
        warning = "The headroom could not be measured: the pipeline alone delivered too few elements."
        return _stored(request, _warned(recording, warning))
    return _stored(request, replace(recording, alone_element_ns=float(steps.mean_ns)))


def _warned(recording: Recording, warning: str) -> Recording:
    return replace(recording, warnings=(*recording.warnings, warning))


def _stored(request: CaptureRequest, recording: Recording) -> Recording:
    write_whole(request.out / RECORDING_NAME, encode(recording))
    return recording
