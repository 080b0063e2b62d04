"""The engine: gate, ranking, merging, silencing, and rules that go wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from advisor.engine import LoadedRule, load_rules, run_rules
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument
from advisor.model.finding import Evidence, Fix, Prediction, Safety
from advisor.model.settings import Settings
from advisor.rule import Note, Rule
from advisor.testing import AUTOTUNE, batch, map_, pipeline, prefetch, shuffle, source
from tests.predict.simulated_passes import LOOP, STAGES, script

SLOW = pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8)
HEALTHY = pipeline(source(), map_("decode", ms=0.1), batch(32), prefetch(), consumer_ms=50, cores=8)


def rule_of(check, name: str = "made-up", needs: bool = True, is_hopeful: bool = True) -> LoadedRule:
    """A rule that says what `check(rule, analysis)` yields."""

    @dataclass(frozen=True)
    class MadeUp(Rule):
        needs_input_bound: ClassVar[bool] = needs
        is_tried_if_uncertain: ClassVar[bool] = is_hopeful

        def check(self, analysis):
            return check(self, analysis)

    return LoadedRule(name, MadeUp(), Path(__file__))


def says(*findings, needs: bool = True, name: str = "made-up", is_hopeful: bool = True) -> LoadedRule:
    return rule_of(
        lambda rule, analysis: iter([f(rule, analysis) if callable(f) else f for f in findings]),
        name,
        needs,
        is_hopeful,
    )


def finding(title: str, gain: float | None = 2.0, call: int = 1, fix: Fix | None = None):
    return lambda rule, analysis: rule.finding(
        title, "because", call=analysis.calls[call], fix=fix, prediction=gain and Prediction(gain, 1.0, 9.0)
    )


def cached(call_id: str) -> Fix:
    return Fix((InsertAfter(call_id, "cache"),), Safety.EXACT, is_auto=True)


def titles(*rules: LoadedRule, made=SLOW, settings: Settings | None = None) -> list[str]:
    return [f.title for f in run_rules(made.analysis, rules, settings or Settings()).findings]


def test_a_fix_that_the_text_does_not_allow_gives_way_to_the_other_one_and_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SLOW.source)
    mapped, batched = (call.id for call in SLOW.analysis.calls[1:])
    parallel = Fix((SetArgument(mapped, "num_parallel_calls", 4),), Safety.EXACT, is_auto=True)
    unknown = Fix((SetArgument(mapped, "no_such_parameter", 4),), Safety.EXACT, is_auto=True)
    moved = Fix((MoveAfter(mapped, batched),), Safety.EXACT, is_auto=True)

    def one(best, other):
        second = finding("the other", fix=other)
        return says(lambda r, a: replace(finding("the best", fix=best)(r, a), otherwise=second(r, a)))

    def report(best, other):
        return run_rules(SLOW.analysis, [one(best, other)], Settings()).findings[0]

    assert report(moved, parallel).title == "the best" and "batch" in report(moved, parallel).diff
    given_way = report(unknown, parallel)
    assert (given_way.title, given_way.rule) == ("the other", "made-up")
    assert given_way.because == "because map has no known parameter no_such_parameter."
    assert "num_parallel_calls=4" in given_way.diff
    assert report(unknown, unknown).title == "the best"  # neither can be written: the best one is told


def test_one_or_two_steps_rank_findings_and_predict_nothing():
    verdict = dataclasses.replace(SLOW.analysis.verdict, certainty="low")
    few = dataclasses.replace(SLOW.analysis, verdict=verdict)
    report = run_rules(few, [says(finding("b", 2), finding("a", 3, 0), finding("too small", 1.0, 2))], Settings())
    assert [finding.title for finding in report.findings] == ["a", "b"]
    assert [(finding.prediction, finding.over_run) for finding in report.findings] == [(None, None)] * 2
    assert (report.outlook, report.rejected) == (None, ())
    enough = run_rules(SLOW.analysis, [says(finding("b", 2), finding("a", 3, 0))], Settings())
    assert enough.outlook is not None and all(finding.prediction for finding in enough.findings)


def test_findings_are_ranked_by_predicted_gain_and_unpredicted_ones_come_last():
    assert titles(says(finding("b", 2), finding("d", None, 2), finding("a", 3, 0), finding("c", 1.5))) == [
        "a",
        "b",
        "c",
        "d",
    ]


def test_an_unprovable_gain_is_not_a_finding():
    assert titles(says(finding("a", 1.04), finding("b", 1.06))) == ["b"]


def test_uncertain_changes_are_tried_where_nothing_else_can_be():
    calls = [call.id for call in SLOW.analysis.calls]

    def hopeful(title: str, high: float, call: int = 1, **facts: bool):
        fix = replace(cached(calls[call]), **facts)
        return lambda rule, analysis: rule.finding(
            title, "because.", call=analysis.calls[call], fix=fix, prediction=Prediction(1.0, 1.0, high)
        )

    assert titles(says(hopeful("a", 1.7))) == ["a"]
    (told,) = run_rules(SLOW.analysis, [says(hopeful("a", 1.7))], Settings()).findings
    assert told.because == "because. Whether it gains anything cannot be predicted: only a trial tells."
    assert titles(says(hopeful("a", 1.7), is_hopeful=False)) == []
    assert titles(says(hopeful("a", 1.1))) == []
    assert titles(says(hopeful("a", 1.7), finding("b", fix=cached(calls[2])))) == ["b"]
    assert titles(says(hopeful("a", 1.7), finding("advice"))) == ["advice", "a"]
    assert titles(says(hopeful("a", 1.7, is_auto=False))) == []
    assert titles(says(hopeful("a", 1.3), hopeful("b", 1.7, 2), hopeful("c", 1.5, 0))) == ["c", "b"]
    assert titles(says(hopeful("a", 1.7)), made=HEALTHY) == []


def test_a_change_that_cannot_gain_in_the_known_number_of_epochs_is_not_tried():
    def check(rule, analysis):
        fix = cached(analysis.calls[1].id)
        gain = Prediction(1.0, 1.0, 5.0, first_pass=1.0)
        yield rule.finding("cache", "because.", call=analysis.calls[1], fix=fix, prediction=gain)

    for epochs, found in ((1, []), (3, ["cache"])):
        known = script(*STAGES, end="finished", iterators=epochs, steps=10 * epochs)
        assert [finding.title for finding in run_rules(known, [rule_of(check)], Settings()).findings] == found


def test_rules_on_pipelines_are_not_asked_when_input_is_not_the_problem():
    assert titles(says(finding("a")), made=HEALTHY) == []
    assert titles(says(finding("a"), needs=False), made=HEALTHY) == ["a"]


def test_no_shipped_rule_finds_anything_in_a_healthy_pipeline():
    report = run_rules(HEALTHY.analysis, load_rules([], Settings()), Settings())
    assert report.findings == () and report.rule_errors == ()
    assert len(report.notes) == 1


def test_findings_that_say_the_same_are_one():
    first, again = finding("cache", 3, fix=cached("c1")), finding("keep", 2, 0, fix=cached("c1"))
    assert titles(says(first, name="x"), says(again, name="y")) == ["cache"]
    assert titles(says(finding("same"), finding("same", 2.5))) == ["same"]
    assert titles(says(finding("same"), finding("same", 2.5, 2))) == ["same", "same"]


def test_a_rule_that_raises_becomes_a_row():
    def check(rule, analysis) -> Iterator[Note]:
        yield Note("before")
        raise KeyError("speed")

    report = run_rules(SLOW.analysis, [rule_of(check, "broken"), says(finding("a"))], Settings())
    assert [f.title for f in report.findings] == ["a"]
    (error,) = report.rule_errors
    assert error.rule == "broken"
    assert error.message.startswith("KeyError: 'speed' (test_run.py:")


def test_other_results_of_a_rule_become_a_row():
    (error,) = run_rules(SLOW.analysis, [says("hello")], Settings()).rule_errors
    assert error.message == "yielded a str, not a Finding or a Note"


def test_notes_are_collected_once():
    report = run_rules(SLOW.analysis, [says(Note("n")), says(Note("n"), Note("m"))], Settings())
    assert report.notes == ("n", "m")


def test_ignored_rules_are_silent_and_counted():
    report = run_rules(
        SLOW.analysis, [says(finding("a")), says(finding("b", call=0), name="other")], Settings(ignore=("made-up",))
    )
    assert ([f.title for f in report.findings], report.silenced) == (["b"], 1)


def in_file(tmp_path: Path, text: str):
    """The made-up pipeline, its script being a real file with this text."""
    path = tmp_path / "train.py"
    path.write_text(text)
    calls = tuple(
        dataclasses.replace(call, site=dataclasses.replace(call.site, file=str(path))) for call in SLOW.analysis.calls
    )
    return dataclasses.replace(SLOW, analysis=dataclasses.replace(SLOW.analysis, calls=calls))


def test_a_comment_on_the_call_silences_the_rules_it_names(tmp_path):
    for comment, is_silent in (
        ("# advisor: ignore[made-up]", True),
        ("# advisor: ignore[serial-map, made-up]  # known", True),
        ("#advisor:ignore", True),
        ("# advisor: ignore[serial-map]", False),
        ("# ignore[made-up]", False),
    ):
        text = SLOW.source.replace("ds.map(augment)", f"ds.map(augment)  {comment}")
        report = run_rules(in_file(tmp_path, text).analysis, [says(finding("a"))], Settings())
        assert (report.silenced, len(report.findings)) == ((1, 0) if is_silent else (0, 1)), comment


def test_a_comment_on_another_line_silences_nothing(tmp_path):
    made = in_file(tmp_path, SLOW.source.replace("ds.batch(32)", "ds.batch(32)  # advisor: ignore"))
    assert titles(says(finding("a")), made=made) == ["a"]


def test_the_diff_is_filled_in_from_the_users_file(tmp_path, monkeypatch):
    made = in_file(tmp_path, SLOW.source)
    monkeypatch.chdir(tmp_path)
    report = run_rules(made.analysis, load_rules([], Settings()), Settings())
    (first,) = [f for f in report.findings if f.rule == "serial-map"]
    assert first.diff is not None
    assert "-ds = ds.map(augment)\n+ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)\n" in first.diff
    assert first.fix is not None and first.fix.edits[0].value == Code("tf.data.AUTOTUNE")


def test_without_the_users_file_there_is_no_diff():
    report = run_rules(SLOW.analysis, load_rules([], Settings()), Settings())
    assert [f.diff for f in report.findings] == [None]


def test_a_fallback_rule_speaks_only_if_no_other_rule_has_a_finding_about_the_input():
    shipped = load_rules([], Settings())
    (fallback,) = [loaded for loaded in shipped if loaded.rule.is_fallback]
    random = {"random": True, "calls": AUTOTUNE}
    slow = pipeline(source(), map_("augment", ms=5, **random), batch(32), prefetch(), consumer_ms=20, cores=4).analysis
    assert {finding.rule for finding in run_rules(slow, shipped, Settings()).findings} == {fallback.id}

    serial = pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8).analysis
    assert fallback.id not in {finding.rule for finding in run_rules(serial, shipped, Settings()).findings}
    first = [fallback, *(loaded for loaded in shipped if loaded is not fallback)]
    assert fallback.id not in {finding.rule for finding in run_rules(serial, first, Settings()).findings}
    assert run_rules(serial, [fallback], Settings()).findings

    silenced = run_rules(serial, shipped, Settings(ignore=tuple(loaded.id for loaded in shipped)))
    assert not silenced.findings, "what the user silenced is not replaced by something else"

    healthy = pipeline(
        source(), map_("augment", ms=0.1, **random), batch(32), prefetch(), consumer_ms=90, cores=4
    ).analysis
    assert not run_rules(healthy, [fallback], Settings()).findings


def test_a_finding_that_only_saves_memory_leaves_the_reader_with_a_next_step():
    shipped = load_rules([], Settings())
    slow = pipeline(
        source(bytes=500_000, elements=100_000),
        shuffle(50_000),
        map_("augment", ms=5, random=True, calls=AUTOTUNE),
        batch(32),
        prefetch(),
        consumer_ms=20,
        cores=4,
    ).analysis
    rules = {finding.rule for finding in run_rules(slow, shipped, Settings()).findings}
    assert {"oversized-shuffle", "next-step"} <= rules, rules


def test_what_was_considered_and_rejected_is_reported_with_its_reason():
    def check(rule, analysis):
        yield rule.rejected("Cache after map", "64 GB do not fit", evidence=(Evidence("size", 64.0, "GB"),))
        yield rule.rejected("Vectorise map(augment)", "it is proposed below")
        yield finding("Vectorise map(augment)")(rule, analysis)
        yield finding("Prefetch", gain=1.02)(rule, analysis)

    loaded = rule_of(check)
    report = run_rules(SLOW.analysis, [loaded], Settings())
    assert [(entry.rule, entry.change) for entry in report.rejected] == [
        ("made-up", "Cache after map"),
        ("made-up", "Prefetch"),
    ]
    assert report.rejected[0].reason == "64 GB do not fit"
    assert "too small to be proved, 1.02x" in report.rejected[1].reason
    assert not run_rules(HEALTHY.analysis, [rule_of(check, needs=False)], Settings()).rejected
    assert not run_rules(SLOW.analysis, [loaded], Settings(ignore=("made-up",))).rejected

    wrong = rule_of(lambda rule, analysis: iter([rule.rejected("Cache", 3)]))
    (error,) = run_rules(SLOW.analysis, [wrong], Settings()).rule_errors
    assert error.message == "yielded a Rejected whose reason is a int, not str"


def test_shipped_rules_say_what_spoke_against_them():
    busy = pipeline(
        source(), map_("augment", ms=5, random=True), batch(32), prefetch(), consumer_ms=20, cores=4, busy_cores=3
    )
    report = run_rules(busy.analysis, load_rules([], Settings()), Settings())
    reasons = {entry.rule: entry.reason for entry in report.rejected}
    assert "no core is free: the process uses" in reasons["serial-map"]
    assert "already works ahead" in reasons["missing-prefetch"]
    assert "its elements are not known to have equal shapes" in reasons["vectorizable-map"]
    assert not {"serial-map", "missing-prefetch"} & {finding.rule for finding in report.findings}


def cached_finding(gain: float, first_pass: float | None = 1.0, call: int = 1):
    return lambda rule, analysis: rule.finding(
        f"{gain:g}x",
        "because",
        call=analysis.calls[call],
        prediction=Prediction(gain, 1.0, 99.0, first_pass=first_pass),
    )


@pytest.mark.parametrize(
    ("epochs", "order"),
    [
        ({"end": "finished", "iterators": 2, "steps": 20}, ["3x", "71x"]),
        ({"end": "finished", "iterators": 10, "steps": 100}, ["71x", "3x"]),
        ({"loops": (LOOP,)}, ["3x", "71x"]),
        ({}, ["71x", "3x"]),
    ],
    ids=["two epochs", "ten epochs", "three, assumed", "unknown"],
)
def test_findings_are_ranked_by_what_they_save_in_the_run(epochs, order):
    made = script(*STAGES, **epochs)
    rules = [says(cached_finding(71), cached_finding(3, None, 0))]
    report = run_rules(made, rules, Settings())
    assert [finding.title for finding in report.findings] == order
    assert all(finding.over_run is not None for finding in report.findings)
    assert report.outlook.horizon.basis == report.findings[0].over_run.basis


def test_a_cache_that_gains_nothing_in_a_known_number_of_epochs_is_not_a_finding():
    rules = [says(cached_finding(1.08), cached_finding(1.07, None, 0))]
    known = script(*STAGES, end="finished", iterators=2, steps=20)
    assert [finding.title for finding in run_rules(known, rules, Settings()).findings] == ["1.07x"]
    for other in (script(*STAGES), script(*STAGES, loops=(replace(LOOP, count=2),))):
        assert len(run_rules(other, rules, Settings()).findings) == 2
