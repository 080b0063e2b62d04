"""What `advisor prove` prints and writes as JSON, of made-up results."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import jsonschema
import msgspec
import pytest
from rich.console import Console

from advisor.model.change_proof import ChangeProof, ComparedDataset, ElementDifference
from advisor.model.check_result import BaseComparison, Check
from advisor.model.finding import Safety
from advisor.model.outcome import Interval, LossDeviation, LossPoint, Report
from advisor.model.own_files import FileKind, is_own_file
from advisor.model.paired_test import PairedTest
from advisor.model.proof_result import Proof, Side
from advisor.model.run_comparison import ComparedRun, RunComparison
from advisor.report import check_words
from advisor.report.change_format import ChangeProof as ChangeDocument
from advisor.report.change_json import change_of, change_to_bytes, document_of, load_schema
from advisor.report.change_text import print_change
from advisor.report.comparison_text import print_comparison
from advisor.report.proof_text import print_proof
from advisor.testing import batch, pipeline, source

CHANGE = ChangeProof(
    target="train.py",
    change="--with \x1b[31mfaster.py",
    files=("train.py",),
    verdict="faster but different data",
    sentence="The elements differ. It is faster: 2x (1.9x to 2.1x).",
    data="different",
    datasets=(
        ComparedDataset(
            "the dataset of batch at line 9", Safety.CHANGES, 13, True, note="component 2 differs",
            difference=ElementDifference(0, 1, "3", "4", "2 of 16 values; the first is [5]"),
        ),
        ComparedDataset("the dataset of map at line 12", None, note="It cannot be rebuilt."),
    ),
    speed="faster",
    speedup=Interval(2.0, 1.9, 2.1),
    turns=3,
    before=Side(step_ns=8e6, peak_rss_bytes=1 << 30),
    after=Side(step_ns=4e6, peak_rss_bytes=1 << 30),
    losses=tuple(LossPoint(batches, 2.0 / batches, 2.5 / batches) for batches in (*range(1, 64), 64)),
    loss=LossDeviation(64, 0.25, 0.01),
    runs=10,
    seconds=93.0,
    notes=("A note.",),
)  # fmt: skip


def test_json_is_valid_and_recognised(tmp_path):
    data = change_to_bytes(CHANGE)
    jsonschema.Draft202012Validator(load_schema()).validate(json.loads(data))
    (tmp_path / "change.json").write_bytes(data)
    assert is_own_file(tmp_path / "change.json", FileKind.CHANGE)
    assert not is_own_file(tmp_path / "change.json", FileKind.COMPARISON)


def test_schema_is_sound_and_closed():
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in [schema, *(part for part in schema["$defs"].values() if part.get("type") == "object")]:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def test_text_starts_with_the_verdict_and_shows_the_first_difference():
    console = Console(file=io.StringIO(), width=160, highlight=False)
    print_change(CHANGE, console)
    text = console.file.getvalue()
    assert text.startswith("Faster but different data. The elements differ.")
    assert "First difference: element 0, component 2, 2 of 16 values; the first is [5]: 3 before, 4 after." in text
    assert "\x1b" not in text and "A note." in text and "8 ms" in text


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (
            PairedTest("clear", 3, 8),
            ["after 3 of up to 8 pairs", "conditional on that, and probably somewhat too large"],
        ),
        (
            PairedTest("curtailed", 6, 8, (1.5, 1.25, 2.0)),
            ["conditional on that", "median of the 6 pairs is 1.50x (1.25x to 2.0x)"],
        ),
        (PairedTest("last", 8, 8, (1.5, 1.25, 2.0)), ["median of the 8 pairs is 1.50x (1.25x to 2.0x)"]),
    ],
)
def test_every_report_says_how_the_test_ended_and_gives_the_exact_interval(test, words):
    base = BaseComparison("main", "0" * 40, step_ratio=Interval(1.1, 1.0, 1.2), turns=test.pairs, test=test)
    side = ComparedRun("train.py", "", Side())
    proof = Proof("faster", "Proved.", end_to_end_turns=test.pairs, test=test)
    analysis = pipeline(source(), batch(32), consumer_ms=5).analysis
    console = Console(file=io.StringIO(), width=160, highlight=False)
    texts = [check_words.base_sentences(Check("train.py", (), base=base))]
    for show, result in (
        (print_change, replace(CHANGE, test=test)),
        (print_comparison, RunComparison(side, side, "faster", Interval(1.5, 1.2, 2.0), test.pairs, test=test)),
        (print_proof, Report(analysis, proof=proof)),
    ):
        console.file = io.StringIO()
        show(result, console)
        texts.append([console.file.getvalue()])
    for text in texts:
        joined = " ".join(" ".join(text).split())
        assert all(word in joined for word in words)
        assert ("conditional" in joined) == (test.ended_because != "last")
    change = replace(CHANGE, test=test)
    document = json.loads(change_to_bytes(change))["test"]
    assert (document["ended_because"], document["pairs"]) == (test.ended_because, test.pairs)
    assert (document["median"] is None) == (test.median is None)
    assert change_of(msgspec.convert(json.loads(change_to_bytes(change)), ChangeDocument)).test == test


def test_losses_are_shown_at_about_twice_the_batches_each_and_kept_in_the_json():
    console = Console(file=io.StringIO(), width=160, highlight=False)
    print_change(CHANGE, console)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    first = lines.index(["batches", "before", "after"])
    assert [line[0] for line in lines[first + 1 : first + 8]] == ["1", "2", "4", "8", "16", "32", "64"]
    assert lines[first + 3] == ["4", "0.5", "0.625"]
    assert (
        "The loss of the first 64 batches differs by up to 25 %; runs of the unchanged script differ by up to 1 %."
        in (console.file.getvalue())
    )
    assert change_of(document_of(CHANGE)) == CHANGE


def test_a_loss_that_is_no_number_survives_the_json():
    broken = replace(CHANGE, losses=(LossPoint(1, 1.0, math.nan),), loss=LossDeviation(1, math.inf, None))
    data = change_to_bytes(broken)
    jsonschema.Draft202012Validator(load_schema()).validate(json.loads(data))
    back = change_of(msgspec.json.decode(data, type=ChangeDocument))
    assert math.isnan(back.losses[0].after) and back.loss == broken.loss
