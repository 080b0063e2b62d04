"""docs/rules.md: the page of every rule, with the result of its first example.

In: loaded rules. Out: Markdown. Generate it with `python -m advisor.engine.rules_document > docs/rules.md`; a test checks that
it is up to date.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence

from advisor.engine.rule_file import LoadedRule
from advisor.engine.rule_loader import load_rules
from advisor.engine.run import run_rules
from advisor.model.finding import Finding
from advisor.model.settings import Settings
from advisor.testing import Example

_INTRODUCTION = """\
# Rules

This page is generated from the rule files with `python -m advisor.engine.rules_document > docs/rules.md`. `advisor rules` lists
the rules, and `advisor explain RULE` prints one page. See [writing-rules.md](writing-rules.md) for how to write one.

A rule reads the executed graph and its measurements, not the source, so it does not recommend what tf.data already does.
Thresholds are set in `pyproject.toml`. A comment on a call silences a rule for this call; `ignore` silences it everywhere:

```toml
[tool.advisor]
ignore = ["scalar-map"]

[tool.advisor.rules.serial-map]
min_free_cores = 1.0
```

```python
ds = ds.map(decode, num_parallel_calls=2)  # advisor: ignore[capped-parallelism]
```

A fix is *auto* (applied and proved by `advisor fix`), *ask* (applied only on request) or *tell* (advice only, never applied). Its
safety level describes the effect on the data. *exact*: the same elements in the same order, bit for bit. *rerandomized*: random
ops draw different numbers from the same distribution (applied automatically only if the script is unseeded). *reordered*: the
same elements in a different order (`--allow reordered`).
"""


def write_document(rules: Sequence[LoadedRule]) -> str:
    """The text of docs/rules.md for these rules."""
    parts = [_INTRODUCTION, "| Rule | Problem | Fix |\n|---|---|---|"]
    for loaded in rules:
        summary = " ".join(loaded.page.summary.split())
        parts.append(f"| [{loaded.id}](#{loaded.id}) | {summary} | {'; '.join(kinds_of(loaded))} |")
    parts += ["\n" + "\n".join(_page(loaded)) for loaded in rules]
    return "\n".join(parts).rstrip() + "\n"


def _page(loaded: LoadedRule) -> Iterator[str]:
    yield f"## {loaded.id}\n\n{loaded.page.summary}\n"
    for heading, text in loaded.page.sections.items():
        yield f"### {heading}\n\n{text}\n"
    example = next((example for example in loaded.examples if example.is_finding), None)
    if example is not None:
        finding = _finding(loaded, example)
        yield f"### Example\n\n```python\n{example.pipeline.source.rstrip()}\n```\n"
        yield f"(simulated) {finding.because if finding else ''}\n"
        if diff := _diff(example, finding):
            yield f"```diff\n{diff}\n```\n"
    silent = [example.because for example in loaded.examples if not example.is_finding]
    if silent:
        yield "### Not reported when\n\n" + "\n".join(f"* {because}" for because in dict.fromkeys(silent)) + "\n"


def kinds_of(loaded: LoadedRule) -> list[str]:
    """How the fixes of the examples are applied.

    Returns: Labels such as `auto, exact`, `ask, reordered` or `tell`; `note only` for a rule without findings.
    """
    kinds: dict[str, None] = {}
    for example in loaded.examples:
        if example.is_finding and (finding := _finding(loaded, example)) is not None:
            fix = finding.fix
            is_advice = fix is None or not fix.is_provable
            kinds["tell" if is_advice or fix is None else f"{'auto' if fix.is_auto else 'ask'}, {fix.safety}"] = None
    return sorted(kinds) or ["note only"]


def _finding(loaded: LoadedRule, example: Example) -> Finding | None:
    report = run_rules(example.pipeline.analysis, [loaded], Settings())
    return next(iter((*report.findings, *report.hints)), None)


def _diff(example: Example, finding: Finding | None) -> str:
    from advisor.rewrite.source import rewrite

    if finding is None or finding.fix is None:
        return ""
    calls = {call.id: call for call in example.pipeline.analysis.calls}
    after = rewrite(example.pipeline.source, finding.fix, calls) or example.pipeline.source
    lines = difflib.unified_diff(example.pipeline.source.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


if __name__ == "__main__":
    sys.stdout.write(write_document([loaded for loaded in load_rules([], Settings()) if loaded.is_shipped]))
