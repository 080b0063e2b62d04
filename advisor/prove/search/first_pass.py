"""The search for what makes the first pass faster, which fills the caches.

In: the kept changes, and an analysis of the pipeline without its caches in memory.  Out: the changes to try on it, and what they
may gain over the whole run.

Once a cache is full, nothing upstream of it costs anything, so neither the analysis of the training nor that of the pipeline with
the kept changes proposes to make it cheaper. A run of a few passes spends much of its time in the first one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from advisor.host.calibration.proof import MIN_GAIN, UNKNOWN_PASSES
from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove, SetOption, adds_cache
from advisor.model.finding import Finding, Fix
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis
from advisor.model.units import NS_PER_S
from advisor.predict.caching import is_in_memory
from advisor.predict.call_index import graph_of
from advisor.predict.passes_over_data import horizon
from advisor.predict.remade_calls import calls_with_lost_caches
from advisor.predict.structure import consumed_call, upstream_calls
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.search_limits import SearchLimits, own_step_s, pipeline_s
from advisor.prove.trial.trial_result import SAME, Trial
from advisor.rewrite.shared_calls import edited_ids

NOTE = "Both speeds are those of the first pass, which fills the cache; later passes read the cache."
_IN_TITLE = " (first pass)"


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What the search in the first pass knows of the script."""

    proposals: Proposals
    analysis: Analysis
    """The analysis of the unchanged script, or of its pipeline alone."""

    def may_gain(self, kept: Sequence[Finding], later: Trial) -> bool:
        """Whether the first pass fills a cache, and may take a noticeable part of the run.

        Args:
            kept: The kept changes.
            later: The trial of the latest of them.
        """
        anchors, latest = _anchors(_edits_of(kept), self.analysis), _edits_of(kept[-1:])
        if len(anchors) != 1 or not any(map(adds_cache, latest)) or any(isinstance(edit, Remove) for edit in latest):
            return bool(anchors)
        # The trial of the only cache has measured the pipeline without it.
        first = replace(later, rate_after=later.rate_before)
        return self._gain_of_run(first, later, math.inf) >= 1 + MIN_GAIN.value

    def propose(self, report: Report, kept: Sequence[Finding]) -> list[Finding]:
        """Return the findings to try.

        Args:
            report: The analysis of the pipeline without caches.
            kept: The kept changes.
        """
        filling = _upstream_ids(_anchors(_edits_of(kept), self.analysis), report.analysis)
        before = (
            replace(finding, title=f"{finding.title}{_IN_TITLE}", over_run=None, fix=_before_cache(finding.fix))
            for finding in report.findings
            if finding.fix is not None and not finding.is_delayed
        )
        findings = tuple(
            finding for finding in before if finding.fix and _is_upstream(finding.fix, filling, report.analysis)
        )
        # The number of passes says nothing about changes of a single one.
        proposals = self.proposals.without_passes()
        return proposals.propose(replace(report, findings=findings, hints=(), outlook=None), kept)

    def limits(self, report: Report, later: Trial, limits: SearchLimits) -> tuple[Trial, SearchLimits]:
        """Return the speed of the first pass, and the limits of the search in it.

        Args:
            report: The analysis of the pipeline without caches.
            later: The latest kept trial: how fast later passes are.
            limits: The limits of the search in later passes.
        """
        steps = report.analysis.verdict.steps
        now = Trial(SAME, rate_after=NS_PER_S / steps.mean_ns if steps is not None and steps.mean_ns else None)
        return now, replace(limits, gain_left=partial(self._gain_left, later), is_enough=lambda trial: False)

    def _gain_left(self, later: Trial, now: Trial, finding: Finding) -> float:
        high = finding.prediction.high if finding.prediction is not None else math.inf
        return self._gain_of_run(now, later, max(1.0, high))

    def _gain_of_run(self, now: Trial, later: Trial, speedup: float) -> float:
        """The speedup of the run if the pipeline becomes so much faster in the first pass; infinite if its speed is unknown.

        As in `search_limits.gain_left`, pipeline and training overlap, or one waits for the other.
        """
        own_s = own_step_s(self.analysis) or 0.0
        now_s, later_s = pipeline_s(self.analysis, now), pipeline_s(self.analysis, later)
        if now_s is None or later_s is None:
            return math.inf
        main = self.analysis.main
        passes = horizon(self.analysis, main).passes if main is not None else None
        others = max(0.0, (passes or UNKNOWN_PASSES.value) - 1)
        then_s = now_s / speedup

        def run_s(first_s: float, is_overlapping: bool) -> float:
            join = max if is_overlapping else _sum
            return join(own_s, first_s) + others * join(own_s, later_s)

        return max(run_s(now_s, overlaps) / max(run_s(then_s, overlaps), 1e-12) for overlaps in (False, True))


def _edits_of(findings: Sequence[Finding]) -> list[Edit]:
    return [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]


def _sum(first: float, second: float) -> float:
    return first + second


def _anchors(edits: Sequence[Edit], analysis: Analysis) -> frozenset[str]:
    """Return the ids of the calls of the training's dataset whose elements a cache in memory holds from one pass to the next.

    Args:
        edits: The edits of the kept changes.
        analysis: The analysis of the unchanged script.
    """
    main = analysis.main
    consumed = consumed_call(analysis, main) if main is not None else None
    if main is None or consumed is None:
        return frozenset()
    lost = calls_with_lost_caches(analysis, main)
    caches = {call.id: call for call in upstream_calls(analysis, consumed) if is_in_memory(call)}
    moved = {edit.call_id: edit.after_id for edit in edits if isinstance(edit, MoveAfter) and edit.call_id in caches}
    gone = {edit.call_id for edit in edits if isinstance(edit, Remove)} | lost | moved.keys()
    anchors = {edit.call_id for edit in edits if adds_cache(edit)} | set(moved.values())
    return frozenset(anchors.union(call.inputs[0] for call in caches.values() if call.id not in gone and call.inputs))


def _before_cache(fix: Fix) -> Fix:
    """Return the fix as it is made before a cache, without a prefetch for the end of the pipeline, which is behind the cache."""
    edits = tuple(edit for edit in fix.edits if not (isinstance(edit, InsertAfter) and edit.method == "prefetch"))
    return replace(fix, edits=edits, fills_cache=True)


def _is_upstream(fix: Fix, filling: frozenset[str], analysis: Analysis) -> bool:
    """Whether a fix changes something, and nothing but calls whose elements a cache holds; and not only when these work.

    An option or a move that only lets work overlap is proved on the whole script, which is timed in later passes. A second cache
    would hold the same elements.

    Args:
        fix: The fix, from `_before_cache`.
        filling: The ids of these calls.
        analysis: The analysis of the pipeline without caches.
    """
    if not fix.edits or not filling.issuperset(edited_ids(fix.edits)):
        return False
    method_of = {call.id: call.method for call in analysis.calls}
    if any(isinstance(edit, SetOption) or adds_cache(edit) for edit in fix.edits):
        return False
    return not any(isinstance(edit, MoveAfter) and method_of.get(edit.after_id) == "shuffle" for edit in fix.edits)


def _upstream_ids(anchors: frozenset[str], analysis: Analysis) -> frozenset[str]:
    """Return the ids of these calls, of all calls upstream of them, and of those made inside their functions."""
    graph = graph_of(analysis)
    ids = {call.id for anchor in anchors if anchor in graph.by_id for call in graph.upstream(graph.by_id[anchor])}
    while inner := {call.id for call in analysis.calls if call.nested_in in ids} - ids:
        ids |= inner
    return frozenset(ids)
