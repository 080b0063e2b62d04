"""docs/rules.md: every rule's page, with what the rule makes of its own examples.

In: loaded rules.  Out: Markdown. `python -m advisor.engine.pages > docs/rules.md` writes the page that a test holds up to date.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence

from advisor.engine.loader import LoadedRule, load_rules
from advisor.engine.run import run_rules
from advisor.model.finding import Finding
from advisor.model.settings import Settings
from advisor.testing import Example

_INTRODUCTION = """\
# Rules

This page is made from the rule files: `python -m advisor.engine.pages > docs/rules.md`. `advisor rules` lists the rules,
`advisor explain RULE` prints one page, [writing-rules.md](writing-rules.md) says how to write one.

A rule reads the executed graph with its measurements, never the source: what tf.data already did is not recommended again.
Thresholds are set in `pyproject.toml`; a comment on a call silences a rule there, `ignore` everywhere:

```toml
[tool.advisor]
ignore = ["scalar-map"]

[tool.advisor.rules.serial-map]
min_free_cores = 1.0
```

```python
ds = ds.map(decode, num_parallel_calls=2)  # advisor: ignore[capped-parallelism]
```

Fixes are *auto* (applied and proved by `advisor fix`), *ask* (applied only when asked for) or *tell* (advice only). What a fix
does to the data: *exact*, the same elements in the same order, bit for bit; *rerandomized*, random ops draw other numbers of the
same distribution (applied unasked only where the script is unseeded); *reordered*, the same elements in another order
(`--allow reordered`).
"""


def write_document(rules: Sequence[LoadedRule]) -> str:
    """docs/rules.md for these rules."""
    parts = [_INTRODUCTION, "| rule | says | its fix |\n|---|---|---|"]
    for loaded in rules:
        summary = " ".join(loaded.page.summary.split())
        parts.append(f"| [{loaded.id}](#{loaded.id}) | {summary} | {'; '.join(kinds_of(loaded))} |")
    parts += ["\n" + "\n".join(_page(loaded)) for loaded in rules]
    return "\n".join(parts).rstrip() + "\n"


def _page(loaded: LoadedRule) -> Iterator[str]:
    yield f"## {loaded.id}\n\n{loaded.page.summary}\n"
    for heading, text in loaded.page.sections.items():
        yield f"### {heading}\n\n{text}\n"
    example = next((each for each in loaded.examples if each.is_finding), None)
    if example is not None:
        finding = _finding(loaded, example)
        yield f"### Example\n\n```python\n{example.pipeline.source.rstrip()}\n```\n"
        yield f"(made up) {finding.because if finding else ''}\n"
        if diff := _diff(example, finding):
            yield f"```diff\n{diff}\n```\n"
    silent = [each.because for each in loaded.examples if not each.is_finding]
    if silent:
        yield "### Silent when\n\n" + "\n".join(f"* {because}" for because in dict.fromkeys(silent)) + "\n"


def kinds_of(loaded: LoadedRule) -> list[str]:
    """How the findings of the examples are applied: `auto, exact`, `ask, reordered`, `tell`; `a verdict` for none."""
    found: dict[str, None] = {}
    for example in loaded.examples:
        if example.is_finding and (finding := _finding(loaded, example)) is not None:
            fix = finding.fix
            is_told = fix is None or not fix.is_provable
            found["tell" if is_told or fix is None else f"{'auto' if fix.is_auto else 'ask'}, {fix.safety}"] = None
    return sorted(found) or ["a verdict"]


def _finding(loaded: LoadedRule, example: Example) -> Finding | None:
    return next(iter(run_rules(example.pipeline.analysis, [loaded], Settings()).findings), None)


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
