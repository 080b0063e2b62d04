"""The greedy loop on a session whose pipeline is arithmetic: what each fix gives depends on what is kept already."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from advisor.capture.request import RESULT
from advisor.model.edits import SetArgument, SetOption
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.outcome import Interval, Report
from advisor.model.termination import Terminated
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.loop_result import LoopInterrupted, LoopResult, safety_of
from advisor.prove.search.search_limits import SearchLimits
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, Trial

ANALYSIS = None


def finding(name, predicted, safety=Safety.EXACT, memory=0):
    edit = SetArgument(name, "num_parallel_calls", 4)
    return Finding(name, f"Do {name}", "", prediction=Prediction(predicted, predicted, predicted), memory_bytes=memory,
                   fix=Fix((edit,), safety, is_auto=True))  # fmt: skip


def names(edits):
    return {edit.call_id for edit in edits}


class Arithmetic:
    """`rate(names)`: elements per second with those fixes. Those in `broken` change the data."""

    def __init__(self, rate, broken=(), delay_s=0.0):
        self.rate, self.broken, self.delay_s = rate, set(broken), delay_s
        self.claims, self.profiled, self.tried = [], [], []

    def _trial(self, before, after, claimed):
        time.sleep(self.delay_s)
        self.claims.append(claimed)
        if after & self.broken:
            return Trial(BROKEN, safety_seen=Safety.CHANGES)
        ratio = self.rate(after) / self.rate(before)
        speedup = Interval(ratio, ratio * 0.99, ratio * 1.01)
        return Trial(FASTER if speedup.low > 1 else SAME, speedup, self.rate(before), self.rate(after), 6, claimed)

    def try_fix(self, current, candidate, claimed, predicted_memory_bytes=None, is_first_pass=False):
        self.tried.append(names(candidate))
        return self._trial(names(current), names(current) | names(candidate), claimed)

    def total(self, edits, claimed):
        return self._trial(set(), names(edits), claimed)

    def profile(self, edits, is_first_pass=False):
        self.profiled.append(names(edits))
        return Path(*sorted(names(edits)))


def prove(session, rounds, seconds=60.0, on_progress=lambda progress: None, asked=(), **limits) -> LoopResult:
    """`rounds`: what is proposed, by the set of what is kept."""

    def propose(report, kept):
        return rounds.get(frozenset(finding.rule for finding in kept), [])

    report = Report(ANALYSIS)
    return prove_fixes(session, report, {}, propose, lambda path: report, time.monotonic() + seconds,
                       on_progress, SearchLimits(**limits), lambda finding: finding.rule in asked)  # fmt: skip


def kept(result):
    return [finding.rule for finding in result.kept]


CACHE, MAP, FETCH = finding("cache", 5.0), finding("map", 2.0), finding("fetch", 1.2)


def test_gains_do_not_add_and_what_gives_nothing_is_dropped():
    session = Arithmetic(lambda on: 10.0 if "cache" in on else 2.0 if "map" in on else 1.0)
    result = prove(session, {frozenset(): [CACHE, MAP], frozenset({"cache"}): [MAP]})
    assert kept(result) == ["cache"]
    assert [(attempt.finding.rule, attempt.trial.verdict) for attempt in result.attempts] == [
        ("cache", FASTER),
        ("map", SAME),
    ]
    assert result.total.speedup.value == 10.0


def test_what_is_proposed_next_is_read_off_the_pipeline_as_it_then_is():
    session = Arithmetic(lambda on: 1.0 + ("cache" in on) + (5 if {"cache", "fetch"} <= on else 0))
    result = prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [FETCH]})
    assert kept(result) == ["cache", "fetch"]
    assert session.profiled == [{"cache"}, {"cache", "fetch"}]
    assert result.total.rate_before == 1.0
    assert result.total.rate_after == 7.0


def untuning(predicted):
    """A change that saves time between epochs, and so is no gain on the pipeline alone."""
    edit = SetOption("end", "autotune.enabled", value=False)
    return Finding("epoch-pauses", "End epochs at once", "", prediction=Prediction(predicted, 1.0, predicted),
                   fix=Fix((edit,), Safety.EXACT, is_auto=True))  # fmt: skip


def test_what_saves_time_between_epochs_is_tried_last():
    """Its proof takes many runs of the whole script, so the others come first although they promise less."""
    result = prove(Arithmetic(lambda on: 1.0), {frozenset(): [untuning(9.0), MAP]})
    assert [attempt.finding.rule for attempt in result.attempts] == ["map", "epoch-pauses"]
    assert "Not tried" not in result.stopped_because


@pytest.mark.parametrize("is_enough", [False, True])
def test_it_is_not_tried_beside_others_but_told(is_enough):
    session = Arithmetic(lambda on: 1.0 + ("map" in on))
    result = prove(session, {frozenset(): [untuning(9.0), MAP]}, is_enough=lambda trial: is_enough)
    assert kept(result) == ["map"]
    assert [attempt.finding.rule for attempt in result.attempts] == ["map"]
    assert "Not tried beside other changes: End epochs at once. Run `advisor fix` again" in result.stopped_because


def test_broken_fix_is_never_kept():
    session = Arithmetic(lambda on: 1.0 + 9 * ("cache" in on), broken={"cache"})
    result = prove(session, {frozenset(): [CACHE]})
    assert kept(result) == []
    assert result.total is None
    assert result.attempts[0].trial.verdict == BROKEN


def test_fixes_that_only_together_are_no_gain_are_taken_back():
    """Each was faster when it was tried, but the whole is not: a machine that changed meanwhile."""
    measured = [
        2.0,
        1.0,
        2.0,
        1.0,
        4.0,
        2.0,
        4.0,
        2.0,
        0.9,
        1.0,
        0.9,
        1.0,
    ]  # after, before: once for the ratio, once as rates
    calls = iter(measured)
    session = Arithmetic(lambda on: next(calls))
    result = prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [MAP]})
    assert kept(result) == ["cache"]
    assert "reverted" in result.stopped_because
    assert [attempt.is_kept for attempt in result.attempts] == [True, False]
    assert result.total.speedup.value == 2.0


def test_claim_is_that_of_everything_kept():
    session = Arithmetic(lambda on: 1.0 + len(on))
    random_map = finding("map", 2.0, Safety.RERANDOMIZED)
    prove(session, {frozenset(): [random_map], frozenset({"map"}): [FETCH]})
    assert session.claims == [Safety.RERANDOMIZED, Safety.RERANDOMIZED, Safety.RERANDOMIZED]
    assert safety_of([random_map, finding("x", 1, Safety.REORDERED)]) is Safety.REORDERED


def test_budget_ends_the_loop_and_says_what_was_not_tried():
    session = Arithmetic(lambda on: 1.0, delay_s=0.6)
    result = prove(session, {frozenset(): [CACHE, MAP, FETCH]}, seconds=0.5)
    assert len(result.attempts) == 1
    assert (
        result.stopped_because
        == "The time for trials was used up; not tried: Do map; Do fetch. A longer budget allows more."
    )


def test_a_large_gain_is_tried_after_the_time_for_trials():
    small = finding("small", 1.3)
    rounds = {frozenset(): [FETCH, small, MAP], frozenset({"fetch"}): [small, MAP]}
    rounds[frozenset({"fetch", "map"})] = [small]
    session = Arithmetic(lambda on: 1.0 + len(on), delay_s=0.6)
    end = time.monotonic() + 60
    result = prove(session, rounds, seconds=0.5, overtime=lambda: end)
    assert session.tried == [{"fetch"}, {"map"}]
    assert kept(result) == ["fetch", "map"]
    assert "The time for trials was used up" in result.stopped_because

    session = Arithmetic(lambda on: 1.0 + len(on), delay_s=0.6)
    result = prove(session, rounds, seconds=0.5, overtime=lambda: 0.0)  # the budget is used up, too
    assert session.tried == [{"fetch"}]


def test_nothing_is_tried_twice():
    session = Arithmetic(lambda on: 1.0 + len(on))
    prove(session, {frozenset(): [CACHE, MAP], frozenset({"cache"}): [CACHE, MAP], frozenset({"cache", "map"}): [MAP]})
    assert session.tried == [{"cache"}, {"map"}]


def test_enough_is_enough():
    session = Arithmetic(lambda on: 1.0 + 100 * len(on))
    result = prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [MAP]},
                   is_enough=lambda trial: trial.rate_after > 50)  # fmt: skip
    assert kept(result) == ["cache"]
    assert session.profiled == []


def test_what_could_gain_too_little_is_told_and_not_tried():
    session = Arithmetic(lambda on: 1.0 + len(on))
    rounds = {
        frozenset(): [CACHE],
        frozenset({"cache"}): [FETCH, MAP],
        frozenset({"cache", "map"}): [FETCH],
    }
    left = {"fetch": 1.04, "map": 1.06}
    result = prove(
        session, rounds, gain_left=lambda trial, finding: left[finding.rule], try_small="`advisor fix x.py` tries it."
    )
    assert session.tried == [
        {"cache"},
        {"map"},
    ]  # before the first change is kept, the prediction is that of the training
    assert result.stopped_because == (
        "Not tried: Do fetch, as a training step could gain less than 5 % more. `advisor fix x.py` tries it."
    )


@pytest.mark.parametrize("options", [{"asked": ["fetch"]}, {"gain_left": lambda trial, finding: None}])
def test_what_is_asked_for_or_of_unknown_gain_is_tried(options):
    session = Arithmetic(lambda on: 1.0 + len(on))
    limits = {"gain_left": lambda trial, finding: 1.0, **options}
    result = prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [FETCH]}, **limits)
    assert kept(result) == ["cache", "fetch"] and not result.stopped_because


def test_without_a_total_of_its_own_the_whole_script_measures_all_changes():
    session = Arithmetic(lambda on: 1.0 + len(on))
    measured = []
    session.total = lambda edits, claimed: measured.append(edits)
    asked = []

    def needs_total(edits):
        asked.append(names(edits))
        return False

    result = prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [MAP]}, needs_total=needs_total)
    assert kept(result) == ["cache", "map"]
    assert asked[-1] == {"cache", "map"}
    assert not measured and result.total is None


def test_refused_is_neither_kept_nor_the_end():
    session = Arithmetic(lambda on: 1.0 + len(on))
    try_fix = session.try_fix
    session.try_fix = lambda current, candidate, *rest: (
        Trial(REFUSED, note="It would not fit.")
        if names(candidate) == {"cache"}
        else try_fix(current, candidate, *rest)
    )
    result = prove(session, {frozenset(): [CACHE, MAP]})
    assert kept(result) == ["map"]
    assert result.total.speedup.value == 2.0


class Stopped(Arithmetic):
    """A signal arrives while the second fix is tried."""

    def __init__(self, rate, error):
        super().__init__(rate)
        self.error = error

    def try_fix(self, current, candidate, claimed, predicted_memory_bytes=None, is_first_pass=False):
        if self.tried:
            raise self.error
        return super().try_fix(current, candidate, claimed, predicted_memory_bytes)


def test_ctrl_c_keeps_what_is_proved():
    session = Stopped(lambda on: 1.0 + len(on), KeyboardInterrupt())
    with pytest.raises(LoopInterrupted) as stop:
        prove(session, {frozenset(): [CACHE], frozenset({"cache"}): [MAP]})
    result = stop.value.result
    assert kept(result) == ["cache"]
    assert result.is_interrupted
    assert result.total.speedup.value == 2.0
    assert result.stopped_because == (
        "Interrupted before all changes were tried (not measured: Do map), so nothing was written."
    )


def test_ctrl_c_in_the_first_trial_says_what_is_missing():
    first = Arithmetic(lambda on: 1 / 0)
    first.try_fix = lambda *args: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(LoopInterrupted) as stop:
        prove(first, {frozenset(): [CACHE, FETCH]})
    result = stop.value.result
    assert result.is_interrupted and not result.kept
    assert result.stopped_because == (
        "Interrupted before all changes were tried (not measured: Do cache; Do fetch), so nothing was written."
    )


def test_a_signal_to_end_keeps_nothing():
    with pytest.raises(KeyboardInterrupt) as stop:
        prove(Stopped(lambda on: 1.0 + len(on), Terminated(15)), {frozenset(): [CACHE], frozenset({"cache"}): [MAP]})
    assert not isinstance(stop.value, LoopInterrupted)


def test_each_trial_is_told_at_once():
    told = []

    def listen(progress):
        if progress.phase == RESULT:
            told.append((len(session.tried), progress.text))

    session = Arithmetic(lambda on: 2.0 if "cache" in on else 1.0)
    prove(session, {frozenset(): [CACHE, MAP], frozenset({"cache"}): [MAP]}, on_progress=listen)
    assert told == [
        (1, "Do cache: 2.0x (1.98x to 2.0x), faster on the pipeline alone; data: exact; kept."),
        (2, "Do map: 1.00x (0.99x to 1.01x), no faster on the pipeline alone; data: exact; not kept."),
    ]
