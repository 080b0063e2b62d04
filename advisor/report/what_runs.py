"""Describes what runs on a costly line, in the same words in all reports.

In: fields of a `LineCost`.  Out: `DecodeJpeg`, `numpy, 52 samples`; whether its time is an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model import units

MAX_OPS = 2
"""Maximum number of ops named for an iterator."""
ESTIMATED_SHARE = 0.1
"""A time of which a larger part is estimated is shown as an estimate."""


def about(total_ns: int, unrecorded_ns: int, samples: int | None) -> str:
    """Return `about `, to be put before the time of a line, if it is an estimate; else nothing.

    Args:
        total_ns: The time.
        unrecorded_ns: The part of it that is estimated because its ops were not recorded.
        samples: As for `what_runs`.
    """
    return "about " if samples is not None or unrecorded_ns > ESTIMATED_SHARE * total_ns else ""


def what_runs(ops: Sequence[str], samples: int | None, native_share: float, library: str) -> str:
    """Return the ops of a line; for Python code, the library whose compiled code runs, and the number of samples.

    Args:
        ops: Types of the line's ops, most expensive first; the first `MAX_OPS` are named.
        samples: Number of samples of a line of Python code; None for a line of ops.
        native_share: Share of these samples inside compiled code, 0 to 1.
        library: The package of that code; empty if it is unknown.
    """
    if samples is None:
        return ", ".join(ops[:MAX_OPS])
    if native_share >= 0.9:
        text = f"compiled code of {library or 'a library'}"
    elif native_share >= 0.1:
        text = f"Python, {units.format_share(native_share)} compiled code of {library or 'a library'}"
    else:
        text = f"Python code of {library}" if library else "Python"
    return f"{text}; {units.format_many(samples, 'sample')}"
