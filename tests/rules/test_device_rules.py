"""What the rules about the training step and about several machines make of real profiles, and of made-up hosts.

The GPU profiles lie beside the checkout, not in it; each holds one step, so that shares are that step's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from advisor.rules.no_xla import NoXla

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.calibration import Calibration
from advisor.model.finding import Finding
from advisor.model.outcome import Report
from advisor.model.settings import Settings
from advisor.testing import batch, cpu, map_, op, pipeline, prefetch, source
from advisor.workflows.analyze import analyze_run
from tests.hosts.made_hosts import RUN, write_hosts
from tests.profile.made_profile import ProfileBuilder

OWN = Path(__file__).parents[1] / "data"
PROFILES = Path(__file__).parents[2] / "../shared/profiles"
RULES = load_rules([], Settings())


@cache
def report_of(folder: str) -> Report:
    if not (PROFILES / folder).is_dir():
        pytest.skip("the shared profiles are not here")
    return analyze_run(PROFILES / folder, RULES, Settings())


def advice(report: Report) -> tuple[Finding, ...]:
    """The findings, and below them the hints on the step."""
    return (*report.findings, *report.hints)


def because(report: Report, rule: str) -> str:
    (finding,) = [finding for finding in advice(report) if finding.rule == rule]
    return finding.because


@pytest.mark.parametrize(
    ("folder", "rules"),
    [
        ("gpu-tf24-many-kernels", {"full-precision", "transfer-bound"}),
        ("gpu-tf24-truncated", {"full-precision", "transfer-bound"}),
        ("gpu-tf25-mirrored", {"small-batch", "short-steps", "no-xla"}),
        ("gpu-tf24-prefetch", {"next-step"}),  # 32 bit too, but it waits 62 % of the step for its input
        ("gpu-tf24-multi-gpu", {"next-step"}),  # waits 11 % for its input; 31 % of the computing is 16 bit
        ("gpu-tf25-mixed-precision", {"next-step"}),  # launches are exposed, but it waits 7 % for its input
        ("gpu-tf24-no-libcupti", set()),  # what the GPU did is not known
        ("gpu-jax-no-tfdata", set()),
        ("tpu-inference-no-tfdata", set()),
        ("cpu-tf23-mirrored", set()),
        ("cpu-tf23-synchronous", set()),
    ],
)
def test_what_other_peoples_profiles_get(folder, rules):
    assert {finding.rule for finding in advice(report_of(folder))} == rules


def test_figures_of_a_v100_in_32_bit():
    """TensorFlow's own overview page says 0 % of 16 bit of it; the copy is `IteratorGetNext/_4`, 28.7 of 406 ms."""
    report = report_of("gpu-tf24-many-kernels")
    assert because(report, "full-precision").startswith("0 % of the device's computation is 16 bit, in the only step")
    assert "capability 7)" in because(report, "full-precision")
    assert "7.1 % of the step time is spent copying" in because(report, "transfer-bound")
    assert "28.7 ms per step" in because(report, "transfer-bound")


def test_one_rule_less_without_its_cause():
    """The same profile as if its device had no tensor cores, computed in 16 bit, or as if the step had waited for input."""
    analysis = report_of("gpu-tf24-many-kernels").analysis

    def rules_of(**facts) -> set[str]:
        changed = replace(analysis, device=replace(analysis.device, **facts))
        return {finding.rule for finding in advice(run_rules(changed, RULES, Settings()))}

    assert rules_of(compute_capability=6.1) == {"transfer-bound"}
    assert rules_of(compute_16bit_share=0.5, eligible_off_tensor_core_ns=0) == {"transfer-bound"}
    assert rules_of(compute_16bit_share=0.5) == {"transfer-bound", "odd-dimensions"}
    assert rules_of(exposed_to_device_share=0.01) == {"full-precision"}
    waiting = replace(
        analysis, verdict=replace(analysis.verdict, input_wait_share=0.3, is_input_bound=True, level="high")
    )
    assert {finding.rule for finding in run_rules(waiting, RULES, Settings()).findings} == {"next-step"}


@pytest.mark.parametrize(
    ("waits", "named"),
    [
        ({"a": 20, "b": 21, "c": 400, "d": 19}, ["c"]),
        ({"a": 400, "b": 410, "c": 405, "d": 395}, []),
        ({"a": 20, "b": 21, "c": 45, "d": 19}, []),
    ],
)
def test_a_straggler_is_named(tmp_path, waits, named):
    report = analyze_run(write_hosts(tmp_path, waits), RULES, Settings())
    findings = [finding for finding in report.findings if finding.rule == "straggler"]
    assert [finding.title for finding in findings] == [f"Look at the input pipeline of {host}" for host in named]


