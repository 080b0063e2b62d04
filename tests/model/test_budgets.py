"""Budgets in pyproject.toml: what is read, which scripts they are for, and mistakes."""

from __future__ import annotations

import pytest

from advisor.model.budgets import DEFAULT_BUDGETS, FINDINGS, INPUT_WAIT, MEMORY, STEP_TIME, Budget, budgets_of, runs_of
from advisor.model.errors import AdvisorError
from advisor.model.settings import load_settings

FULL = """
[tool.advisor.budgets]
input_wait = ["error", { max = 0.10 }]
step_time = ["warn", { max = "50ms", max_ratio = 1.1, not_measured = "error" }]
memory = ["error", { max = "4GiB", aggregation = "pessimistic" }]
findings = "error"
runs = 3

[tool.advisor.budgets."experiments/*.py"]
input_wait = "off"
findings = ["warn", { max = 2 }]

[tool.advisor.budgets."train_big.py"]
memory = ["error", { max = 8589934592 }]
runs = 1
"""


def budgets(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return load_settings(folder).budgets


def test_every_option_is_read(tmp_path):
    read = budgets(tmp_path, FULL)
    assert budgets_of(read, str(tmp_path / "train.py")) == (
        Budget(INPUT_WAIT, "error", 0.1),
        Budget(STEP_TIME, "warn", 50e6, 1.1, not_measured="error"),
        Budget(MEMORY, "error", float(4 << 30), aggregation="pessimistic"),
        Budget(FINDINGS, "error", 0),
    )
    assert runs_of(read, str(tmp_path / "train.py")) == 3


@pytest.mark.parametrize("script", ["experiments/a.py", "sub/experiments/a.py"])
def test_a_pattern_replaces_single_budgets(tmp_path, monkeypatch, script):
    monkeypatch.chdir(tmp_path)
    read = budgets(tmp_path, FULL)
    chosen = {budget.quantity: budget for budget in budgets_of(read, script)}
    assert INPUT_WAIT not in chosen
    assert chosen[FINDINGS] == Budget(FINDINGS, "warn", 2)
    assert chosen[MEMORY].limit == 4 << 30


def test_the_last_pattern_decides_and_is_relative_to_the_file(tmp_path, monkeypatch):
    read = budgets(tmp_path, FULL)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "train_big.py").write_text("")
    monkeypatch.chdir(tmp_path / "experiments")
    chosen = {budget.quantity: budget for budget in budgets_of(read, "train_big.py")}
    assert chosen[MEMORY].limit == 8 << 30 and INPUT_WAIT not in chosen
    assert runs_of(read, "train_big.py") == 1


def test_modules_match_by_name(tmp_path):
    read = budgets(tmp_path, '[tool.advisor.budgets."package.*"]\nfindings = "warn"\n')
    assert budgets_of(read, "package.train") == (Budget(FINDINGS, "warn", 0),)
    assert budgets_of(read, "other.train") == ()


def test_without_a_table_new_findings_are_an_error(tmp_path):
    assert budgets(tmp_path, "[tool.advisor]\nsteps = 3\n") is None
    assert budgets_of(None, "train.py") == DEFAULT_BUDGETS == (Budget(FINDINGS, "error", 0),)
    assert runs_of(None, "train.py") == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("budgets = 3", "must be a table of budgets"),
        ('[tool.advisor.budgets]\ninput_wat = "error"', "no budget 'input_wat'. Did you mean input_wait?"),
        ('[tool.advisor.budgets]\nzzz = "error"', "Known: input_wait, step_time, memory, findings, runs"),
        ('[tool.advisor.budgets."a*"]\ninput = "off"', "Did you mean input_wait?"),
        (
            '[tool.advisor.budgets]\ninput_wait = "fatal"',
            'a level (off, warn, error) or a list such as ["error", { max = 0.10 }]',
        ),
        ("[tool.advisor.budgets]\ninput_wait = { max = 0.1 }", "a level (off, warn, error)"),
        ("[tool.advisor.budgets]\ninput_wait = []", "a level (off, warn, error)"),
        ('[tool.advisor.budgets]\ninput_wait = ["warn", {}, 3]', "a level (off, warn, error)"),
        ('[tool.advisor.budgets]\ninput_wait = "error"', "needs a limit, such as { max = 0.10 }"),
        ('[tool.advisor.budgets]\nmemory = ["error"]', 'needs a limit, such as { max = "4GiB" }'),
        ('[tool.advisor.budgets]\ninput_wait = ["error", { max = 10 }]', "a share from 0 to 1"),
        ('[tool.advisor.budgets]\ninput_wait = ["error", { max = nan }]', "a share from 0 to 1"),
        ('[tool.advisor.budgets]\ninput_wait = ["error", { max = "10 %" }]', "a share from 0 to 1"),
        ('[tool.advisor.budgets]\nstep_time = ["error", { max = 50 }]', "a duration with its unit such as"),
        ('[tool.advisor.budgets]\nstep_time = ["error", { max = "50" }]', "a duration with its unit such as"),
        ('[tool.advisor.budgets]\nmemory = ["error", { max = "4 parsecs" }]', 'a size such as "4GiB"'),
        ('[tool.advisor.budgets]\nfindings = ["error", { max = -1 }]', "a number of findings"),
        ('[tool.advisor.budgets]\nfindings = ["error", { max_ratio = 1.1 }]', "only for step_time and memory"),
        ('[tool.advisor.budgets]\nstep_time = ["error", { max_ratio = 0 }]', "a ratio above 0"),
        ('[tool.advisor.budgets]\nstep_time = ["error", { maximum = 1 }]', "known are max, max_ratio, aggregation"),
        ('[tool.advisor.budgets]\nstep_time = ["error", { max = true }]', "is not valid"),
        ('[tool.advisor.budgets]\nmemory = ["error", { max = 1, aggregation = "mean" }]', "is not valid"),
        ("[tool.advisor.budgets]\nruns = 0", "runs must be a whole number of at least 1"),
        ("[tool.advisor.budgets]\nruns = true", "runs must be a whole number of at least 1"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_file(tmp_path, body, says):
    header = "" if body.startswith("[") else "[tool.advisor]\n"
    with pytest.raises(AdvisorError) as error:
        budgets(tmp_path, header + body + "\n")
    assert says in str(error.value)
    assert str(tmp_path / "pyproject.toml") in str(error.value) and "\n" not in str(error.value)
