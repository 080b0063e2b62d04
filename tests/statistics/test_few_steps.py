"""The verdict on one step describes that step: its wait, the cause of it, and how little a single step shows. Times in us."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine import load_rules
from advisor.model.pipeline import StepStats
from advisor.model.settings import Settings
from advisor.statistics.few_steps import add_few_steps_verdict
from advisor.workflows.analyze import analyze_run
from tests.hosts.made_hosts import RUN
from tests.profile.made_profile import ProfileBuilder
from tests.report.made_reports import slow_report

NAMES = (
    "Iterator::Root",
    "Iterator::Root::BatchV2",
    "Iterator::Root::BatchV2::Map",
    "Iterator::Root::BatchV2::Map::Range",
)
DOUBT = "One step may not be typical, least of all directly after the start of the profiler: capture at least 10 to be sure."


def training(*, calls=(), requests=(), marks=(), of_another_device=()):
    """A program that calls its training function, requests elements and marks steps at these (start, end)."""
    profile = ProfileBuilder()
    python = profile.host.line("python")
    for number, (start, end) in enumerate(marks):
        python.event("train", start, end, step_num=number, _r=1)
    for start, end in calls:
        python.event("train_step", start, end, tf_function_call="notTraced-nonXla")
    for device, spans in enumerate((requests, of_another_device)):
        waiting = profile.host.line(f"tf_data_iterator_get_next/{device}")
        for start, end in spans:
            for depth, name in enumerate(NAMES):  # nearly all of the time is the Map's own
                inset = (end - start) * (0.01 * depth if depth < 3 else 0.49)
                parent = depth + 10 * device if depth else 0
                waiting.event(name, start + inset, end - inset, id=depth + 1 + 10 * device, parent_id=parent)
    return profile


def report_of(profile, tmp_path):
    profile.write(tmp_path / RUN / "worker.xplane.pb")
    return analyze_run(tmp_path, load_rules([], Settings()), Settings())


def analysis_of(profile, tmp_path):
    return report_of(profile, tmp_path).analysis


def test_one_step_has_a_verdict_a_bottleneck_and_both_paths(tmp_path):
    """As of Keras' TensorBoard callback: one call of the training function, and the request for its element inside."""
    analysis = analysis_of(training(calls=[(1000, 2000)], requests=[(1100, 1900)]), tmp_path)
    verdict, main = analysis.verdict, analysis.main
    assert (verdict.level, verdict.is_input_bound, verdict.limit, verdict.certainty) == (
        "high",
        True,
        "pipeline",
        "low",
    )
    assert verdict.input_wait_share == pytest.approx(0.8) == main.wait_share
    assert verdict.max_speedup is None, "of the training it is unknown"
    assert verdict.sentence == (
        "Input was the problem in the only step of the profile: 80 % of 1 ms was spent waiting for the input pipeline. "
        f"{DOUBT} The longest request for an element took 800 us."
    )
    assert (verdict.steps.count, verdict.steps.mean_ns, verdict.steps.low_ns) == (1, 1_000_000, None)
    assert main.iterator(main.bottleneck.iterator_id).name == "Map"
    assert sum(it.blame_ns for it in main.iterators) == pytest.approx(main.wait_ns, abs=10)
    assert [it.name for it in main.iterators if it.is_on_critical_path][:3] == ["Root", "BatchV2", "Map"]
    assert "Map" in [it.name for it in main.iterators if it.is_on_classic_path]


@pytest.mark.parametrize(
    ("wait", "level", "opening"),
    [
        (0.3, "none", "Input was not the problem in"),
        (100, "moderate", "Input cost some time in"),
        (600, "high", "Input was"),
    ],
)
def test_the_level_has_the_thresholds_of_every_verdict(tmp_path, wait, level, opening):
    verdict = analysis_of(training(calls=[(1000, 2000)], requests=[(1100, 1100 + wait)]), tmp_path).verdict
    assert (verdict.level, verdict.is_input_bound) == (level, level != "none")
    assert verdict.input_wait_share == pytest.approx(wait / 1000)
    assert verdict.sentence.startswith(opening) and DOUBT in verdict.sentence


def test_findings_on_one_step_predict_nothing(tmp_path):
    report = report_of(training(calls=[(1000, 2000)], requests=[(1100, 1900)]), tmp_path)
    assert report.findings and report.outlook is None
    assert all(finding.prediction is None and finding.over_run is None for finding in report.findings)


