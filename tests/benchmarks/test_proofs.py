"""The benchmarks of proofs read reports as they are, and continue where they were interrupted. Nothing is measured here."""

from __future__ import annotations

import ast
import sys

import msgspec
import pytest

from tests.benchmarks.test_tables import BENCHMARKS, line_of

SENTENCE = "Steps wait 81 % of the time for input."
CACHED = "flowers_like.py:9 Cache after batch: 25.8x (24.1x to 32x), faster on the pipeline alone; data: exact; kept."
DROPPED = "flowers_like.py:9 Map: 1.0x (0.9x to 1.1x), no faster on the pipeline alone; data: exact; not kept."
WHOLE = "Whole script, {}: 3.0x (2.9x to 3.2x), faster (6 runs)."


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield __import__
    for name in set(sys.modules) - before:
        if (BENCHMARKS / f"{name}.py").exists():
            del sys.modules[name]


def fix_report(training="faster"):
    phases = [{"name": "analysis", "seconds": 20.0, "runs": 1}, {"name": "whole script", "seconds": 70.0, "runs": 6}]
    proof = {"runs": 7, "end_to_end_turns": 3, "verdict": "faster", "training": training, "phases": phases, "notes": []}
    return {"verdict": {"sentence": SENTENCE}, "proof": proof}


def test_times_are_those_of_the_lines_on_results(benchmark):
    lines = [
        (1.0, "The script will be run up to 18 times"),
        (20.0, SENTENCE),
        (40.0, DROPPED),
        (50.0, CACHED),
        (90.0, WHOLE.format("all changes")),
        (120.0, WHOLE.format("without: Map")),
    ]
    proof_times = benchmark("proof_times")
    proof = proof_times.proof_of("flowers_like", lines, 123.0, fix_report())
    assert (proof.verdict_s, proof.first_s, proof.whole_s, proof.end_s) == (20.0, 50.0, 120.0, 123.0)
    assert proof.is_on_script and proof.phases == {"analysis": 20.0, "whole script": 70.0}
    row = line_of(proof_times.table([proof]), "| flowers_like")
    assert row == ("| flowers_like | 20 s | 50 s | 120 s | 123 s | 20 s | - | 70 s | 7 | 3 | faster | faster |")


def test_what_only_the_whole_script_proves_is_a_first_change_too(benchmark):
    proof_of = benchmark("proof_times").proof_of
    alone = proof_of("late_shuffle", [(20.0, SENTENCE), (80.0, WHOLE.format("Shuffle later"))], 90.0, fix_report())
    assert (alone.first_s, alone.whole_s) == (80.0, 80.0)
    nothing = proof_of("tuned", [(20.0, SENTENCE), (40.0, DROPPED)], 41.0, fix_report("not measured"))
    assert (nothing.first_s, nothing.whole_s, nothing.is_on_script) == (None, None, False)


def test_median_and_worst_are_those_of_the_whole_command(benchmark):
    proof_times = benchmark("proof_times")
    lines = [(20.0, SENTENCE), (50.0, CACHED), (90.0, WHOLE.format("all changes"))]
    proofs = [proof_times.proof_of(f"s{end}", lines, float(end), fix_report()) for end in (100, 250, 150)]
    text = line_of(proof_times.table(proofs), "* All (3)")
    assert "median 150 s (wanted: 180 s), worst 250 s (s250; wanted: 300 s)" in text
    assert "First proved change: median 50 s" in text


def judged(known_effects, effect, verdict="equal and faster", ratio=None, pairs=3):
    ratio = effect if ratio is None else ratio
    result = {
        "verdict": verdict,
        "turns": pairs,
        "speedup": {"speedup": ratio, "low": ratio * 0.95, "high": ratio * 1.05},
        "test": {"ended_because": "clear"},
        "runs": 4 + 2 * pairs,
    }
    return known_effects.proof_of(effect, result, 100.0)


def test_an_effect_is_found_or_not(benchmark):
    known_effects = benchmark("known_effects")
    proofs = [
        judged(known_effects, 1.1),
        judged(known_effects, 1.1, pairs=8, ratio=1.02, verdict="same"),
        judged(known_effects, 2.0),
        judged(known_effects, 2.0, ratio=2.2),
    ]
    lines = known_effects.table(proofs)
    assert line_of(lines, "| 1.1x").startswith(
        "| 1.1x | 1 of 2 | 1 `same` | 1 of 2 | 1.060x | 1 with 3, 1 with 8 | 5.5 |"
    )
    assert line_of(lines, "| 2x").startswith("| 2x | 2 of 2 | - | 1 of 2 |")


def test_the_table_says_how_many_proofs_ran_at_a_time(benchmark):
    known_effects = benchmark("known_effects")
    alone = judged(known_effects, 1.1)
    beside = msgspec.structs.replace(alone, at_a_time=2)
    assert "1 of these 2 proofs ran 2 at a time" in known_effects.table([alone, beside])[-1]
    assert "at a time" not in known_effects.table([alone])[-1]


def test_a_verdict_without_runs_counts_as_not_found(benchmark):
    known_effects = benchmark("known_effects")
    result = {"verdict": "cannot tell", "turns": 0, "speedup": None, "test": None, "runs": 4}
    proof = known_effects.proof_of(1.3, result, 20.0)
    assert not proof.is_found and not proof.holds_truth
    assert "1 `cannot tell`" in line_of(known_effects.table([proof]), "| 1.3x")


def test_an_interrupted_series_goes_on_with_what_is_missing(benchmark):
    known_effects = benchmark("known_effects")
    done = [judged(known_effects, 1.1), judged(known_effects, 2.0), judged(known_effects, 2.0)]
    assert known_effects.wanted((1.1, 2.0), 3, done) == [1.1, 2.0, 1.1]
    assert known_effects.wanted((1.1, 2.0), 1, done) == []


@pytest.mark.parametrize("effect", [1.0, 1.1, 1.3, 2.0])
def test_the_waits_of_a_script_make_its_effect(benchmark, effect):
    known_effects = benchmark("known_effects")
    waits = [
        node.args[0].value
        for node in ast.walk(ast.parse(known_effects.text_of(effect)))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "sleep"
    ]
    assert len(waits) == 2
    assert (known_effects.STEP_S + known_effects.WAIT_S) / sum(waits) == pytest.approx(effect, rel=1e-3)
