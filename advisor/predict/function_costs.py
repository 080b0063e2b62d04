"""What a costly function spends its time on: its share in ops, and its costliest line.

In: an `Iterator` with the ops and lines of its function.  Out: a share, or a sentence.
"""

from __future__ import annotations

from advisor.model.call_names import line_in
from advisor.model.pipeline import Iterator
from advisor.model.units import format_share


def op_share(iterator: Iterator) -> float | None:
    """Return the share of an iterator's time in the ops of its function, 0 to 1; None if it has no ops or took no time."""
    if not iterator.busy_ns or not iterator.ops:
        return None
    return min(1.0, sum(op.total_ns for op in iterator.ops) / iterator.busy_ns)


def costliest_line(iterator: Iterator) -> str:
    """Return a sentence on the line of the function that takes most time; empty if its lines are unknown."""
    line = max(iterator.lines, key=lambda candidate: candidate.total_ns, default=None)
    if line is None:
        return ""
    share = f"{'about ' if line.samples is not None else ''}{format_share(line.share)}"
    return f" L{line_in(iterator.main_call, line.at)[1:]} takes {share} of its time. {line.advice}".rstrip()
