"""`advisor rules new` and `advisor rules test`: a user's own rules."""

from __future__ import annotations

import ast

import pytest

from advisor.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_rule_works_at_once(here, capsys):
    assert main(["rules", "new", "slow-cats", "mine"]) == 0
    assert main(["rules", "test", "mine"]) == 0
    assert "slow-cats: 3 examples, 0 failed" in capsys.readouterr().out
    assert main(["rules", "--rules", "mine"]) == 0
    assert "slow-cats" in capsys.readouterr().out
    assert main(["explain", "slow-cats", "--rules", "mine"]) == 0
    ast.parse((here / "mine" / "examples" / "slow_cats.py").read_text())


def test_an_example_that_does_not_hold_is_told_and_fails(here, capsys):
    main(["rules", "new", "slow-cats", "mine"])
    rule = here / "mine" / "slow_cats.py"
    rule.write_text(rule.read_text().replace("consumer_ms=50", "consumer_ms=0.01"))
    assert main(["rules", "test", "mine"]) == 1
    assert "slow-cats, example 2: it must be silent because the consumer does not wait" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["rules", "new", "Slow Cats"], "is not a rule id"),
        (["rules", "new", "../slow"], "is not a rule id"),
        (["rules", "new", "serial-map"], "There is a rule serial-map already"),
        (["rules", "test", "nowhere"], "There is no folder"),
        (["rules", "test", "."], "There is no rule in"),
    ],
)
def test_mistakes_are_one_sentence(here, capsys, args, says):
    assert main(args) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
    assert list(here.iterdir()) == []


def test_nothing_is_overwritten(here, capsys):
    (here / "slow_cats.py").write_text("mine")
    assert main(["rules", "new", "slow-cats"]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in here.iterdir()] == [("slow_cats.py", "mine")]


@pytest.mark.parametrize(
    ("text", "says"),
    [("x = (", "line 1"), ("import nowhere_at_all", "ModuleNotFoundError"), ("x = 1", "exactly one subclass of Rule")],
)
def test_a_broken_rule_is_one_sentence(here, capsys, text, says):
    (here / "broken.py").write_text(text)
    assert main(["rules", "test", "."]) == 2
    err = capsys.readouterr().err
    assert says in err and "broken.py" in err and len(err.splitlines()) == 1


def test_thresholds_in_the_settings_apply_to_custom_rules(here, capsys):
    main(["rules", "new", "slow-cats", "mine"])
    (here / "pyproject.toml").write_text("[tool.advisor.rules.slow-cats]\nmin_blame_share = 2.0\n")
    capsys.readouterr()
    assert main(["rules", "test", "mine"]) == 1
    assert "it must find something, but it is silent" in capsys.readouterr().out
