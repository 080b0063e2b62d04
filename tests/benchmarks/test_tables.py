"""The benchmarks count what they say, write where they may, and have a near miss of every rule on pipelines."""

import ast
import sys

import pytest

from advisor.engine import load_rules
from advisor.model.settings import Settings
from tests.examples.conftest import REPOSITORY

BENCHMARKS = REPOSITORY / "benchmarks"
DEVICE_SIDE = {
    "autoshard-data", "data-layout", "launch-bound", "no-xla", "odd-dimensions", "offload", "straggler", "transfer-bound",
}  # fmt: skip
"""Rules on devices and on several machines: their near misses need what a script on one CPU has not."""

IMPORTED = {"near_misses", "published", "silence", "worth"}


@pytest.fixture
def benchmark(monkeypatch):
    """Import a module of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__
    for name in [name for name in sys.modules if name.partition(".")[0] in IMPORTED]:
        del sys.modules[name]


@pytest.fixture
def row(benchmark):
    worth = benchmark("worth")

    def make(predicted, measured, verdict="faster", **other):
        spans = [None if value is None else (value, value * 0.9, value * 1.1) for value in (predicted, measured)]
        values = {"script": "s", "rule": "r", "title": "t", "is_auto": True, "claimed": "exact", "seen": "exact"}
        return worth.Row(predicted=spans[0], measured=spans[1], verdict=verdict, **{**values, **other})

    return make


def line_of(lines, text):
    return next(line for line in lines if text in line)


def test_errors_are_shares_of_what_was_predicted(benchmark, row):
    rows = [row(2.0, 2.2), row(2.0, 1.0), row(4.0, 4.0), row(None, 3.0), row(2.0, None)]
    lines = benchmark("worth").summary(rows)
    assert "10% of 3 fixes" in line_of(lines, "median error")
    assert "50%" in line_of(lines, "90th percentile")
    assert "1 of 3" not in line_of(lines, "inside the predicted range")
    assert "2 of 3" in line_of(lines, "inside the predicted range")


def test_a_loss_is_one_whose_whole_interval_is_below_one(benchmark, row):
    rows = [row(1.2, 0.8, "slower", script="lost"), row(1.2, 0.95, "same"), row(1.05, 0.5, "slower")]
    assert "1 of 2 (r in lost)" in line_of(benchmark("worth").summary(rows), "measured as a loss")


def test_precision_counts_automatic_fixes_with_a_predicted_gain(benchmark, row):
    rows = [
        row(2.0, 2.0),
        row(2.0, 1.0, "same", script="vain"),
        row(2.0, 1.0, "same", is_auto=False),
        row(1.04, 1.0, "same"),
    ]
    assert "1 of 2 (r in vain)" in line_of(benchmark("worth").summary(rows), "marked auto")


def test_a_milder_change_than_claimed_is_as_claimed(benchmark, row):
    rows = [
        row(2.0, 2.0, claimed="reordered", seen="exact"),
        row(2.0, None, "broken", seen="changes", script="harmful"),
        row(2.0, 2.0, seen="None", script="unseen"),
    ]
    assert "1 of 3 (r in harmful, r in unseen)" in line_of(benchmark("worth").summary(rows), "safety seen")


def test_a_rules_row_is_of_its_own_example(benchmark, row):
    rows = [row(9.0, 9.0, rule="serial-map", script="other"), row(2.0, 1.9, rule="serial-map", script="serial_map")]
    lines = benchmark("worth").rule_table(rows, ["serial-map", "small-reads"])
    assert line_of(lines, "| serial-map").startswith("| serial-map | auto | 2.00x")
    assert line_of(lines, "| small-reads").startswith("| small-reads | not tried")


def test_a_rule_is_proved_only_if_the_whole_interval_is_above_the_line(benchmark, row):
    rows = [
        row(2.0, 2.0, rule="small-reads", script="small_reads"),
        row(2.0, 1.1, rule="serial-map", script="serial_map"),
        row(2.0, 2.0, rule="late-filter", script="other"),
    ]
    text = line_of(benchmark("worth").summary(rows), "on their own example")
    assert text.endswith("| 1 of 2 (serial-map in serial_map) |")


def test_a_table_of_several_days_names_all_of_them(benchmark, tmp_path, monkeypatch):
    published, results = benchmark("published"), tmp_path / "rows.jsonl"
    results.touch()
    for day in ("2026-01-30", "2026-01-31", "2026-01-31"):
        monkeypatch.setattr(published.time, "strftime", lambda form, day=day: day)
        published.note_run(results)
    monkeypatch.setattr(published.time, "strftime", lambda form: "2026-02-01")  # only prints the table
    sentence = published.machine_sentence(results)
    assert sentence.startswith("Measured 2026-01-30 on ") and " and 2026-01-31 on " in sentence
    assert sentence.count("2026-") == 2 and sentence.endswith(".")
    assert published.machine_sentence().startswith("Measured 2026-02-01 on ")


def test_a_section_is_replaced_and_nothing_else(benchmark, tmp_path):
    docs = tmp_path / "benchmarks.md"
    docs.write_text("before\n<!-- a: begin -->\nold\n<!-- a: end -->\nafter\n")
    for _ in range(2):
        benchmark("published").write_section("a", ["new"], docs)
        assert docs.read_text() == "before\n<!-- a: begin -->\n\nnew\n\n<!-- a: end -->\nafter\n"
    with pytest.raises(ValueError, match="does not hold <!-- b: begin -->"):
        benchmark("published").write_section("b", ["new"], docs)
    assert "new" in docs.read_text()


def test_every_rule_on_pipelines_has_a_near_miss(benchmark):
    near_misses = benchmark("near_misses")
    rules = {loaded.id for loaded in load_rules([], Settings()) if loaded.is_shipped}
    assert rules - {case.rule for case in near_misses.NEAR_MISSES} <= DEVICE_SIDE
    assert {case.rule for case in near_misses.NEAR_MISSES} <= rules
    for case in near_misses.NEAR_MISSES:
        ast.parse(near_misses.script_of(case))


def test_every_near_miss_is_analysed_in_a_script_of_its_own(benchmark, tmp_path):
    near_misses = benchmark("near_misses")
    cases = [case for case in benchmark("silence").cases_in(tmp_path) if case.rule is not None]
    wanted = sorted((case.rule, near_misses.script_of(case)) for case in near_misses.NEAR_MISSES)
    assert sorted((case.rule, case.script.read_text("utf-8")) for case in cases) == wanted


def test_there_are_enough_healthy_scripts():
    scripts = list((BENCHMARKS / "healthy").glob("*.py"))
    assert len(scripts) >= 12
    assert all(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in scripts)
