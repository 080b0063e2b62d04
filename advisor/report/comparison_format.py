"""comparison.json, the output of `advisor compare --json`, version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.json_types import Amount, Count, Share, one_of
from advisor.report.json_format import Object
from advisor.report.proof_format import PairedTest, Speedup


class Run(Object, frozen=True):
    """One of the two runs."""

    target: str
    run_folder: str | None
    step_time_ms: Amount | None
    """Mean step time; with alternating runs, the median of their means."""
    steps: Count
    stretches: Count
    """Effective number of independent stretches of steps behind the interval; 0 if it is based on the alternating runs or if
    there is none."""
    input_wait_share: Share | None
    elements_per_s: Amount | None
    """At the root of the main pipeline."""
    peak_rss_bytes: Count | None


class Iterator(Object, frozen=True):
    """One iterator of the main pipeline in one run."""

    name: str
    file: str | None
    line: int | None
    parallelism: int | None
    blame_share: float | None
    busy_ns_per_element: float | None
    """Its own work per element at the root, summed over threads."""
    element_bytes: int | None
    injected_by_tensorflow: bool


class Node(Object, frozen=True):
    """One iterator in both runs; null if a run has no counterpart."""

    method: str | None
    long_name: str
    before: Iterator | None
    after: Iterator | None


class RunComparison(Object, frozen=True):
    """Two runs side by side. Shares range from 0 to 1; times are in milliseconds, or in ns if the name says so."""

    schema_version: Literal[1]
    advisor_version: str
    verdict: Annotated[str, one_of("faster", "same", "slower", "broken", "unknown")]
    """Verdict on the second run relative to the first one; `broken`: the second script fails; `unknown`: a run has no steps, or
    the runs vary too much."""
    before: Run
    after: Run
    step_time: Speedup | None
    """Step time before / after with its 95 % interval; null if it could not be compared."""
    turns: Count
    """Pairs of fresh runs behind the interval; 0 if it compares one window of each run."""
    nodes: Sequence[Node]
    """The iterators of the main pipeline, matched by call, then by long name."""
    notes: Sequence[str]
    test: PairedTest | None
    """How the alternating runs have ended; null if there are none, or no interval."""
