"""What the README beside other people's profiles says of each comes out of the tool: one test per fact.

The profiles lie beside the checkout, not in it.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

from advisor.cli import main
from advisor.engine import load_rules
from advisor.model.settings import Settings
from advisor.model.units import format_ns, format_share
from advisor.report.report_json import report_to_dict
from advisor.report.report_text import print_report
from advisor.workflows.analyze import analyze_run

PROFILES = Path(__file__).parents[1] / "../shared/profiles"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PROFILES.is_dir(), reason="no real profiles beside the checkout"),
]


@cache
def report_of(folder: str):
    return analyze_run(PROFILES / folder, load_rules((), Settings()), Settings())


def text_of(folder: str) -> str:
    """The report for people, on one line."""
    file = io.StringIO()
    print_report(report_of(folder), Console(file=file, width=100))
    return " ".join(file.getvalue().split())


def json_of(folder: str) -> dict:
    return report_to_dict(report_of(folder))


def chains_of(folder: str) -> list[list[str]]:
    """The iterator types of each pipeline, root first."""
    return [[it.name for it in pipeline.iterators] for pipeline in report_of(folder).analysis.pipelines]


def test_synchronous_is_the_simplest_pipeline_without_prefetch():
    assert chains_of("cpu-tf23-synchronous") == [["Model", "BatchV2", "ShuffleAndRepeat", "TensorSlice"]]
    iterators = report_of("cpu-tf23-synchronous").analysis.pipelines[0].iterators
    assert sum(it.num_calls for it in iterators) == 258
    assert [[call.method for call in it.calls] for it in iterators] == [
        [],
        ["batch"],
        ["shuffle", "repeat"],
        ["from_tensor_slices"],
    ]
    assert "Iterator::Model::BatchV2: 1 call, batch_size 128" in text_of("cpu-tf23-synchronous")


def test_one_unmarked_step_is_told_as_one_step():
    verdict = report_of("cpu-tf23-synchronous").analysis.verdict
    assert (verdict.level, verdict.is_input_bound, verdict.certainty) == ("none", False, "low")
    assert verdict.max_speedup is None
    assert "not the problem in the only step of the profile: 0.9 % of 82.2 ms was spent waiting" in verdict.sentence
    assert "One step may not be typical" in verdict.sentence
    assert "The longest request for an element took 720 us." in verdict.sentence


@pytest.mark.parametrize(
    ("folder", "level"),
    [
        ("cpu-tf23-synchronous", "none"),
        ("cpu-tf23-mirrored", "none"),
        ("gpu-tf24-many-kernels", "none"),
        ("gpu-tf24-no-libcupti", "none"),
        ("gpu-tf24-truncated", "none"),
        ("gpu-tf25-mirrored", "none"),
        ("gpu-tf24-multi-gpu", "moderate"),
        ("gpu-tf25-mixed-precision", "moderate"),
        ("gpu-tf24-prefetch", "high"),
    ],
)
def test_every_profile_of_one_step_has_a_verdict(folder, level):
    report = report_of(folder)
    verdict = report.analysis.verdict
    assert (verdict.level, verdict.certainty) == (level, "low")
    assert verdict.steps is not None and verdict.steps.count == report.analysis.statistics.overview.num_steps
    assert report.outlook is None and all(finding.prediction is None for finding in report.findings)


@pytest.mark.parametrize(
    ("folder", "step_ms"),
    [
        ("gpu-tf24-many-kernels", 406.0),
        ("gpu-tf24-multi-gpu", 21.3),
        ("gpu-tf24-prefetch", 3758.4),
        ("gpu-tf24-truncated", 151.8),
        ("gpu-tf25-mirrored", 13.5),
        ("gpu-tf25-mixed-precision", 10.9),
    ],
)
def test_the_only_step_is_as_long_as_in_xprof(folder, step_ms):
    """XProf 2.24.2 gives no input share for them (`-nan`), only the rest of the step, which it calls "All Others"."""
    assert report_of(folder).analysis.verdict.steps.mean_ns / 1e6 == pytest.approx(step_ms, abs=0.05)


@pytest.mark.parametrize(
    ("folder", "share", "wait_ms"), [("cpu-tf23-mirrored", 0.014, 0.1), ("cpu-tf23-synchronous", 0.011, 0.7)]
)
def test_the_input_of_an_only_step_is_xprofs(folder, share, wait_ms):
    """On a CPU, XProf's step is the run of the function, without the Python around it: 6.4 and 65.7 ms."""
    verdict = report_of(folder).analysis.verdict
    assert verdict.input_wait_share == pytest.approx(share, abs=0.003)
    assert verdict.input_wait_share * verdict.steps.mean_ns / 1e6 == pytest.approx(wait_ms, abs=0.05)


def test_the_verdict_on_a_step_is_xprofs_where_its_answer_was_saved():
    """Its overview page says 406.0276 ms per step and 0 % input."""
    verdict = report_of("gpu-tf24-many-kernels").analysis.verdict
    assert verdict.steps is not None and verdict.steps.mean_ns == pytest.approx(406.0276e6, rel=1e-6)
    assert verdict.input_wait_share is not None and round(verdict.input_wait_share, 3) == 0


