"""The repository of `benchmarks/ci_gate.py`: a regression fails the check of its pull request, a harmless change passes it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ci_gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("ci_gate")
    for name in ("ci_gate", "published"):
        sys.modules.pop(name, None)


@pytest.fixture
def repository(ci_gate: ModuleType, tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    ci_gate.prepare(made)
    return made


def test_every_change_applies_and_compiles(ci_gate: ModuleType) -> None:
    assert (len(ci_gate.REGRESSIONS), len(ci_gate.HARMLESS)) == (5, 10)
    for commit in (*ci_gate.REGRESSIONS, *ci_gate.HARMLESS):
        text = (ci_gate.GATED / commit.file).read_text("utf-8")
        assert text.count(commit.before) == 1, commit.name
        assert commit.after != commit.before
        compile(text.replace(commit.before, commit.after), commit.file, "exec")


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize(
    ("kind", "number"), [("REGRESSIONS", n) for n in range(5)] + [("HARMLESS", n) for n in range(10)]
)
def test_a_change_is_checked_as_in_its_pull_request(
    kind: str, number: int, ci_gate: ModuleType, repository: Path
) -> None:
    result = ci_gate.checked(repository, getattr(ci_gate, kind)[number], 1)
    assert result.is_right, result
