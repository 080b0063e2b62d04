"""The statistics of the profiler guide (overview, input pipeline, ops, kernels, memory, hosts) and device facts for rules.

In: a profile and its analysis.  Out: `Statistics`; docs/statistics.md defines every figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis


def add_statistics(analysis: Analysis, paths: Sequence[Path]) -> Analysis:
    """Add `statistics` and `device`, computed from profile files (one per host), to the analysis.

    The analysis is unchanged if the files contain no events. If the statistics cannot be computed from a damaged profile, the
    analysis gets a warning and keeps its verdict.
    """
    from advisor.statistics.few_steps import add_few_steps_verdict
    from advisor.statistics.host_processes import collect_in_processes
    from advisor.statistics.report_sections import make_tables

    try:
        collected = collect_in_processes(paths, analysis.recording)
        if not collected.num_events and not collected.devices:
            return add_few_steps_verdict(analysis)
        statistics = make_tables(collected, analysis)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        warning = f"The profiler's figures could not be computed from this profile ({type(error).__name__}: {error})."
        return add_few_steps_verdict(replace(analysis, warnings=(*analysis.warnings, warning)))
    return add_few_steps_verdict(replace(analysis, statistics=statistics, device=statistics.device))
