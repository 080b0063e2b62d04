"""The pages of the report, with a hint on what to capture for pages without data.

In: the dictionary of report.json.  Out: `Section`s in navigation order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_NO_STATISTICS = (
    "No statistics were computed from the profile. Run `advisor analyze` on the run folder or logdir to fill this page."
)
_ON_GPU = "Capture a run on a GPU or TPU host with device tracing available (libcupti for NVIDIA)."


@dataclass(frozen=True, slots=True)
class Section:
    """One page. `missing` says which capture would fill the page; empty if it has data."""

    id: str
    title: str
    missing: str = ""


def sections_of(report: dict[str, Any]) -> list[Section]:
    """Return all pages; those without data say which capture would fill them."""
    statistics = report.get("statistics") or {}
    hints = statistics.get("missing") or {}

    def missing(name: str, hint: str) -> str:
        if statistics.get(name):
            return ""
        return hints.get(name) or (hint if statistics else _NO_STATISTICS)

    return [
        Section("verdict", "Verdict"),
        Section(
            "pipelines",
            "Input pipeline",
            ""
            if report["pipelines"]
            else "No tf.data iterator ran in the window. Capture a script that iterates over a tf.data dataset:"
            " `advisor analyze SCRIPT`.",
        ),
        Section(
            "overview", "Overview", missing("overview", "Capture complete training steps: `advisor analyze SCRIPT`.")
        ),
        Section(
            "input",
            "Input analysis",
            missing("input", "Capture steps that take elements from a tf.data dataset: `advisor analyze SCRIPT`."),
        ),
        Section(
            "ops", "Operations", missing("ops", "Capture steps that run TensorFlow ops: `advisor analyze SCRIPT`.")
        ),
        Section("kernels", "Kernels", missing("kernels", _ON_GPU)),
        Section("memory", "Memory", missing("memory", _ON_GPU)),
        Section("hosts", "Hosts", missing("hosts", "Capture complete training steps on each host.")),
        Section(
            "timeline",
            "Timeline",
            "" if report.get("timeline") else "The report has no profile. `advisor analyze SCRIPT` captures one.",
        ),
    ]
