from __future__ import annotations

import contextlib
import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model import units
from advisor.model.outcome import Interval

FINITE = st.floats(min_value=-1e18, max_value=1e18, allow_nan=False, allow_infinity=False)
ANY = st.floats(allow_nan=True, allow_infinity=True)
FORMATS = [
    units.format_ns,
    units.format_bytes,
    units.format_share,
    units.format_change,
    units.format_rate,
    units.format_ratio,
    units.format_count,
]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (850, "850 ns"),
        (999.9, "1 us"),
        (12_345, "12.3 us"),
        (12_300_000, "12.3 ms"),
        (999_999_999, "1 s"),
        (4_200_000_000, "4.2 s"),
        (59_999_999_999, "1 min"),
        (750_000_000_000, "12.5 min"),
        (math.nan, "unknown"),
    ],
)
def test_ns(ns, text):
    assert units.format_ns(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (512, "512 B"), (1536, "1.5 KiB"), (1 << 30, "1 GiB"), (5 << 50, "5,120 TiB"), (1 << 50, "1,024 TiB")],
)
def test_bytes(size, text):
    assert units.format_bytes(size) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.83, "83 %"), (0.042, "4.2 %"), (0.0004, "< 0.1 %"), (1, "100 %"), (0.12345, "12.3 %")],
)
def test_share(share, text):
    assert units.format_share(share) == text


@pytest.mark.parametrize(("change", "text"), [(0.012, "+1.2 %"), (-0.05, "-5 %"), (0, "0 %"), (-0.0001, "> -0.1 %")])
def test_change(change, text):
    assert units.format_change(change) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1234, "1,234 elements/s"), (0.25, "4 s per element"), (0, "0 elements/s"), (12.34, "12.3 elements/s")],
)
def test_rate(rate, text):
    assert units.format_rate(rate) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.04, "1.04x"), (5.88, "5.9x"), (120.4, "120x"), (1, "1.00x")])
def test_ratio(ratio, text):
    assert units.format_ratio(ratio) == text


def test_range():
    assert units.format_range(3.1, 2.4, 3.6) == "3.1x (2.4x to 3.6x)"
    assert units.format_interval(Interval(3.1, 2.4, 3.6)) == "3.1x (2.4x to 3.6x)"


def test_clock_is_local():
    noon = datetime(2026, 5, 17, 12, 3, 4)
    assert units.format_clock(round(noon.timestamp() * units.NS_PER_S)) == "12:03:04"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (5e6, "ns", "5 ms"),
        (2048, "bytes", "2 KiB"),
        (2048, "bytes/s", "2 KiB/s"),
        (0.5, "share", "50 %"),
        (3, "calls", "3 calls"),
        (2.0, "", "2"),
        (3, "findings", "3"),
        (10, "elements/s", "10 elements/s"),
        (1.5, "ratio", "1.50x"),
    ],
)
def test_value_is_written_in_its_unit(value, unit, text):
    assert units.format_value(value, unit) == text


@pytest.mark.parametrize("write", FORMATS)
@given(value=ANY)
def test_any_number_has_a_short_text(write, value):
    text = write(value)
    assert text
    assert "nan" not in text
    assert "inf" not in text
    assert len(text) < 25 or not 1e-6 < abs(value) < 1e9
    assert "e+" not in text


@given(st.floats(min_value=1, max_value=1e17))
def test_ns_keeps_three_digits(ns):
    number, unit = units.format_ns(ns).split()
    size = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10}[unit]
    assert float(number.replace(",", "")) * size == pytest.approx(ns, rel=0.006)
    assert unit == "min" or float(number.replace(",", "")) < 1000


@given(st.floats(min_value=1, max_value=1e15))
def test_larger_is_never_written_smaller(size):
    assert _bytes(units.format_bytes(size * 1.1)) >= _bytes(units.format_bytes(size))


@given(FINITE, st.integers(min_value=1, max_value=80))
def test_bar_fits(share, width):
    bar = units.format_bar(share, width)
    assert len(bar) <= width
    assert bool(bar) == (share > 0)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("1.5s", 1.5), ("500ms", 0.5), ("2 min", 120), ("1h", 3600), (".5", 0.5)]
)
def test_seconds(text, seconds):
    assert units.parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "-1", "1 day", "ten", "nan", "inf", "1e400", "9" * 400])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match=r"duration|zero"):
        units.parse_seconds(text)


@given(st.text())
def test_text_is_a_duration_or_refused(text):
    with contextlib.suppress(ValueError):
        assert 0 < units.parse_seconds(text) < math.inf


def _bytes(text):
    number, unit = text.split()
    size = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
    return float(number.replace(",", "")) * size


@pytest.mark.parametrize(
    ("text", "size"), [("4GiB", 4 << 30), (" 1.5 mib ", 1.5 * (1 << 20)), ("2GB", 2e9), ("512", 512), ("1B", 1)]
)
def test_sizes_are_parsed(text, size):
    assert units.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "0", "-1", "4 parsecs", "1e3", "nan"])
def test_no_size(text):
    with pytest.raises(ValueError, match=r"size|zero"):
        units.parse_bytes(text)
