"""The largest product of a model is timed once, and only where a rule would use the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.codec import decode
from advisor.model.errors import AdvisorError
from advisor.model.outcome import Report
from advisor.model.recording import ProductTimes, Recording
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.settings import Settings
from advisor.testing import batch, cpu, op, pipeline, prefetch, source
from advisor.workflows import product_times
from advisor.workflows.product_times import with_product_times

RULES = load_rules([], Settings())
KERAS = {"loop": "keras.fit", "dtype_policy": "float32"}


def report(us: float = 6_000, keras=KERAS, has_bfloat16: bool = True) -> Report:
    """A run whose model has a product that was not timed yet."""
    made = pipeline(
        source(), batch(48), prefetch(), consumer_ms=100, keras=keras, has_bfloat16=has_bfloat16, product_ms=(1, 1),
        device=cpu(op("_FusedMatMul", 12, us=us)),
    )  # fmt: skip
    recording = replace(made.analysis.recording, product_times=None)
    return run_rules(replace(made.analysis, recording=recording), RULES, Settings())


@pytest.fixture
def measured(monkeypatch):
    """The requests; each product is said to gain a factor of two."""
    requests = []

    def measure(product, rows, timeout_s):
        requests.append((product.layer, rows))
        return ProductTimes(product, rows, 2e6, 1e6)

    monkeypatch.setattr(product_times, "measure_largest_product", measure)
    return requests


def test_the_answer_becomes_part_of_the_run(measured, tmp_path):
    before = report()
    assert not before.hints
    after = with_product_times(before, tmp_path, RULES, Settings(), None, lambda progress: None)
    assert measured == [("dense", 48)]
    assert [hint.rule for hint in after.hints] == ["full-precision"]
    stored = decode((tmp_path / RECORDING_NAME).read_bytes(), Recording)
    assert stored.product_times.gain == 2
    assert with_product_times(after, tmp_path, RULES, Settings(), None, lambda progress: None) is after
    assert len(measured) == 1


@pytest.mark.parametrize(
    "other",
    [{"us": 500}, {"keras": KERAS | {"dtype_policy": "mixed_bfloat16"}}, {"has_bfloat16": False}],
    ids=["few products", "16 bit already", "no units"],
)
def test_nothing_is_measured_that_no_rule_asks_for(other, measured, tmp_path):
    before = report(**other)
    assert with_product_times(before, tmp_path, RULES, Settings(), None, lambda progress: None) is before
    assert not measured


def test_a_failed_or_late_measurement_leaves_the_report_as_it_is(measured, monkeypatch, tmp_path):
    before = report()
    assert with_product_times(before, tmp_path, RULES, Settings(), 0.0, lambda progress: None) is before

    def fail(*arguments):
        raise AdvisorError("TensorFlow did not respond within 60 s.")

    monkeypatch.setattr(product_times, "measure_largest_product", fail)
    assert with_product_times(before, tmp_path, RULES, Settings(), None, lambda progress: None) is before


def test_the_user_s_threshold_decides_what_is_measured(measured, tmp_path):
    rules = load_rules([], Settings(rules={"full-precision": {"min_step_share": 0.99}}))
    before = report()
    assert with_product_times(before, tmp_path, rules, Settings(), None, lambda progress: None) is before
    assert not measured
