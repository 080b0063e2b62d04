"""The `proof` object of report.json, describing how fixes were proved.

In: a `Proof` and the outcomes of its fixes.  Out: plain dictionaries; numbers that are not finite become null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.model.outcome import FixOutcome
from advisor.model.proof import Proof, Side

_NS_PER_MS = 1_000_000

Json = dict[str, object]


def proof_to_dict(proof: Proof, fixes: Sequence[FixOutcome]) -> Json:
    """Convert a proof. Its `fixes` hold, in the same order, the fields that the top-level `fixes` of the report lack."""
    return {
        "verdict": proof.verdict,
        "proved_on": proof.proved_on,
        "training": proof.training,
        "sentence": proof.sentence,
        "before": _side(proof.before),
        "after": _side(proof.after),
        "runs": proof.runs,
        "pipeline_turns": proof.pipeline_turns,
        "end_to_end_turns": proof.end_to_end_turns,
        "fixes": [
            {
                "title": fix.title,
                "note": fix.note,
                "memory_bytes": {"before": fix.memory_before_bytes, "after": fix.memory_after_bytes},
                "end_to_end": fix.is_end_to_end,
            }
            for fix in fixes
        ],
        "diff": proof.diff or None,
        "left_out": list(proof.left_out),
        "written_files": list(proof.written_files),
        "changed_files": list(proof.changed_files),
        "notes": list(proof.notes),
        "seconds": _number(proof.seconds),
    }


def _side(side: Side) -> Json:
    return {
        "elements_per_s": _number(side.elements_per_s),
        "step_time_ms": _number(None if side.step_ns is None else side.step_ns / _NS_PER_MS),
        "input_wait_share": _number(side.wait_share),
        "peak_rss_bytes": side.peak_rss_bytes,
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
