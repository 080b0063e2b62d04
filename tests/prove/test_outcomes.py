"""What is applied, and in which words: a pipeline's proved gain is neither lost in noise nor applied where no training gains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.edits import InsertAfter
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.outcome import Interval
from advisor.model.recording import Recording, ScriptExit
from advisor.model.settings import Settings
from advisor.model.untried import Why
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.outcomes import ProofFacts, is_proved, report_of, sentence_of
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.script_proof import prove_on_script
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER, Trial
from advisor.testing import batch, map_, pipeline, shuffle, source

RUN = RunSteps(10.0, 0.5, 50, 100)
ALONE = Trial(FASTER, Interval(3.1, 3.0, 3.2), 10.0, 31.0, 6)


def finding(name: str) -> Finding:
    fix = Fix((InsertAfter(name, "cache"),), Safety.EXACT, is_auto=True)
    return Finding(name, f"Do {name}", "", prediction=Prediction(2, 2, 2), fix=fix)


def whole(verdict: str, *interval: float) -> EndToEnd:
    return EndToEnd(verdict, Interval(*interval) if interval else None, (RUN,) * 6, (RUN,) * 6)


def loop_of(*names: str) -> LoopResult:
    findings = tuple(finding(name) for name in names)
    return LoopResult(tuple(Attempt(finding, ALONE, is_kept=True) for finding in findings), findings, ALONE)


@pytest.mark.parametrize(
    ("result", "is_applied", "verdict"),
    [
        (None, True, FASTER),
        (whole(FASTER, 2.0, 1.9, 2.1), True, FASTER),
        (whole(REFUSED), True, FASTER),
        (replace(whole(REFUSED), is_out_of_time=True), False, FASTER),  # more time could contradict it
        (replace(whole(REFUSED, 1.2, 0.97, 1.5), is_out_of_time=True), False, FASTER),
        (whole(SAME, 1.0, 0.99, 1.01), False, SAME),
        (whole(SAME, 1.01, 0.9, 1.2), False, SAME),  # most probably nothing
        (whole(SAME, 1.02, 1.01, 1.03), False, SAME),  # surely not worth it
        (whole(SAME, 1.2, 0.97, 1.5), True, FASTER),  # most probably worth it, and these runs cannot tell
        (whole(SLOWER, 0.9, 0.8, 0.95), False, SLOWER),
        (whole(BROKEN), False, BROKEN),
    ],
)
def test_what_is_applied(result: EndToEnd | None, is_applied: bool, verdict: str) -> None:
    assert is_proved(result) == is_applied
    actual, sentence = sentence_of(loop_of("cache"), result)
    assert actual == verdict
    assert ("No change is applied" in sentence or "not applied" in sentence) == (not is_applied)
    assert "3.1x (3.0x to 3.2x)" in sentence or result == whole(FASTER, 2.0, 1.9, 2.1)


@pytest.mark.parametrize(
    ("before", "after", "because"),
    [
        (None, 0.1, "(1.00x (0.99x to 1.01x)). No change is applied."),
        (0.02, 0.01, "wait for input only 2 % of the time"),
        (0.6, 0.55, "still wait for input while the model trains (60 % before, 55 % after)"),
        (0.6, 0.1, "but compute longer: pipeline and model share the cores"),
    ],
)
def test_why_a_training_gains_nothing(before: float | None, after: float | None, because: str) -> None:
    _, sentence = sentence_of(loop_of("cache"), whole(SAME, 1.0, 0.99, 1.01), before, after)
    assert because in sentence


@pytest.mark.parametrize(
    ("result", "proved_on", "training", "first_words"),
    [
        (whole(FASTER, 2.0, 1.9, 2.1), "training", FASTER, "Proved on the training: "),
        (None, "pipeline", "not measured", "Proved on the pipeline alone: "),
        (replace(whole(REFUSED), is_out_of_time=True), "pipeline", "not measured", "Proved on the pipeline alone: "),
        (whole(SAME, 1.2, 0.97, 1.5), "pipeline", "undecided", "Proved on the pipeline alone: "),
        (
            replace(whole(REFUSED, 1.0, 0.9, 1.1), is_out_of_time=True),
            "pipeline",
            "undecided",
            "Proved on the pipeline alone: ",
        ),
        (whole(SAME, 1.0, 0.99, 1.01), "pipeline", SAME, "Proved on the pipeline alone: "),
        (whole(SLOWER, 0.9, 0.8, 0.95), "pipeline", SLOWER, "Proved on the pipeline alone: "),
        (whole(BROKEN), None, BROKEN, "Proved on the pipeline alone: "),
    ],
)
def test_the_report_says_where_the_gain_was_proved(
    result: EndToEnd | None, proved_on: str | None, training: str, first_words: str
) -> None:
    report = run_rules(pipeline(source(), batch(32), consumer_ms=5).analysis, [], Settings())
    report = report_of(report, loop_of("cache"), result, ProofFacts(is_applied=is_proved(result)))
    assert report.proof is not None
    assert (report.proof.proved_on, report.proof.training) == (proved_on, training)
    assert report.proof.sentence.startswith(first_words)
    (fix,) = report.fixes
    assert fix.proved_on == ("training" if training == FASTER else "pipeline")
    assert fix.is_applied == is_proved(result)


def test_what_is_not_faster_is_proved_nowhere() -> None:
    report = run_rules(pipeline(source(), batch(32), consumer_ms=5).analysis, [], Settings())
    loop = LoopResult((Attempt(finding("cache"), replace(ALONE, verdict=SAME), is_kept=False),))
    report = report_of(report, loop, None, ProofFacts())
    assert report.proof is not None
    assert (report.proof.proved_on, report.proof.training, report.fixes[0].proved_on) == (None, "not measured", None)


def test_changes_that_were_only_measured_one_by_one_are_not_said_to_be_measured_together() -> None:
    loop = replace(loop_of("a", "b"), total=None)
    _, sentence = sentence_of(loop, None)
    assert sentence == "Proved on the pipeline alone, each change separately. The training was not measured."


class Runs:
    """Stands for the runs of a script: `results` by the names of the changes; None is no time for them."""

    def __init__(self, **results: EndToEnd | None) -> None:
        self.results, self.notes, self.measured = results, [], []
        self.method_of: dict[str, str] = {}

    def measure(self, base, candidate, title):
        names = "_".join(finding.rule for finding in candidate)
        self.measured.append(names)
        return self.results[names]


def test_one_change_that_breaks_the_script_does_not_cost_the_others() -> None:
    runs = Runs(a_b_c=whole(BROKEN), a_b=whole(SLOWER, 0.8, 0.7, 0.9), a=whole(FASTER, 2.0, 1.9, 2.1))
    result, proved = prove_on_script(loop_of("a", "b", "c"), runs)
    assert runs.measured == ["a_b_c", "a_b", "a"]
    assert [finding.rule for finding in result.kept] == ["a"]
    assert [attempt.is_kept for attempt in result.attempts] == [True, False, False]
    assert result.total == ALONE
    assert proved is not None
    assert proved.verdict == FASTER
    assert runs.notes == [
        "Do c was reverted: with it the whole script fails.",
        "Do b was reverted: with it the whole script is slower.",
    ]


def test_without_time_to_find_the_culprit_nothing_is_proved() -> None:
    runs = Runs(a_b=whole(BROKEN), a=None)
    result, proved = prove_on_script(loop_of("a", "b"), runs)
    assert proved is not None
    assert not is_proved(proved)
    assert len(result.kept) == 2
    assert runs.notes == []


def test_what_the_runs_of_one_change_had_shown_when_the_time_was_used_up_belongs_to_that_change() -> None:
    waiting = Trial(REFUSED, note="Its dataset cannot be rebuilt.", is_replayable=False)
    loop = LoopResult((Attempt(finding("a"), waiting, is_kept=False),))
    undecided = replace(whole(REFUSED, 1.2, 0.9, 1.5), is_out_of_time=True, note="Undecided after 3 pairs.")
    result, proved = prove_on_script(loop, Runs(a=undecided))
    assert proved is None and not result.kept
    assert (result.attempts[0].trial.verdict, result.attempts[0].trial.note) == (REFUSED, "Undecided after 3 pairs.")


def test_a_change_with_which_the_script_ended_too_soon_says_so() -> None:
    waiting = Trial(REFUSED, note="The whole script was not measured with it.", is_replayable=False)
    loop = LoopResult((Attempt(finding("a"), waiting, is_kept=False),))
    too_short = EndToEnd(REFUSED, note="The script ended before its steps could be timed.", is_run_too_short=True)
    (attempt,) = prove_on_script(loop, Runs(a=too_short))[0].attempts
    assert (attempt.why, attempt.trial.note) == (Why.RUN_TOO_SHORT, too_short.note)


@pytest.mark.parametrize(("trial", "has_plan"), [(ALONE, True), (replace(ALONE, verdict=SAME), False)])
def test_a_plan_that_was_tried_in_vain_is_not_repeated(trial: Trial, has_plan: bool) -> None:
    stages = source(bytes=20_000), map_("decode", ms=5, bytes=9_000), shuffle(), batch(32)
    report = run_rules(pipeline(*stages, consumer_ms=5, epochs=3).analysis, load_rules([], Settings()), Settings())
    assert report.outlook is not None and report.outlook.plan is not None
    planned = report.findings[report.outlook.plan.findings[0]]
    attempt = Attempt(planned, trial, is_kept=trial.verdict == FASTER)
    loop = LoopResult((attempt,), (planned,) if attempt.is_kept else ())
    proved = report_of(report, loop, None, ProofFacts())
    assert proved.outlook is not None and (proved.outlook.plan is not None) == has_plan
    assert proved.outlook.limits == report.outlook.limits


def advised(is_pipeline_alone=False):
    """A report of a training (or of the pipeline alone) with the fixes that the rules propose for it."""
    made = pipeline(
        source(), map_("augment", ms=4, random=True), shuffle(), batch(32), consumer_ms=80, cores=16
    ).analysis
    recording = Recording("train.py", made.host, ScriptExit("stopped"), is_pipeline_alone=is_pipeline_alone)
    report = run_rules(
        replace(made, recording=recording if is_pipeline_alone else None), load_rules([], Settings()), Settings()
    )
    first = next(finding for finding in report.findings if finding.rule == "serial-map")
    return report, first


def test_the_pipeline_alone_and_the_training_step_are_predicted_and_measured_apart():
    report, first = advised()
    loop = LoopResult((Attempt(first, ALONE, is_kept=True),), (first,), ALONE)
    done = report_of(report, loop, whole(FASTER, 2.0, 1.9, 2.1), ProofFacts()).fixes[0]
    assert done.step.predicted == first.prediction
    assert done.step.measured == Interval(2.0, 1.9, 2.1)
    assert done.pipeline.measured == ALONE.speedup
    # 4 ms on 16 cores: the map alone gets 16 times faster, a step of which the consumer has 80 ms of its own does not
    assert done.pipeline.predicted.value > 2 * first.prediction.value
    assert done.pipeline.predicted.low <= done.pipeline.predicted.value <= done.pipeline.predicted.high

    run = LoopResult((Attempt(first, ALONE, is_kept=True, is_end_to_end=True),), (first,), None)
    done = report_of(report, run, None, ProofFacts()).fixes[0]
    assert (done.pipeline.measured, done.step.measured) == (None, ALONE.speedup)


def test_a_later_analysis_predicts_the_pipeline_alone():
    report, first = advised()
    later = replace(first, prediction=Prediction(9, 8, 10))  # the same change, proposed on top of another
    other = finding("cache")
    loop = LoopResult((Attempt(other, ALONE, True), Attempt(later, ALONE, True)), (other, later), ALONE)
    *_, done = report_of(report, loop, whole(FASTER, 2.0, 1.9, 2.1), ProofFacts()).fixes
    assert done.pipeline.predicted == later.prediction
    assert done.step.predicted == first.prediction
    assert done.step.measured is None, "the training ran with both changes"

    alone, first = advised(is_pipeline_alone=True)
    done = report_of(alone, LoopResult((Attempt(first, ALONE, True),), (first,), ALONE), None, ProofFacts()).fixes[0]
    assert (done.pipeline.predicted, done.step.predicted) == (first.prediction, None)


def test_nothing_to_fix_is_only_said_when_input_is_not_the_problem():
    report, first = advised()
    tried = LoopResult((Attempt(first, replace(ALONE, verdict=SAME), False),))
    for loop in (LoopResult(), tried):
        sentence = report_of(report, loop, None, ProofFacts()).proof.sentence
        assert "othing to fix" not in sentence
    assert (
        f"Next step: {first.title} (train.py:4)." in report_of(report, LoopResult(), None, ProofFacts()).proof.sentence
    )

    verdict = replace(report.analysis.verdict, is_input_bound=False, level="none")
    healthy = replace(report, analysis=replace(report.analysis, verdict=verdict), findings=())
    assert report_of(healthy, LoopResult(), None, ProofFacts()).proof.sentence == "Nothing to fix."


def test_the_first_line_names_the_command_that_permits_more():
    report, first = advised()
    report = replace(report, permission="1 fix needs your permission: advisor fix --allow rerandomized train.py")
    sentence = report_of(report, LoopResult(), None, ProofFacts(left_out=("a: b",))).proof.sentence
    assert sentence.startswith("1 fix needs your permission: advisor fix --allow rerandomized train.py. ")
    loop = LoopResult((Attempt(first, ALONE, True),), (first,), ALONE)
    assert report_of(report, loop, None, ProofFacts()).proof.sentence.endswith(f"{report.permission}.")


@pytest.mark.parametrize("is_applied", [True, False])
def test_what_an_equal_variant_would_cost_is_told_with_the_change_that_is_applied(is_applied: bool) -> None:
    report, first = advised()
    first = replace(first, trade="A cache after batch would take 2 GiB.")
    loop = LoopResult((Attempt(first, ALONE, is_kept=True),), (first,), ALONE)
    (done,) = report_of(report, loop, None, ProofFacts(is_applied=is_applied)).fixes
    assert ("A cache after batch would take 2 GiB." in done.note) is is_applied
