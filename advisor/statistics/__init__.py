"""The statistics of the profiler guide (overview, input pipeline, ops, kernels, memory, hosts) and device facts for rules.

In: a profile and its analysis.  Out: `Statistics`; docs/statistics.md defines every figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis, Pipeline
    from advisor.statistics.collect import Collected

DAMAGES = (ArithmeticError, LookupError, MemoryError, ValueError)
"""Exceptions by which damaged profiles end the computation."""


def add_statistics(analysis: Analysis, paths: Sequence[Path]) -> Analysis:
    """Add `statistics` and `device`, computed from profile files (one per host), to the analysis.

    The analysis is unchanged if the files contain no events. If the statistics cannot be computed from a damaged profile, the
    analysis gets a warning and keeps its verdict.
    """
    from advisor.statistics.collect import collect

    try:
        collected = collect(paths, analysis.recording)
    except DAMAGES as error:
        return without_statistics(analysis, damage_of(error))
    return add_collected(analysis, collected)


def add_collected(analysis: Analysis, collected: Collected, others: Mapping[str, Pipeline] | None = None) -> Analysis:
    """Add `statistics` and `device`, computed from the data of all hosts, to the analysis.

    Args:
        analysis: The analysis of the same hosts.
        collected: Their data; afterwards it uses the names of the hosts.
        others: See `add_few_steps_verdict`.
    """
    from advisor.statistics.few_steps import add_few_steps_verdict
    from advisor.statistics.report_sections import make_tables

    try:
        collected.call_hosts_by_name()
        if not collected.num_events and not collected.devices:
            return add_few_steps_verdict(analysis, others)
        statistics = make_tables(collected, analysis)
    except DAMAGES as error:
        return without_statistics(analysis, damage_of(error), others)
    return add_few_steps_verdict(replace(analysis, statistics=statistics, device=statistics.device), others)


def without_statistics(analysis: Analysis, damage: str, others: Mapping[str, Pipeline] | None = None) -> Analysis:
    """Add a warning instead of the statistics.

    Args:
        analysis: The analysis.
        damage: What went wrong, as from `damage_of`.
        others: See `add_few_steps_verdict`.
    """
    from advisor.statistics.few_steps import add_few_steps_verdict

    warning = f"The profiler's figures could not be computed from this profile ({damage})."
    return add_few_steps_verdict(replace(analysis, warnings=(*analysis.warnings, warning)), others)


def damage_of(error: BaseException) -> str:
    """Describe one of `DAMAGES` for `without_statistics`."""
    return f"{type(error).__name__}: {error}"
