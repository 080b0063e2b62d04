"""What `advisor offload` prints and writes as JSON, of made-up results."""

from __future__ import annotations

import dataclasses
import io
import json

import jsonschema
from rich.console import Console

from advisor.model.calls import Site
from advisor.model.edits import Remove
from advisor.model.offload_result import (
    COUNTS,
    MOVABLE,
    REFUSED,
    Movability,
    Objection,
    Offload,
    Repair,
    ServiceMeasurement,
    ServiceProof,
    ServiceRate,
    Sizing,
)
from advisor.model.outcome import Interval
from advisor.model.own_files import FileKind, is_own_file
from advisor.model.proof_result import Side
from advisor.report.offload_json import load_schema, offload_to_bytes
from advisor.report.offload_text import print_offload

SITE = Site("/home/me/train.py", 12, 5, 12, 20)
OFFLOAD = Offload(
    target="train.py \x1b[31m",
    sentence="It can move up to batch (line 12). It takes 3 workers.",
    movability=Movability(
        MOVABLE, "It can move up to batch (line 12).", "c3", "batch", SITE, 0.97,
        conditions=("each worker shuffles its own part of the data",),
        repairs=(Repair("`prefetch` follows.", (Remove("c4"),)), Repair("Repeat the data.", code=".repeat()")),
        max_workers=8,
    ),
    measurement=ServiceMeasurement(
        compared_workers=2, local_elements=100, service_elements=100, is_same=True, comparison="The same 100 elements.",
        element_bytes=1e6, local_elements_per_s=20.0, local_cpu_s=0.05,
        rates=(ServiceRate("AUTO", 19.0, 18.0, 17.0, 19.0, 0.002, 0.0001, 90, 5.0),), end_delay_s=1.0,
    ),
    sizing=Sizing(
        "workers", "It takes 3 workers.", "", 100.0, 100.0, 40.0, 4.0, 3, 3, 4, "AUTO", 1e8
    ),
    policy="dynamic",
    diff="--- a/train.py\n+++ b/train.py\n",
    files=("service/server.py",),
    runs=2,
    seconds=61.0,
    run_folder="/runs/train",
    notes=("A note.",),
)  # fmt: skip

PROOF = ServiceProof(
    "grpc://dispatcher:5000", "faster", "With 4 workers, the training is faster.", 4, ("10.0.0.4:5001",), 100.0, 0.002, 4.2,
    Interval(4.0, 3.9, 4.1), 3, Side(step_ns=40e6, wait_share=0.8), Side(step_ns=10e6, wait_share=0.2),
)  # fmt: skip
PROVED = dataclasses.replace(
    OFFLOAD, proof=PROOF, sizing=None, measurement=dataclasses.replace(OFFLOAD.measurement, rates=())
)


def test_json_is_valid_and_recognised(tmp_path):
    data = offload_to_bytes(OFFLOAD)
    document = json.loads(data)
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    assert document["movability"]["repairs"][0]["in_diff"] and not document["movability"]["repairs"][1]["in_diff"]
    assert document["measurement"]["rates"][0]["client_cpu_ms"] == 2
    (tmp_path / "offload.json").write_bytes(data)
    assert is_own_file(tmp_path / "offload.json", FileKind.OFFLOAD)
    assert not is_own_file(tmp_path / "offload.json", FileKind.CHANGE)


def test_a_refusal_is_valid_json():
    objection = Objection(REFUSED, COUNTS, "take", "counts elements", SITE, "c2")
    movability = Movability(REFUSED, "It cannot move.", objections=(objection,))
    refused = dataclasses.replace(OFFLOAD, movability=movability, measurement=None, sizing=None, diff="")
    document = json.loads(offload_to_bytes(refused))
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    assert document["movability"]["objections"][0]["site"]["line"] == 12


def test_schema_is_sound_and_closed():
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in [schema, *(part for part in schema["$defs"].values() if part.get("type") == "object")]:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def printed(offload: Offload) -> str:
    console = Console(file=io.StringIO(), width=160, highlight=False)
    print_offload(offload, console)
    return console.file.getvalue()


def test_text_starts_with_the_verdict_and_shows_the_figures():
    text = printed(OFFLOAD)
    assert text.startswith("Movable. It can move up to batch (line 12). It takes 3 workers.")
    assert "Each worker shuffles its own part of the data." in text
    assert "By hand: .repeat()" in text and "18 elements/s" in text and "The same 100 elements." in text
    assert "\x1b" not in text and "A note." in text and "run 2 times" in text


def test_a_refusal_shows_the_line_and_no_repairs():
    objection = Objection(REFUSED, COUNTS, "take", "counts elements", SITE, "c2")
    movability = dataclasses.replace(OFFLOAD.movability, verdict=REFUSED, objections=(objection,))
    text = printed(dataclasses.replace(OFFLOAD, movability=movability, measurement=None, sizing=None))
    assert "train.py:12 take counts elements (refused: counts per worker)" in text
    assert "What else to change" not in text


def test_a_proof_is_valid_json_and_shows_both_sides():
    document = json.loads(offload_to_bytes(PROVED))
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    proof = document["proof"]
    assert proof["step_speedup"] == {"speedup": 4.0, "low": 3.9, "high": 4.1} and proof["turns"] == 3
    assert (proof["before"]["step_time_ms"], proof["after"]["input_wait_share"]) == (40, 0.2)
    assert proof["client_cpu_ms"] == 2 and proof["lost_workers"] == ["10.0.0.4:5001"]
    text = printed(PROVED)
    assert "The service at grpc://dispatcher:5000" in text and "The same 100 elements." in text
    assert "40 ms" in text and "10 ms" in text and "3.9x to 4.1x" in text and "100 elements/s" in text
    assert json.loads(offload_to_bytes(OFFLOAD))["proof"] is None
