"""The JSON of `advisor prove --json`, version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.change_proof import VERDICTS
from advisor.model.finding import Safety
from advisor.model.json_types import Amount, Count, Share, one_of
from advisor.report.json_format import Object
from advisor.report.proof_format import LossDeviation, PairedTest, Phase, Speedup


class Difference(Object, frozen=True):
    """The first element that differs."""

    element: Count
    """Its number, from 0."""
    component: int | None
    """Its first component that differs, from 0; null if one dataset has no such element."""
    before: str
    """The first value that differs, or type and shape."""
    after: str
    what: str
    """Which values differ."""


class Dataset(Object, frozen=True):
    """A dataset of the script, compared with that of the changed script."""

    name: str
    safety: Safety | None
    """The observed effect of the change on the elements; null if it could not be determined."""
    elements: Count
    """Elements compared, without repetitions in further epochs."""
    is_complete: bool
    """Whether all elements of an epoch were compared."""
    is_undecided: bool
    """The elements could not have refuted `safety`; `note` says why."""
    note: str
    """What differs, or what limits the comparison."""
    difference: Difference | None


class Side(Object, frozen=True):
    """The script without or with the change; null: not measured."""

    step_time_ms: Amount | None
    """Mean step time; the median over the runs."""
    input_wait_share: Share | None
    elements_per_s: Amount | None
    """Elements per second of the pipeline alone, with `--pipeline-only`."""
    peak_rss_bytes: Count | None


class LossPoint(Object, frozen=True):
    """The loss after some batches: Keras' mean over those of the epoch so far, the median over the runs; null: not finite."""

    batches: Count
    before: float | None
    after: float | None


class ChangeProof(Object, frozen=True):
    """A verdict on a change of a script: whether its data are the same, and whether it is faster."""

    schema_version: Literal[1]
    advisor_version: str
    change: str
    """Where the changed text comes from, such as `--with faster.py`."""
    verdict: Annotated[str, one_of(*VERDICTS)]
    """`same`: equal data, neither faster nor slower. `different data`: not the same data, and not shown to be faster or slower.
    `slower` says nothing about the data. `cannot tell`: the data or the speed are unknown."""
    sentence: str
    target: str
    files: Sequence[str]
    """The Python files that the change replaces."""
    data: Annotated[str, one_of("equal", "different", "unknown")]
    datasets: Sequence[Dataset]
    """The first one is that of the training."""
    speed: Annotated[str, one_of("faster", "same", "slower", "unknown")]
    speedup: Speedup | None
    """Step time before / after; with `--pipeline-only`, rate after / before."""
    pipeline_only: bool
    turns: Count
    """Pairs of runs of the whole script, or of turns of the pipeline alone."""
    before: Side
    after: Side
    losses: Sequence[LossPoint]
    """Of the whole script, where the training reads exactly the same elements and its losses are known; else empty."""
    loss: LossDeviation | None
    """How far they are apart; null if they are unknown."""
    runs: Count
    """Number of runs of the script, with or without the change."""
    seconds: Amount
    notes: Sequence[str]
    judged_before: str | None
    """With `--resume`: when the journal says that this was found (ISO 8601, UTC); nothing was run. null: it was judged now."""
    test: PairedTest | None = None
    """How the pairs of runs of the whole script have ended; null if there are none. Journals of earlier versions lack it."""
    phases: Sequence[Phase] = ()
    """Where the time went."""
    is_interrupted: bool = False
    """Ctrl-C ended the command after the data were compared, so the speed is unknown."""
