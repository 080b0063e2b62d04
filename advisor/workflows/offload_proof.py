"""The phases of `advisor offload --service`: a service that the user runs, read by the held script, then by the whole script.

In: an `OffloadRequest` with the dispatcher's address, and the analysis of the script.  Out: `ServiceProof`.

    dispatcher and workers answer -> held script reads through them, elements compared -> alternating runs of the script

The changed text is the one that `advisor offload --write` writes, with this dispatcher. It is an overlay: no file is changed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import CaptureRequest, Progress
from advisor.model.errors import AdvisorError
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.offload_result import REFUSED, Movability, ServedMeasurement, ServiceProof
from advisor.model.outcome import Report
from advisor.model.units import format_many
from advisor.offload.dispatcher import Dispatcher, reachable
from advisor.offload.repairs import distribute_edit, edits_before, edits_with_distribute
from advisor.offload.sizing import speedup_at
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.whole_script import WholeScript
from advisor.prove.service_proof import proof_of
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.messages import edits_to_json
from advisor.prove.trial.service.service_messages import ServiceTried, TryService

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.settings import Settings
    from advisor.workflows.analyze import Request


def check_service(address: str, on_progress: Callable[[Progress], None]) -> None:
    """Check that a dispatcher answers and that one of its workers can be reached, before anything is run.

    Raises:
        AdvisorError: Not so.
    """
    try:
        Dispatcher(address).wait_for_workers(lambda: on_progress(Progress("waiting for workers")))
    except AdvisorError as error:
        raise AdvisorError(f"{error} Nothing was run.") from None


@dataclass(slots=True)
class ServiceProving:
    """One proof with a running service."""

    address: str
    policy: str
    script: Request
    settings: Settings
    report: Report
    root: Path
    """The project's folder."""
    deadline: float
    """A time of `time.monotonic`."""
    on_progress: Callable[[Progress], None]
    runs: int = 0
    notes: list[str] = field(default_factory=list)

    def read(self, session: ProofSession, movability: Movability) -> ServedMeasurement:
        """Read the pipeline of a held script through the service, and compare its elements.

        Raises:
            AdvisorError: There is no dispatcher or worker, or no elements come.
        """
        edits = edits_to_json(edits_before(movability))
        tried = session.ask(TryService(movability.after_id, edits, self.policy, self.address), ServiceTried)
        self.notes += tried.notes
        return tried.measurement

    def prove(self, movability: Movability, served: ServedMeasurement, startup_s: float) -> ServiceProof:
        """Run the script without and with the service alternately.

        Args:
            movability: Whether the pipeline can move, and the edits that move it.
            served: What the workers delivered when the held script read through the service.
            startup_s: Seconds that the script takes until its first step, for the plan of the runs.
        """
        analysis = self.report.analysis
        predicted = None
        if served.delivered_per_s is not None:
            predicted = speedup_at(analysis, movability, served.delivered_per_s)
        why_not, whole, lost = "", None, tuple[str, ...]()
        if movability.verdict == REFUSED:
            why_not = "The pipeline cannot move to workers."
        else:
            whole = self._run(movability, served, startup_s)
            why_not = self.notes[-1] if self.notes and (whole is None or whole.speedup is None) else ""
            lost = self._lost(served)
        return proof_of(self.address, served, predicted, whole, lost, why_not)

    def _run(self, movability: Movability, served: ServedMeasurement, startup_s: float) -> EndToEnd | None:
        script, settings, analysis = self.script, self.settings, self.report.analysis
        request = CaptureRequest(
            Path("unused"), script.path, script.module, script.args,
            settings.steps, settings.warmup, settings.seconds, in_place=script.in_place,
        )  # fmt: skip
        calls = {call.id: call for call in analysis.calls}
        edits = edits_with_distribute(movability, distribute_edit(movability.after_id, self.policy, self.address))
        title = f"with {format_many(served.workers, 'worker')}"
        fix = Fix(edits, Safety.REORDERED, is_auto=False, step_edits=movability.step_edits)
        finding = Finding("offload", title, "", fix=fix)
        whole = WholeScript(
            request, analysis, Proposals(calls, self.root), startup_s, self.deadline, self.on_progress, time.monotonic
        )
        try:
            return whole.measure((), (finding,), title)
        finally:
            self.runs += whole.runs
            self.notes += whole.notes

    def _lost(self, served: ServedMeasurement) -> tuple[str, ...]:
        """Workers that answered when the pipeline was read, and do not at the end of the runs; said if the dispatcher is gone."""
        try:
            known = Dispatcher(self.address).workers()
        except AdvisorError as error:
            self.notes.append(f"After the runs: {error}")
            return ()
        there = reachable(known)
        missing = served.workers - len(served.lost) - len(there)
        gone = [worker for worker in known if worker not in there and worker not in served.lost]
        return tuple(gone[:missing]) if missing > 0 else ()
