"""docs/rules.md is what the rule files say."""

from __future__ import annotations

from pathlib import Path

from advisor.engine import load_rules
from advisor.engine.examples import failures
from advisor.engine.rules_document import write_document
from advisor.model.settings import Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "rules.md"


def test_rules_document_is_up_to_date():
    written = write_document([loaded for loaded in load_rules([], Settings()) if loaded.is_shipped])
    assert DOCUMENT.read_text(encoding="utf-8") == written, (
        "run: python -m advisor.engine.rules_document > docs/rules.md"
    )


def test_the_rule_in_writing_rules_is_a_rule(tmp_path):
    text = (DOCUMENT.parent / "writing-rules.md").read_text(encoding="utf-8")
    (tmp_path / "oversized_batch.py").write_text(text.split("```python\n")[1].split("```")[0])
    (loaded,) = [loaded for loaded in load_rules([tmp_path], Settings()) if not loaded.is_shipped]
    assert loaded.id == "oversized-batch"
    assert failures(loaded) == []
    assert len(loaded.examples) == 3
