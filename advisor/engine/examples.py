"""Check a rule against the examples in its own file.

In: a `LoadedRule`. Out: one sentence per deviation from an example; used by the tests and by `advisor rules test`.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.engine.rule_file import LoadedRule
from advisor.engine.run import run_rules
from advisor.model.outcome import Report
from advisor.model.settings import DEFAULT_RULE_SECONDS, Settings
from advisor.testing import Example


def failures(loaded: LoadedRule, rule_seconds: float = DEFAULT_RULE_SECONDS) -> list[str]:
    """Check all examples of a rule.

    Args:
        loaded: The rule.
        rule_seconds: Time limit for each example.

    Returns: One sentence per deviation; empty if all examples hold.
    """
    return [
        f"{loaded.id}, example {number}: {sentence}"
        for number, example in enumerate(loaded.examples, start=1)
        for sentence in check_example(loaded, example, rule_seconds)
    ]


def check_example(loaded: LoadedRule, example: Example, rule_seconds: float = DEFAULT_RULE_SECONDS) -> Iterator[str]:
    """Yield one sentence per deviation from the example.

    Args:
        loaded: The rule.
        example: A pipeline with what the rule must say about it.
        rule_seconds: Seconds after which the rule is stopped, which counts as a deviation.
    """
    report = run_rules(example.pipeline.analysis, [loaded], Settings(rule_seconds=rule_seconds))
    for error in report.rule_errors:
        yield f"the rule failed: {error.message}"
    if example.note is not None and not any(example.note in note for note in report.notes):
        yield f"no note contains {example.note!r}; the notes are {list(report.notes)}"
    findings = (*report.findings, *report.hints)
    if not example.is_finding:
        for finding in findings:
            yield f"it must be silent because {example.because}, but it says {finding.title!r}: {finding.because}"
    elif not findings:
        yield "it must find something, but it is silent"
    elif example.fixed is not None:
        yield from _check_fix(report, example)


def _check_fix(report: Report, example: Example) -> Iterator[str]:
    from advisor.rewrite.source import rewrite

    calls = {call.id: call for call in report.analysis.calls}
    fix = (*report.findings, *report.hints)[0].fix
    if fix is None:
        yield f"it must fix the script to {example.fixed!r}, but it proposes no fix"
        return
    text = rewrite(example.pipeline.source, fix, calls)
    if text is None or example.fixed is None or example.fixed not in text:
        yield f"the script must contain {example.fixed!r} after the fix, but it is\n{text}"
