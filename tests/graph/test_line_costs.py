"""The times of ops and the samples of Python functions become times of lines."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from advisor.graph.line_costs import lines_of
from advisor.graph.short_ops import FunctionRuns
from advisor.host.calibration.analysis import SHORT_OP_NS
from advisor.model.calls import Call, CodeLine, FunctionFacts, OpLine, Site
from advisor.model.recording import Host, PythonSamples, Recording, SampledLine, ScriptExit

MS = 1_000_000
SITE = Site("/train.py", 10, 1, 20, 1)
PYTHON = Site("/train.py", 30, 1, 40, 1)


def at(line: int) -> CodeLine:
    return CodeLine("/train.py", line, "decode", f"line {line}")


def a_call(lines: dict[int, tuple[str, ...]], method: str = "map", python: tuple[Site, ...] = ()) -> Call:
    op_lines = tuple(OpLine(at(line), names) for line, names in lines.items())
    facts = FunctionFacts("decode", SITE, False, op_lines=op_lines, python_functions=python)
    return Call("c1", method, SITE, function=facts)


def recording(*calls: Call, samples: PythonSamples | None = None) -> Recording:
    return Recording("train.py", Host("h", 2, 2, 0, 0), ScriptExit("finished"), calls=calls, python_samples=samples)


def measured(call: Call, events: dict[str, int]) -> dict[int, int]:
    """Line -> ms, for events with these names and ms."""
    names = [name.partition(":")[0] for name in events]
    ops = {(number + 1, name.partition(":")[2]): [1, ms * MS] for number, (name, ms) in enumerate(events.items())}
    return {line.at.line: line.total_ns // MS for line in lines_of([call], ops, names, recording(call))}


@pytest.mark.parametrize(
    ("recorded", "event"),
    [
        ("resize/ResizeBilinear", "resize/ResizeBilinear:ResizeBilinear"),
        ("while/body/while/sort/TopKV2", "while/body/_9/while/sort/TopKV2:TopKV2"),
        ("PartitionedCall/sort/TopKV2", "sort/TopKV2:TopKV2"),
        ("MatMul", "ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul:_MklMatMul"),
        (
            "PartitionedCall/case/branch1/case/Cumsum",
            "PartitionedCall/case/branch1/_31/case/Cumsum:Cumsum",
        ),
    ],
)
def test_an_op_is_found_by_the_name_of_its_event(recorded: str, event: str) -> None:
    assert measured(a_call({12: ("Cast",), 13: (recorded,)}), {event: 5}) == {13: 5}


def test_branches_of_a_condition_are_different_lines() -> None:
    call = a_call({15: ("cond/then/cond/mul",), 17: ("cond/else/cond/mul",)})
    assert measured(call, {"cond/then/_0/cond/mul:Mul": 2, "cond/else/_1/cond/mul:Mul": 3}) == {17: 3, 15: 2}


def test_an_ambiguous_name_is_not_attributed() -> None:
    call = a_call({15: ("f/mul",), 17: ("g/mul",)})
    assert measured(call, {"mul:Mul": 3}) == {}


def test_the_share_counts_ops_without_a_line() -> None:
    call = a_call({12: ("DecodeJpeg",)})
    ops = {(1, "DecodeJpeg"): [4, 30 * MS], (2, "Const"): [4, 10 * MS]}
    (line,) = lines_of([call], ops, ["DecodeJpeg", "unknown"], recording(call))
    assert line.share == 0.75
    assert line.ops == ("DecodeJpeg",)
    assert line.samples is None


def with_samples(*lines: SampledLine, ticks: int = 100) -> tuple[Call, Recording]:
    call = a_call({12: ("PyFunc",)}, python=(PYTHON,))
    return call, recording(call, samples=PythonSamples(1000 * MS, ticks, lines))


def test_lines_of_python_code_take_their_time_from_the_op_that_calls_python() -> None:
    call, run = with_samples(SampledLine(PYTHON, at(33), 60, 54, "numpy", "np.sort"))
    lines = lines_of([call], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], run)
    assert [(line.at.line, line.total_ns // MS, line.samples) for line in lines] == [(33, 600, 60), (12, 200, None)]
    assert lines[0].share == 0.75
    assert (lines[0].native_share, lines[0].library, lines[0].callee) == (0.9, "numpy", "np.sort")
    assert lines[0].margin_ns == pytest.approx(152 * MS, rel=0.01)


def test_too_few_samples_give_no_time() -> None:
    call, run = with_samples(SampledLine(PYTHON, at(33), 2))
    lines = lines_of([call], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], run)
    assert [line.at.line for line in lines] == [12]


def test_samples_of_another_function_are_not_counted() -> None:
    call, run = with_samples(SampledLine(SITE, at(11), 60))
    lines = lines_of([call], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], run)
    assert [line.at.line for line in lines] == [12]


def test_the_only_generator_owns_the_samples_that_no_function_owns() -> None:
    call, run = with_samples(SampledLine(SITE, at(11), 60))
    generator = replace(call, method="from_generator")
    lines = lines_of([generator], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], replace(run, calls=(generator,)))
    assert lines[0].at.line == 11


def test_impossible_samples_of_a_hostile_recording_are_ignored() -> None:
    call, run = with_samples(SampledLine(PYTHON, at(33), 2**40, -5), SampledLine(PYTHON, at(34), -7))
    lines = lines_of([call], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], run)
    assert all(0 <= line.share <= 1 and line.total_ns >= 0 and line.native_share >= 0 for line in lines)
    none = replace(run, python_samples=PythonSamples(-5, 0, ()))
    assert [line.at.line for line in lines_of([call], {(1, "PyFunc"): [10, 800 * MS]}, ["PyFunc"], none)] == [12]


def test_without_a_recording_there_are_no_lines() -> None:
    assert lines_of([], {(1, "Mul"): [1, 5]}, ["Mul"], None) == ()


def test_runs_of_short_ops_that_were_not_recorded_are_counted() -> None:
    """Ten elements: all runs of a long op are recorded, and 3 of 40 of two short ones on each of two lines."""
    call = a_call({12: ("DecodeJpeg",), 13: ("Tanh", "Tanh_1"), 14: ("mul", "add")})
    ops = {(1, "DecodeJpeg"): [10, 30_000], (2, "Tanh"): [2, 2_000], (3, "Mul"): [1, 1_000]}
    names = ["DecodeJpeg", "Tanh_1", "mul"]
    lines = lines_of([call], ops, names, recording(call), FunctionRuns(10, 33_000 + 37 * 2_000))
    by_line = {line.at.line: line for line in lines}
    assert {number: (line.total_ns, line.unrecorded_ns) for number, line in by_line.items()} == {
        12: (30_000, 0),
        13: (2_000 + 18 * 2_000, 18 * 2_000),
        14: (1_000 + 19 * 2_000, 19 * 2_000),
    }
    assert [line.at.line for line in lines] == [14, 13, 12]
    assert sum(line.share for line in lines) == pytest.approx(1)
    assert by_line[13].ops == ("Tanh",)


def estimated(call: Call, names: dict[str, int], count: int = 10, executor_ns: int = 1_000_000) -> dict[int, int]:
    """Line -> estimated ns, if these ops were recorded so many times in no time."""
    ops = {(number + 1, "Op"): [runs, 0] for number, runs in enumerate(names.values())}
    lines = lines_of([call], ops, list(names), recording(call), FunctionRuns(count, executor_ns))
    return {line.at.line: line.unrecorded_ns for line in lines}


def test_an_unrecorded_run_takes_no_longer_than_a_short_op() -> None:
    call = a_call({12: ("Cast",), 13: ("DecodeJpeg",)})
    assert estimated(call, {"DecodeJpeg": 10}) == {12: 10 * SHORT_OP_NS.value}


@pytest.mark.parametrize(
    "call",
    [
        a_call({12: ("cond/then/cond/mul", "while/body/while/mul", "case/branch1/mul")}),  # who knows how often
        a_call({12: ("cond", "cond-1/Cast/then/x", "cond/then/cond/mul")}),  # inlined
        a_call({12: ("mul",)}, method="group_by_window"),  # which of its functions?
        replace(a_call({12: ("mul",)}), function=None),
    ],
)
def test_where_it_is_unknown_how_often_an_op_runs_nothing_is_estimated(call: Call) -> None:
    assert estimated(call, {}) == {}


def test_a_function_that_calls_python_may_wait_for_the_lock_instead() -> None:
    call = a_call({12: ("mul",)})
    assert call.function is not None and estimated(call, {}) == {12: 10 * SHORT_OP_NS.value}
    with_python = replace(call, function=replace(call.function, python_ops=("PyFunc",)))
    assert estimated(with_python, {}) == {}


def test_ops_that_were_not_looked_up_share_the_rest() -> None:
    call = a_call({12: ("mul",)})
    assert call.function is not None
    more = replace(call, function=replace(call.function, op_lines_omitted=3))
    assert estimated(more, {}, executor_ns=40_000) == {12: 10_000}


def test_recorded_runs_of_a_branch_do_not_count_as_those_of_an_op_outside() -> None:
    call = a_call({12: ("mul", "cond/then/cond/mul_1")})
    assert estimated(call, {"cond/then/_3/cond/mul_1": 8}, executor_ns=20_000) == {12: 20_000}


def test_a_name_of_many_parts_takes_no_memory_for_each_of_them() -> None:
    """As in a hostile recording."""
    call = a_call({12: ("x" + 20_000 * "/",)})
    tracemalloc.start()
    estimated(call, {})
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 20_000_000
