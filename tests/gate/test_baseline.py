"""The baseline: what identifies a finding, how the file shrinks, and that it never grows by itself."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.gate.baseline import (
    Baseline,
    baseline_to_bytes,
    counts_of,
    difference,
    entries_of,
    key_of,
    read_baseline,
    shrink,
    text_of_call,
)
from advisor.gate.new_findings import findings_of, grown, most_of, new_findings
from advisor.model.check_result import BaselineEntry
from advisor.model.errors import AdvisorError
from tests.gate.made_runs import made_report

rules = st.sampled_from(["serial-map", "small-batch", "late-filter"])
calls = st.sampled_from(["", ".map(f)", ".map( f )", ".map(f,)", ".batch(8)", "map in tfds", '.map("é\\n")'])
entries = st.lists(st.builds(BaselineEntry, rules, calls, st.integers(1, 3)), max_size=6)
pairs = st.lists(st.tuples(rules, calls), max_size=8)


def keys(findings):
    return Counter(key_of(*pair) for pair in findings)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), entries, max_size=3))
def test_round_trip(tmp_path_factory, scripts):
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    path.write_bytes(baseline_to_bytes(Baseline({name: tuple(held) for name, held in scripts.items()})))
    read = read_baseline(path)
    assert {name: counts_of(held) for name, held in read.scripts.items()} == {
        name: counts_of(held) for name, held in scripts.items() if held
    }
    assert baseline_to_bytes(read) == path.read_bytes()


@given(entries, pairs)
def test_it_never_grows(before, findings):
    after = shrink(before, keys(findings))
    assert not counts_of(after) - counts_of(before)
    assert shrink(after, keys(findings)) == after
    assert {(entry.rule, entry.call) for entry in after} <= {(entry.rule, entry.call) for entry in before}


@given(entries, pairs)
def test_what_is_left_is_what_is_still_found(before, findings):
    after = shrink(before, keys(findings))
    assert counts_of(after) == counts_of(before) & keys(findings)
    assert counts_of(difference(before, after)) == counts_of(before) - keys(findings)


@given(entries, pairs)
def test_nothing_goes_that_may_not_go(before, findings):
    assert counts_of(shrink(before, keys(findings), lambda entry: False)) == counts_of(before)


@given(entries, st.lists(pairs, min_size=1, max_size=3))
def test_after_an_update_nothing_is_new(before, runs):
    made = [findings_of(made_report(*findings)) for findings in runs]
    after = grown(shrink(before, most_of(made)), made)
    assert new_findings(made, after, "pessimistic").num_new == 0
    assert counts_of(after) == most_of(made)


@given(pairs, st.randoms())
def test_the_order_of_findings_does_not_matter(findings, random):
    mixed = random.sample(findings, len(findings))
    assert counts_of(entries_of(findings)) == counts_of(entries_of(mixed)) == keys(findings)
    assert baseline_to_bytes(Baseline({"a": entries_of(findings)})) == baseline_to_bytes(
        Baseline({"a": entries_of(mixed)})
    )


def test_layout_of_a_call_does_not_matter():
    assert key_of("r", ".map(\n    augment,\n    num_parallel_calls=4,\n)") == key_of(
        "r", ".map(augment, num_parallel_calls=4)"
    )
    assert key_of("r", ".map(augment)") != key_of("r", ".map(decode)")
    assert key_of("r", ".map(f)") != key_of("s", ".map(f)")


def test_a_line_does_not_identify_a_finding():
    one, moved = made_report(("serial-map", ".map(f)")), made_report(("x", ".batch(1)"), ("serial-map", ".map(f)"))
    assert findings_of(one)[0].finding.site.line != findings_of(moved)[1].finding.site.line
    assert findings_of(one)[0].key == findings_of(moved)[1].key


def test_the_file_has_one_line_per_entry_and_is_sorted():
    baseline = Baseline(
        {"b.py": (BaselineEntry("z", ".map(f)"), BaselineEntry("a", ".map(é)", 2)), "a.py": (BaselineEntry("z", ""),)}
    )
    text = baseline_to_bytes(baseline).decode()
    assert text.splitlines()[4:] == [
        '    "a.py": [',
        '      {"rule": "z", "call": "", "count": 1}',
        "    ],",
        '    "b.py": [',
        '      {"rule": "a", "call": ".map(é)", "count": 2},',
        '      {"rule": "z", "call": ".map(f)", "count": 1}',
        "    ]",
        "  }",
        "}",
    ]
    assert json.loads(text)["generator"] == "advisor check"


def test_other_scripts_keep_their_entries():
    baseline = Baseline({"a.py": (BaselineEntry("r", ""),), "b.py": (BaselineEntry("s", ""),)})
    assert baseline.with_entries("a.py", ()).scripts == {"b.py": (BaselineEntry("s", ""),)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"generator": "advisor check", "schema_version": 2, "scripts": {}}',
        '{"generator": "other", "schema_version": 1, "scripts": {}}',
        '{"generator": "advisor check", "schema_version": 1, "scripts": {"a.py": [{"rule": "r", "call": "", "count": 0}]}}',
        '<<<<<<< HEAD\n{"generator": "advisor check", "schema_version": 1, "scripts": {}}',
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, text):
    path = tmp_path / "advisor-baseline.json"
    path.write_text(text)
    with pytest.raises(AdvisorError, match="is damaged or of another version") as error:
        read_baseline(path)
    assert "\n" not in str(error.value) and "--update-baseline" in str(error.value)


def test_no_file_is_no_baseline(tmp_path):
    assert read_baseline(tmp_path / "b.json") is None
    with pytest.raises(AdvisorError, match="cannot be read"):
        read_baseline(tmp_path)


def test_a_call_of_a_library_is_named_by_the_library():
    from dataclasses import replace

    report = made_report(("serial-map", ".map(f)"))
    (call,) = report.analysis.calls
    analysis = replace(report.analysis, calls=(replace(call, library="tfds"),))
    assert text_of_call(analysis, report.findings[0]) == "map in tfds"
