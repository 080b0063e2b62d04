"""`parse-per-record`: what the batches that its change holds take in memory."""

from __future__ import annotations

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

RULE = next(loaded for loaded in load_rules([], Settings()) if loaded.id == "parse-per-record")
RECORD = "TensorSpec(shape=(), dtype=tf.string, name=None)"


@pytest.mark.parametrize("cores", [2, 8])
def test_each_parallel_call_holds_batches(cores: int) -> None:
    """A batch of 128 records of 500 bytes, and two of results of 64 bytes."""
    analysis = pipeline(
        source("TextLine", spec=RECORD, bytes=500),
        map_("parse", ms=0.08, op_shares={"DecodeCSV": 0.5, "Sub": 0.05}, elementwise=True, bytes=64),
        batch(128),
        consumer_ms=1,
        cores=cores,
    ).analysis
    (finding,) = run_rules(analysis, [RULE], Settings()).findings
    assert finding.memory_bytes == cores * 128 * (500 + 2 * 64)
