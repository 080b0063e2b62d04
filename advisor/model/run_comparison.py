"""Two runs side by side: what `advisor compare` says.

In: nothing.  Out: `RunComparison`, made by `advisor.prove.compare_runs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.outcome import Interval
from advisor.model.pipeline import Iterator
from advisor.model.proof import Side


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the two runs."""

    target: str
    run_folder: str
    figures: Side
    num_steps: int = 0
    """Steps that the step time is the mean of (in each turn, for runs by turns: their median)."""
    stretches: int = 0
    """Independent stretches of steps that the interval rests on; 0: it rests on fresh runs instead, or there is none."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One iterator of the main pipeline in both runs; None where a run has none like it."""

    before: Iterator | None
    after: Iterator | None
    before_busy_ns: float | None = None
    """Its own work for each element at the root, all threads together."""
    after_busy_ns: float | None = None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Before and after."""

    before: ComparedRun
    after: ComparedRun
    verdict: str
    """`faster`, `same`, `slower`; `broken`: the second script fails; `unknown`: one of them has no steps."""
    step_speedup: Interval | None
    """Step time before / after with its 95 % interval."""
    turns: int
    """Pairs of fresh runs that it rests on; 0: one window of each run, so that its interval knows nothing of what differs
    from run to run."""
    nodes: tuple[NodeChange, ...] = ()
    """In the order of the second run, source last; those that only the first one has stand at the end."""
    notes: tuple[str, ...] = ()
