"""Loading rules, and every mistake a person can make with them: one sentence, no traceback."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from advisor.engine import load_rules, run_rules
from advisor.engine.examples import failures
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings

RULE = '''
"""wide-batch: made up."""

from dataclasses import dataclass

from advisor.rule import Rule
from advisor.testing import batch, fires, pipeline, silent, source


@dataclass(frozen=True)
class WideBatch(Rule):
    """Batches are wide.

    ## Why it is slow
    It is not.
    """

    max_size: int = 64
    """Elements."""
    ratio: float = 0.5
    name: str = "batch"
    is_strict: bool = False
    kinds: tuple[str, ...] = ("batch",)

    def check(self, analysis):
        for call in analysis.calls:
            if call.method == "batch" and call.arguments["batch_size"] > self.max_size:
                yield self.finding("Narrow the batch", "It is wide.", call=call)


EXAMPLES = (
    fires(pipeline(source(ms=1), batch(128), consumer_ms=1)),
    silent(pipeline(source(ms=1), batch(32), consumer_ms=1), because="it is narrow"),
)
'''


def write(folder: Path, name: str = "wide_batch.py", text: str = RULE) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def load(folder: Path, **thresholds):
    """The rule of the folder, with these thresholds."""
    rules = load_rules([folder], Settings(rules={"wide-batch": thresholds} if thresholds else {}))
    return next(loaded for loaded in rules if not loaded.is_shipped)


def error_of(folder: Path, settings: Settings | None = None) -> str:
    with pytest.raises(AdvisorError) as caught:
        load_rules([folder], settings or Settings())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_rule_is_its_file(tmp_path):
    path = write(tmp_path)
    loaded = load(tmp_path)
    assert (loaded.id, loaded.path, len(loaded.examples)) == ("wide-batch", path, 2)
    assert loaded.page.summary == "Batches are wide."
    assert loaded.page.sections["Why it is slow"] == "It is not."
    assert next((t.name, t.default, t.reason) for t in loaded.page.thresholds) == ("max_size", 64, "Elements.")
    assert failures(loaded) == []
    assert run_rules(loaded.examples[0].pipeline.analysis, [loaded], Settings()).findings[0].rule == "wide-batch"


def test_the_shipped_rules_come_first_and_files_of_a_folder_follow(tmp_path):
    write(tmp_path)
    write(tmp_path, "_shared.py", "x = 1")
    rules = load_rules([tmp_path], Settings())
    assert [loaded.is_shipped for loaded in rules] == [True] * (len(rules) - 1) + [False]
    assert "serial-map" in [loaded.id for loaded in rules]


def test_folders_of_the_settings_are_loaded_too(tmp_path):
    write(tmp_path)
    rules = load_rules([tmp_path], Settings(rule_directories=(tmp_path,)))
    assert [loaded.id for loaded in rules].count("wide-batch") == 1


def test_examples_that_do_not_come_out_are_told(tmp_path):
    write(tmp_path, text=RULE.replace("batch(128)", "batch(16)").replace("batch(32)", "batch(256)"))
    first, second = failures(load(tmp_path))
    assert first == "wide-batch, example 1: it must find something, but it is silent"
    assert "must be silent because it is narrow" in second


def test_thresholds_are_laid_over_the_defaults(tmp_path):
    write(tmp_path)
    rule = load(tmp_path, max_size=200, ratio=1, **{"is-strict": True}, kinds=["a"], min_speedup=2).rule
    assert (rule.max_size, rule.ratio, rule.is_strict, rule.kinds, rule.min_speedup) == (200, 1.0, True, ("a",), 2.0)
    assert isinstance(rule.ratio, float)


@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [
        ({"max_sise": 3}, "wide-batch the threshold 'max_sise', but it has none of that name. Did you mean max_size?"),
        ({"zzz": 3}, "has none of that name. It has is_strict, kinds, max_size, min_speedup, name, ratio."),
        ({"max_size": 3.5}, "wide-batch.max_size the value 3.5, but it must be a whole number."),
        ({"max_size": True}, "wide-batch.max_size the value True, but it must be a whole number."),
        ({"ratio": "high"}, "wide-batch.ratio the value 'high', but it must be a number."),
        ({"is_strict": 1}, "wide-batch.is_strict the value 1, but it must be true or false."),
        ({"name": 1}, "wide-batch.name the value 1, but it must be a string."),
        ({"kinds": "a"}, "wide-batch.kinds the value 'a', but it must be a list."),
    ],
)
def test_mistakes_in_thresholds(tmp_path, thresholds, sentence):
    write(tmp_path)
    assert sentence in error_of(tmp_path, Settings(rules={"wide-batch": thresholds}))


def test_unknown_rules_in_the_settings(tmp_path):
    sentence = error_of(write(tmp_path).parent, Settings(ignore=("serial-mop",)))
    assert sentence == "The settings name the rule 'serial-mop', but there is none. Did you mean serial-map?"
    assert "Did you mean" not in error_of(tmp_path, Settings(rules={"zzz": {}}))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:\n    pass\n", "cannot be loaded: line 1: "),
        ("import nothing_of_that_name\n", "cannot be loaded: line 1: ModuleNotFoundError: "),
        ("x = 1\n\ny = 1 / 0\n", "cannot be loaded: line 3: ZeroDivisionError: division by zero."),
        ("x = 1\n", "must define exactly one subclass of Rule; found: none."),
        (RULE + "\n@dataclass(frozen=True)\nclass Two(Rule):\n    pass\n", "subclass of Rule; found: WideBatch, Two."),
        (RULE.replace("@dataclass(frozen=True)\n", ""), "WideBatch in .* must be decorated with @dataclass\\(frozen=True\\)."),
        (RULE.replace("max_size: int = 64", "max_size: int"), "Every threshold of WideBatch in .* needs a default value."),
        (RULE.replace("silent(pipeline(source(ms=1), batch(32), consumer_ms=1), because=\"it is narrow\")", "3"),
         "EXAMPLES in .* may hold only fires"),
    ],
)  # fmt: skip
def test_broken_rule_files(tmp_path, text, sentence):
    path = write(tmp_path, text=text)
    error = error_of(tmp_path)
    assert str(path) in error
    assert re.search(sentence if ".*" in sentence else re.escape(sentence), error), error


def test_two_rules_of_one_name(tmp_path):
    assert "Two rules are called wide-batch: " in error_of(write(tmp_path / "a").parent, Settings(
        rule_directories=(write(tmp_path / "b").parent,)
    ))  # fmt: skip
    assert "Two rules are called serial-map" in error_of(write(tmp_path / "c", "serial_map.py").parent)


def test_a_folder_that_is_not_there(tmp_path):
    assert error_of(tmp_path / "absent") == f"There is no folder {tmp_path / 'absent'} to load rules from."


def install(folder: Path, value: str) -> None:
    """A distribution in `folder` with a rules entry point."""
    info = folder / "made_up-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[advisor.rules]\nmine = {value}\n")


@pytest.mark.parametrize("value", ["made_up_rules", "made_up_rules.wide_batch"])
def test_rules_of_an_installed_package(tmp_path, monkeypatch, value):
    write(tmp_path / "made_up_rules")
    write(tmp_path / "made_up_rules", "__init__.py", "")
    install(tmp_path, value)
    monkeypatch.syspath_prepend(tmp_path)
    assert [loaded.id for loaded in load_rules([], Settings()) if not loaded.is_shipped] == ["wide-batch"]


def test_a_broken_entry_point(tmp_path, monkeypatch):
    install(tmp_path, "absent_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AdvisorError, match="entry point mine of made-up cannot be loaded: ModuleNotFoundError"):
        load_rules([], Settings())
