"""The result of `advisor prove`: what a change of a script does to its data and to its speed, with one verdict.

`ChangeProof` is made by `advisor.workflows.prove`, its verdict by `advisor.prove.texts.change_verdict`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.finding import Safety
from advisor.model.outcome import Interval, LossDeviation, LossPoint
from advisor.model.paired_test import PairedTest
from advisor.model.proof_result import Phase, Side

EQUAL_FASTER = "equal and faster"
OTHER_FASTER = "faster but different data"
SAME = "same"
SLOWER = "slower"
OTHER_DATA = "different data"
CANNOT_TELL = "cannot tell"
VERDICTS = (EQUAL_FASTER, OTHER_FASTER, SAME, SLOWER, OTHER_DATA, CANNOT_TELL)
"""`same`: equal data, and neither faster nor slower. `different data`: not the same data, and not shown to be faster or slower.
`slower` says nothing about the data."""

EQUAL, DIFFERENT, UNKNOWN = "equal", "different", "unknown"
"""What is known about the data. `equal`: all datasets are, or differ only as permitted."""

NOT_MEASURED = Side()


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """The first element that differs."""

    element: int
    """Its number, from 0."""
    component: int | None
    """Its first component that differs, from 0; None if one dataset has no such element."""
    before: str
    """The first value that differs, or type and shape."""
    after: str
    what: str
    """Which values differ: `3 of 12 values; the first is [0, 4]`."""


@dataclass(frozen=True, slots=True)
class ComparedDataset:
    """A dataset of the script, compared with that of the changed script."""

    name: str
    """As in `the dataset of batch at line 12`; the first one is that of the training."""
    safety: Safety | None
    """The observed effect of the change; None if it could not be determined."""
    elements: int = 0
    """Number of elements compared, without repetitions in further epochs."""
    is_complete: bool = False
    """All elements of an epoch were compared."""
    is_undecided: bool = False
    """The elements could not have refuted `safety`; `note` says why."""
    note: str = ""
    """What differs, or what limits the comparison, in sentences."""
    difference: ElementDifference | None = None


@dataclass(frozen=True, slots=True)
class ChangeProof:
    """The verdict on a change, and what it is based on."""

    target: str
    change: str
    """Where the changed text comes from: `--with faster.py`, `--patch change.diff`, `--rev main`."""
    files: tuple[str, ...]
    """The Python files that the change replaces, relative to the current folder where they are inside it."""
    verdict: str
    """One of `VERDICTS`."""
    sentence: str
    """The verdict with its reason, in one or two sentences."""
    data: str
    """`equal`, `different` or `unknown`."""
    datasets: tuple[ComparedDataset, ...] = ()
    speed: str = UNKNOWN
    """`faster`, `same`, `slower` or `unknown`."""
    speedup: Interval | None = None
    """Step time before / after, or rate after / before of the pipeline alone, with the 95 % interval; None if not measured."""
    is_pipeline_only: bool = False
    """The input pipeline alone was measured, and not the training."""
    turns: int = 0
    """Pairs of runs of the whole script, or of turns of the pipeline."""
    before: Side = NOT_MEASURED
    after: Side = NOT_MEASURED
    losses: tuple[LossPoint, ...] = ()
    """The losses of the first batches, where the training reads exactly the same elements; empty if they are unknown."""
    loss: LossDeviation | None = None
    """How far they are apart."""
    runs: int = 0
    """Number of runs of the script, with or without the change."""
    seconds: float = 0.0
    """Wall time of the whole proof."""
    notes: tuple[str, ...] = ()
    """What limits the result."""
    test: PairedTest | None = None
    """How the pairs of runs of the whole script have ended; None if there are none."""
    phases: tuple[Phase, ...] = ()
    """Where `seconds` went."""
    is_interrupted: bool = False
    """Ctrl-C ended the command after the data were compared, so the speed is unknown."""
    judged_before: str = ""
    """If nothing was run because a journal holds the result: when it was found, as ISO 8601 in UTC."""
