"""A proof session: holds the user's script, at its first element or after its window, and tries edits on its dataset.

In: how to run the script, and the call whose dataset its training consumes.  Out: a `Trial` per fix; run folders of edited
pipelines for further analysis. This half never imports TensorFlow; the child's half is `advisor.prove.trial.runs.proof_run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from advisor.capture.request import CaptureRequest, Progress
from advisor.capture.script_process import check_target, target_name
from advisor.host.calibration.proof import MAX_HANGS, SILENCE_S, TRIAL_S
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError, OutOfTime
from advisor.model.finding import Safety
from advisor.prove.session.held_process import CannotDo, Hangs, HeldProcess, Hold
from advisor.prove.trial.messages import (
    Calls,
    CompareNumbers,
    NumbersCompared,
    Profile,
    Profiled,
    ReadCalls,
    Request,
    Tried,
    TryFix,
    edits_to_json,
)
from advisor.prove.trial.service.service_messages import ServiceRequest
from advisor.prove.trial.text_messages import TextRequest
from advisor.prove.trial.trial_result import REFUSED, Trial

R = TypeVar("R")


class ProofSession:
    """Context manager: entering runs the script up to its first element, unless it is held already; leaving stops it.

    Only files in `request.out` remain afterwards.

    Raises:
        AdvisorError: The script does not reach its first element, or its process ends during the session.
        ScriptFailed: The script fails before its first element.
    """

    def __init__(
        self,
        request: CaptureRequest,
        consumer_call: Call | None,
        budget_s: float,
        on_progress: Callable[[Progress], None],
        calls: tuple[Call, ...] = (),
        silence_s: float = SILENCE_S.value,
        hold_at: int | None = None,
        lost: Collection[str] = (),
        as_if_step_ns: int = 0,
        analysed: HeldProcess | None = None,
    ) -> None:
        """Create a session.

        Args:
            request: How to run the script; the run folders of `profile` and the script's output go to `request.out`.
            consumer_call: The call whose dataset the training consumes. If None, the first dataset consumed by the script's
                own code (or Keras' `fit`) counts, except for looks at one or two elements.
            budget_s: Seconds for the whole session; whatever still runs afterwards is stopped with OutOfTime.
            on_progress: Called with progress messages.
            calls: Calls of the first run, used to match calls that are numbered differently in this run.
            silence_s: Seconds without a message after which a pipeline counts as hanging.
            hold_at: Hold the script at the consumption of this number (`CallGraph.consumption`), whatever the dataset.
            lost: Ids of the calls after which a cache is lost in every epoch of the training, because the script makes the
                dataset again.
            as_if_step_ns: Length of the wait after each element that `profile` makes, in place of a training step.
            analysed: The process of the first run, held after its window: it is used instead of another run, if it can be.
        """
        self._request, self._budget_s, self._on_progress = request, budget_s, on_progress
        self._hold = Hold(consumer_call, calls, hold_at, tuple(lost))
        self._silence_s, self._as_if_step_ns = silence_s, as_if_step_ns
        self._out = request.out
        self.written_files: tuple[str, ...] = ()
        """Absolute paths of files that the script's Python code opened for writing before it was held. Writes by
        TensorFlow's native code (checkpoints, summaries) are not detected.
        """
        self.runs = 0
        """Number of runs of the script: one (none if the process of the first run is used), and one more after each pipeline
        that hung."""
        self.notes: tuple[str, ...] = ()
        """Sentences on writes that could not be redirected; known at the end of the session."""
        self.trials_end: float | None = None
        """Time of the monotonic clock by which a trial is to end, if that is before the end of the session: less time for filling
        its caches and for its turns, but at least the turns that a result needs."""
        self._deadline = 0.0
        self._process = analysed
        self._hangs = 0
        self._profiles = 0

    def __enter__(self) -> ProofSession:
        try:
            return self._entered()
        except BaseException as reason:
            self._end(reason)
            raise

    def _entered(self) -> ProofSession:
        check_target(self._request)
        self._deadline = time.monotonic() + self._budget_s
        try:
            self._request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdvisorError(f"Cannot write to {self._request.out}: {error.strerror}.") from None
        if self._process is None or not self._uses_analysed(self._process):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    # -- requests

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
        is_first_pass: bool = False,
    ) -> Trial:
        """Measure `current` against `current + candidate`, and compare the elements of the latter with the original ones.

        Args:
            current: Edits already kept.
            candidate: Edits to try, applied after the current ones.
            claimed: The claimed effect of all these edits on the data.
            predicted_memory_bytes: Additional memory predicted for the candidate.
            is_first_pass: Time both without their caches in memory, as in the pass that fills these.
        """
        end = self._deadline if self.trials_end is None else min(self._deadline, self.trials_end)
        seconds = max(1.0, min(TRIAL_S.value, end - time.monotonic()))
        current_edits, candidate_edits = edits_to_json(current), edits_to_json(candidate)
        request = TryFix(current_edits, candidate_edits, claimed, predicted_memory_bytes, seconds, is_first_pass)
        try:
            return self._ask(request, Tried).trial
        except Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            return Trial(
                REFUSED, note=f"The edited pipeline was stopped: it made no progress for {self._silence_s:.0f} s."
            )
        except CannotDo as error:
            return Trial(REFUSED, note=str(error), is_replayable=False)

    def profile(self, edits: tuple[Edit, ...], is_first_pass: bool = False) -> Path:
        """Profile the edited pipeline alone.

        Args:
            edits: The edits.
            is_first_pass: Without its caches in memory, as in the pass that fills them.

        Returns:
            A run folder with the profile and a recording that uses the call ids of the first run.

        Raises:
            AdvisorError: The pipeline cannot be rebuilt or measured; the session continues.
        """
        self._profiles += 1
        out = self._out / f"edited-{self._profiles}"
        try:
            request = Profile(edits_to_json(edits), out.resolve(), self._as_if_step_ns, is_first_pass)
            self._ask(request, Profiled)
        except Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            raise AdvisorError(f"The edited pipeline made no progress for {self._silence_s:.0f} s.") from None
        except CannotDo as error:
            raise AdvisorError(str(error)) from None
        return out

    def compare_numbers(
        self, edits: tuple[Edit, ...], numbered: tuple[Edit, ...], step_ns: int, seconds: float
    ) -> NumbersCompared:
        """Compare the pipeline with AUTOTUNE and the one with fixed numbers, both feeding imagined steps.

        Args:
            edits: All edits, with AUTOTUNE.
            numbered: The same edits with numbers.
            step_ns: Length of an imagined step in nanoseconds.
            seconds: Seconds for the whole comparison.

        Raises:
            AdvisorError: They cannot be compared; the session continues, unless the pipeline hangs.
        """
        request = CompareNumbers(edits_to_json(edits), edits_to_json(numbered), step_ns, seconds)
        return self.ask(request, NumbersCompared)

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original pipeline against all kept edits."""
        return self.try_fix((), edits, claimed)

    def call_graph(self, edits: tuple[Edit, ...] = ()) -> CallGraph:
        """Return the calls that the script has made so far.

        Args:
            edits: The kept edits, for the graphs of the functions that they wrap.

        Raises:
            AdvisorError: They cannot be read.
        """
        try:
            return self._ask(ReadCalls(edits_to_json(edits)), Calls).graph
        except Hangs:
            self._end(is_hanging=True)
            raise AdvisorError(f"The script's calls could not be read within {self._silence_s:.0f} s.") from None
        except CannotDo as error:
            raise AdvisorError(str(error)) from None

    @property
    def files(self) -> Path:
        """The folder that both halves read and write, while the child lives."""
        if self._process is None:
            raise AdvisorError(f"{target_name(self._request)} is no longer held.")
        return self._process.files

    def ask(self, request: TextRequest | ServiceRequest | CompareNumbers, wanted: type[R]) -> R:
        """Return the reply to a request about the held text, or about its pipeline on workers.

        Raises:
            AdvisorError: It cannot be fulfilled; the session continues, unless the pipeline hangs.
        """
        if self._process is None:
            raise AdvisorError(f"{target_name(self._request)} is no longer held.")
        try:
            return self._ask(request, wanted)
        except Hangs:
            self._end(is_hanging=True)
            raise AdvisorError(f"The pipeline made no progress for {self._silence_s:.0f} s.") from None
        except CannotDo as error:
            raise AdvisorError(str(error)) from None

    # -- the process

    def _uses_analysed(self, process: HeldProcess) -> bool:
        """Make trials in the process of the first run; if it cannot be used, it is ended, and another run may be held."""
        call, is_hanging = self._hold.consumer_call, False
        if call is not None:
            try:
                ready = process.begin(self._deadline, self._on_progress, call.id, self._hold.lost)
            except OutOfTime:
                raise
            except Hangs:
                is_hanging = True
            except (AdvisorError, CannotDo):
                pass
            else:
                self.written_files = ready.written
                self._out = process.files / "run"  # its private view of the disk hides other folders
                return True
        self._end(is_hanging=is_hanging)
        return False

    def _start(self) -> None:
        """Run the script up to the point where it is held."""
        self.runs += 1
        self._out = self._request.out
        self._process = HeldProcess(self._request, self._hold, self._deadline, self._on_progress)
        self.written_files = self._process.start().written

    def _ask(self, request: Request, wanted: type[R]) -> R:
        if time.monotonic() >= self._deadline:
            raise OutOfTime(f"There is no time left for trials on {target_name(self._request)}.")
        if self._process is None:
            if self._hangs > MAX_HANGS.value:
                raise AdvisorError(f"{self._hangs} edited pipelines hung; nothing more is tried.")
            self._start()
        assert self._process is not None
        try:
            return self._process.ask(request, wanted, self._silence_s)
        except OutOfTime:
            self._end(is_hanging=True)
            raise

    def _end(self, error: BaseException | None = None, is_hanging: bool = False) -> None:
        """End the process, see `HeldProcess.end`."""
        process, self._process = self._process, None
        if process is not None:
            process.end(error, is_hanging)
            self.notes = process.notes
