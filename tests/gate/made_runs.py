"""Reports for the gate: findings on calls, with or without steps."""

from __future__ import annotations

from advisor.model.calls import Call, Site
from advisor.model.finding import Finding, Prediction
from advisor.model.outcome import Report, RuleError
from advisor.model.pipeline import Analysis, StepStats, Verdict
from advisor.model.window_readings import Usage

MS = 1_000_000


def made_report(*findings, wait=0.5, step_ms=10.0, rss=None, errors=(), target="train.py"):
    """A report with these findings, given as (rule, text of the call) or (rule, text, predicted speedup)."""
    steps = None
    if step_ms is not None:
        step_ns = int(step_ms * MS)
        steps = StepStats(50, step_ns, step_ns, step_ns, None, None)
    verdict = Verdict(bool(wait and wait > 0.05), wait, None, steps, "pipeline", "A sentence.")
    calls, made = [], []
    for number, (rule, text, *gain) in enumerate(findings):
        site = Site("train.py", number + 1, 1, number + 1, 9)
        call_id = f"c{number}" if text else None
        if text:
            calls.append(Call(f"c{number}", "map", site, text=text))
        prediction = Prediction(gain[0], gain[0], gain[0]) if gain else None
        made.append(Finding(rule, f"Do {number}", "Because.", site, call_id=call_id, prediction=prediction))
    usage = None if rss is None else Usage(1, 1, peak_rss_bytes=rss)
    analysis = Analysis(target, verdict, calls=tuple(calls), usage=usage)
    return Report(analysis, tuple(made), rule_errors=tuple(RuleError(rule, "It raised.") for rule in errors))
