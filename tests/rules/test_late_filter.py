"""When late-filter is tried unasked: only if tracing the filter again cannot make another function of it."""

from __future__ import annotations

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.settings import Settings
from advisor.testing import batch, filter_, map_, pipeline, source

RULE = [loaded for loaded in load_rules([], Settings()) if loaded.id == "late-filter"]
PAIR = (
    "(TensorSpec(shape=(64,), dtype=tf.float32, name=None), TensorSpec(shape=(), dtype=tf.int64, name=None))"
)  # fmt: skip
OTHER = PAIR.replace("(64,)", "(8, 8)")


@pytest.mark.parametrize(
    ("before", "after", "function", "is_auto"),
    [
        (PAIR, PAIR, {}, True),
        (PAIR, OTHER, {}, False),
        ("", "", {}, False),
        (f"{PAIR[:60]}…", f"{PAIR[:60]}…", {}, False),
        (PAIR, PAIR, {"random": True}, False),
        (PAIR, PAIR, {"python": True}, False),
        (PAIR, PAIR, {"stateful": True}, False),
        (PAIR, PAIR, {"captured": ("HashTableV2",)}, False),
    ],
)
def test_a_filter_that_would_be_traced_for_another_form_is_moved_only_on_request(before, after, function, is_auto):
    made = pipeline(
        source(spec=before),
        map_("load", ms=3, unchanged=[(1, 1)], spec=after, **function),
        filter_("is_wanted", ms=0.01, keep=0.25, reads=[1]),
        batch(16),
        consumer_ms=5,
        cores=4,
    )
    (finding,) = run_rules(made.analysis, RULE, Settings()).findings
    assert finding.fix is not None and finding.fix.is_auto is is_auto


@pytest.mark.parametrize(
    ("predicate", "is_auto"),
    [("lambda image, label: label < 3", True), ("lambda image, label: label < image.shape[0]", False)],
)
def test_a_filter_whose_text_does_not_name_what_is_mapped_is_moved_unasked(predicate, is_auto, monkeypatch, tmp_path):
    made = pipeline(
        source(spec=PAIR),
        map_("load", ms=3, unchanged=[(1, 1)], spec=OTHER),
        filter_(predicate, ms=0.01, keep=0.25, reads=[1]),
        batch(16),
        consumer_ms=5,
        cores=4,
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(made.source)
    (finding,) = run_rules(made.analysis, RULE, Settings()).findings
    assert finding.fix is not None and finding.fix.is_auto is is_auto
