"""The JSON of `advisor prove`, described by `change.schema.json` in this folder.

In: a `ChangeProof`.  Out: the bytes, and back from the document. The keys are the fields of `change_format.ChangeProof`.
"""

from __future__ import annotations

import math

from advisor.model import outcome
from advisor.model import proof_result as proof
from advisor.model.change_proof import (
    DIFFERENT,
    EQUAL,
    UNKNOWN,
    VERDICTS,
    ChangeProof,
    ComparedDataset,
    ElementDifference,
)
from advisor.model.outcome import Interval, LossPoint
from advisor.model.paired_test import PairedTest
from advisor.model.version import __version__
from advisor.report import change_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, nanoseconds, read_schema, to_bytes, to_dict
from advisor.report.proof_format import LossDeviation, Phase, Speedup
from advisor.report.proof_format import PairedTest as PairedTestDocument
from advisor.report.proof_json import paired_test, speedup

_DATA = (EQUAL, DIFFERENT, UNKNOWN)
_SPEEDS = ("faster", "same", "slower", UNKNOWN)


def change_to_bytes(change: ChangeProof) -> bytes:
    """Return the verdict on a change as UTF-8 JSON with a final newline."""
    return to_bytes(to_dict(document_of(change)))


def document_of(change: ChangeProof) -> v1.ChangeProof:
    """Return the verdict on a change as the object that becomes JSON."""
    return v1.ChangeProof.of(
        change,
        schema_version=SCHEMA_VERSION,
        advisor_version=__version__,
        datasets=[_dataset(dataset) for dataset in change.datasets],
        speedup=speedup(change.speedup),
        pipeline_only=change.is_pipeline_only,
        before=_side(change.before),
        after=_side(change.after),
        losses=[v1.LossPoint.of(point) for point in change.losses],
        loss=LossDeviation.maybe(change.loss),
        judged_before=change.judged_before or None,
        test=paired_test(change.test),
        phases=[Phase.of(phase) for phase in change.phases],
    )


def change_of(document: v1.ChangeProof) -> ChangeProof:
    """Return the verdict on a change that a document holds.

    Raises:
        ValueError: A verdict in it is none of those that `advisor prove` gives.
    """
    for value, known in ((document.verdict, VERDICTS), (document.data, _DATA), (document.speed, _SPEEDS)):
        if value not in known:
            raise ValueError(f"{value!r} is not one of {', '.join(known)}")
    return ChangeProof(
        target=document.target,
        change=document.change,
        files=tuple(document.files),
        verdict=document.verdict,
        sentence=document.sentence,
        data=document.data,
        datasets=tuple(_dataset_of(dataset) for dataset in document.datasets),
        speed=document.speed,
        speedup=_interval_of(document.speedup),
        is_pipeline_only=document.pipeline_only,
        turns=document.turns,
        before=_side_of(document.before),
        after=_side_of(document.after),
        losses=tuple(_loss_of(point) for point in document.losses),
        loss=_deviation_of(document.loss),
        runs=document.runs,
        seconds=document.seconds,
        notes=tuple(document.notes),
        judged_before=document.judged_before or "",
        test=_test_of(document.test),
        phases=tuple(proof.Phase(phase.name, phase.seconds, phase.runs) for phase in document.phases),
        is_interrupted=document.is_interrupted,
    )


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `change_to_bytes`."""
    return read_schema("change.schema.json")


def _dataset(dataset: ComparedDataset) -> v1.Dataset:
    return v1.Dataset.of(dataset, difference=v1.Difference.maybe(dataset.difference))


def _dataset_of(dataset: v1.Dataset) -> ComparedDataset:
    first = dataset.difference
    difference = None
    if first is not None:
        difference = ElementDifference(first.element, first.component, first.before, first.after, first.what)
    return ComparedDataset(
        name=dataset.name,
        safety=dataset.safety,
        elements=dataset.elements,
        is_complete=dataset.is_complete,
        is_undecided=dataset.is_undecided,
        note=dataset.note,
        difference=difference,
    )


def _interval_of(ratio: Speedup | None) -> Interval | None:
    if ratio is None or ratio.speedup is None or ratio.low is None or ratio.high is None:
        return None
    return Interval(ratio.speedup, ratio.low, ratio.high)


def _test_of(test: PairedTestDocument | None) -> PairedTest | None:
    if test is None:
        return None
    known = test.median
    median = None
    if known is not None and known.value is not None and known.low is not None and known.high is not None:
        median = known.value, known.low, known.high
    return PairedTest(test.ended_because, test.pairs, test.max_pairs, median)


def _loss_of(point: v1.LossPoint) -> LossPoint:
    values = (math.nan if loss is None else loss for loss in (point.before, point.after))
    return LossPoint(point.batches, *values)


def _deviation_of(loss: LossDeviation | None) -> outcome.LossDeviation | None:
    if loss is None:
        return None
    relative = math.inf if loss.relative is None else loss.relative
    return outcome.LossDeviation(loss.batches, relative, loss.between_runs)


def _side(side: proof.Side) -> v1.Side:
    return v1.Side.of(
        side,
        step_time_ms=None if side.step_ns is None else milliseconds(side.step_ns),
        input_wait_share=side.wait_share,
    )


def _side_of(side: v1.Side) -> proof.Side:
    return proof.Side(
        elements_per_s=side.elements_per_s,
        step_ns=None if side.step_time_ms is None else nanoseconds(side.step_time_ms),
        wait_share=side.input_wait_share,
        peak_rss_bytes=side.peak_rss_bytes,
    )
