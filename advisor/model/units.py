"""Formats numbers with units, and parses durations and sizes.

In: nanoseconds, bytes, shares (0 to 1), rates, ratios.  Out: short text with a unit (`12.3 ms`) and at most three significant
digits. All numbers in reports are formatted here; report.json keeps full precision.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Protocol

NS_PER_S = 1_000_000_000
_UNKNOWN = "unknown"
_TIMES = ((60 * NS_PER_S, "min"), (NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SECONDS_PER = {"": 1.0, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")
_BYTES_PER = {
    "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip


def format_ns(ns: float) -> str:
    """Format nanoseconds: `850 ns`, `12.3 ms`, `4.2 s`, `12.5 min`; `unknown` if not finite."""
    if not math.isfinite(ns):
        return _UNKNOWN
    for size, unit in _TIMES:
        if _is_at_least(abs(ns), size):
            return f"{_digits(ns / size)} {unit}"
    return "0 ns" if ns == 0 else f"{_digits(ns)} ns"


def format_bytes(size: float) -> str:
    """Format bytes in powers of 1024: `512 B`, `1.5 MiB`; `unknown` if not finite."""
    if not math.isfinite(size):
        return _UNKNOWN
    for unit_size, unit in _SIZES:
        if _is_at_least(abs(size), unit_size):
            return f"{_digits(size / unit_size)} {unit}"
    return f"{_digits(size)} B"


def format_share(share: float) -> str:
    """Format a share (0 to 1) in per cent: `83 %`, `4.2 %`, `< 0.1 %`; `unknown` if not finite."""
    if not math.isfinite(share):
        return _UNKNOWN
    percent = share * 100
    if 0 < abs(percent) < 0.1:
        return "< 0.1 %" if percent > 0 else "> -0.1 %"
    return f"{_digits(percent, 2 if abs(percent) < 10 else 3)} %"


def format_change(change: float) -> str:
    """Format a relative change with its sign: 0.012 is `+1.2 %`."""
    return f"+{format_share(change)}" if change > 0 else format_share(change)


def format_rate(per_second: float, what: str = "elements", one: str = "") -> str:
    """Format a rate: `1,230 elements/s`; below one per second, `4.2 s per element`.

    Args:
        per_second: The rate.
        what: What is counted.
        one: Its singular, if that is not `what` without its last letter.
    """
    if not math.isfinite(per_second):
        return _UNKNOWN
    if 0 < per_second < 1:
        return f"{format_ns(NS_PER_S / per_second)} per {one or what.removesuffix('s')}"
    return f"{_digits(per_second)} {what}/s"


def format_ratio(ratio: float) -> str:
    """Format a speedup: `5.9x`, `120x`, `1.04x`."""
    if not math.isfinite(ratio):
        return _UNKNOWN
    if abs(ratio) < 2:
        return f"{ratio:.2f}x"
    return f"{ratio:.1f}x" if abs(ratio) < 10 else f"{_digits(ratio)}x"


def format_range(value: float, low: float, high: float) -> str:
    """Format a speedup with its range: `3.1x (2.4x to 3.6x)`.

    Args:
        value: The speedup, new speed by old: 1 is no change.
        low: Its lower bound.
        high: Its upper bound.
    """
    return f"{format_ratio(value)} ({format_ratio(low)} to {format_ratio(high)})"


class _Interval(Protocol):
    """A value between two bounds, such as `advisor.model.outcome.Interval`, which imports this module."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def format_interval(interval: _Interval) -> str:
    """Format a measured speedup with its interval: `3.1x (2.4x to 3.6x)`."""
    return format_range(interval.value, interval.low, interval.high)


def format_count(count: float) -> str:
    """Format a count: `1,234`, `2.5`, `1,230,000`."""
    if not math.isfinite(count):
        return _UNKNOWN
    return f"{count:,.0f}" if count == round(count) else _digits(count)


