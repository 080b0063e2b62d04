"""The phases of `advisor offload`: analyse, can it move, real workers, how many, the change of the script and the files.

In: an `OffloadRequest`.  Out: `OffloadResult`: what was found, the patch and the texts of the files. This file writes nothing.

    analyze -> judge -> proof session with worker processes -> size -> patch, files
    analyze -> judge -> proof session with the user's service -> alternating runs -> patch      (--service)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import RESULT, CaptureRequest, Progress, files_sentence
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.offload_result import (
    DYNAMIC,
    REFUSED,
    Movability,
    Offload,
    ServedMeasurement,
    ServiceMeasurement,
    ServiceProof,
    Sizing,
)
from advisor.model.outcome import Report
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.model.units import NS_PER_S, format_ns
from advisor.offload.decision import decided, sentence_of
from advisor.offload.files import deployment_of, render, server_text
from advisor.offload.repairs import SERVICE_ADDRESS, distribute_edit, edits_before, edits_with_distribute
from advisor.offload.sizing import Machines, size
from advisor.predict.capacity import core_use
from advisor.predict.structure import consumed_call
from advisor.prove.budget import Budget, check_budget
from advisor.prove.service_proof import proof_of
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.messages import edits_to_json
from advisor.prove.trial.service.service_messages import MeasureService, ServiceMeasured
from advisor.rewrite.apply.writable import early_obstacle
from advisor.rewrite.patch import CannotRewrite, Patch, patch_for
from advisor.rewrite.project import project_root
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import Request, analyze
from advisor.workflows.fix import startup_s_of
from advisor.workflows.offload_proof import ServiceProving, check_service
from advisor.workflows.offload_repairs import judged

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.settings import Settings

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class OffloadRequest:
    """A script or a saved run, and the machines."""

    script: Request
    budget_s: float = 600.0
    """Wall time of the whole command in seconds."""
    policy: str = DYNAMIC
    machines: Machines = field(default_factory=Machines)
    address: str = SERVICE_ADDRESS
    """The dispatcher, as it is written into the script."""
    service: str = ""
    """The dispatcher of a running service (`grpc://HOST:PORT`) with which the script is proved; empty: worker processes are
    started here."""
    is_measured: bool = True
    """Start worker processes; without them only the recording is judged."""
    is_to_be_written: bool = False
    are_files_wanted: bool = False
    """Whether the files will be written; their texts are made then."""


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """What was found, and what may be written."""

    offload: Offload
    patch: Patch = field(default_factory=Patch)
    texts: Mapping[str, str] = field(default_factory=dict)
    """The generated files by name; empty if none are wanted or the pipeline cannot move."""


def announcement(request: OffloadRequest) -> str:
    """Say how often the script will run and what is started, to be shown before the first run."""
    files = files_sentence(request.script.in_place)
    if not request.is_measured:
        return f"The script will be run once. {files}"
    if request.service:
        return (
            "The script will be run once to analyse it, once up to its first element, where it is held while its pipeline is "
            f"read through {request.service}, and {2 * MIN_PAIRS} to {2 * MAX_PAIRS} times alternating, with its own pipeline "
            f"and with that service. Each run is stopped after its window. {files}"
        )
    return (
        "The script will be run once to analyse it, and once up to its first element, where it is held while a dispatcher and up "
        f"to two workers of tf.data service run its pipeline on this machine. {files}"
    )


def offload(
    request: OffloadRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
) -> OffloadResult:
    """Say whether the input pipeline of a script can move to tf.data service, and what that takes.

    Args:
        request: The script and the machines.
        rules: The rules to ask in the analysis.
        settings: The settings of the script's folder.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: The script cannot be analysed, or its pipeline cannot be rebuilt.
        ScriptFailed: The script failed before anything was measured.
    """
    check_budget(request.budget_s)
    path = request.script.path
    obstacle = early_obstacle(path) if request.is_to_be_written and path is not None else ""
    if obstacle:
        raise AdvisorError(f"{obstacle}, so nothing was run: --write could not write it.")
    if request.service:
        check_service(request.service, on_progress)
    return _Offloading(request, rules, settings, on_progress).run()


class _Offloading:
    """One run of `offload`."""

    def __init__(
        self, request: OffloadRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
    ) -> None:
        self._request, self._rules, self._settings, self._on_progress = request, rules, settings, on_progress
        self._budget = Budget(request.budget_s, time.monotonic())
        self._runs = 0
        self._notes: list[str] = []

    def run(self) -> OffloadResult:
        """Run all phases in order."""
        script = replace(self._request.script, deadline=self._budget.analysis_end)
        began_ns = time.time_ns()
        try:
            report = analyze(script, self._rules, self._settings, self._on_progress)
        except OutOfTime:
            budget = format_ns(self._request.budget_s * NS_PER_S)
            raise AdvisorError(
                f"{self._name} was stopped: it was not measured before --budget {budget} was used up. Allow more time."
            ) from None
        self._runs += 0 if script.is_saved_run else 1
        movability = judged(report.analysis, self._request.policy, lambda place: self._root(report, place))
        self._on_progress(Progress(RESULT, text=movability.sentence))
        self._note_state(report)
        if self._request.service:
            return self._with_service(report, movability, startup_s_of(report, began_ns))
        measured: ServiceMeasurement | None = None
        sizing: Sizing | None = None
        if movability.verdict != REFUSED and self._request.is_measured:
            try:
                measured = self._measure(report, movability)
            except ScriptFailed:
                raise
            except AdvisorError as error:  # what the recording says is still worth a report
                self._notes.append(f"The pipeline was not run through workers: {error}")
        if measured is not None:
            movability = decided(movability, measured)
            if movability.verdict != REFUSED:
                sizing = size(report.analysis, movability, measured, self._request.machines)
                self._notes += (*measured.notes, *sizing.notes)
        return self._conclude(report, movability, measured, sizing)

    def _with_service(self, report: Report, movability: Movability, startup_s: float) -> OffloadResult:
        """Read the pipeline through the running service, and run the script with it."""
        if movability.verdict == REFUSED:
            return self._conclude(report, movability, None, None)
        request = self._request
        proving = ServiceProving(
            request.service, request.policy, request.script, self._settings, report, self._root(report, movability),
            self._budget.end, self._on_progress,
        )  # fmt: skip
        try:
            with self._held(report) as session:
                served = proving.read(session, movability)
        except ScriptFailed:
            raise
        except AdvisorError as error:  # what the recording says is still worth a report
            proof = proof_of(request.service, ServedMeasurement(ServiceMeasurement()), None, None, why_not=str(error))
            return self._conclude(report, movability, None, None, proof)
        measured = served.measurement
        movability = decided(movability, measured)
        proof = proving.prove(movability, served, startup_s)
        self._runs += proving.runs
        self._notes += proving.notes
        return self._conclude(report, movability, measured, None, proof)

    @property
    def _name(self) -> str:
        script = self._request.script
        return f"-m {script.module}" if script.path is None else str(script.path)

    def _note_state(self, report: Report) -> None:
        """Note whether the host is at its limit: otherwise a local change is cheaper than other machines."""
        from advisor.engine import threshold_of

        analysis = report.analysis
        use = core_use(analysis, analysis.main) if analysis.main is not None else None
        free_cores = threshold_of(self._rules, "offload", "min_free_cores")
        if free_cores is not None and use is not None and use.is_measured and use.free >= free_cores:
            self._notes.append(
                f"This host is not at its limit ({use.sentence}): `advisor fix` may speed the pipeline up without other machines."
            )

    def _measure(self, report: Report, movability: Movability) -> ServiceMeasurement:
        """Hold the script at its first element, and run its pipeline through workers there."""
        with self._held(report) as session:
            asked = MeasureService(
                movability.after_id, edits_to_json(edits_before(movability)), self._request.policy, server_text()
            )
            return session.ask(asked, ServiceMeasured).measurement

    @contextmanager
    def _held(self, report: Report) -> Iterator[ProofSession]:
        """Hold the script at its first element; its runs and notes are kept if the block ends without an error."""
        analysis, script = report.analysis, self._request.script
        consumed = consumed_call(analysis, analysis.main) if analysis.main is not None else None
        with temporary_folder("offload") as folder:
            request = CaptureRequest(
                folder / "run", script.path, script.module, script.args,
                show_output=script.show_output, in_place=script.in_place,
            )  # fmt: skip
            seconds = max(0.0, self._budget.end - time.monotonic())
            with ProofSession(request, consumed, seconds, self._on_progress, analysis.calls) as session:
                yield session
            self._runs += session.runs
            self._notes += session.notes

    def _conclude(
        self,
        report: Report,
        movability: Movability,
        measured: ServiceMeasurement | None,
        sizing: Sizing | None,
        proof: ServiceProof | None = None,
    ) -> OffloadResult:
        patch, texts = Patch(), dict[str, str]()
        if movability.verdict != REFUSED and movability.after_id:
            patch = self._patch(report, movability, sizing)
            if self._request.are_files_wanted:
                deployment = deployment_of(report.analysis, sizing, self._request.machines.worker_cores)
                texts = render(replace(deployment, workers=proof.workers) if proof is not None else deployment)
        outcome = Offload(
            target=report.analysis.target,
            sentence=sentence_of(movability, sizing, proof),
            movability=movability,
            measurement=measured,
            sizing=sizing,
            policy=self._request.policy,
            diff=patch.diff,
            proof=proof,
            runs=self._runs,
            seconds=self._budget.spent_s,
            run_folder=report.run_folder,
            notes=tuple(dict.fromkeys(self._notes)),
        )
        return OffloadResult(outcome, patch, texts)

    def _patch(self, report: Report, movability: Movability, sizing: Sizing | None) -> Patch:
        """Return the change of the script; empty, with a note, if it cannot be written."""
        compression = sizing.compression if sizing is not None else "AUTO"
        distribute = distribute_edit(
            movability.after_id, self._request.policy, self._request.service or self._request.address, compression
        )
        calls = {call.id: call for call in report.analysis.calls}
        patch = patch_for(
            edits_with_distribute(movability, distribute),
            calls,
            self._root(report, movability),
            step_edits=movability.step_edits,
        )
        if isinstance(patch, CannotRewrite):
            self._notes.append(f"The change of the script cannot be written: {patch.reason}")
            return Patch()
        return patch

    def _root(self, report: Report, movability: Movability) -> Path:
        """The folder of the project whose files may change."""
        site = next((call.site for call in report.analysis.calls if call.id == movability.after_id), None)
        script = self._request.script.path
        is_elsewhere = script is None or self._request.script.is_saved_run
        return project_root(Path(site.file) if is_elsewhere and site is not None else script or Path("module.py"))
