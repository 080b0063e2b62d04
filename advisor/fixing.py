"""The order of `advisor fix`: analyse, try the fixes on the dataset, prove all of them on the whole script.

In: a `FixRequest`.  Out: `FixResult`: the report with its fixes, comparison and proof, and the patch that would be written.
Nothing is written here.

    analyze -> plan -> proof session (greedy loop on the pipeline alone) -> patch -> end to end, by turns -> report

The pipeline alone judges each fix: hundreds of elements in seconds, each compared. The whole script has the last word on all of
them together: what its training does not gain from is not applied.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor import phases
from advisor.capture.request import CaptureRequest, Progress
from advisor.errors import AdvisorError, ScriptFailed
from advisor.fixes.patch import NotPlain, Patch
from advisor.fixes.project import project_root
from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.proof import Proof
from advisor.predict.structure import consumed_call
from advisor.verify.end_to_end import TURNS, EndToEnd, main_series, measure_end_to_end
from advisor.verify.loop import Attempt, LoopResult, edits_of, prove_fixes
from advisor.verify.outcomes import comparison_of, outcome_of, sentence_of, sides_of
from advisor.verify.overlays import overlays
from advisor.verify.proposals import Proposals
from advisor.verify.session import ProofSession
from advisor.verify.steady import UnknownEpoch, steps_until_steady
from advisor.verify.trial import FASTER, REFUSED, Trial

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.settings import Settings

MIN_GAIN = 0.05
"""What the rules call worth having (`Rule.min_speedup`)."""
MIN_WINDOW_S, MAX_WINDOW_S, WINDOW_STEPS = 3.0, 20.0, 20
"""A run's window: so many steps, but no shorter or longer than this."""
END_TO_END_SHARE = 0.7
"""The whole script may use at most this share of the budget that is left: without a trial there is nothing to prove."""
SHUTDOWN_S = 2.0
"""How long a stopped script takes to end, for the estimate: TensorFlow's threads and Python's exit handlers."""

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class FixRequest:
    """What is to be fixed, and within which limits."""

    script: phases.Request
    budget_s: float = 600.0
    """Wall time of the whole command; a run that has begun is ended."""
    only: tuple[str, ...] = ()
    """Ids of the rules whose fixes are tried; empty: all."""
    is_pipeline_only: bool = False
    """Prove on the pipeline alone; the training never runs to prove anything."""


@dataclass(frozen=True, slots=True)
class FixResult:
    """The report, and the change of the user's files that it proves."""

    report: Report
    patch: Patch = field(default_factory=Patch)
    """Of the fixes that are applied; empty if none is."""


def announcement(wish: FixRequest) -> str:
    """How often the script will be run, for people, before the first run."""
    first = "once to see its input pipeline at work, once up to its first element to try changes of it"
    if wish.is_pipeline_only:
        return f"The script will be run up to 2 times: {first}."
    return (
        f"The script will be run up to {2 + 2 * TURNS} times: {first}, and {2 * TURNS} times by turns, as it is and with the "
        f"changes. Each run is stopped after its window. A change that only the whole script can prove takes {2 * TURNS} more; "
        "if nothing is found to fix, it is run once."
    )


def fix(wish: FixRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress) -> FixResult:
    """Find, try and prove fixes.

    Raises AdvisorError and ScriptFailed as `phases.analyze` does. A proof that cannot be made is no error: the report says so.
    """
    return _Fixing(wish, rules, settings, on_progress).run()