def format_many(count: int, thing: str) -> str:
    """Format a count with its noun: `1 step`, `1,234 steps`."""
    return f"{format_count(count)} {thing}{'' if count == 1 else 's'}"


def format_epochs(passes: float) -> str:
    """Format a number of passes over the data: `1 epoch`, `3 epochs`, `2.5 epochs`."""
    return f"{format_count(passes)} epoch{'' if passes == 1 else 's'}"


def format_span(start_ns: int, end_ns: int) -> str:
    """Format the time between two instants."""
    return format_ns(end_ns - start_ns)


def format_clock(time_ns: int) -> str:
    """Format a point in time, in Unix nanoseconds, as the local time of day: `14:05:09`."""
    return datetime.fromtimestamp(time_ns / NS_PER_S).strftime("%H:%M:%S")


def format_value(value: float, unit: str) -> str:
    """Format a measured value with its unit; the units `ns`, `bytes`, `share`, `ratio` and `.../s` get a readable form.

    A number of `findings` has no unit, because the text around it names them.
    """
    match unit:
        case "ns":
            return format_ns(value)
        case "bytes":
            return format_bytes(value)
        case "bytes/s":
            return f"{format_bytes(value)}/s"
        case "share":
            return format_share(value)
        case "ratio" | "x":
            return format_ratio(value)
        case "findings":
            return format_count(value)
    if unit.endswith("/s"):
        return format_rate(value, unit.removesuffix("/s"))
    return f"{format_count(value)} {unit}".rstrip()


def format_bar(share: float, width: int, full: str = "#") -> str:
    """Draw a bar of at most `width` characters for a share (0 to 1); a share above 0 has at least one character.

    Args:
        share: The share; values above 1 count as 1, and NaN as 0.
        width: Length of a full bar in characters.
        full: The character of which the bar is made.
    """
    if not math.isfinite(share) or share <= 0:
        return ""
    return full * max(1, round(min(share, 1.0) * width))


def parse_seconds(text: str) -> float:
    """Parse a duration such as `30`, `1.5s`, `500ms` or `2 min`.

    Returns:
        The duration in seconds.

    Raises:
        ValueError: The text is not a duration, or is zero.
    """
    match = _AMOUNT.fullmatch(text.lower())
    if match is None or match[2] not in _SECONDS_PER:
        raise ValueError(f"{text!r} is not a duration; write seconds (30) or a number with ms, s, min or h (2min)")
    seconds = float(match[1]) * _SECONDS_PER[match[2]]
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} must be more than zero")
    return seconds


def step_option(step_s: float) -> str:
    """The length of an imagined step as `--as-if-step` takes it: `5ms`, without an exponent.

    Args:
        step_s: Seconds.
    """
    return f"{step_s * 1e3:.6f}".rstrip("0").rstrip(".") + "ms"


def parse_bytes(text: str) -> float:
    """Parse a size such as `4GiB`, `512 MiB`, `2GB` or `1048576`.

    Returns:
        The size in bytes.

    Raises:
        ValueError: The text is not a size, or is zero.
    """
    match = _AMOUNT.fullmatch(text.lower())
    if match is None or match[2] not in _BYTES_PER:
        raise ValueError(f"{text!r} is not a size; write a number with MiB, GiB, MB or GB (4GiB)")
    size = float(match[1]) * _BYTES_PER[match[2]]
    if not 0 < size < math.inf:
        raise ValueError(f"{text!r} must be more than zero")
    return size


def _is_at_least(value: float, size: int) -> bool:
    """Whether `value` is large enough for the unit `size`; rounding to three digits must not result in `1000 ms`."""
    return value >= size * 0.9995 if size > 1 else value >= 1


def _digits(value: float, digits: int = 3) -> str:
    """Three significant digits (at most six decimals) without an exponent or trailing zeros; large integers stay complete."""
    if not math.isfinite(value):  # a finite value may overflow during unit conversion
        return "many"
    if value == 0:
        return "0"
    decimals = min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
