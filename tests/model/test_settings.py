from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings, load_settings

FULL = """
[tool.advisor]
ignore = ["scalar-map"]
rule-directories = ["tools/rules"]
allow = ["reordered"]
steps = 50
warmup = 0
seconds = 30

[tool.advisor.rules.serial-map]
min_blame_share = 0.1
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_every_key_is_read(tmp_path):
    assert load_settings(write(tmp_path, FULL)) == Settings(
        rules={"serial-map": {"min_blame_share": 0.1}},
        ignore=("scalar-map",),
        rule_directories=(tmp_path / "tools/rules",),
        steps=50,
        warmup=0,
        seconds=30.0,
        allow=("reordered",),
    )


def test_nearest_table_wins_and_files_without_one_are_passed(tmp_path):
    write(tmp_path, "[tool.advisor]\nsteps = 1\n")
    write(tmp_path / "a", "[tool.advisor]\nsteps = 2\n")
    inner = write(tmp_path / "a/b", "[tool.other]\nsteps = 3\n")
    assert load_settings(inner).steps == 2


def test_no_file_means_defaults(tmp_path):
    assert load_settings(tmp_path / "not/there") == Settings()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("step = 3", "no key 'step'. Did you mean steps?"),
        ("rule_directories = []", "Did you mean rule-directories?"),
        (
            "zzz = 3",
            "Known: allow, budgets, ignore, keep-runs, keep-runs-gib, rule-directories, rule-seconds, rules, seconds, steps",
        ),
        ("steps = 0", "tool.advisor.steps must be a whole number of at least 1, not 0"),
        ("steps = true", "must be a whole number"),
        ("warmup = 1.5", "must be a whole number"),
        ("seconds = -1", "must be a number of seconds above 0"),
        ("seconds = inf", "must be a number of seconds above 0"),
        ("ignore = 'serial-map'", "must be a list of strings"),
        ("ignore = [1]", "must be a list of strings"),
        ("allow = ['changes']", "may name rerandomized, reordered, numerics"),
        ("rules = 3", "must be a table of tables"),
        ("rules.serial-map = 3", "must be a table of tables"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_file(tmp_path, body, says):
    write(tmp_path, f"[tool.advisor]\n{body}\n")
    with pytest.raises(AdvisorError) as error:
        load_settings(tmp_path)
    assert says in str(error.value)
    assert str(tmp_path / "pyproject.toml") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_that_is_none(tmp_path):
    write(tmp_path, "[tool]\nadvisor = 3\n")
    with pytest.raises(AdvisorError, match="must be a table"):
        load_settings(tmp_path)


def test_broken_toml_is_told_only_where_it_speaks_of_us(tmp_path):
    write(tmp_path, "[tool.advisor\nsteps = 3")
    with pytest.raises(AdvisorError, match="not valid TOML"):
        load_settings(tmp_path)
    write(tmp_path, "[tool.black\n")
    assert load_settings(tmp_path) == Settings()


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_settings_or_one_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    (folder / "pyproject.toml").write_bytes(b"[tool.advisor]\n" + data)
    try:
        assert isinstance(load_settings(folder), Settings)
    except AdvisorError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
