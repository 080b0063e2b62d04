"""Runs trials in the script's own process: rebuilds the dataset that it is about to consume with edits, compares and measures it.

In: the recorded calls and the edits to try.  Out: `Trial`s; run folders of edited pipelines.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.host.calibration.proof import (
    COMPARED_ELEMENTS,
    COMPARED_S,
    FILL_S,
    LEAST_FILL_S,
    LONGEST_TURNS_S,
    SIBLING_ELEMENTS,
    SIBLING_S,
)
from advisor.host.machine import memory_bytes
from advisor.model.calls import Site
from advisor.model.edits import BuildOnce, Edit, MoveAfter, Remove, adds_cache
from advisor.model.finding import Safety
from advisor.model.units import format_bytes, format_share
from advisor.predict.caching import is_in_memory
from advisor.prove.trial.ab_benchmark import Measurement, measure
from advisor.prove.trial.ab_side import CannotMeasure, Plan, Side
from advisor.prove.trial.cache_room import bytes_held, caches_filled, too_big
from advisor.prove.trial.elements.distribution_tests import SMALLEST_SAMPLE
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.elements.heartbeat import Heartbeat
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.streams import OriginalFails
from advisor.prove.trial.messages import NumbersCompared
from advisor.prove.trial.number_trial import compare_numbers
from advisor.prove.trial.peak_memory import PeakMemory
from advisor.prove.trial.sibling_datasets import sibling_datasets
from advisor.prove.trial.trial_result import BROKEN, REFUSED, Trial, as_sentence
from advisor.replay.edited import CannotSplit, CannotVectorize
from advisor.replay.replay import CannotReplay, Replay
from advisor.rewrite.combined_edits import comparison_key
from advisor.rewrite.shared_calls import spread

Report = Callable[[str, int, int | None], None]
"""Receives the progress: (phase, done, total or None)."""
_MADE_ONCE = "The dataset is made once here anyway, so only the whole script shows what the change gains."


class TrialRunner:
    """Runs trials and profiles of one held dataset."""

    def __init__(
        self,
        recorder: Recorder,
        call_id: str,
        files: Path,
        report: Report,
        is_text_edited: bool = True,
        lost: Collection[str] = (),
    ) -> None:
        """Create a runner.

        Args:
            recorder: A closed recorder with a replay log.
            call_id: The call that made the dataset.
            files: An empty temporary folder for file caches.
            report: Receives the progress.
            is_text_edited: Whether the edits are meant for the source text, so that they affect all calls and all datasets that
                the text creates; False if only the one dataset object is edited.
            lost: Ids of the calls after which a cache in memory is lost in every epoch, because the script makes the dataset
                again. Such caches are compared, but left out of what is timed, as the training never reads them.
        """
        self._recorder, self._call_id, self._files, self._report = recorder, call_id, files, report
        self._is_text_edited, self._lost = is_text_edited, frozenset(lost)
        bounds = Bounds(COMPARED_ELEMENTS.value, COMPARED_S.value, least=SMALLEST_SAMPLE)
        self._on_element = Heartbeat(lambda: report("comparing", 0, None))
        self._equivalence = Equivalence(recorder, call_id, bounds, files, self._on_element)
        self._compared: dict[tuple[frozenset[Edit] | tuple[Edit, ...], Safety], tuple[Trial, bool]] = {}
        """Results of `_compare`: all kept edits together are those of the last trial that was kept."""
        self._number = 0
        self._start_bytes = 0
        """Resident memory before any pipeline was timed; 0 until then."""

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None,
        budget_s: float,
        is_first_pass: bool = False,
    ) -> Trial:
        """See `ProofSession.try_fix`.

        Args:
            current: Edits already kept.
            candidate: Edits to try, applied after the current ones.
            claimed: The claimed effect of all these edits on the data.
            predicted_memory_bytes: Additional memory predicted for the candidate; None if unknown.
            budget_s: Seconds for the whole trial.
            is_first_pass: Time both pipelines without their caches in memory, as in the pass that fills these.
        """
        deadline, known_s = time.monotonic() + budget_s, self._equivalence.original_s
        edits, current = self._spread((*current, *candidate)), self._spread(current)
        try:
            trial = self._try(edits, current, claimed, predicted_memory_bytes, deadline, is_first_pass)
            return replace(trial, original_s=self._equivalence.original_s - known_s)
        except CannotReplay as error:
            return Trial(REFUSED, note=str(error), is_replayable=isinstance(error, CannotVectorize | CannotSplit))
        except OriginalFails as error:
            return Trial(REFUSED, note=f"The script's own pipeline fails: {error}.")

    def _try(
        self,
        edits: tuple[Edit, ...],
        current: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None,
        deadline: float,
        is_first_pass: bool,
    ) -> Trial:
        no_room = too_big(predicted_memory_bytes)
        if no_room:
            return Trial(REFUSED, note=no_room)
        compared = (comparison_key(edits), claimed)
        if compared not in self._compared:
            self._compared[compared] = self._compare(edits, claimed)
        trial, holds = self._compared[compared]
        if not holds:
            return trial
        added = [edit for edit in edits if edit not in current]
        if added and all(isinstance(edit, BuildOnce) for edit in added):
            return replace(trial, note=f"{trial.note} {_MADE_ONCE}".strip(), is_replayable=False)
        before, after = (self._rebuild(self._as_trained(each), is_first_pass) for each in (current, edits))
        no_room = self._cache_too_big(after)
        if no_room:
            return replace(trial, note=no_room)
        return self._measured(trial, before, after, deadline, predicted_memory_bytes or 0)

    def _compare(self, edits: tuple[Edit, ...], claimed: Safety) -> tuple[Trial, bool]:
        """Compare the elements: the trial so far, and whether they agree with the claim."""
        self._report("comparing", 0, None)
        judgement = self._equivalence.judge(edits)
        trial = Trial(
            REFUSED,
            safety_seen=judgement.seen,
            elements_compared=judgement.elements,
            note=judgement.text,
            is_undecided=bool(judgement.undecided),
        )
        if judgement.seen is None:
            return trial, False
        if judgement.seen is Safety.NUMERICS and not judgement.holds(claimed):
            return replace(trial, note=f"{judgement.text} --allow numerics tries it."), False
        if not judgement.holds(claimed):
            return replace(trial, verdict=BROKEN, is_undecided=False, note=_broken(judgement, claimed)), False
        trial = self._with_siblings(trial, edits, claimed)
        return trial, trial.verdict != BROKEN

    def _spread(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        return spread(edits, {call.id: call for call in self._recorder.calls()}) if self._is_text_edited else edits

    def _with_siblings(self, trial: Trial, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Return the trial; it is `broken` if the claim does not hold for another dataset that the same text creates."""
        if not self._is_text_edited:
            return trial
        unseen = []
        for other in sibling_datasets(self._recorder, self._call_id, edits):
            self._report("comparing", 0, None)
            bounds = Bounds(SIBLING_ELEMENTS.value, SIBLING_S.value, least=SMALLEST_SAMPLE)
            try:
                equivalence = Equivalence(self._recorder, other.call_id, bounds, self._files, self._on_element)
                judgement = equivalence.judge(other.edits)
            except (CannotReplay, OriginalFails) as error:
                unseen.append(f"{other.name} was not compared: {str(error).rstrip('.')}")
                trial = replace(trial, is_undecided=True)
                continue
            if judgement.seen is not None and not judgement.holds(claimed):
                note = f"The same text creates {other.name}. For that dataset: {_broken(judgement, claimed)}"
                return replace(trial, verdict=BROKEN, safety_seen=judgement.seen, is_undecided=False, note=note)
            if judgement.seen is None or judgement.undecided:
                unseen.append(f"The same text creates {other.name}. For that dataset: {judgement.text}")
                trial = replace(trial, is_undecided=True)
        return replace(trial, note=" ".join(as_sentence(note) for note in (trial.note, *unseen) if note))

    def _measured(self, trial: Trial, before: Replay, after: Replay, deadline: float, predicted_bytes: int) -> Trial:
        plan = Plan(fill_s=max(LEAST_FILL_S.value, min(FILL_S.value, deadline - time.monotonic())))
        sides: list[Side] = []
        peaks: list[int | None] = []
        try:
            for name, work in (("without the fix", before), ("with the fix", after)):
                _check_room(peaks, self._start_bytes, predicted_bytes)
                with PeakMemory() as memory:
                    side = self._side(name, work, plan, is_edited=work is after)
                    sides.append(side)
                    side.prepare(lambda: self._report("warming up", len(sides), 2))
                self._start_bytes = self._start_bytes or memory.start_bytes
                # As if this side were the only one that has ever run here.
                peaks.append(None if memory.grown_bytes is None else self._start_bytes + memory.grown_bytes)
            # The turns get only what comparing and filling caches have left of this trial's budget.
            left_s = deadline - time.monotonic()
            plan = replace(plan, budget_s=left_s, longest_s=max(LONGEST_TURNS_S.value, left_s))
            result = measure(sides[0], sides[1], plan, lambda done, of: self._report("measuring", done, of))
        except CannotMeasure as error:
            return _with_memory(replace(trial, note=as_sentence(str(error))), peaks)
        finally:
            for side in sides:
                side.close()
        return _with_memory(_with_measurement(trial, result), peaks)

    def compare_numbers(
        self, edits: tuple[Edit, ...], numbered: tuple[Edit, ...], step_s: float, seconds: float
    ) -> NumbersCompared:
        """See `advisor.prove.trial.number_trial.compare_numbers`.

        Args:
            edits: All edits, with AUTOTUNE.
            numbered: The same edits with numbers.
            step_s: Seconds of the wait after each element, in place of a training step.
            seconds: Seconds for all of it.

        Raises:
            CannotMeasure: They cannot be compared, or the script has caches, which would be filled twice.
            CannotReplay: The dataset cannot be rebuilt.
        """

        def dataset_of(its_edits: tuple[Edit, ...]) -> Any:  # noqa: ANN401
            work = self._rebuild(self._as_trained(self._spread(its_edits)))
            if caches_filled(work):
                raise CannotMeasure("the pipeline has a cache")
            return work.dataset(self._call_id)

        return compare_numbers(dataset_of, edits, numbered, step_s, seconds, self._report, self._start_bytes)

    def _side(self, name: str, work: Replay, plan: Plan, is_edited: bool) -> Side:
        """Create a side. The script's own caches need not be filled, and are not if they would not fit."""
        caches = caches_filled(work)
        fits = is_edited or not too_big(bytes_held(caches))
        return Side(name, work.dataset(self._call_id), caches, plan, is_fill_needed=is_edited, fits=fits)

    def side(self, name: str, plan: Plan) -> Side:
        """Return the unedited dataset, rebuilt for a benchmark.

        Raises:
            CannotReplay: It cannot be rebuilt.
        """
        return self._side(name, self._rebuild(self._as_trained(())), plan, is_edited=False)

    def _rebuild(self, edits: tuple[Edit, ...], is_first_pass: bool = False) -> Replay:
        self._number += 1
        files = self._files / f"side{self._number}"
        shutil.rmtree(self._files / f"side{self._number - 4}", ignore_errors=True)
        files.mkdir(parents=True, exist_ok=True)
        skipped = None
        if is_first_pass:
            recorded = self._recorder.calls()
            skipped = frozenset(call.id for call in recorded if is_in_memory(call) and call.nested_in is None)
        work = Replay(self._recorder, edits, files=files, skipped=skipped)
        work.dataset(self._call_id)
        return work

    def _as_trained(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """Return the edits without caches that the training would fill and lose in every epoch, those of the script included.

        A dataset that is made once loses none.
        """
        if any(isinstance(edit, BuildOnce) for edit in edits):
            return edits
        kept = tuple(edit for edit in edits if not (adds_cache(edit) and edit.call_id in self._lost))
        moved = {edit.call_id for edit in kept if isinstance(edit, Remove | MoveAfter)}
        caches = [call for call in self._recorder.calls() if call.id in self._lost - moved and is_in_memory(call)]
        return (*kept, *(Remove(call.id) for call in caches))

    def _cache_too_big(self, work: Replay) -> str:
        """Return why the new caches do not fit into memory, judged by their elements; empty if they do or it is unknown."""
        new = [built for built in work.built if built.method == "cache" and self._recorder.call(built.id) is None]
        return too_big(bytes_held([cache.dataset for cache in new if not cache.is_inside]))

    def profile(
        self,
        edits: tuple[Edit, ...],
        out: Path,
        facts: Callable[[], dict[str, Any]],
        as_if_step_ns: int = 0,
        consumed_at: Site | None = None,
        is_first_pass: bool = False,
    ) -> None:
        """Profile the pipeline with these edits in isolation.

        Args:
            edits: The edits to apply.
            out: The run folder; created if needed.
            facts: Returns further fields of the `Recording`, see `profile_pipeline`.
            as_if_step_ns: Length of the wait after each element.
            consumed_at: Where the script reads the dataset; None: where it was made.
            is_first_pass: Without its caches in memory, as in the pass that fills them.

        Raises:
            CannotMeasure: The pipeline does not reach a steady state, or ends before a window could be profiled.
            CannotReplay: The dataset cannot be rebuilt with the edits.
        """
        from advisor.prove.trial.pipeline_profile import profile_pipeline

        work = self._rebuild(self._spread(edits), is_first_pass)
        side = self._side("with the fixes", work, Plan(), is_edited=bool(edits))
        self._report("profiling", 0, None)
        side.prepare(lambda: self._report("warming up", 0, None))
        side.close()
        profile_pipeline(self._recorder, work, self._call_id, out, facts(), self._report, as_if_step_ns, consumed_at)


def _check_room(peaks: Sequence[int | None], alone_bytes: int, predicted_bytes: int) -> None:
    """Raise CannotMeasure if the second side, with the first one's buffers plus those of its fix, would not fit next to it."""
    if not peaks or peaks[0] is None:
        return
    needed, free = max(0, peaks[0] - alone_bytes) + predicted_bytes, memory_bytes()[1]
    if free and needed > MEMORY_SHARE.value * free:
        raise CannotMeasure(
            f"not measured: the pipeline with the fix would take about {format_bytes(needed)} in addition to the original, and "
            f"only {format_share(MEMORY_SHARE.value)} of the {format_bytes(free)} of free memory may be used"
        )


def _with_memory(trial: Trial, peaks: list[int | None]) -> Trial:
    before, after = [*peaks, None, None][:2]
    return replace(trial, memory_before_bytes=before, memory_after_bytes=after)


def _with_measurement(trial: Trial, result: Measurement) -> Trial:
    notes = [note for note in (result.note, trial.note) if note]
    return replace(
        trial,
        verdict=result.verdict,
        speedup=result.speedup,
        rate_before=result.rate_before,
        rate_after=result.rate_after,
        turns=result.turns,
        note=" ".join(notes),
    )


def _broken(judgement: Judgement, claimed: Safety) -> str:
    seen = judgement.seen or Safety.CHANGES
    why = f": {judgement.note}" if judgement.note and seen is Safety.CHANGES else ""
    return f"Claimed to be {claimed}, but the elements show {seen}{why.rstrip('.')}."