@pytest.mark.parametrize("request_", [(400, 1000), (2000, 2600)])
def test_a_request_beside_the_call_belongs_to_the_step(tmp_path, request_):
    """`batch = next(iterator)` before `train_step(batch)`: the wait is outside the function, and the step is not."""
    verdict = analysis_of(training(calls=[(1000, 2000)], requests=[request_]), tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(600 / 1600)
    assert "in the only step of the profile, the request beside it included: 37.5 % of 1.6 ms" in verdict.sentence


def test_a_short_request_beside_the_step_leaves_xprofs_figures(tmp_path):
    verdict = analysis_of(training(calls=[(1000, 2000)], requests=[(990, 1000)]), tmp_path).verdict
    assert (verdict.input_wait_share, verdict.steps.mean_ns) == (0, 1_000_000)
    assert "in the only step of the profile: 0 % of 1 ms" in verdict.sentence


def test_requests_of_several_devices_at_a_time_are_one_wait(tmp_path):
    both = training(calls=[(1000, 2000)], requests=[(400, 1000)], of_another_device=[(500, 999)])
    verdict = analysis_of(both, tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(600 / 1600)


def test_the_request_of_a_step_that_was_cut_off_does_not_count(tmp_path):
    verdict = analysis_of(training(calls=[(1000, 2000)], requests=[(1100, 1200), (2300, 2900)]), tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(0.1) and verdict.steps.mean_ns == 1_000_000


def test_between_two_requests_lies_a_step_even_if_the_function_excludes_them(tmp_path):
    verdict = analysis_of(training(calls=[(1500, 1900)], requests=[(1000, 1500), (2000, 2800)]), tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(0.5)
    assert (verdict.steps.count, verdict.certainty) == (1, "low")


def test_a_single_mark_is_a_step(tmp_path):
    verdict = analysis_of(training(marks=[(1000, 3000)], requests=[(1000, 2000)]), tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(0.5)
    assert "in the only step of the profile: 50 % of 2 ms" in verdict.sentence


def test_two_steps_are_told_as_two(tmp_path):
    steps = [(1000, 2000), (2000, 3000)]
    verdict = analysis_of(training(calls=steps, requests=[(1000, 1500), (2000, 2300)]), tmp_path).verdict
    assert verdict.input_wait_share == pytest.approx(0.4)
    assert "in the 2 steps of the profile: 40 % of 1 ms each (mean)" in verdict.sentence
    assert "Two steps may not be typical" in verdict.sentence


def test_without_evidence_of_a_step_there_is_no_verdict(tmp_path):
    verdict = analysis_of(training(requests=[(1000, 1500)]), tmp_path).verdict
    assert (verdict.level, verdict.certainty, verdict.input_wait_share) == ("unknown", "none", None)
    assert "no whole step" in verdict.sentence and "took 500 us" in verdict.sentence


def test_enough_steps_keep_the_verdict_of_the_graph(tmp_path):
    analysis = slow_report().analysis
    assert add_few_steps_verdict(analysis) is analysis
    one = analysis_of(training(calls=[(1000, 2000)], requests=[(1100, 1900)]), tmp_path)
    three = replace(one, pipelines=(replace(one.main, steps=StepStats(3, *[1_000_000] * 5)),))
    assert add_few_steps_verdict(three) is three


def test_of_several_hosts_with_one_step_each_the_most_input_bound_is_judged(tmp_path):
    for host, wait in (("a", 100), ("b", 800), ("c", 300)):
        profile = training(calls=[(1000, 2000)], requests=[(1100, 1100 + wait)])
        profile.message.hostnames[0] = host.encode()
        profile.write(tmp_path / RUN / f"{host}.xplane.pb")
    analysis = analyze_run(tmp_path, [], Settings()).analysis
    assert "in the only step of the profile: 80 %" in analysis.verdict.sentence
    assert analysis.verdict.sentence.endswith("Host: b, the most input-bound of 3.")
    assert analysis.main.host == "b" and sum(pipeline.is_main for pipeline in analysis.pipelines) == 1
    rows = [(host.hostname, host.steps, pytest.approx(host.input_wait_share)) for host in analysis.hosts.hosts]
    assert rows == [("b", 1, 0.8), ("c", 1, 0.3), ("a", 1, 0.1)]
    assert not any(host.is_straggler for host in analysis.hosts.hosts), "one step each makes no straggler"


def test_a_generator_without_a_recording_is_the_scripts_own(tmp_path):
    """Its iterator has TensorFlow's default name, as those that a distribution strategy adds."""
    profile = ProfileBuilder()
    line = profile.host.line("python")
    line.event("train_step", 1000, 2000, tf_function_call="notTraced-nonXla")
    for depth, kind in enumerate(("", "::BatchV2", "::BatchV2::FlatMap", "::BatchV2::FlatMap::Generator")):
        name = ("RootDataset", "BatchDatasetV2:5", "FlatMapDataset:4", "GeneratorDataset:2")[depth]
        line.event(f"Iterator::Root{kind}", 1100 + depth, 1900 - depth, id=depth + 1, parent_id=depth, name=name)
    main = analysis_of(profile, tmp_path).main
    assert main.iterator(main.bottleneck.iterator_id).name == "Generator"


def test_what_ran_in_a_call_that_began_before_the_profile_is_told(tmp_path):
    """A batch took long and was begun before: its own event is missing, those of its elements are there."""
    profile = ProfileBuilder()
    python, worker = profile.host.line("python"), profile.host.line("tf_data_iterator_resource/1")
    python.event("train_step", 1000, 2000, tf_function_call="notTraced-nonXla")
    python.event("Iterator::Root", 1100, 1900, id=1)
    python.event("Iterator::Root::Prefetch", 1101, 1899, id=2, parent_id=1)
    for start in range(100, 2900, 100):
        worker.event("Iterator::Root::Prefetch::BatchV2::Map", start, start + 99, id=4, parent_id=3)
    analysis = analysis_of(profile, tmp_path)
    main, (fragment,) = analysis.main, [pipeline for pipeline in analysis.pipelines if not pipeline.is_main]
    assert main.root.name == "Root" and main.bottleneck is None, "although the other calls took longer"
    assert (fragment.steps, fragment.wait_ns) == (None, 0), "nobody is known to have waited for them"
    assert any(
        note.startswith(
            "Iterator::Root::Prefetch::BatchV2::Map belongs to it, but the call that it ran in began before"
        )
        for note in main.notes
    )