@pytest.mark.parametrize(
    ("place", "shards", "fires"),
    [("behind the map", 4, True), ("behind the map", 1, False), ("at the source", 4, False)],
)
def test_a_shard_of_tensorflows_own_behind_costly_work(tmp_path, place, shards, fires):
    """Iterators as `MultiWorkerMirroredStrategy` makes them: the shard stands behind the map, or at the file names."""
    profile = ProfileBuilder("worker0")
    line = profile.host.line("python")
    types = {"behind the map": ["Shard", "Map", "TensorSlice"], "at the source": ["Map", "Shard", "TensorSlice"]}[place]
    for step in range(20):
        name, start, end = "Iterator::Root", step * 1000, step * 1000 + 500
        line.event(name, start, end, id=1)
        for number, kind in enumerate(types, start=2):
            name = f"{name}::{kind}"
            start, end = (start + 1, end - 1) if types.index("Map") >= number - 2 else (end - 4, end - 3)
            more = {"num_shards": shards, "index": 0} if kind == "Shard" else {}
            line.event(name, start, end, id=number, parent_id=number - 1, name=f"{kind}Dataset:{number}", **more)
    profile.write(tmp_path / RUN / "worker0.xplane.pb")
    report = analyze_run(tmp_path, RULES, Settings())
    findings = [finding for finding in report.findings if finding.rule == "autoshard-data"]
    assert bool(findings) == fires
    if fires:
        assert f"each of {shards} workers prepares all" in findings[0].because
        assert findings[0].prediction.value > 1.5


def test_a_small_keras_model_on_a_cpu_is_told_to_do_several_steps_per_call():
    report = analyze_run(OWN / "short_steps", RULES, Settings())
    assert not report.findings
    (finding,) = report.hints
    assert (finding.rule, finding.site.line) == ("short-steps", 11)
    assert finding.fix is None, "the recording knows no call of compile"
    assert finding.code == "model.compile(..., steps_per_execution=32)"
    assert "of it nothing but Python ran, in 24 steps" in finding.because
    analysis = replace(report.analysis, keras=report.analysis.keras | {"steps_per_execution": 32})
    assert not advice(run_rules(analysis, RULES, Settings()))


@pytest.mark.parametrize("name", sorted(path.name for path in OWN.iterdir() if (path / "recording.json").is_file()))
def test_nothing_on_the_step_is_said_of_our_other_captures(name):
    report = analyze_run(OWN / name, RULES, Settings())
    rules = {finding.rule for finding in advice(report) if finding.call_id is None and finding.iterator_id is None}
    assert rules == ({"short-steps"} if name == "short_steps" else set())


def test_what_products_take_of_a_step_and_each_of_them_are_not_mixed_up():
    stages = (source(), map_("decode", ms=0.1), batch(32), prefetch())
    keras, products = {"loop": "keras.fit", "dtype_policy": "float32"}, cpu(op("_FusedMatMul", 12, us=6_000))
    made = pipeline(*stages, consumer_ms=100, has_bfloat16=True, keras=keras, product_ms=(9, 3), device=products)
    (finding,) = [hint for hint in run_rules(made.analysis, RULES, Settings()).hints if hint.rule == "full-precision"]
    facts = {fact.name: fact.value for fact in finding.evidence}
    assert facts["products_per_step"] == pytest.approx(12)
    assert facts["mean_time_of_a_product"] == pytest.approx(6e6)
    assert "(72 ms of 100 ms, in 25 steps of the profile)" in finding.because
    assert "12 matrix products and convolutions with a mean time of 6 ms. Alone," in finding.because


def test_products_that_run_at_once_are_said_to():
    """Forty products of 6 ms do not fit into a step of 100 ms one after the other."""
    keras, products = {"loop": "keras.fit", "dtype_policy": "float32"}, cpu(op("_FusedMatMul", 40, us=6_000))
    made = pipeline(
        source(),
        batch(32),
        prefetch(),
        consumer_ms=100,
        has_bfloat16=True,
        keras=keras,
        product_ms=(9, 3),
        device=products,
    )
    (finding,) = run_rules(made.analysis, RULES, Settings()).hints
    assert "98 % of the step time (98 ms of 100 ms," in finding.because
    assert "a mean time of 6 ms, some of them at the same time" in finding.because


def test_sixteen_bit_on_a_cpu_is_measured_and_not_read_off_its_flags():
    """The flag alone says nothing, a product that gains too little is rejected with its times, and one that gains is a hint."""
    keras, products = {"loop": "keras.fit", "dtype_policy": "float32"}, cpu(op("_FusedMatMul", 12, us=6_000))

    def report(product_ms) -> Report:
        made = pipeline(
            source(), batch(32), prefetch(), consumer_ms=100, has_bfloat16=True, keras=keras, product_ms=product_ms,
            device=products,
        )  # fmt: skip
        return run_rules(made.analysis, RULES, Settings())

    unknown, slow, fast = report(None), report((9, 7.5)), report((9, 6))
    assert not advice(unknown) and not unknown.rejected
    assert not advice(slow)
    (entry,) = slow.rejected
    assert "takes 9 ms in float32 and 7.5 ms in bfloat16: 1.20x" in entry.reason
    assert [hint.rule for hint in fast.hints] == ["full-precision"] and not fast.findings


@pytest.mark.parametrize(("start_ns", "is_reported"), [(None, False), (900.0, False), (1_300.0, True)])
def test_which_ops_are_short_is_a_matter_of_the_machine(start_ns, is_reported):
    device = cpu(op("Mul", 1_500, us=2.5), other=0.1)
    analysis = pipeline(source(), batch(64), prefetch(), consumer_ms=3, device=device).analysis
    host = replace(analysis.host, calibration=Calibration(op_start_ns=start_ns))
    assert bool(list(NoXla().check(replace(analysis, host=host)))) == is_reported
