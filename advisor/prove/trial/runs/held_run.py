"""The child process's half of a proof session: a run of the script that is held and serves requests there.

In: one `Request` per line from the parent (`messages`).  Out: one `Reply` per line.

Where the script is held: at its first element (`advisor.prove.trial.runs.proof_run`), or after the window of its analysis
(`advisor.prove.trial.runs.analysed_run`).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import msgspec

from advisor.capture.request import Progress
from advisor.capture.script_runner import exception_line
from advisor.capture.session import is_seeded
from advisor.model.calls import Site
from advisor.model.codec import decode_message
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError
from advisor.model.offload_result import ServiceMeasurement
from advisor.model.units import NS_PER_S
from advisor.prove.trial.ab_side import CannotMeasure
from advisor.prove.trial.messages import (
    Begin,
    Calls,
    CompareNumbers,
    Failed,
    Profile,
    Profiled,
    ProofRequest,
    Quit,
    ReadCalls,
    Ready,
    Reply,
    Request,
    Tried,
    TryFix,
    edits_from_json,
)
from advisor.prove.trial.runs.call_matching import CallMatching
from advisor.prove.trial.runs.counted_run import CountedRun
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.prove.trial.service.service_messages import MeasureService, ServiceMeasured, ServiceTried, TryService
from advisor.prove.trial.text_answers import TextAnswers
from advisor.prove.trial.text_messages import TextRequest
from advisor.prove.trial.trial_result import as_sentence
from advisor.prove.trial.trial_runner import TrialRunner
from advisor.prove.trial.written_files import WrittenFiles


class HeldRun(CountedRun):
    """A run of the script that is recorded, and then held."""

    def __init__(self, message: ProofRequest) -> None:
        super().__init__(message.session)
        self._requests = os.fdopen(message.request_fd, "rb")
        self._files = message.files
        self._matching = CallMatching(message.consumer, message.calls)
        self._written = WrittenFiles()
        self._texts: TextAnswers | None = None
        self._consumed_at: Site | None = None
        """Where the script reads the dataset at which it is held; None if that is unknown."""

    def run(self) -> int:
        """Run the script and return its exit code."""
        os.set_inheritable(self._requests.fileno(), False)
        return super().run()

    def _consumption_of(self, call_id: str) -> int:
        """The number of the first consumption of the call's dataset."""
        return self._consumptions

    def _calls_known_at(self, call_id: str) -> int | None:
        """The number of calls that had been made at that consumption; None: all that are known."""
        return None

    def _serve(self, call_id: str, lost: Collection[str]) -> None:
        """Answer requests until there are no more.

        Args:
            call_id: The call whose dataset the training consumes.
            lost: Calls of the first run after which a cache is lost in every epoch, see `TrialRunner`.
        """
        import tensorflow as tf

        self._matching.learn(self._recorder.calls())
        with tf.init_scope(), self._consumption.unwatched():
            lost = self._matching.now_ids(lost)
            runner = TrialRunner(self._recorder, call_id, self._files, self._progress, lost=lost)
            self._send(Ready(self._written.stop()))
            for line in self._requests:
                request: Request = decode_message(line, Request)
                if isinstance(request, Quit | Begin):
                    break
                try:
                    reply = self._answer(runner, request, call_id)
                except BrokenPipeError:
                    raise
                except (AdvisorError, CannotMeasure) as error:
                    reply = Failed(as_sentence(str(error)))
                except Exception as error:
                    reply = Failed(f"It could not be tried ({exception_line(error)}).")
                self._send(reply)

    def _answer(
        self,
        runner: TrialRunner,
        request: TryFix | Profile | CompareNumbers | ReadCalls | MeasureService | TryService | TextRequest,
        call_id: str,
    ) -> Reply:
        match request:
            case TryFix():
                current, candidate = self._edits(request.current), self._edits(request.candidate)
                trial = runner.try_fix(
                    current,
                    candidate,
                    request.claimed,
                    request.predicted_memory_bytes,
                    request.seconds,
                    request.is_first_pass,
                )
                return Tried(trial)
            case Profile():
                edits, step_ns = self._edits(request.edits), request.as_if_step_ns
                consumed_at = self._consumed_at if step_ns else None
                runner.profile(edits, request.out, self._recorded, step_ns, consumed_at, request.is_first_pass)
                return Profiled()
            case CompareNumbers():
                edits, numbered = self._edits(request.edits), self._edits(request.numbered)
                return runner.compare_numbers(edits, numbered, request.step_ns / NS_PER_S, request.seconds)
            case ReadCalls():
                edits, first_ids = self._edits(request.edits), self._matching.first_ids()
                consumption, count = self._consumption_of(call_id), self._calls_known_at(call_id)
                return Calls(recorded_graph(self._recorder, call_id, consumption, first_ids, edits, count))
            case MeasureService():
                return ServiceMeasured(self._measured(request))
            case TryService():
                return self._served(request)
            case _:
                if self._texts is None:
                    self._texts = TextAnswers(self._recorder, call_id, self._files, runner, self._say)
                return self._texts.answer(request)

    def _measured(self, request: MeasureService) -> ServiceMeasurement:
        """Measure the pipeline through workers, with the call ids of this run."""
        from advisor.prove.trial.service.service_trial import ServiceTrial

        request = msgspec.structs.replace(request, after_id=self._matching.now_id(request.after_id))
        edits = self._edits(request.edits)
        return ServiceTrial(self._recorder, request, edits, self._files, self._progress).measure()

    def _served(self, request: TryService) -> ServiceTried:
        """Read the pipeline through a running service, with the call ids of this run."""
        from advisor.prove.trial.service.served_trial import ServedTrial

        request = msgspec.structs.replace(request, after_id=self._matching.now_id(request.after_id))
        edits = self._edits(request.edits)
        return ServedTrial(self._recorder, request, edits, self._files, self._progress).measure()

    def _edits(self, data: list[dict[str, Any]]) -> tuple[Edit, ...]:
        return tuple(self._matching.translate(edit) for edit in edits_from_json(data))

    def _recorded(self) -> dict[str, Any]:
        """Return the fields of `Recording` that describe the run as a whole."""
        argv = self._request.argv
        return {
            "target": " ".join(argv),
            "argv": argv,
            "cwd": self._cwd,
            "is_seeded": is_seeded(self._request.start_seed),
        }

    # -- messages

    def _say(self, phase: str) -> None:
        self._progress(phase, 0, None)

    def _progress(self, phase: str, done: int, total: int | None) -> None:
        self._send(Progress(phase, done, total))
