"""Turning AUTOTUNE off beside other changes: when it is tried, what the runs must have shown, and how it is proved."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.model.edits import AUTOTUNE_OPTION, MoveAfter, SetArgument, SetOption, added_id
from advisor.model.errors import AdvisorError, OutOfTime
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.outcome import Interval, Report
from advisor.model.recording import Loop
from advisor.model.untried import Why
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.search.gains import gains_of
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.remaining_pauses import RULE, EpochEnds, of_recorded_calls, pauses_of
from advisor.prove.search.script_proof import prove_on_script
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, Trial
from advisor.testing import AUTOTUNE, batch, map_, prefetch, source
from tests.predict.simulated_passes import script

MS = 1_000_000


def made(elements=6_400, loops=50, calls=AUTOTUNE):
    """Epochs of 200 steps of 5 ms; the pipeline is read in a loop that runs so often (None: unknown)."""
    stages = source("Range", elements=elements), map_("decode", ms=0.2, calls=calls), batch(32), prefetch()
    return script(*stages, loops=None if loops is None else (Loop(loops, "train.py", 10, 20),))


ANALYSIS = made()
(DECODE,) = [call for call in ANALYSIS.calls if call.method == "map"]
KEPT = Finding(
    "serial-map", "Parallelise", "", prediction=Prediction(9.0, 9.0, 9.0),
    fix=Fix((SetArgument(DECODE.id, "deterministic", value=True),), Safety.EXACT, is_auto=True),
)  # fmt: skip
LATER = Trial(FASTER, Interval(20, 19, 21), rate_before=50.0, rate_after=1000.0)


def ends(analysis=ANALYSIS, only=(), is_reported=lambda finding: True):
    calls = {call.id: call for call in analysis.calls}
    return EpochEnds(Proposals(calls, None, only=frozenset(only), analysis=analysis), analysis, is_reported)


@pytest.mark.parametrize(
    ("analysis", "rate", "expected"),
    [
        (ANALYSIS, 1000.0, True),  # 200 steps of 5 ms
        (made(loops=None), 1000.0, True),
        (made(loops=3), 1000.0, False),  # no window of three epochs follows the first one
        (ANALYSIS, 20.0, False),  # 200 steps of 50 ms: the runs would take minutes
        (made(elements=64_000), 1000.0, False),
        (ANALYSIS, None, False),
    ],
)
def test_it_is_tried_if_the_other_changes_make_many_short_epochs(analysis, rate, expected):
    assert ends(analysis).may_gain((KEPT,), replace(LATER, rate_after=rate)) is expected


def test_without_other_changes_the_rule_itself_proposes_it():
    assert not ends().may_gain((), LATER)


def test_it_is_proposed_for_a_pipeline_with_parallel_calls_under_autotune():
    (found,) = ends().propose(Report(ANALYSIS), (KEPT,))
    assert found.rule == RULE
    assert any(isinstance(edit, SetOption) and edit.option == AUTOTUNE_OPTION for edit in found.fix.edits)
    fixed = made(calls=2)
    assert ends(fixed).propose(Report(fixed), (KEPT,)) == []


def test_a_silenced_rule_is_not_proposed():
    assert ends(is_reported=lambda finding: finding.rule != RULE).propose(Report(ANALYSIS), (KEPT,)) == []
    assert ends(only=["serial-map"]).propose(Report(ANALYSIS), (KEPT,)) == []
    assert len(ends(only=[RULE]).propose(Report(ANALYSIS), (KEPT,))) == 1


def test_behind_an_added_call_it_is_set_after_the_call_behind_which_that_was_added():
    """The text knows only recorded calls; a map that moved is behind the call after which it moved."""
    _, decode, batched, _ = ANALYSIS.calls
    fix = Fix((SetOption(added_id(decode.id, 0), AUTOTUNE_OPTION, value=False),), Safety.EXACT, is_auto=True)
    calls = {call.id: call for call in ANALYSIS.calls}
    moving = replace(KEPT, fix=Fix((MoveAfter(decode.id, batched.id),), Safety.EXACT, is_auto=True))
    assert of_recorded_calls(fix, calls, (KEPT,)).edits[0].call_id == decode.id
    assert of_recorded_calls(fix, calls, (moving,)).edits[0].call_id == batched.id
    halves = replace(fix, edits=(*fix.edits, SetArgument(f"{decode.id}_rest", "num_parallel_calls", 2)))
    assert of_recorded_calls(halves, calls, (KEPT,)) is None


# -- the pauses of runs


def run(*pauses_ms, epoch_ms=1000):
    pauses = tuple((epoch_ms * MS, int(pause_ms * MS)) for pause_ms in pauses_ms)
    return RunSteps(5e6, None, 600, None, pauses=pauses)


def test_the_pauses_of_all_runs_count():
    pauses = pauses_of([run(400, 0), run(), run(200)])
    assert (pauses.count, pauses.mean_ns, pauses.epoch_s) == (3, 200 * MS, 1.0)
    seen = pauses.seen(KEPT)
    assert seen.prediction.value == pytest.approx(1.25)
    assert "200 ms on average, 20 % of the time over 3 epochs" in seen.because


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([run(400, 400)], "have shown the ends of 2 epochs, which is too few"),
        ([], "have shown the ends of 0 epochs"),
        ([run(0.2, 0.2, 0.2)], "destroys iterators in 200 us, < 0.1 % of an epoch"),
        ([run(400, 0), run(0)], ""),
    ],
)
def test_too_few_or_short_pauses_are_not_worth_the_runs(runs, why):
    told = pauses_of(runs).why_not
    assert why in told and bool(told) is bool(why)


# -- in the search


class Session:
    """Turning AUTOTUNE off has this verdict on the pipeline alone; all other changes make it twenty times as fast."""

    def __init__(self, error=None, verdict=SAME):
        self.tried, self.profiled, self.error, self.verdict = [], 0, error, verdict

    def try_fix(self, current, candidate, claimed, predicted_memory_bytes=None, is_first_pass=False):
        self.tried.append(candidate)
        if any(isinstance(edit, SetOption) for edit in candidate):
            if self.error is not None:
                raise self.error
            return Trial(self.verdict, Interval(1, 0.99, 1.01), safety_seen=claimed)
        return LATER

    def profile(self, edits, is_first_pass=False):
        self.profiled += 1
        return Path("profile")

    def total(self, edits, claimed):
        return LATER


def search(session, seconds=60.0, analysis=ANALYSIS):
    report = Report(analysis)
    proposed = [KEPT, replace(KEPT, rule=RULE, title="End epochs", fix=Fix((SetOption(DECODE.id, AUTOTUNE_OPTION, value=False),),
                                                                          Safety.EXACT, is_auto=True))]  # fmt: skip
    return prove_fixes(
        session, report, {call.id: call for call in analysis.calls},
        lambda report, kept: [] if kept else proposed, lambda path: report,
        time.monotonic() + seconds, lambda progress: None, epoch_ends=ends(analysis),
    )  # fmt: skip


@pytest.mark.parametrize("verdict", [SAME, FASTER])
def test_it_is_tried_last_on_the_analysis_of_the_kept_changes(verdict):
    """Faster on the pipeline alone is not enough: with it, the runs of all changes would be timed over slow epochs."""
    session = Session(verdict=verdict)
    loop = search(session)
    assert [attempt.finding.rule for attempt in loop.attempts] == ["serial-map", RULE]
    assert loop.kept == (KEPT,) and session.profiled == 1
    assert [attempt.claimed_together for attempt in loop.attempts] == [Safety.EXACT, Safety.EXACT]
    assert not loop.stopped_because


@pytest.mark.parametrize("analysis", [made(loops=3), made(calls=2)])
def test_what_is_not_tried_beside_others_is_told(analysis):
    loop = search(Session(), analysis=analysis)
    assert len(loop.attempts) == 1
    assert "Not tried beside other changes: End epochs" in loop.stopped_because


class FirstPass:
    """A search in the first pass that finds nothing; the pipeline is slow there."""

    def may_gain(self, kept, later):
        return True

    def limits(self, report, later, limits):
        return Trial(SAME, rate_after=1.0), limits

    def propose(self, report, kept):
        return []


class Asked:
    """Keeps what it is asked with."""

    def may_gain(self, kept, latest):
        self.latest = latest
        return False


def test_the_epochs_are_as_long_as_later_passes():
    asked, report = Asked(), Report(ANALYSIS)
    prove_fixes(
        Session(), report, {call.id: call for call in ANALYSIS.calls},
        lambda report, kept: [] if kept else [KEPT], lambda path: report,
        time.monotonic() + 60, lambda progress: None, first_pass=FirstPass(), epoch_ends=asked,
    )  # fmt: skip
    assert asked.latest == LATER


def test_no_time_for_it_is_no_problem_of_the_kept_changes():
    loop = search(Session(OutOfTime("late")))
    assert loop.kept == (KEPT,) and loop.why is None
    ended = search(Session(AdvisorError("The process has ended.")))
    assert ended.kept == (KEPT,) and ended.why is Why.PROCESS_ENDED


# -- on the whole script


class Script:
    """Measures the whole script, in the words of `WholeScript`: first all changes, then what is on top of them."""

    def __init__(self, whole, on_top=None):
        self.method_of, self.notes, self.measured = {}, [], []
        self.answers = [whole, on_top]

    def measure(self, base, candidate, title, epoch_s=None):
        self.measured.append((tuple(f.rule for f in base), tuple(f.rule for f in candidate), epoch_s))
        return self.answers[len(self.measured) - 1]


UNTUNED = Finding(
    RULE, "End epochs", "Expected.", fix=Fix((SetOption("c9", AUTOTUNE_OPTION, value=False),), Safety.EXACT, is_auto=True)
)  # fmt: skip
TRIED = (
    Attempt(KEPT, LATER, is_kept=True),
    Attempt(UNTUNED, Trial(SAME, safety_seen=Safety.EXACT), is_kept=False, claimed_together=Safety.RERANDOMIZED),
)


def whole_of(*runs, verdict=FASTER):
    return EndToEnd(verdict, Interval(5.0, 4.0, 6.0), before=runs, after=runs)


PAUSED = whole_of(*[run(400, 0)] * 3)
FOUND = EndToEnd(FASTER, Interval(1.2, 1.1, 1.3), before=(run(),) * 3, after=(run(),) * 3)


@pytest.mark.parametrize("verdict", [SAME, FASTER])
def test_pauses_in_the_runs_of_the_kept_changes_are_proved_on_top_of_them(verdict):
    script = Script(PAUSED, FOUND)
    alone = replace(TRIED[1], trial=replace(TRIED[1].trial, verdict=verdict))
    loop, whole = prove_on_script(LoopResult((TRIED[0], alone), (KEPT,)), script)
    assert script.measured == [((), ("serial-map",), None), (("serial-map",), ("serial-map", RULE), 1.0)]
    assert [finding.rule for finding in loop.kept] == ["serial-map", RULE] and whole is PAUSED
    tried = loop.attempts[1]
    assert "on top of the other changes" in tried.trial.note and tried.claimed_together is Safety.RERANDOMIZED
    assert tried.is_kept and tried.is_end_to_end and tried.trial.speedup == FOUND.speedup
    assert "20 % of the time over 6 epochs" in tried.finding.because  # what was seen, not what was expected


@pytest.mark.parametrize(
    ("whole", "note"),
    [
        (
            whole_of(*[run(0.2, 0.2)] * 3),
            "Not measured beside other changes: End epochs: with the changes, TensorFlow destroys",
        ),
        (whole_of(*[run()] * 3), "which is too few"),
        (whole_of(*[run(400, 0)] * 3, verdict=SAME), "Run `advisor fix` again when these are written."),
        (None, "Run `advisor fix` again when these are written."),
    ],
)
def test_without_a_reason_no_more_runs_are_made(whole, note):
    script = Script(whole)
    loop, _ = prove_on_script(LoopResult(TRIED, (KEPT,)), script)
    assert len(script.measured) == 1 and loop.kept == (KEPT,)
    assert any(note in told for told in script.notes)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        EndToEnd(REFUSED, note="Too late.", is_out_of_time=True),
        EndToEnd(BROKEN, note="It failed."),
        EndToEnd(SAME, Interval(1.01, 0.97, 1.05), before=(run(),), after=(run(),)),
    ],
)
def test_what_is_not_proved_is_not_kept(answer):
    loop, whole = prove_on_script(LoopResult(TRIED, (KEPT,)), Script(PAUSED, answer))
    assert loop.kept == (KEPT,) and whole is PAUSED
    assert not loop.attempts[1].is_kept
    assert answer is None or answer.note in loop.attempts[1].trial.note


def test_its_gain_is_that_of_the_training():
    """On the pipeline alone there are no pauses between epochs."""
    loop, whole = prove_on_script(LoopResult(TRIED, (KEPT,)), Script(PAUSED, FOUND))
    alone, step = gains_of(loop.attempts[1], Report(ANALYSIS), loop, whole)
    assert (alone.predicted, alone.measured) == (None, None)
    assert step.predicted.value == pytest.approx(1.25) and step.measured == FOUND.speedup
