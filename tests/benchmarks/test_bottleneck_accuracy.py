"""The benchmark of bottlenecks: what makes its rates invalid, and that the advisor names the right call in every case."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.examples.conftest import REPOSITORY

BENCHMARK = REPOSITORY / "benchmarks" / "bottleneck_accuracy.py"


@pytest.fixture
def accuracy(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    import bottleneck_accuracy

    return bottleneck_accuracy


def test_other_code_makes_the_rates_invalid_and_other_words_do_not(accuracy, tmp_path):
    def code_of(text: str) -> str:
        path = tmp_path / "case.py"
        path.write_text(text)
        return accuracy._code_of(path)

    code = code_of('"""A case."""\n\ndef load(x):\n    """Load."""\n    return x  # node: load\n')
    assert code == code_of("def load(x):\n    return x\n")
    assert code != code_of("def load(x):\n    return x + 1\n")
    assert code != code_of("def load(x):\n    print('x')\n    return x\n")


def test_the_rates_of_all_cases_are_those_of_their_scripts(accuracy):
    """Otherwise the next run would measure them again, for an hour."""
    truths = accuracy.read_truths()
    stale = [
        case.name
        for case in accuracy.read_cases([])
        if case.name not in truths or truths[case.name].digest != case.digest()
    ]
    assert stale == []


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.timed
def test_the_right_call_is_named_in_every_case():
    done = subprocess.run([sys.executable, str(BENCHMARK)], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "Named rightly: 31 of 31." in done.stdout
