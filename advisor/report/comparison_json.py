"""The JSON of `advisor compare`, described by `comparison.schema.json` beside this file.

In: a `RunComparison`.  Out: plain dictionaries, bytes. Numbers that are not finite become null.
"""

from __future__ import annotations

import json
import math
from importlib import resources
from typing import cast

from advisor.model.pipeline import Iterator
from advisor.model.run_comparison import ComparedRun, NodeChange, RunComparison
from advisor.model.version import __version__

SCHEMA_VERSION = 1
_NS_PER_MS = 1_000_000

Json = dict[str, object]


def comparison_to_dict(comparison: RunComparison) -> Json:
    """In the names of the schema."""
    ratio = comparison.step_speedup
    return {
        "schema_version": SCHEMA_VERSION,
        "advisor_version": __version__,
        "verdict": comparison.verdict,
        "before": _run(comparison.before),
        "after": _run(comparison.after),
        "step_time": ratio
        and {"speedup": _number(ratio.value), "low": _number(ratio.low), "high": _number(ratio.high)},
        "turns": comparison.turns,
        "nodes": [_node(node) for node in comparison.nodes],
        "notes": list(comparison.notes),
    }


def comparison_to_bytes(comparison: RunComparison) -> bytes:
    """UTF-8 JSON with a final newline."""
    text = json.dumps(comparison_to_dict(comparison), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def load_schema() -> Json:
    """The JSON Schema (2020-12) of `comparison_to_dict`."""
    text = resources.files("advisor.report").joinpath("comparison.schema.json").read_text("utf-8")
    return cast(Json, json.loads(text))


def _run(run: ComparedRun) -> Json:
    figures = run.figures
    return {
        "target": run.target,
        "run_folder": run.run_folder or None,
        "step_time_ms": _number(None if figures.step_ns is None else figures.step_ns / _NS_PER_MS),
        "steps": run.num_steps,
        "stretches": run.stretches,
        "input_wait_share": _number(figures.wait_share),
        "elements_per_s": _number(figures.elements_per_s),
        "peak_rss_bytes": figures.peak_rss_bytes,
    }


def _node(node: NodeChange) -> Json:
    one = node.after or node.before
    assert one is not None
    return {
        "method": one.main_call.method if one.main_call else None,
        "long_name": one.long_name,
        "before": _iterator(node.before, node.before_busy_ns),
        "after": _iterator(node.after, node.after_busy_ns),
    }


def _iterator(iterator: Iterator | None, busy_ns: float | None) -> Json | None:
    if iterator is None:
        return None
    call = iterator.main_call
    site = call.site if call else None
    return {
        "name": iterator.name,
        "file": site.file if site else None,
        "line": site.line if site else None,
        "parallelism": iterator.parallelism,
        "blame_share": _number(iterator.blame_share),
        "busy_ns_per_element": _number(busy_ns),
        "element_bytes": iterator.element_bytes,
        "injected_by_tensorflow": iterator.injected_by_tensorflow,
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
