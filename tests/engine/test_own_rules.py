"""A rule as a user writes it, from docs/writing-rules.md alone and in a folder of their own: it loads, speaks, and fixes; what is
wrong with it is told in one line.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from advisor.cli import main

RUN = Path(__file__).parents[1] / "data" / "keras_fit"
RULE = '''"""sequential-batch: one thread puts batches together."""

from dataclasses import dataclass

from advisor.rule import AUTOTUNE, Analysis, Evidence, Fix, Rule, Safety, SetArgument, is_editable, label, place
from advisor.testing import batch, fires, map_, pipeline, silent, source


@dataclass(frozen=True)
class SequentialBatch(Rule):
    """One thread puts batches together.

    ## Why it is slow
    It copies one element after the other.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE`: several threads copy.

    ## When not to
    When elements are small.

    ## What tf.data already does
    It may do so by itself.
    """

    min_batch_size: int = 8
    """Elements; of a smaller batch there is little to copy."""

    def check(self, analysis: Analysis):
        if analysis.main is None:
            return
        for iterator in analysis.main.iterators:
            for call in iterator.calls:
                size = call.arguments.get("batch_size")
                is_parallel = call.arguments.get("num_parallel_calls") is not None
                if call.method != "batch" or is_parallel or not isinstance(size, int) or size < self.min_batch_size:
                    continue
                fix = Fix((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), Safety.EXACT, is_auto=False)
                yield self.finding(
                    f"Make {label(call)} parallel",
                    f"{label(call)} at {place(call)} puts {size} elements together, one after the other.",
                    call=call,
                    iterator=iterator,
                    fix=fix if is_editable(call) else None,
                    evidence=[Evidence("batch_size", size, "elements")],
                )


EXAMPLES = (
    fires(
        pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5),
        fixed="ds.batch(32, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    silent(pipeline(source(), map_("decode", ms=5), batch(4), consumer_ms=5), because="the batch is small"),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(32, calls=4), consumer_ms=5),
        because="it is parallel",
    ),
)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project of the user's with the rule in `checks/`, and a saved run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checks").mkdir()
    shutil.copytree(RUN, tmp_path / "run")
    return tmp_path


def write(folder: Path, text: str) -> None:
    (folder / "checks" / "sequential_batch.py").write_text(text)


def findings(capsys, *options: str) -> list[dict]:
    assert main(["analyze", "--rules", "checks", *options, "--json", "-", "run"]) == 0
    return [
        finding for finding in json.loads(capsys.readouterr().out)["findings"] if finding["rule"] == "sequential-batch"
    ]


def test_it_loads_and_its_examples_hold(folder, capsys):
    write(folder, RULE)
    assert main(["rules", "test", "checks"]) == 0
    assert "sequential-batch: 3 examples, 0 failed" in capsys.readouterr().out
    assert main(["explain", "sequential-batch", "--rules", "checks"]) == 0
    assert "It copies one element after the other." in capsys.readouterr().out


@pytest.mark.long
def test_it_speaks_of_a_real_run_and_its_thresholds_are_settings(folder, capsys):
    write(folder, RULE)
    (finding,) = findings(capsys)
    assert finding["title"] == "Make batch parallel"
    assert (finding["site"]["line"], finding["safety"], finding["auto"]) == (17, "exact", False)
    assert finding["evidence"]["batch_size"] == {"value": 8, "unit": "elements"}
    (folder / "pyproject.toml").write_text("[tool.advisor.rules.sequential-batch]\nmin_batch_size = 16\n")
    assert findings(capsys) == []


def test_it_is_silenced_like_any_other(folder, capsys):
    write(folder, RULE)
    (folder / "pyproject.toml").write_text('[tool.advisor]\nignore = ["sequential-batch"]\n')
    assert findings(capsys) == []


BROKEN = {
    "no Python": (RULE.replace("def check(", "def check(("), "line 29: "),
    "a name that is not there": (
        RULE.replace("import AUTOTUNE,", "import AUTOTUNED,"),
        "cannot import name 'AUTOTUNED'",
    ),
    "no dataclass": (RULE.replace("@dataclass(frozen=True)\n", ""), "must be decorated with @dataclass(frozen=True)"),
    "no rule": (RULE.replace("(Rule)", ""), "exactly one subclass of Rule; found: none"),
    "a threshold without a value": (RULE.replace("int = 8", "int"), "needs a default value"),
    "examples that are none": (RULE.replace("EXAMPLES = (", "EXAMPLES = (1,"), "may hold only fires"),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize(
    "command", [["rules", "test", "checks"], ["analyze", "--rules", "checks", "run"]], ids=["test", "analyze"]
)
def test_an_error_in_the_rule_is_one_line(folder, capsys, text, says, command):
    assert text != RULE
    write(folder, text)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert says in error and "sequential_batch.py" in error and len(error.splitlines()) == 1


def test_one_that_raises_is_a_row_of_the_report(folder, capsys):
    write(folder, RULE.replace("size < self.min_batch_size", "size < self.min_batch"))
    assert main(["analyze", "--rules", "checks", "--json", "-", "run"]) == 0
    report = json.loads(capsys.readouterr().out)
    (error,) = report["rule_errors"]
    assert error["rule"] == "sequential-batch" and "has no attribute 'min_batch'" in error["message"]
