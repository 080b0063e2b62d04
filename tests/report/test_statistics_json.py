from __future__ import annotations

import dataclasses
import json
from functools import cache

import jsonschema
import pytest

import advisor.model.profile_statistics as model
from advisor.model.profile_statistics import (
    AllocatorMemory,
    Breakdown,
    HostSteps,
    InputOpRow,
    InputStatistics,
    KernelRow,
    MemoryPoint,
    MemoryStatistics,
    MemoryUser,
    OpRow,
    PipelineRow,
    Statistics,
    StepTime,
)
from advisor.report.report_json import load_schema
from advisor.report.statistics_json import statistics_to_dict


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$defs": load_schema()["$defs"], "$ref": "#/$defs/statistics"})


def op(side="host", name="n" * 400, share=0.5) -> OpRow:
    return OpRow(side, "T" * 400, name, 1, 10**9, 10**9, False, share, share, share, share)


def huge() -> Statistics:
    step = Breakdown(*(10**9 + n for n in range(9)))
    hosts = tuple(
        HostSteps(f"worker{n}", 5_000, 10**9, step, tuple(StepTime(s, 10**12, 10**9, step) for s in range(1_000)))
        for n in range(16)
    )
    kernel = KernelRow(
        "k" * 3000, 255, 10**5, (1024, 1, 1), (10**6, 1, 1), True, True, "o" * 400, 9, 10**9, 10**8, 10**9
    )
    allocator = AllocatorMemory(
        *("host", "GPU_0_bfc", 10**6, 10**6, 10**10, 10**12, 10**10, 0, 10**10, 0.123456, 10**10, 10**10),
        timeline=tuple(MemoryPoint(n * 10**9, 10**10 + (n == 77), 0, 10**10, 0.123456) for n in range(200)),
        users=tuple(MemoryUser("o" * 400, "output", "float", "[1]" * 200, 1, n, n) for n in range(60)),
        left_out_users=3,
    )
    input_op = InputOpRow("Iterator::" + "X" * 400, 1, 10**9, 0.123456789, 10**9, 0.123456789, "preprocessing")
    pipeline = PipelineRow("p0", "worker", "Iterator::" + "X" * 400, 1, 2, 3, 4, 5)
    inputs = InputStatistics(0.5, 1, 1, 1, "high", {}, (input_op,) * 1000, (pipeline,) * 1000)
    return Statistics(
        input=inputs,
        ops=tuple(op(side, share=0.123456789012345) for side in ("device", "host") for _ in range(5000)),
        op_types=tuple(op(side, "") for side in ("device", "host") for _ in range(500)),
        kernels=(kernel,) * 5000,
        memory=MemoryStatistics((allocator,) * 20),
        hosts=hosts,
        missing={"overview": "capture it."},
    )


@pytest.mark.long
def test_a_huge_run_stays_small_and_says_what_is_left_out():
    written = statistics_to_dict(huge())
    assert written is not None
    validator().validate(written)
    assert len(json.dumps(written, indent=2)) < 1_000_000
    left_out = written["left_out"]
    for section in ("ops", "op_types", "kernels"):
        assert len(written[section]) + left_out[section] == len(getattr(huge(), section))
    assert left_out["input.ops"] == 920
    assert left_out["hosts.steps"] == 16 * 5_000 - sum(len(host["steps"]) for host in written["hosts"])
    assert left_out["memory.allocators"] == 4
    memory = written["memory"]["allocators"][0]
    assert len(memory["users"]) + memory["left_out_users"] == 63
    assert max(point["heap_bytes"] for point in memory["timeline"]) == 10**10 + 1, (
        "the peak is no sample that may fall out"
    )


def test_both_sides_keep_their_largest():
    written = statistics_to_dict(huge())
    assert {row["side"] for row in written["ops"]} == {"host", "device"}


def test_no_profile_is_null():
    assert statistics_to_dict(None) is None


def test_absent_sections_are_null():
    written = statistics_to_dict(Statistics(missing={"ops": "capture it."}))
    validator().validate(written)
    assert written["ops"] is None
    assert written["missing"] == {"ops": "capture it."}
    assert written["left_out"] == {}


def test_what_json_cannot_say_is_null():
    written = statistics_to_dict(Statistics(ops=(op(share=float("nan")),)))
    assert written["ops"][0]["share"] is None
    json.dumps(written, allow_nan=False)


CLASSES = [value for value in vars(model).values() if dataclasses.is_dataclass(value)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_schema_has_the_model_s_fields(kind):
    name = "".join(f"_{char.lower()}" if char.isupper() else char for char in kind.__name__)
    described = load_schema()["$defs"][name.removeprefix("_")]
    fields = {field.name for field in dataclasses.fields(kind)}
    assert set(described["properties"]) == set(described["required"]) == fields
