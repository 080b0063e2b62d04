"""The JSON of `advisor check`, described by `check.schema.json` in this folder.

In: a `Check`.  Out: the bytes. The keys are the fields of `check_format.Check`.
"""

from __future__ import annotations

from advisor.model.check_result import BaseComparison, BaselineUse, BudgetOutcome, Check, CheckedFinding
from advisor.model.version import __version__
from advisor.report import check_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, read_schema, to_bytes, to_dict
from advisor.report.pipeline_format import Site
from advisor.report.proof_format import Ratio
from advisor.report.proof_json import paired_test


def check_to_bytes(check: Check) -> bytes:
    """Return the check as UTF-8 JSON with a final newline."""
    document = v1.Check.of(
        check,
        schema_version=SCHEMA_VERSION,
        advisor_version=__version__,
        result="passed" if check.is_passed else "failed",
        budgets=[_budget(outcome) for outcome in check.outcomes],
        new_findings=[_finding(finding) for finding in check.new_findings],
        baseline=check.baseline and _baseline(check.baseline),
        base=check.base and _base(check.base),
    )
    return to_bytes(to_dict(document))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `check_to_bytes`."""
    return read_schema("check.schema.json")


def _budget(outcome: BudgetOutcome) -> v1.Budget:
    budget = outcome.budget
    return v1.Budget.of(
        outcome,
        quantity=budget.quantity,
        level=budget.level,
        aggregation=budget.aggregation,
        interval=v1.RatioInterval.maybe(outcome.interval),
    )


def _finding(finding: CheckedFinding) -> v1.NewFinding:
    return v1.NewFinding.of(finding, site=Site.maybe(finding.site), predicted_speedup=Ratio.maybe(finding.prediction))


def _baseline(use: BaselineUse) -> v1.Baseline:
    return v1.Baseline.of(
        use,
        added=[v1.BaselineEntry.of(entry) for entry in use.added],
        removed=[v1.BaselineEntry.of(entry) for entry in use.removed],
    )


def _base(base: BaseComparison) -> v1.Base:
    return v1.Base.of(
        base,
        base_step_ms=None if base.base_step_ns is None else milliseconds(base.base_step_ns),
        head_step_ms=None if base.head_step_ns is None else milliseconds(base.head_step_ns),
        step_ratio=v1.RatioInterval.maybe(base.step_ratio),
        test=paired_test(base.test),
        memory_ratio=v1.RatioInterval.maybe(base.memory_ratio),
        loops=[v1.LoopRatio.of(loop, step_ratio=v1.RatioInterval.of(loop.step_ratio)) for loop in base.loops],
    )
