"""Attributes the time of an iterator's function to lines of the user's source.

In: the ops' times by name, the lines that created the ops, and the samples of Python functions.  Out: `LineCost`s.

The time of ops is measured: the profile has an event for a run of an op, and its name leads to the line. Runs of short ops have
none; their time is an estimate (`short_ops`). The time of lines of Python code is an estimate from samples: each represents the
mean time between two samples. The op that calls Python keeps the rest of its time: conversion of arguments and results, and
waiting for the interpreter lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from advisor.graph.short_ops import NO_RUNS, FunctionRuns, is_always_run, short_ops
from advisor.host.calibration.analysis import MIN_LINE_SAMPLES
from advisor.model.calls import Call, CodeLine
from advisor.model.catalog import PYTHON_OPS, written_op
from advisor.model.pipeline import LineCost
from advisor.model.recording import PythonSamples, Recording, SampledLine

MOST_LINES = 20
"""Lines kept per iterator, most expensive first."""
_INLINED = re.compile(r"/_\d+(?=/)")
"""TensorFlow numbers the inlined branches of control flow: `cond/then/_2/cond/Cos`, `while/body/_9/while/sort/TopKV2`."""
_MOST_ENDS = 8
"""Number of shortened names that are tried for an op that Grappler renamed."""


def lines_of(
    calls: Sequence[Call],
    named_ops: Mapping[tuple[int, str], Sequence[int]],
    op_names: Sequence[str],
    recording: Recording | None,
    runs: FunctionRuns = NO_RUNS,
) -> tuple[LineCost, ...]:
    """Return the lines of the functions of one iterator, most expensive first.

    Args:
        calls: The calls that the iterator represents.
        named_ops: (key of the op's name, op type) -> (count, ns), from `NodeSums`.
        op_names: The names that the keys refer to.
        recording: Holds the samples of Python functions.
        runs: The runs of the functions.
    """
    functions = [call.function for call in calls if call.function is not None]
    line_of = _Lines(line for function in functions for line in ((line.at, line.ops) for line in function.op_lines))
    total_ns = 0
    times: dict[CodeLine, dict[str, int]] = {}
    recorded: dict[CodeLine, int] = {}
    for (key, op), (count, time_ns) in named_ops.items():
        total_ns += time_ns
        name = _INLINED.sub("", op_names[key - 1]) if 0 < key <= len(op_names) else ""
        at = line_of.find(name) if name else None
        if at is not None:
            if is_always_run(name):
                recorded[at] = recorded.get(at, 0) + count
            ops = times.setdefault(at, {})
            op = written_op(op)
            ops[op] = ops.get(op, 0) + time_ns
    samples = recording.python_samples if recording is not None else None
    sampled = _samples_of(calls, recording.calls, samples) if recording is not None and samples is not None else []
    python_ns = sum(time_ns for (_, op), (_, time_ns) in named_ops.items() if op in PYTHON_OPS)
    python = _python_lines(sampled, samples, total_ns, python_ns)
    short = short_ops(calls, recorded, total_ns, runs)
    total_ns += short.total_ns
    if not total_ns:
        return ()
    _take_python(times, sum(line.total_ns for line in python))
    measured = (
        LineCost(
            at,
            (time_ns := sum(times.get(at, {}).values()) + short.time_of(at)),
            min(1.0, time_ns / total_ns),
            _by_time(times.get(at, {})),
            unrecorded_ns=short.time_of(at),
        )
        for at in {**times, **short.runs}
    )
    lines = sorted((*measured, *python), key=lambda line: (-line.total_ns, line.at.file, line.at.line))
    return tuple(line for line in lines if line.total_ns > 0)[:MOST_LINES]


def _samples_of(calls: Sequence[Call], all_calls: Sequence[Call], samples: PythonSamples) -> list[SampledLine]:
    """Return the samples of the Python functions that these calls run.

    The function of `from_generator` may return any iterable, such as a generator of another function. Samples of a function that
    no call names belong to the generator, if there is only one.
    """
    own = {site for call in calls if call.function is not None for site in call.function.python_functions}
    named = {site for call in all_calls if call.function is not None for site in call.function.python_functions}
    generators = [call for call in all_calls if call.method == "from_generator"]
    takes_rest = len(generators) == 1 and generators[0] in calls
    return [line for line in samples.lines if line.function in own or (takes_rest and line.function not in named)]


def _python_lines(
    sampled: Sequence[SampledLine], samples: PythonSamples | None, total_ns: int, python_ns: int
) -> list[LineCost]:
    """Return the lines with enough samples for an estimate; together they take at most the measured time in Python."""
    if samples is None or samples.ticks <= 0 or not total_ns:
        return []
    number = sum(max(0, line.samples) for line in sampled)
    sample_ns = min(samples.duration_ns / samples.ticks, python_ns / max(1, number))
    return [
        LineCost(
            at=line.at,
            total_ns=round(line.samples * sample_ns),
            share=min(1.0, line.samples * sample_ns / total_ns),
            samples=line.samples,
            margin_ns=round(1.96 * line.samples**0.5 * sample_ns),
            native_share=min(1.0, max(0, line.native_samples) / line.samples),
            library=line.library,
            callee=line.callee,
        )
        for line in sampled
        if line.samples >= MIN_LINE_SAMPLES.value
    ]


def _take_python(times: Mapping[CodeLine, dict[str, int]], python_ns: int) -> None:
    """Subtract the time of lines of Python code from the ops that called them, in proportion to their time."""
    ops = [(ops, op) for ops in times.values() for op in ops if op in PYTHON_OPS]
    all_ns = sum(ops[op] for ops, op in ops)
    if not all_ns:
        return
    left = max(0.0, 1 - python_ns / all_ns)
    for line_ops, op in ops:
        line_ops[op] = round(line_ops[op] * left)


def _by_time(ops: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(ops, key=lambda op: (-ops[op], op)))[:5]


class _Lines:
    """Finds the line of an op by the name of its event."""

    def __init__(self, lines: Iterable[tuple[CodeLine, Sequence[str]]]) -> None:
        self._by_name: dict[str, CodeLine | None] = {}
        self._by_end: dict[str, CodeLine | None] = {}
        """Ends of names -> their line; None if several lines have the same."""
        for at, names in lines:
            for name in names:
                self._add(self._by_name, name, at)
                parts = name.split("/")
                for start in range(1, min(len(parts), _MOST_ENDS)):
                    self._add(self._by_end, "/".join(parts[start:]), at)

    @staticmethod
    def _add(table: dict[str, CodeLine | None], name: str, at: CodeLine) -> None:
        table[name] = at if table.setdefault(name, at) == at else None

    def find(self, name: str) -> CodeLine | None:
        """Return the line of a name without the numbers of branches; None if there is none, or if several are possible.

        A function that was not inlined has names without the calling op. Grappler puts words in front of the names of ops that
        it replaces (`ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul`).
        """
        if name in self._by_name:
            return self._by_name[name]
        if name in self._by_end:
            return self._by_end[name]
        rest = name
        for _ in range(_MOST_ENDS):
            cut = re.search(r"[/_]", rest)
            if cut is None:
                return None
            rest = rest[cut.end() :]
            if rest in self._by_name:
                return self._by_name[rest]
        return None
