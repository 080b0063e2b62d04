"""The statistics of the profiler guide (overview, input pipeline, ops, kernels, memory, hosts) and device facts for rules.

In: a profile and what the analysis found in it.  Out: `Statistics`; docs/statistics.md defines every figure.
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

    Unchanged where they hold no events. Figures are an extra: a damaged profile that breaks them still gets its verdict, and a
    warning.
    """
    from advisor.statistics.few_steps import tell_few_steps
    from advisor.statistics.host_processes import collect_in_processes
    from advisor.statistics.report_sections import make_tables

    try:
        collected = collect_in_processes(paths, analysis.recording)
        if not collected.num_events and not collected.devices:
            return tell_few_steps(analysis)
        statistics = make_tables(collected, analysis)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        warning = f"The profiler's figures could not be computed from this profile ({type(error).__name__}: {error})."
        return tell_few_steps(replace(analysis, warnings=(*analysis.warnings, warning)))
    return tell_few_steps(replace(analysis, statistics=statistics, device=statistics.device))
