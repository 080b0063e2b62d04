"""The phases of `advisor prove`: a referee for any change of a script.

In: a `ProveRequest`.  Out: `ChangeProof`. The changed texts are overlays: no file of the user's is written.

    one run of each text -> both held at their first elements, elements compared -> alternating runs -> verdict
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import RESULT, START_SEED, CaptureRequest, Progress, labelled
from advisor.host.calibration.proof import MAX_WINDOW_S, MIN_WINDOW_S, PAIRS_OF_DIFFERENT_DATA, WINDOW_STEPS
from advisor.model.calls import Call
from advisor.model.change_proof import DIFFERENT, ChangeProof
from advisor.model.errors import AdvisorError, ChangeFailed, OutOfTime, ScriptFailed
from advisor.model.finding import Safety
from advisor.model.recording import Recording
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.model.termination import is_interrupt
from advisor.model.text import message_of
from advisor.model.units import NS_PER_S, format_ns
from advisor.prove.budget import Budget, check_budget
from advisor.prove.measure.end_to_end import measure_end_to_end, record_run
from advisor.prove.measure.losses import note_on
from advisor.prove.measure.run_steps import steps_of
from advisor.prove.measure.source_overlays import overlays
from advisor.prove.measure.steady_state import UnknownEpoch
from advisor.prove.measure.whole_epochs import epoch_of, in_whole_epochs
from advisor.prove.phase_times import PhaseTimes
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts.change_speed import (
    ChangeSpeed,
    batch_size,
    consumed_call,
    not_measured,
    speed_of_pipelines,
    speed_of_scripts,
    steps_until_steady,
    with_losses,
)
from advisor.prove.texts.change_verdict import DataFacts, judge_data, verdict_of
from advisor.prove.texts.compare_texts import CONTROL_SEED, TextComparer, TextComparison
from advisor.prove.texts.held_text import HeldText
from advisor.prove.texts.training_loops import later_datasets, loop_difference
from advisor.prove.trial.ab_benchmark import measure
from advisor.prove.trial.ab_side import Plan
from advisor.prove.trial.trial_result import BROKEN
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.prove_request import ProveRequest

if TYPE_CHECKING:
    from advisor.model.settings import Settings

OnProgress = Callable[[Progress], None]
_SILENCE_S = 300.0
"""Time without an answer after which a held script counts as hanging: a change may make it several times as slow."""
_INTERRUPTED = "The speed was not measured, because the command was interrupted."
_TOO_SHORT = "The script ended before its steps could be timed."


@dataclass(frozen=True, slots=True)
class _Findings:
    """What the phases have found."""

    compared: TextComparison
    data: DataFacts
    speed: ChangeSpeed
    unseen: tuple[str, ...] = ()
    """Sentences on data that the training reads later."""


def prove(request: ProveRequest, settings: Settings, on_progress: OnProgress) -> ChangeProof:
    """Judge a change.

    Args:
        request: The script, the change and the limits.
        settings: The settings of the script's folder.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: The unchanged script cannot be run or held, or the budget is too short.
        ChangeFailed: The script fails with the change.
        ScriptFailed: It fails without the change.
    """
    check_budget(request.budget_s)
    return _Proving(request, settings, on_progress).run()


class _Proving:
    """One run of `prove`."""

    def __init__(self, request: ProveRequest, settings: Settings, on_progress: OnProgress) -> None:
        self._request, self._settings, self._on_progress = request, settings, on_progress
        self._budget = Budget(request.budget_s, time.monotonic())
        self._runs = 0
        self._times = PhaseTimes(lambda: self._runs)
        self._phase = self._times.measure
        self._is_seeded = True
        self._is_interrupted = False
        self._allowed = frozenset(Safety(level) for level in settings.allow)
        self._notes = list(request.texts.notes)

    def run(self) -> ChangeProof:
        """Run all phases in order."""
        texts = self._request.texts
        with overlays({}, texts.files) as (same, changed), temporary_folder("prove") as folder:
            unchanged = tuple(pair for pair in same if pair[0] not in texts.only_with_change)
            sides = [
                self._side(folder / name, overlay) for name, overlay in (("before", unchanged), ("after", changed))
            ]
            findings = (self._on_pipeline if self._request.is_pipeline_only else self._on_script)(sides)
        return self._conclude(findings)

    def _side(self, out: Path, overlay: tuple[tuple[Path, Path], ...]) -> CaptureRequest:
        script, settings = self._request.script, self._settings
        return CaptureRequest(
            out, script.path, script.module, script.args, settings.steps, settings.warmup, settings.seconds,
            show_output=script.show_output, overlay=overlay, in_place=script.in_place, deadline=self._budget.end,
        )  # fmt: skip

    def _on_script(self, sides: Sequence[CaptureRequest]) -> _Findings:
        """Run each text once, compare the elements where its training consumes them, then run both alternately."""
        with self._phase("first runs"):
            recordings, run_s = self._first_runs(sides)
        calls = [consumed_call(recording) for recording in recordings]
        made = [recording.calls for recording in recordings]
        with self._phase("elements"), self._held(sides, calls, made) as (before, after, control):
            compared = TextComparer(before, after, control, self._allowed).compare()
        unseen = tuple(dict.fromkeys(filter(None, map(later_datasets, recordings))))
        data = self._judged(compared, unseen, loop_difference(recordings[0], recordings[1]))
        with self._phase("whole script"):
            speed = self._unless_interrupted(
                lambda: self._measure(sides, recordings, compared, run_s, is_different=data.state == DIFFERENT)
            )
        return _Findings(compared, data, speed, unseen)

    def _on_pipeline(self, sides: Sequence[CaptureRequest]) -> _Findings:
        self._notes.append("The training was not run: the speed is that of the input pipeline alone.")
        with ExitStack() as stack:
            with self._phase("elements"):
                before, after, control = stack.enter_context(self._held(sides, (None, None), ((), ())))
                compared = TextComparer(before, after, control, self._allowed).compare()
            data = self._judged(compared)
            with self._phase("pipeline alone"):
                speed = self._unless_interrupted(lambda: self._measure_pipeline(before, after))
        return _Findings(compared, data, speed)

    def _unless_interrupted(self, measure: Callable[[], ChangeSpeed]) -> ChangeSpeed:
        """Measure the speed; Ctrl-C keeps what is known about the data."""
        try:
            return measure()
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            self._is_interrupted = True
            return not_measured(_INTERRUPTED)

    def _judged(self, compared: TextComparison, unseen: tuple[str, ...] = (), loops: str = "") -> DataFacts:
        """What is known about the data, which is reported at once.

        Args:
            compared: The compared datasets.
            unseen: Sentences on data that the training reads later.
            loops: A difference of the loops around the training; empty if there is none.
        """
        data = judge_data(compared.datasets, self._allowed, self._is_seeded, (*compared.unknown, *unseen))
        if loops:
            data = DataFacts(DIFFERENT, loops)
        self._on_progress(Progress(RESULT, text=f"Data: {data.state}. {data.reason}"))
        return data

    # -- the runs

    def _first_runs(self, sides: Sequence[CaptureRequest]) -> tuple[list[Recording], float]:
        """Return the recording of a run of each text, and the mean time of these runs in seconds."""
        began, recordings = time.monotonic(), []
        for side, name in zip(sides, ("without the change", "with the change"), strict=True):
            seconds = side.seconds
            if seconds is None and side.steps is None:
                seconds = MIN_WINDOW_S.value
            try:
                recordings.append(
                    record_run(replace(side, seconds=seconds), labelled(self._on_progress, f"{name}, first run"))
                )
            except OutOfTime:
                raise self._too_slow() from None
            except ScriptFailed as error:
                raise self._failed(error, is_changed=len(recordings) == 1) from None
            self._runs += 1
            self._notes += recordings[-1].disk_notes
        return recordings, (time.monotonic() - began) / 2

    @contextmanager
    def _held(
        self,
        sides: Sequence[CaptureRequest],
        consumed: Sequence[Call | None],
        calls: Sequence[tuple[Call, ...]],
    ) -> Iterator[tuple[HeldText, HeldText, Callable[[], HeldText]]]:
        """Hold both texts at the first element of their trainings; the third value holds the unchanged one once more."""
        with ExitStack() as stack:

            def hold(number: int, name: str, seed: int) -> HeldText:
                session = ProofSession(
                    replace(sides[number], out=sides[number].out / f"held{seed}", start_seed=seed),
                    consumed[number],
                    max(0.0, self._budget.end - time.monotonic()),
                    labelled(self._on_progress, name),
                    calls[number],
                    silence_s=_SILENCE_S,
                )
                try:
                    stack.enter_context(session)
                except OutOfTime:
                    raise self._too_slow() from None
                except ScriptFailed as error:
                    raise self._failed(error, is_changed=number == 1) from None
                except AdvisorError as error:
                    raise AdvisorError(f"With the change: {error}" if number else str(error)) from None
                finally:
                    self._runs += 1
                return HeldText(session)

            before = hold(0, "without the change, comparing", START_SEED)
            after = hold(1, "with the change, comparing", START_SEED)
            self._is_seeded = before.is_seeded
            yield before, after, lambda: hold(0, "without the change, once more", CONTROL_SEED)

    # -- the speed

    def _measure(
        self,
        sides: Sequence[CaptureRequest],
        recordings: Sequence[Recording],
        compared: TextComparison,
        run_s: float,
        is_different: bool,
    ) -> ChangeSpeed:
        """Run both texts alternately.

        Args:
            sides: How to run them.
            recordings: The first run of each.
            compared: The compared datasets.
            run_s: Seconds of a run.
            is_different: Whether the data are different. It does not matter then whether the speed is the same, and a gain or
                loss that few pairs do not show is of no use.
        """
        steps = [steps_of(recording) for recording in recordings]
        first, second = steps
        if first is None or second is None:
            return not_measured(_TOO_SHORT)
        step_s = max(first.step_ns, second.step_ns) / NS_PER_S
        passes = compared.passes
        try:
            filling = steps_until_steady(
                recordings, passes.length if passes is not None and passes.is_complete else None
            )
        except UnknownEpoch:
            why = "The speed was not measured: a cache takes effect in the second epoch, and the length of the first is unknown."
            return not_measured(why)
        need_s = 2 * MIN_PAIRS * (run_s + (filling or 0) * step_s)
        if need_s > self._budget.end - time.monotonic():
            why = (
                f"The whole script was not measured: {2 * MIN_PAIRS} runs would take about {format_ns(need_s * NS_PER_S)}, which "
                "is more than the rest of the --budget."
            )
            return not_measured(why)
        window_s = min(MAX_WINDOW_S.value, max(MIN_WINDOW_S.value, WINDOW_STEPS.value * step_s))
        timed = [
            in_whole_epochs(
                replace(
                    side,
                    seconds=window_s if side.seconds is None and side.steps is None else side.seconds,
                    warmup=side.warmup if filling is None else max(filling, side.warmup or 0),
                    start_seed=START_SEED,  # so that the losses of both sides can be compared
                ),
                epoch_of(recording),
            )
            for side, recording in zip(sides, recordings, strict=True)
        ]
        names = "without the change", "with the change"
        try:
            whole = measure_end_to_end(
                timed[0],
                timed[1],
                self._on_progress,
                self._budget.end,
                names=names,
                may_give_up=is_different,
                most_pairs=PAIRS_OF_DIFFERENT_DATA.value if is_different else MAX_PAIRS,
                is_per_element=first.batches != second.batches and batch_size(first) == batch_size(second),
            )
        except ScriptFailed as error:
            raise self._failed(error, is_changed=False) from None
        self._runs += whole.runs
        if whole.is_out_of_time:
            self._notes.append(whole.note)
        self._notes.append(whole.how)
        if whole.verdict == BROKEN:
            raise ChangeFailed(whole.note)
        training = compared.datasets[0]
        if training.safety is Safety.EXACT and not training.is_undecided:
            return with_losses(speed_of_scripts(whole), whole)
        return speed_of_scripts(whole)

    def _measure_pipeline(self, before: HeldText, after: HeldText) -> ChangeSpeed:
        try:
            peaks = before.prepare(), after.prepare()
            plan = replace(Plan(), budget_s=max(1.0, min(Plan().budget_s, self._budget.end - time.monotonic())))
            result = measure(before, after, plan, lambda done, of: self._on_progress(Progress("measuring", done, of)))
        except AdvisorError as error:
            return not_measured(f"The pipeline could not be measured: {message_of(error)}")
        return speed_of_pipelines(result, peaks)

    # -- the result

    def _conclude(self, findings: _Findings) -> ChangeProof:
        compared, data, speed = findings.compared, findings.data, findings.speed
        verdict, sentence = verdict_of(data, speed.facts)
        request = self._request
        return ChangeProof(
            target=request.target,
            change=request.texts.label,
            files=request.files,
            verdict=verdict,
            sentence=sentence,
            data=data.state,
            datasets=compared.datasets,
            speed=speed.facts.state,
            speedup=speed.facts.speedup,
            is_pipeline_only=request.is_pipeline_only,
            turns=speed.turns,
            before=speed.before,
            after=speed.after,
            losses=speed.losses,
            loss=speed.loss,
            test=speed.test,
            runs=self._runs,
            seconds=self._budget.spent_s,
            phases=self._times.phases,
            is_interrupted=self._is_interrupted,
            notes=tuple(
                dict.fromkeys(filter(None, (*self._notes, *compared.unknown, *findings.unseen, note_on(speed.loss))))
            ),
        )

    def _too_slow(self) -> AdvisorError:
        budget = format_ns(self._request.budget_s * NS_PER_S)
        return AdvisorError(
            f"The script was stopped: it was not measured before --budget {budget} was used up. Allow more time."
        )

    def _failed(self, error: ScriptFailed, is_changed: bool) -> ScriptFailed:
        return ChangeFailed(f"With the change: {error}") if is_changed else error
