"""Estimates the time of the runs of short ops, which TensorFlow's profiler does not record.

In: the ops of a function and their lines, how often the function ran, the runs that were recorded.  Out: the unrecorded runs of
each line, and the time of each.

TensorFlow considers an op cheap if its latest runs took fewer than 8,000 cycles, and the profiler leaves such runs out, but for
some of the first hundreds (docs/measuring.md). A function of many short ops would seem to cost what its few long ops cost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from advisor.host.calibration.analysis import SHORT_OP_NS
from advisor.model.calls import Call, CodeLine

_ONE_FUNCTION = frozenset({"map", "filter", "flat_map", "interleave", "take_while"})
"""Methods that run their only function once for each element."""
_CONDITIONAL = frozenset({"then", "else", "cond", "body"})
"""Parts of the names of ops in the branches of control flow, which may run never or often."""


@dataclass(frozen=True, slots=True)
class FunctionRuns:
    """The runs of the functions of one iterator."""

    count: int = 0
    executor_ns: int = 0
    """The time of their executors, summed over threads, without that for passing on the results."""


NO_RUNS = FunctionRuns()


@dataclass(frozen=True, slots=True)
class ShortOps:
    """The unrecorded runs of short ops."""

    runs: Mapping[CodeLine, int] = field(default_factory=dict)
    """Line -> number of runs."""
    each_ns: float = 0.0
    """Estimated time of each run, with its share of the executor's time between ops."""
    number: int = 0
    """Number of all of them, also those of unknown lines."""

    def time_of(self, at: CodeLine) -> int:
        """Return the estimated time of the runs of a line in ns."""
        return round(self.runs.get(at, 0) * self.each_ns)

    @property
    def total_ns(self) -> int:
        """Return the estimated time of all of them in ns."""
        return round(self.number * self.each_ns)


def short_ops(
    calls: Sequence[Call], recorded: Mapping[CodeLine, int], recorded_ns: int, runs: FunctionRuns
) -> ShortOps:
    """Return the unrecorded runs; none if it is unknown how often each op runs.

    What the executors' time holds beyond that of the recorded runs is divided evenly among the unrecorded ones.

    Args:
        calls: The calls that the iterator represents.
        recorded: Line -> recorded runs of its ops outside control flow.
        recorded_ns: The time of all recorded runs.
        runs: The runs of the function.
    """
    with_functions = [call for call in calls if call.function is not None]
    if not runs.count or any(call.method not in _ONE_FUNCTION for call in with_functions):
        return ShortOps()
    expected: Counter[CodeLine] = Counter()
    missing_elsewhere = 0
    for call in with_functions:
        assert call.function is not None
        if call.function.python_ops:
            return ShortOps()  # the rest of the executors' time may be a wait for the interpreter lock
        names = sorted(name for line in call.function.op_lines for name in line.ops)
        for line in call.function.op_lines:
            expected[line.at] += runs.count * sum(
                is_always_run(name) and not _is_inlined(name, names) for name in line.ops
            )
        missing_elsewhere += runs.count * call.function.op_lines_omitted
    missing = {at: number - recorded.get(at, 0) for at, number in expected.items() if number > recorded.get(at, 0)}
    number = sum(missing.values()) + missing_elsewhere
    if not number:
        return ShortOps()
    each_ns = min(max(0.0, (runs.executor_ns - recorded_ns) / number), SHORT_OP_NS.value)
    return ShortOps(missing, each_ns, number)


def is_always_run(name: str) -> bool:
    """Whether an op is part of no branch or loop, by its name in the graph."""
    parts = name.split("/")[:-1]
    return not any(part in _CONDITIONAL or part.startswith("branch") for part in parts)


def _is_inlined(name: str, names: Sequence[str]) -> bool:
    """Whether other ops take the place of one that calls a function; `names` are those of all ops, sorted."""
    inside = f"{name}/"
    index = bisect_left(names, inside)
    return index < len(names) and names[index].startswith(inside)