@pytest.mark.parametrize("folder", ["gpu-tf24-prefetch", "gpu-tf24-multi-gpu", "gpu-tf24-many-kernels"])
def test_verdict_on_one_step_agrees_with_the_overview(folder):
    analysis = report_of(folder).analysis
    overview = analysis.statistics.overview
    assert overview.num_steps == 1
    waited = (overview.breakdown.input_ns - overview.breakdown.to_device_ns) / overview.breakdown.total_ns
    assert analysis.verdict.input_wait_share == pytest.approx(waited, abs=1e-6)
    sentence = f"in the only step of the profile: {format_share(waited)} of {format_ns(overview.step_ns)} was spent"
    assert sentence in text_of(folder)
    sentences = [line for line in overview.next_steps if "waiting for input" in line]
    assert all(line.startswith(format_share(waited)) for line in sentences)


@pytest.mark.parametrize("folder", ["cpu-tf23-mirrored", "gpu-tf25-mirrored"])
def test_host_and_device_iterators_of_a_strategy_are_one_pipeline(folder):
    (pipeline,) = report_of(folder).analysis.pipelines
    assert pipeline.is_device
    names = [it.name for it in pipeline.iterators]
    assert names[:3] == ["Prefetch", "Generator", "Model"], "the device's buffer, and the host's pipeline that fills it"
    assert "Rebatch" in names
    assert "Iterator::Prefetch on a device" in text_of(folder)
    assert ("Shard" in names) == (folder == "gpu-tf25-mirrored")


def test_what_the_strategy_adds_is_no_call_of_the_users():
    (pipeline,) = report_of("gpu-tf25-mirrored").analysis.pipelines
    assert [call.method for it in reversed(pipeline.iterators) for call in it.calls] == ["from_tensor_slices", "batch"]


def test_mixed_precision_share_and_tensor_cores():
    """A Turing GPU; but in this step no kernel computed with 16 bits, which is what such a share is for."""
    device = json_of("gpu-tf25-mixed-precision")["statistics"]["device"]
    assert device["compute_capability"] == 7.5
    assert device["compute_16bit_share"] == 0.0
    assert device["tensor_core_eligible_ns"] > 0
    assert device["tensor_core_used_ns"] == 0


def test_waiting_on_a_buffer_whose_producer_is_missing():
    (pipeline,) = report_of("gpu-tf24-prefetch").analysis.pipelines
    assert pipeline.max_call_ns == pytest.approx(2.34e9, rel=0.01)
    assert [it.name for it in pipeline.iterators if it.is_upstream_unseen] == ["Prefetch"]
    assert pipeline.bottleneck is None, "the buffer is what was waited for, and never the cause"
    assert "The input of Prefetch did not run inside the profile" in text_of("gpu-tf24-prefetch")


def test_truncated_upstream_is_said_and_not_called_the_source():
    assert chains_of("gpu-tf24-truncated") == [["Model", "ParallelMapV2"]]
    text = text_of("gpu-tf24-truncated")
    assert "ParallelMapV2 is the last recorded iterator, not the source." in text
    assert "parallelism 1 (chosen by AUTOTUNE)" in text


def test_kernels_are_counted():
    report = json_of("gpu-tf24-many-kernels")
    assert report["statistics"]["kernels"]
    assert report["statistics"]["device"]["compute_capability"] == 7.0


def test_no_libcupti_has_a_hint_instead_of_empty_tables():
    text = text_of("gpu-tf24-no-libcupti")
    assert "Failed to load libcupti" in text
    assert "put CUDA's extras/CUPTI/lib64 on LD_LIBRARY_PATH and capture again" in text
    assert "libcupti" in json_of("gpu-tf24-no-libcupti")["statistics"]["missing"]["kernels"]


def test_two_of_eight_gpus_are_used():
    assert "Only 2 of 8 devices did work (/device:GPU:4, /device:GPU:6)" in text_of("gpu-tf24-multi-gpu")


@pytest.mark.parametrize("folder", ["tpu-inference-no-tfdata", "gpu-jax-no-tfdata"])
def test_no_input_pipeline(folder):
    assert report_of(folder).analysis.pipelines == ()
    assert text_of(folder).startswith("The profile contains no input pipeline: no tf.data iterator ran")


@pytest.mark.parametrize("folder", ["tpu-inference-no-tfdata", "gpu-jax-no-tfdata"])
def test_jax_is_said_to_be_the_reason(folder):
    text = text_of(folder)
    assert "JAX's profiler, which does not record tf.data" in text
    assert "only device events" not in text


def test_a_text_round_trip_is_one_sentence(capsys):
    assert main(["analyze", str(PROFILES / "corrupt-utf8")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "worker.xplane.pb is not a profile, or is truncated or damaged (copy profiles in binary mode)" in error


@pytest.mark.parametrize("folder", sorted(path.name for path in PROFILES.glob("*") if (path / "plugins").is_dir()))
def test_no_rule_fails_on_a_real_profile(folder):
    if folder != "corrupt-utf8":
        assert report_of(folder).rule_errors == ()
