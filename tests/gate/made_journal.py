"""Entries of a journal, made up for tests."""

from __future__ import annotations

from pathlib import Path

import msgspec

from advisor.gate.attempts import Trial, append_entry
from advisor.model.change_proof import ChangeProof
from advisor.model.outcome import Interval
from advisor.report.change_json import document_of
from advisor.report.journal_format import BEGAN, JUDGED, JournalEntry, TrialOptions

OPTIONS = TrialOptions(pipeline_only=True, allow=[], steps=None, warmup=None, seconds=2.0, budget_s=60.0)
TRIAL = Trial("a" * 64, "b" * 64, OPTIONS)
PROOF = ChangeProof(
    "train.py", "--with faster.py", ("train.py",), "equal and faster", "The elements are the same.", "equal",
    speed="faster", speedup=Interval(2.0, 1.9, 2.1), is_pipeline_only=True, turns=8, runs=2, seconds=21.5,
)  # fmt: skip


def began(name="t1", trial=TRIAL, **fields) -> JournalEntry:
    """The beginning of a trial."""
    entry = JournalEntry(
        schema_version=1, event=BEGAN, trial=name, time="2026-01-01T00:00:00+00:00", advisor_version="1", target="train.py",
        change="--with faster.py", files=["train.py"], base=trial.base, diff=trial.diff, options=trial.options,
        hypothesis="it is faster", verdict=None, speedup=None, seconds=None, exit_code=None, error="", proof=None,
    )  # fmt: skip
    return msgspec.structs.replace(entry, **fields)


def judged(name="t1", trial=TRIAL, proof=PROOF, **fields) -> JournalEntry:
    """Its end with a verdict."""
    document = document_of(proof)
    known = {"verdict": document.verdict, "speedup": document.speedup, "seconds": document.seconds, "exit_code": 0}
    entry = began(name, trial, event=JUDGED, proof=document, **{**known, **fields})
    return msgspec.json.decode(msgspec.json.encode(entry), type=JournalEntry)  # tuples are lists then


def write(path: Path, *entries: JournalEntry) -> bytes:
    """Append entries, and return what the file then holds."""
    for entry in entries:
        append_entry(path, entry)
    return path.read_bytes()
