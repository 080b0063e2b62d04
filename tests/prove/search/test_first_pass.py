"""The search in the pass that fills the caches: when it is worth a profile, what it proposes, and what it may gain."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.edits import InsertAfter, MoveAfter, Remove, SetArgument, SetOption
from advisor.model.errors import AdvisorError, OutOfTime
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.outcome import Interval, Report
from advisor.model.settings import Settings
from advisor.model.untried import Why
from advisor.prove.search.first_pass import NOTE, FirstPass
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.search_limits import SearchLimits
from advisor.prove.trial.trial_result import FASTER, REFUSED, SAME, Trial
from advisor.testing import batch, cache, map_, pipeline, shuffle, source
from tests.predict.simulated_passes import script

UNCACHED = pipeline(
    source(),
    map_("decode", ms=2, captured=["HashTableV2"]),
    shuffle(),
    map_("augment", ms=0.1),
    batch(10),
    consumer_ms=2,
    cores=4,
).analysis
CACHED = pipeline(
    source(), map_("decode", ms=0.5), cache(), map_("augment", ms=0.1), batch(10), consumer_ms=2, cores=4
).analysis
LATER = Trial(FASTER, Interval(20, 19, 21), rate_before=50.0, rate_after=1000.0)


def call_of(analysis, method, number=0):
    return [call for call in analysis.calls if call.method == method][number]


def finding(*edits, rule="made-up", prediction=None):
    prediction = prediction or Prediction(3.0, 2.0, 4.0)
    return Finding(rule, f"Do {rule}", "", prediction=prediction, fix=Fix(edits, Safety.EXACT, is_auto=True))


def first_pass(analysis):
    return FirstPass(Proposals({call.id: call for call in analysis.calls}, None, analysis=analysis), analysis)


def proposed(analysis, kept, *findings, without=None):
    """What is proposed of these findings; `without`: the analysis of the pipeline without its caches."""
    report = Report(without or analysis, findings=findings)
    return [finding.rule for finding in first_pass(analysis).propose(report, kept)]


SOURCE = UNCACHED.calls[0]
DECODE, SHUFFLE, AUGMENT, BATCH = (
    call_of(UNCACHED, method, number) for method, number in (("map", 0), ("shuffle", 0), ("map", 1), ("batch", 0))
)
KEPT = finding(
    InsertAfter(DECODE.id, "cache"), rule="repeated-work", prediction=Prediction(9.0, 8.0, 10.0, first_pass=1.0)
)


def parallel(call, rule="made-up"):
    return finding(SetArgument(call.id, "num_parallel_calls", 4), rule=rule)


def test_only_what_is_upstream_of_the_cache_is_proposed():
    findings = (
        parallel(DECODE, "serial"),
        parallel(AUGMENT, "behind"),
        finding(SetOption(DECODE.id, "deterministic", value=False), rule="option"),
        finding(InsertAfter(DECODE.id, "prefetch", (("", 2),)), rule="prefetch"),
        finding(InsertAfter(SOURCE.id, "cache"), rule="second-cache"),
        finding(
            InsertAfter(DECODE.id, "take", (("", 2),)), rule="delayed", prediction=Prediction(9, 9, 9, first_pass=1.0)
        ),
    )
    assert proposed(UNCACHED, (KEPT,), *findings) == ["serial"]


def test_nothing_is_moved_out_of_the_cache():
    """The shuffle is behind the cache: each pass would decode again."""
    assert proposed(UNCACHED, (KEPT,), finding(MoveAfter(DECODE.id, SHUFFLE.id))) == []
    assert proposed(UNCACHED, (KEPT,), finding(MoveAfter(DECODE.id, BATCH.id))) == []
    behind = finding(InsertAfter(BATCH.id, "cache"), rule="repeated-work")
    assert proposed(UNCACHED, (behind,), finding(MoveAfter(DECODE.id, BATCH.id))) == ["made-up"]
    assert proposed(UNCACHED, (behind,), finding(MoveAfter(DECODE.id, SHUFFLE.id))) == []  # only leaves a buffer


def test_the_title_tells_that_it_is_the_first_pass():
    (found,) = first_pass(UNCACHED).propose(Report(UNCACHED, findings=(parallel(DECODE),)), (KEPT,))
    assert found.title == "Do made-up (first pass)" and found.over_run is None
    assert found.fix.fills_cache


def test_a_prefetch_at_the_end_is_left_to_what_follows_the_cache():
    both = finding(InsertAfter(BATCH.id, "prefetch", (("", 2),)), SetArgument(DECODE.id, "num_parallel_calls", 4))
    (found,) = first_pass(UNCACHED).propose(Report(UNCACHED, findings=(both,)), (KEPT,))
    assert found.fix.edits == both.fix.edits[1:]


def test_a_cache_of_the_script_counts_unless_it_is_lost_or_removed():
    decode, own, behind = call_of(CACHED, "map"), call_of(CACHED, "cache"), call_of(CACHED, "map", 1)
    other = parallel(behind, "other")
    assert proposed(CACHED, (other,), parallel(decode)) == ["made-up"]
    assert proposed(CACHED, (finding(Remove(own.id)),), parallel(decode)) == []
    assert not first_pass(CACHED).may_gain((finding(Remove(own.id)),), LATER)
    moved = finding(Remove(own.id), InsertAfter(behind.id, "cache"))
    assert proposed(CACHED, (moved,), parallel(behind)) == ["made-up"]


def test_a_cache_that_is_filled_in_every_pass_does_not_count():
    """The script makes its dataset again for every epoch; those of earlier epochs are not read any more."""
    again = pipeline(
        source(), map_("decode", ms=0.5), cache(), batch(10), consumer_ms=2, cores=4, epochs=4, making_ms=300
    ).analysis
    assert len([call for call in again.calls if call.method == "cache"]) > 1
    assert not first_pass(again).may_gain((parallel(call_of(again, "batch", -1)),), LATER)


def test_without_a_cache_there_is_nothing_to_look_at():
    assert not first_pass(UNCACHED).may_gain((parallel(DECODE),), LATER)


@pytest.mark.parametrize(
    ("epochs", "rate_before", "expected"),
    [
        (3, 50.0, True),  # a step of the training takes 5 ms, the pipeline 20 ms in the first pass, 1 ms in the others
        (3, 20_000.0, False),  # the pipeline is fast without the cache, too
        (5_000, 50.0, False),
        (None, 50.0, True),  # ten passes are assumed
    ],
)
def test_a_profile_is_made_if_the_first_pass_is_a_part_of_the_run(epochs, rate_before, expected):
    made = script(kind="keras.fit", keras={"epochs": epochs, "initial_epoch": 0, "steps_per_epoch": None, "fits": 1})
    made = script() if epochs is None else made
    (decode, *_) = [call for call in made.calls if call.method == "map"]
    kept = finding(InsertAfter(decode.id, "cache"))
    assert first_pass(made).may_gain((kept,), replace(LATER, rate_before=rate_before)) is expected


def test_the_gain_of_the_run_is_that_of_one_pass():
    """Ten passes are assumed: 20 ms of the pipeline and 2 ms of the training in the first, 1 and 2 ms in the others."""
    search = first_pass(UNCACHED)
    now, limits = search.limits(Report(UNCACHED), LATER, SearchLimits())
    assert now.verdict == SAME
    gain = limits.gain_left(Trial(SAME, rate_after=50.0), parallel(DECODE))
    own_ms = 2.0
    one_after_the_other = (20 + own_ms + 9 * 3) / (5 + own_ms + 9 * 3)
    overlapping = (20 + 9 * 2) / (5 + 9 * 2)
    assert gain == pytest.approx(max(one_after_the_other, overlapping), rel=0.05)
    unknown = replace(parallel(DECODE), prediction=None)
    assert limits.gain_left(Trial(SAME, rate_after=50.0), unknown) > gain
    assert limits.gain_left(Trial(SAME), parallel(DECODE)) == math.inf
    assert not limits.is_enough(Trial(SAME, rate_after=1e9))


# -- the loop


class Passes:
    """A session whose first pass and later passes have rates of their own."""

    def __init__(self, first, later, fails=False):
        self.first, self.later, self.fails = first, later, fails
        self.tried, self.profiled = [], []

    def try_fix(self, current, candidate, claimed, predicted_memory_bytes=None, is_first_pass=False):
        self.tried.append((*sorted(edit.call_id for edit in candidate), is_first_pass))
        rate = self.first if is_first_pass else self.later
        before, after = rate(set(current)), rate({*current, *candidate})
        ratio = after / before
        verdict = FASTER if ratio > 1 else SAME
        return Trial(verdict, Interval(ratio, ratio, ratio), before, after, 6, claimed, is_replayable=False)

    def total(self, edits, claimed):
        return self.try_fix((), edits, claimed)

    def profile(self, edits, is_first_pass=False):
        self.profiled.append(is_first_pass)
        if self.fails and is_first_pass:
            raise OutOfTime("There is no time left for trials on train.py.")
        return Path("first" if is_first_pass else "later")


def prove(session, seconds=60.0, is_enough=False):
    serial = parallel(DECODE, "serial")
    reports = {"first": Report(UNCACHED, findings=(serial,)), "later": Report(UNCACHED)}

    def propose(report, kept):
        return [] if kept else [KEPT]

    limits = SearchLimits(is_enough=lambda trial: is_enough, needs_total=lambda edits: False)
    return prove_fixes(
        session, Report(UNCACHED), {call.id: call for call in UNCACHED.calls}, propose, lambda path: reports[path.name],
        time.monotonic() + seconds, lambda progress: None, limits, first_pass=first_pass(UNCACHED),
    )  # fmt: skip


def first_rate(edits):
    return 200.0 if any(isinstance(edit, SetArgument) for edit in edits) else 50.0


def later_rate(edits):
    return 1000.0 if edits else 50.0


@pytest.mark.parametrize("is_enough", [False, True])
def test_the_first_pass_is_sped_up_when_a_cache_is_kept(is_enough):
    """Also where later passes are fast enough, so that nothing more is tried in them."""
    session = Passes(first_rate, later_rate)
    result = prove(session, is_enough=is_enough)
    assert [finding.title for finding in result.kept] == ["Do repeated-work", "Do serial (first pass)"]
    assert session.tried == [(DECODE.id, False), (DECODE.id, True)]
    later, first = (attempt.trial for attempt in result.attempts)
    assert first.note == NOTE and first.speedup.value == 4.0 and not later.note
    assert first.is_replayable  # otherwise the whole script would be run with it, in later passes
    assert result.why is (Why.FAST_ENOUGH if is_enough else None)


def test_what_the_first_pass_does_not_gain_is_dropped():
    result = prove(Passes(lambda edits: 50.0, later_rate))
    assert [finding.rule for finding in result.kept] == ["repeated-work"]
    assert [attempt.trial.verdict for attempt in result.attempts] == [FASTER, SAME]


def test_no_time_for_the_first_pass_is_no_reason_to_go_on():
    result = prove(Passes(first_rate, later_rate, fails=True))
    assert [finding.rule for finding in result.kept] == ["repeated-work"]
    assert result.why is None and not result.stopped_because


def test_a_session_that_has_ended_is_told():
    class Ending(Passes):
        def try_fix(self, current, candidate, claimed, predicted_memory_bytes=None, is_first_pass=False):
            if is_first_pass:
                raise AdvisorError("train.py has ended.")
            return super().try_fix(current, candidate, claimed)

    result = prove(Ending(first_rate, later_rate))
    assert [finding.rule for finding in result.kept] == ["repeated-work"]
    assert result.attempts[-1].trial.verdict == REFUSED and result.why is Why.PROCESS_ENDED


def test_rules_find_what_fills_the_cache_in_a_pipeline_without_it():
    made = run_rules(UNCACHED, load_rules([], Settings()), Settings())
    found = first_pass(UNCACHED).propose(made, (KEPT,))
    assert "serial-map" in [finding.rule for finding in found]
    assert all(finding.title.endswith("(first pass)") for finding in found)
