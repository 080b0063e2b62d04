"""repeated-work after an existing cache: reported if it is certain to save, or the main cause of a long wait."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from advisor.rules import repeated_work
from advisor.rules.repeated_work import RepeatedWork

from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.testing import batch, cache, map_, pipeline, repeat, source


def findings(
    monkeypatch: pytest.MonkeyPatch, analysis: Analysis, saved_share: float, low: float, level: str = "high"
) -> list[str]:
    """Titles of the findings, if every place saved this share of the wait with this lower bound."""
    analysis = replace(analysis, verdict=replace(analysis.verdict, level=level))
    places = repeated_work.cache_places

    def uncertain(*args: object) -> list[repeated_work.CachePlace]:
        return [
            replace(place, saved_share=saved_share, prediction=replace(place.prediction, value=2.4, low=low))
            for place in places(*args)
        ]

    monkeypatch.setattr(repeated_work, "cache_places", uncertain)
    return [item.title for item in RepeatedWork().check(analysis) if isinstance(item, Finding)]


@pytest.mark.parametrize(
    ("saved_share", "low", "level", "is_reported"),
    [
        (0.7, 1.0, "high", True),  # tfds has cached encoded images, and the script decodes them in every epoch
        (0.7, 1.0, "moderate", False),
        (0.2, 1.0, "high", False),
        (0.2, 1.5, "moderate", True),
    ],
)
def test_work_after_a_cache(monkeypatch, saved_share, low, level, is_reported):
    made = pipeline(source(), cache(), map_("decode", ms=4), batch(8), repeat(), consumer_ms=1)
    own = made.analysis
    assert findings(monkeypatch, own, saved_share, low, level) == ["Move the cache after batch"] * is_reported
    calls = tuple(
        replace(call, library="tensorflow_datasets") if call.method == "cache" else call for call in own.calls
    )
    library = replace(own, calls=calls)
    assert findings(monkeypatch, library, saved_share, low, level) == ["Cache after batch"] * is_reported


def test_without_another_cache_the_likely_gain_counts(monkeypatch):
    made = pipeline(source(), map_("decode", ms=4), batch(8), repeat(), consumer_ms=1)
    assert findings(monkeypatch, made.analysis, 0.2, 1.0, "moderate") == ["Cache after batch"]


def advice(*calls):
    made = pipeline(source(bytes=20_000), map_("decode", ms=4, bytes=12_000), *calls, batch(8), repeat(), consumer_ms=1)
    (finding,) = [item for item in RepeatedWork().check(made.analysis) if isinstance(item, Finding)]
    return finding, {evidence.name: evidence.value for evidence in finding.evidence}


def test_of_places_that_save_as_much_the_smallest_is_chosen_and_the_trade_is_shown():
    finding, evidence = advice(map_("scale", ms=0.01, bytes=48_000))
    assert finding.title == "Cache after map(decode)"
    assert evidence["larger_cache_bytes"] == pytest.approx(4 * evidence["cache_bytes"], rel=0.1)
    assert re.fullmatch(
        r"A cache after .* would save about as much \(predicted: .*\) and take [\d.]+ MiB\.", finding.trade
    )
    assert f"are free. {finding.trade}" in finding.because


@pytest.mark.parametrize(
    "scale",
    [
        map_("scale", ms=3, bytes=48_000),  # its work is worth its memory
        map_("scale", ms=0.01, bytes=12_000),
        map_("scale", ms=0.01, bytes=48_000, random=True),  # no place for a cache
    ],
)
def test_no_trade_is_shown_where_there_is_none(scale):
    finding, evidence = advice(scale)
    assert "larger_cache_bytes" not in evidence and not finding.trade
    assert "about as much" not in finding.because and finding.because.endswith(" free.")
