"""Ops on the host: what nests, what is eager, what is tracing. Times in microseconds."""

from __future__ import annotations

import pytest

from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import statistics_of


def test_host_ops_and_iterators_nest(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("tf_Compute/1")
    line.event("a:Outer", 0, 10, "Outer")
    line.event("Iterator::Root", 1, 9, id=1)
    line.event("Iterator::Root::BatchV2", 2, 6, id=2, parent_id=1)
    line.event("not an op", 3, 5)
    rows = {row.name: row for row in statistics_of(profile, tmp_path).ops}
    assert rows["a"].self_ns == 2_000
    assert rows["Iterator::Root"].self_ns == 4_000
    assert rows["Iterator::Root::BatchV2"].self_ns == 4_000
    assert rows["IDLE"].self_ns == 0
    assert "not an op" not in rows


def test_the_median_leaves_out_a_run_that_was_interrupted(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("tf_Compute/1")
    for number, took in enumerate((2, 400, 2)):  # nested in an op that takes 5 us itself
        line.event("a:Outer", 1000 * number, 1000 * number + took + 5, "Outer")
        line.event("b:Mul", 1000 * number, 1000 * number + took, "Mul")
    line.event("c:Mul", 5000, 5008, "Mul")
    statistics = statistics_of(profile, tmp_path)
    rows = {row.name: row for row in statistics.ops}
    assert (rows["a"].median_self_ns, rows["b"].median_self_ns, rows["c"].median_self_ns) == (5_000, 2_000, 8_000)
    assert rows["IDLE"].median_self_ns is None
    types = {row.type: row for row in statistics.op_types}
    assert types["Mul"].median_self_ns == pytest.approx((3 * 2_000 + 8_000) / 4)
    assert types["Mul"].self_ns / types["Mul"].occurrences == pytest.approx(103_000)


def test_top_ops_of_a_host_are_no_iterators(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    line.event("Iterator::Root", 0, 90, id=1)
    line.event("a:MatMul", 100, 130, "MatMul")
    line.event("b:Add", 130, 140, "Add")
    top = statistics_of(profile, tmp_path).overview.top_ops
    assert [(op.name, op.side, op.share, op.cumulative_share) for op in top] == [
        ("a", "host", 0.75, 0.75),
        ("b", "host", 0.25, 1.0),
    ]


def test_an_eager_op_is_counted_once(tmp_path):
    """TensorFlow 2.21 shows the dispatch alone, 2.4 the op inside it too; a compiled function's call is no eager op."""
    profile = ProfileBuilder()
    line = profile.host.line("python")
    line.event("EagerLocalExecute: Relu", 0, 10)
    line.event("EagerKernelExecute", 1, 9)
    line.event("EagerLocalExecute: Mul", 20, 30)
    line.event("EagerKernelExecute", 21, 29)
    line.event("Mul:Mul", 22, 28, "Mul")
    line.event("EagerLocalExecute: __inference_step_1", 40, 60)
    line.event("EagerKernelExecute", 41, 59)
    line.event("__inference_step_1:__inference_step_1", 42, 58, "__inference_step_1")
    line.event("EagerLocalExecute: IteratorGetNext", 70, 74)
    profile.host.line("tf_Compute/1").event("Mul:Mul", 0, 14, "Mul")
    statistics = statistics_of(profile, tmp_path)
    rows = {row.name: row for row in statistics.ops}
    assert {name for name, row in rows.items() if row.is_eager} == {"Relu", "Mul"}
    assert (rows["Relu"].self_ns, rows["Mul"].self_ns, rows["Mul"].occurrences) == (10_000, 20_000, 2)
    assert statistics.device.host_eager_share == pytest.approx(16 / (16 + 16 + 4 + 14)), (
        "Mul in a function is not eager"
    )


def test_tracing_and_compilation(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    for start in (0, 100):
        line.event("step", start, start + 60, tf_function_call="traced-xla")
        line.event("tf.function-graph_building", start + 1, start + 20)
        line.event("GpuCompiler::RunHloPasses", start + 25, start + 30)
        line.event("GpuCompiler::RunBackend", start + 30, start + 50)
    line.event("step", 200, 210, tf_function_call="notTraced-xla")
    profile.host.line("codegen").event("LlvmCompiler::Compile", 35, 45)
    statistics = statistics_of(profile, tmp_path)
    facts = statistics.device
    assert (facts.num_tracings, facts.num_compilations) == (2, 2)
    assert facts.compile_ns == 2 * (19 + 25) * 1000
    assert facts.compiled_names == ("step",)
    assert statistics.hosts[0].source == "function"
    assert statistics.overview.num_steps == 3
    assert statistics.overview.breakdown.compile_ns == pytest.approx(2 * 44_000 / 3, abs=1)
