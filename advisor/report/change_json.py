"""The JSON of `advisor prove`, described by `change.schema.json` in this folder.

In: a `ChangeProof`.  Out: the bytes. The keys are the fields of `change_format.ChangeProof`.
"""

from __future__ import annotations

from advisor.model import proof
from advisor.model.change_proof import ChangeProof, ComparedDataset
from advisor.model.version import __version__
from advisor.report import change_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, read_schema, to_bytes, to_dict
from advisor.report.proof_json import speedup


def change_to_bytes(change: ChangeProof) -> bytes:
    """Return the verdict on a change as UTF-8 JSON with a final newline."""
    document = v1.ChangeProof.of(
        change,
        schema_version=SCHEMA_VERSION,
        advisor_version=__version__,
        datasets=[_dataset(dataset) for dataset in change.datasets],
        speedup=speedup(change.speedup),
        pipeline_only=change.is_pipeline_only,
        before=_side(change.before),
        after=_side(change.after),
    )
    return to_bytes(to_dict(document))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `change_to_bytes`."""
    return read_schema("change.schema.json")


def _dataset(dataset: ComparedDataset) -> v1.Dataset:
    return v1.Dataset.of(dataset, difference=v1.Difference.maybe(dataset.difference))


def _side(side: proof.Side) -> v1.Side:
    return v1.Side.of(
        side,
        step_time_ms=None if side.step_ns is None else milliseconds(side.step_ns),
        input_wait_share=side.wait_share,
    )
