"""The report's pages, and what to capture where one has no data.

In: the dictionary of report.json.  Out: `Section`s in the order of the navigation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_NO_STATISTICS = (
    "The profile was not read for statistics. `advisor analyze` on the run folder or on any logdir fills this page."
)
_ON_GPU = "Capture a run on a GPU or TPU host, with a profiler that can see the device (libcupti for NVIDIA)."


@dataclass(frozen=True, slots=True)
class Section:
    """One page. `missing`: which capture would fill it; empty where there is data."""

    id: str
    title: str
    missing: str = ""


def sections_of(report: dict[str, Any]) -> list[Section]:
    """All pages; those without data say which capture would fill them."""
    statistics = report.get("statistics") or {}
    said = statistics.get("missing") or {}

    def missing(name: str, hint: str) -> str:
        if statistics.get(name):
            return ""
        return said.get(name) or (hint if statistics else _NO_STATISTICS)

    return [
        Section("verdict", "Verdict"),
        Section(
            "pipelines",
            "Input pipeline",
            ""
            if report["pipelines"]
            else "No iterator of tf.data ran in the window. Capture a script that iterates a tf.data dataset:"
            " `advisor analyze SCRIPT`.",
        ),
        Section(
            "overview", "Overview", missing("overview", "Capture some whole training steps: `advisor analyze SCRIPT`.")
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
        Section("hosts", "Hosts", missing("hosts", "Capture some whole training steps on each host.")),
        Section(
            "timeline",
            "Timeline",
            ""
            if report.get("timeline")
            else "The report was made without a profile. `advisor analyze SCRIPT` takes one.",
        ),
    ]
