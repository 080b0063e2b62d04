"""The JSON of `advisor offload`, described by `offload.schema.json` in this folder.

In: an `Offload`.  Out: the bytes. The keys are the fields of `offload_format.Offload`.
"""

from __future__ import annotations

from advisor.model import offload_result as model
from advisor.model.proof_result import Side
from advisor.model.version import __version__
from advisor.report import offload_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, read_schema, to_bytes, to_dict
from advisor.report.pipeline_format import Site
from advisor.report.proof_json import speedup

_MS_PER_S = 1000


def offload_to_bytes(offload: model.Offload) -> bytes:
    """Return the result as UTF-8 JSON with a final newline."""
    document = v1.Offload.of(
        offload,
        schema_version=SCHEMA_VERSION,
        advisor_version=__version__,
        sharding=offload.policy,
        movability=_movability(offload.movability, bool(offload.diff)),
        measurement=offload.measurement and _measurement(offload.measurement),
        sizing=offload.sizing and _sizing(offload.sizing),
        proof=offload.proof and _proof(offload.proof),
    )
    return to_bytes(to_dict(document))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `offload_to_bytes`."""
    return read_schema("offload.schema.json")


def _movability(movability: model.Movability, has_diff: bool) -> v1.Movability:
    return v1.Movability.of(
        movability,
        after=movability.after_method,
        after_site=Site.maybe(movability.after_site),
        objections=[v1.Objection.of(entry, site=Site.maybe(entry.site)) for entry in movability.objections],
        repairs=[v1.Repair.of(entry, in_diff=has_diff and entry.is_written) for entry in movability.repairs],
    )


def _measurement(measured: model.ServiceMeasurement) -> v1.Measurement:
    return v1.Measurement.of(
        measured,
        same_elements=measured.is_same,
        local_cpu_ms=measured.local_cpu_s * _MS_PER_S,
        end_delay_ms=None if measured.end_delay_s is None else measured.end_delay_s * _MS_PER_S,
        rates=[
            v1.Rate.of(
                rate,
                client_cpu_ms=rate.client_cpu_s * _MS_PER_S,
                dispatcher_cpu_ms=rate.dispatcher_cpu_s * _MS_PER_S,
            )
            for rate in measured.rates
        ],
    )


def _sizing(sizing: model.Sizing) -> v1.Sizing:
    return v1.Sizing.of(
        sizing,
        worker_elements_per_s=sizing.worker_per_s,
        wanted_elements_per_s=sizing.wanted_per_s,
        reachable_elements_per_s=sizing.reachable_per_s,
    )


def _proof(proof: model.ServiceProof) -> v1.Proof:
    return v1.Proof.of(
        proof,
        delivered_elements_per_s=proof.delivered_per_s,
        client_cpu_ms=None if proof.client_cpu_s is None else proof.client_cpu_s * _MS_PER_S,
        step_speedup=speedup(proof.speedup),
        before=_side(proof.before),
        after=_side(proof.after),
    )


def _side(side: Side) -> v1.ProofSide:
    return v1.ProofSide.of(
        side,
        step_time_ms=None if side.step_ns is None else milliseconds(side.step_ns),
        input_wait_share=side.wait_share,
    )
