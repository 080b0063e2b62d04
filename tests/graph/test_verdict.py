"""The verdict where there is little to judge: which of the reasons is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.graph import analyse
from advisor.graph.unmarked_steps import Steps, describe
from advisor.graph.verdict import certainty_of, judge
from advisor.model.calls import Call
from advisor.model.pipeline import StepStats, Verdict
from advisor.model.recording import Accelerator, Consumer, Host, Recording, ScriptExit, StepSeries, Window
from advisor.model.units import format_rate
from advisor.testing import batch, map_, pipeline, prefetch, source

MS = 1_000_000
STARTS = tuple(range(0, 40 * MS, 4 * MS))
RECORDED = Recording(
    target="train.py",
    host=Host("h", 2.0, 2, 8 << 30, 4 << 30),
    script_exit=ScriptExit("finished"),
    calls=(Call("c0", "range", None),),
    consumers=(Consumer("k0", "c0", "for", None, is_main=True),),
    steps=(StepSeries("k0", STARTS),),
    window=Window(0, 40 * MS, 2, 10, "steps"),
)
ENDED = "TensorFlow's profiler could not be started (AlreadyExistsError: Another profiler is running.)."


def sentence_of(recording: Recording) -> str:
    verdict = analyse(None, recording, "train.py").verdict
    assert verdict.level == "unknown" and verdict.input_wait_share is None
    return verdict.sentence


def test_a_profiler_that_could_not_start_is_the_reason_whether_or_not_a_window_opened():
    """Neither that the script ended too early, nor that no iterator ran, is true then."""
    for window in (RECORDED.window, None):
        sentence = sentence_of(replace(RECORDED, unprofiled=ENDED, window=window))
        assert sentence == (
            f"No profile was taken, so the time spent waiting for input is unknown. {ENDED} 9 steps were timed; the "
            "median is 4 ms."
        )


def test_other_reasons_stay():
    assert "ended before anything could be profiled" in sentence_of(replace(RECORDED, window=None))
    assert "No tf.data iterator ran" in sentence_of(RECORDED)
    assert "creates no tf.data dataset" in sentence_of(replace(RECORDED, calls=()))


@pytest.mark.long
def test_the_verdict_and_the_overview_say_which_steps_their_shares_are_of():
    """Their shares of the same run differ: one is timed without the profiler, the other is read off the profile."""
    from pathlib import Path

    from advisor.model.settings import Settings
    from advisor.workflows.analyze import analyze_run

    data = Path(__file__).parents[1] / "data"
    seen, waits = set(), 0
    for run in sorted(path.parent for path in data.glob("*/recording.json")):
        analysis = analyze_run(run, [], Settings()).analysis
        verdict = analysis.verdict
        if verdict.input_wait_share is None:
            continue
        seen.add(verdict.wait_steps)
        words = {
            "profiled": "(profiled steps)",
            "unprofiled": "(steps without the profiler)",
            "estimated": "(steps without the profiler, estimated from the profiled ones)",
        }
        assert words[verdict.wait_steps] in verdict.sentence
        overview = analysis.statistics.overview if analysis.statistics else None
        for sentence in overview.next_steps if overview else ():
            if "waiting for input" in sentence:
                waits += 1
                assert "of the profiled steps' time" in sentence
    assert seen == {"profiled", "estimated"} and waits >= 5


def verdict_of(count: int, low: float | None = None, high: float | None = None, **more) -> Verdict:
    """On `count` steps of 10 ms that wait half of their time, and from `low` to `high` of it."""
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=10).analysis
    steps = StepStats(count, *[10 * MS] * 5, wait_share_low=low, wait_share_high=high)
    main = replace(made.main, steps=steps, span_ns=count * 10 * MS, wait_ns=count * 5 * MS)
    return judge((main,), None, **more)


@pytest.mark.parametrize(
    ("count", "certainty"),
    [(0, "none"), (1, "low"), (2, "low"), (3, "medium"), (9, "medium"), (10, "high"), (99, "high")],
)
def test_the_number_of_steps_is_how_sure_a_verdict_is(count, certainty):
    assert certainty_of(count) == certainty
    if count:
        verdict = verdict_of(count)
        assert (verdict.certainty, verdict.level, verdict.is_tentative) == (certainty, "high", count < 3)
        assert (verdict.max_speedup is None) == (count < 3)


def test_few_steps_are_told_with_the_range_of_their_waits():
    few = verdict_of(4, 0.42, 0.61).sentence
    assert few.startswith("Input is the problem: 50 % of the step time")
    assert few.endswith(" Only 4 steps were measured, which waited 42 % to 61 % of their time: others may differ.")
    assert verdict_of(4, 0.5, 0.5).sentence.endswith(" Only 4 steps were measured: others may differ.")
    assert "Only" not in verdict_of(10, 0.1, 0.9).sentence


def test_one_or_two_steps_are_judged_in_the_past_tense():
    assert verdict_of(1).sentence.startswith(
        "Input was the problem in the only step of the profile: 50 % of 10 ms was spent waiting for the input pipeline. One "
        "step may not be typical, least of all directly after the start of the profiler: capture at least 10 to be sure."
    )
    timed = verdict_of(2, wait_steps="unprofiled").sentence
    assert "in the 2 steps that were timed: 50 % of 10 ms each (mean)" in timed
    assert "Two steps may not be typical: capture" in timed, "no profiler ran then"


def test_steps_that_a_library_queues_are_judged_with_doubt():
    """While Python waits for a batch, the device may still compute earlier steps; only a second run shows what the wait costs."""
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=10).analysis
    steps = StepStats(40, median_ns=MS, p95_ns=MS, mean_ns=10 * MS, low_ns=MS, high_ns=MS)
    main = replace(made.main, steps=steps, span_ns=400 * MS, wait_ns=160 * MS)
    queued = replace(RECORDED, steps_queued_by="JAX")
    sure, doubtful = (judge((main,), recording).sentence for recording in (RECORDED, queued))
    assert sure.startswith("Input is the problem: 40 %") and "JAX" not in sure
    assert (
        doubtful.startswith("Input may be the problem: 40 %")
        and "JAX runs steps after they have been started" in doubtful
    )
    assert "at most 1.67x faster" in doubtful

    verdict = judge((main,), replace(queued, ceiling_step_ns=(0, 0, 30 * MS) * 10))
    assert verdict.is_ceiling_measured and verdict.max_speedup == pytest.approx(1.0), (
        "of the mean: the median takes no time"
    )


def test_a_measured_ceiling_counts_all_steps_as_the_wait_does():
    """In epochs of four steps, the first of each may hold all of the wait: the median step has none of it."""
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=10).analysis
    times = (9 * MS, MS, MS, MS) * 10
    steps = describe(
        Steps(*(np.array(column, np.int64) for column in zip(*[(0, t, 0, 0, t - MS) for t in times], strict=True)))
    )
    main = replace(made.main, steps=steps, span_ns=sum(times), wait_ns=80 * MS)
    verdict = judge((main,), replace(RECORDED, ceiling_step_ns=(MS,) * 40))
    assert verdict.input_wait_share == pytest.approx(2 / 3)
    assert verdict.max_speedup == pytest.approx(3.0, rel=0.01), "as 1 / (1 - wait): not the 1x of the medians"
    noisy = judge((main,), replace(RECORDED, ceiling_step_ns=(*[MS] * 20, 100 * MS, *[MS] * 19)))
    assert noisy.max_speedup == 1.0 and "repeated: 1.00x to " in noisy.sentence, "one slow step leaves the ceiling open"


def test_steps_after_the_window_tell_the_ceiling_unless_they_are_only_started():
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=10).analysis
    times = (10 * MS,) * 40
    steps = describe(
        Steps(*(np.array(column, np.int64) for column in zip(*[(0, t, 0, 0, t // 2) for t in times], strict=True)))
    )
    main = replace(made.main, steps=steps, span_ns=sum(times), wait_ns=sum(times) // 2)
    recording = replace(RECORDED, idle_step_ns=(2 * MS,) * 30)
    verdict = judge((main,), recording)
    assert verdict.is_ceiling_measured and verdict.max_speedup == pytest.approx(5.0)
    assert "a step at most 5.0x faster (measured with the last batch repeated)" in verdict.sentence
    host = replace(RECORDED.host, accelerators=(Accelerator("GPU", "a"),))
    for queued in (replace(recording, host=host), replace(recording, steps_queued_by="JAX")):
        verdict = judge((main,), queued)
        assert not verdict.is_ceiling_measured and verdict.max_speedup == pytest.approx(2.0)
    both = judge((main,), replace(recording, ceiling_step_ns=(4 * MS,) * 30))
    assert both.max_speedup == pytest.approx(2.5) and "with the first batch repeated" in both.sentence


def test_a_pipeline_that_keeps_up_with_queued_steps_is_no_problem():
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=10).analysis
    idle = replace(made.main, wait_ns=made.main.span_ns // 100)
    queued = replace(RECORDED, steps_queued_by="JAX")
    assert judge((idle,), queued).sentence == judge((idle,), RECORDED).sentence


def test_one_element_of_a_pipeline_alone_is_no_rate():
    made = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=0.001).analysis
    main = replace(made.main, steps=StepStats(1, *[10 * MS] * 5))
    verdict = judge((main,), replace(RECORDED, is_pipeline_alone=True))
    assert (verdict.level, verdict.certainty) == ("unknown", "low")
    assert verdict.sentence.startswith("The pipeline produced only 1 element, too few to measure its rate")


def test_a_pipeline_alone_is_judged_by_its_rate_not_by_a_wait():
    """There is no training, so that neither a share of its step nor a maximum speedup of it says anything."""
    made = pipeline(
        source(), map_("decode", ms=2, random=True), batch(32), prefetch(), consumer_ms=0.001, cores=4
    ).analysis
    recording = replace(RECORDED, is_pipeline_alone=True)
    verdict = judge(made.pipelines, recording)
    assert verdict.is_input_bound and verdict.max_speedup is None
    rate = made.main.elements_per_s
    assert format_rate(rate, "batches", "batch") in verdict.sentence
    assert f"({format_rate(32 * rate)})" in verdict.sentence
    assert "map(decode) at train.py:4 takes" in verdict.sentence
    assert "No training was measured" in verdict.sentence
    for wrong in ("waiting for the input", "faster", "step"):
        assert wrong not in verdict.sentence
    assert "waiting for the input" in judge(made.pipelines, RECORDED).sentence

    rows = pipeline(source(), map_("decode", ms=2, random=True), prefetch(), consumer_ms=0.001, cores=4).analysis
    sentence = judge(rows.pipelines, recording).sentence
    assert format_rate(rows.main.elements_per_s) in sentence and "batches" not in sentence
