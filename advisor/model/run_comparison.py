"""The comparison of two runs, as reported by `advisor compare`.

`RunComparison` is made by `advisor.prove.measure.compare_runs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.outcome import Interval
from advisor.model.paired_test import PairedTest
from advisor.model.pipeline import Iterator
from advisor.model.proof_result import Side


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs."""

    target: str
    run_folder: str
    figures: Side
    num_steps: int = 0
    """Number of steps behind the mean step time; with alternating runs, the median over the turns."""
    stretches: int = 0
    """Effective number of independent stretches behind the interval; 0 if it is based on fresh runs or if there is none."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One iterator of the main pipeline in both runs; None if a run has no counterpart."""

    before: Iterator | None
    after: Iterator | None
    before_busy_ns: float | None = None
    """Its own work per element at the root, summed over threads."""
    after_busy_ns: float | None = None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of a run before and after a change."""

    before: ComparedRun
    after: ComparedRun
    verdict: str
    """`faster`, `same`, `slower`, `broken` (the second script fails), or `unknown` (one run has no steps)."""
    step_speedup: Interval | None
    """Step time before / after with its 95 % interval."""
    turns: int
    """Pairs of fresh runs behind the result; 0 if it compares one window of each run, in which case the interval does not include
    the variation between runs."""
    nodes: tuple[NodeChange, ...] = ()
    """In the order of the second run, source last; followed by the iterators that only the first run has."""
    notes: tuple[str, ...] = ()
    test: PairedTest | None = None
    """How the pairs of runs behind `step_speedup` have ended; None if there are none."""