class _Fixing:
    """One run of `fix`; each step leaves what the next ones need."""

    def __init__(
        self, wish: FixRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
    ) -> None:
        self._wish, self._rules, self._settings, self._on_progress = wish, rules, settings, on_progress
        self._began = time.monotonic()
        self._deadline = self._began + wish.budget_s
        self._startup_s = 0.0
        """From starting the script to its first step."""
        self._runs = 0
        self._notes: list[str] = []
        self._written: tuple[str, ...] = ()

    def run(self) -> FixResult:
        self._report = self._analyse()
        self._calls = {call.id: call for call in self._report.analysis.calls}
        self._proposals = self._proposals_of(self._report)
        candidates = self._proposals.propose(self._report, ())
        if not candidates:
            return FixResult(self._with_proof(LoopResult(), None, Patch()))
        reserved_s = self._end_to_end_s(candidates)
        loop = self._try_on_pipeline(self._deadline - reserved_s)
        loop, whole = self._try_whole_script(loop)
        return self._conclude(loop, whole)

    # -- the steps

    def _analyse(self) -> Report:
        began_ns = time.time_ns()
        report = phases.analyze(self._wish.script, self._rules, self._settings, self._on_progress)
        self._runs += 1
        series = main_series(report.analysis.recording) if report.analysis.recording else None
        if series is not None and series.start_ns:
            self._startup_s = max(0.0, (series.start_ns[0] - began_ns) / 1e9)
        return report

    def _proposals_of(self, report: Report) -> Proposals:
        recording = report.analysis.recording
        script = (
            Path(recording.cwd, recording.argv[0]) if recording and self._wish.script.path else Path("x").absolute()
        )
        return Proposals(
            self._calls,
            project_root(script),
            frozenset(Safety(level) for level in self._settings.allow),
            is_seeded=recording is None or recording.is_seeded is not False,
            only=frozenset(self._wish.only),
        )

    def _try_on_pipeline(self, deadline: float) -> LoopResult:
        """The greedy loop on the dataset that the training consumes; without a session every fix is left to the whole script."""
        analysis = self._report.analysis
        main = analysis.main
        consumed = consumed_call(analysis, main) if main is not None else None
        if consumed is None:
            return self._all_refused("The call that makes the consumed dataset is not known.")
        with tempfile.TemporaryDirectory(prefix="advisor-proof-") as folder:
            request = self._capture_request(Path(folder) / "run")
            budget_s = deadline - time.monotonic()
            session = ProofSession(request, consumed, budget_s, self._on_progress, analysis.calls)
            try:
                with session:
                    return prove_fixes(
                        session,
                        self._report,
                        self._calls,
                        self._proposals.propose,
                        lambda path: phases.analyze_run(path, self._rules, self._settings),
                        deadline,
                        self._on_progress,
                        self._is_enough,
                    )
            except ScriptFailed:
                raise
            except AdvisorError as error:
                return self._all_refused(str(error))
            finally:
                self._runs += session.runs
                self._written = session.written_files

    def _all_refused(self, why: str) -> LoopResult:
        self._notes.append(why)
        refused = Trial(REFUSED, note=why, is_replayable=False)
        findings = self._proposals.propose(self._report, ())
        return LoopResult(tuple(Attempt(finding, refused, is_kept=False) for finding in findings))

    def _is_enough(self, trial: Trial) -> bool:
        """Whether the pipeline alone needs so little of the training's own time for an element that more speed gains nothing,
        even if both shared every core."""
        verdict, main = self._report.analysis.verdict, self._report.analysis.main
        if verdict.steps is None or verdict.input_wait_share is None or main is None or not trial.rate_after:
            return False
        own_s = verdict.steps.mean_ns * (1 - verdict.input_wait_share) / 1e9
        return own_s > 0 and 1 / trial.rate_after < MIN_GAIN * own_s

    # -- the whole script

    def _try_whole_script(self, loop: LoopResult) -> tuple[LoopResult, EndToEnd | None]:
        """Fixes that the dataset could not be rebuilt with, one after the other; then all that is kept against the script."""
        if self._wish.is_pipeline_only:
            return loop, None
        whole: EndToEnd | None = None
        for number, attempt in enumerate(loop.attempts):
            if attempt.trial.verdict != REFUSED or attempt.trial.is_replayable:
                continue
            alone = self._measure(loop.kept, (*loop.kept, attempt.finding), attempt.finding.title)
            if alone is None:
                continue
            tried = _attempt_of(attempt, alone)
            attempts = (*loop.attempts[:number], tried, *loop.attempts[number + 1 :])
            whole = alone if not loop.kept else None
            loop = replace(loop, attempts=attempts, kept=(*loop.kept, tried.finding) if tried.is_kept else loop.kept)
        if loop.kept and (whole is None or whole.verdict != FASTER or len(loop.kept) > 1):
            whole = self._measure((), loop.kept, "all changes")
        return loop, whole if loop.kept else None

    def _measure(self, base: Sequence[Finding], candidate: Sequence[Finding], title: str) -> EndToEnd | None:
        """The script with `base` against the script with `candidate`; None (with a note) if that cannot be done."""
        patches = [self._proposals.patch(findings) if findings else Patch() for findings in (base, candidate)]
        if isinstance(patches[0], NotPlain) or isinstance(patches[1], NotPlain):
            return None
        try:
            warmup = self._warmup_of(candidate)
        except UnknownEpoch:
            self._notes.append(
                "The whole script was not measured: a cache serves from the second epoch on, and how long the first one is "
                "cannot be told."
            )
            return None
        need_s = 2 * TURNS * self._run_s(warmup)
        left_s = self._deadline - time.monotonic()
        if need_s > left_s:
            self._notes.append(
                f"The whole script was not measured: {2 * TURNS} runs take about {_minutes(need_s)} min, "
                f"{_minutes(max(0.0, left_s))} min of the budget were left; a larger --budget allows it."
            )
            return None
        with overlays(patches[0].files, patches[1].files) as (before, after):
            request = self._capture_request(Path("unused"), warmup)
            whole = measure_end_to_end(
                replace(request, overlay=before),
                replace(request, overlay=after),
                TURNS,
                lambda progress: self._on_progress(replace(progress, text=f"{title}: {progress.text}")),
                self._deadline + self._run_s(warmup),
            )
        self._runs += whole.runs
        if whole.speedup is None and whole.note:
            self._notes.append(whole.note)
        return whole

    def _warmup_of(self, findings: Sequence[Finding]) -> int | None:
        steady = steps_until_steady(self._report.analysis, edits_of(findings, self._calls))
        return self._settings.warmup if steady is None else max(steady, self._settings.warmup or 0)

    def _end_to_end_s(self, findings: Sequence[Finding]) -> float:
        """What the runs of the whole script will probably take, s; 0 if they will not be made."""
        if self._wish.is_pipeline_only:
            return 0.0
        warmups = []
        for finding in findings:
            with suppress(UnknownEpoch, ValueError):
                warmups.append(self._warmup_of([finding]) or 0)
        need_s = 2 * TURNS * self._run_s(max(warmups, default=0))
        left_s = self._deadline - time.monotonic()
        return need_s if need_s <= END_TO_END_SHARE * left_s else 0.0

    def _run_s(self, warmup: int | None) -> float:
        """What one run without the profiler probably takes, s."""
        return self._startup_s + max(3.0, (warmup or 0) * self._step_s()) + self._window_s() + SHUTDOWN_S

    def _step_s(self) -> float:
        steps = self._report.analysis.verdict.steps
        return steps.mean_ns / 1e9 if steps is not None else 0.1

    def _window_s(self) -> float:
        if self._settings.seconds is not None:
            return self._settings.seconds
        return min(MAX_WINDOW_S, max(MIN_WINDOW_S, WINDOW_STEPS * self._step_s()))

    def _capture_request(self, out: Path, warmup: int | None = None) -> CaptureRequest:
        script = self._wish.script
        return CaptureRequest(
            out=out,
            script=script.path,
            module=script.module,
            args=script.args,
            steps=self._settings.steps,
            warmup=warmup,
            seconds=None if self._settings.steps is not None else self._window_s(),
            show_output=script.show_output,
        )

    # -- the report

    def _conclude(self, loop: LoopResult, whole: EndToEnd | None) -> FixResult:
        is_applied = bool(loop.kept) and (whole is None or whole.speedup is None or whole.verdict == FASTER)
        is_applied = is_applied and not (whole is not None and whole.verdict == "broken")
        patch = self._proposals.patch(loop.kept) if loop.kept else Patch()
        if isinstance(patch, NotPlain):
            self._notes.append(patch.reason)
            patch, is_applied = Patch(), False
        report = self._with_proof(loop, whole, patch, is_applied)
        return FixResult(report, patch if is_applied else Patch())

    def _with_proof(self, loop: LoopResult, whole: EndToEnd | None, patch: Patch, is_applied: bool = False) -> Report:
        before, after = sides_of(loop.total, whole)
        before = replace(before, wait_share=_known(before.wait_share, self._report.analysis.verdict.input_wait_share))
        verdict, sentence = sentence_of(loop, whole)
        if not loop.attempts:
            sentence = _why_nothing(self._report, self._proposals.left_out)
        refused = [
            f"{attempt.finding.title}: {attempt.trial.note}"
            for attempt in loop.attempts
            if attempt.trial.verdict == REFUSED
        ]
        proof = Proof(
            verdict=verdict,
            sentence=sentence,
            before=before,
            after=after,
            runs=self._runs,
            pipeline_turns=loop.total.turns if loop.total else 0,
            end_to_end_turns=len(whole.after) if whole is not None and whole.speedup is not None else 0,
            diff=patch.diff,
            left_out=tuple(dict.fromkeys((*self._proposals.left_out, *refused))),
            written_files=self._written,
            notes=tuple(dict.fromkeys((*self._notes, *([loop.stopped_because] if loop.stopped_because else ())))),
            seconds=time.monotonic() - self._began,
        )
        outcomes = (outcome_of(each, is_applied and each.finding in loop.kept) for each in loop.attempts)
        return replace(
            self._report,
            fixes=tuple(outcome for outcome in outcomes if outcome is not None),
            comparison=comparison_of(loop.total, whole, before, after),
            proof=proof,
        )


def _attempt_of(attempt: Attempt, alone: EndToEnd) -> Attempt:
    """A fix that was tried by running the whole script."""
    trial = Trial(
        alone.verdict,
        alone.speedup,
        turns=min(len(alone.before), len(alone.after)),
        note=alone.note or "Proved by running the whole script; the elements were not compared.",
        is_replayable=False,
    )
    return Attempt(attempt.finding, trial, alone.verdict == FASTER, is_end_to_end=True)


def _why_nothing(report: Report, left_out: Sequence[str]) -> str:
    if report.findings and left_out:
        return "Nothing to fix by itself: what was found is not tried, for the reasons below."
    if report.findings:
        return "Nothing to fix by itself: what was found is advice, which `advisor analyze` prints."
    return "Nothing to fix."


def _known(value: float | None, otherwise: float | None) -> float | None:
    return otherwise if value is None else value


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
