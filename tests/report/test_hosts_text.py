"""What the report says of several hosts and of iterators without calls."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from advisor.engine import load_rules
from advisor.model.settings import Settings
from advisor.report.hosts_text import MAX_HOSTS
from advisor.report.report_json import load_schema, report_to_bytes
from advisor.report.report_text import print_report
from advisor.workflows.analyze import analyze_run
from tests.hosts.made_hosts import RUN, profile_of, write_hosts


def report_of(logdir):
    return analyze_run(logdir, load_rules((), Settings()), Settings())


def lines_of(report, width: int = 110) -> list[str]:
    file = io.StringIO()
    print_report(report, Console(file=file, width=width))
    return file.getvalue().splitlines()


def test_a_row_per_host_the_most_input_bound_first(tmp_path):
    lines = lines_of(report_of(write_hosts(tmp_path, {"a": 100, "b": 400, "c": 120})))
    rows = [line.split()[0] for line in lines[lines.index("Hosts") + 2 :][:3]]
    assert rows == ["b", "c", "a"]
    assert any("b is a straggler" in line for line in lines)
    assert not any(line.startswith("Other pipelines") for line in lines), "they stand in the table"


@pytest.mark.long
def test_many_hosts_are_cut_in_text_and_whole_in_json(tmp_path):
    import jsonschema

    waits = {f"h{number:02}": 100 + number for number in range(MAX_HOSTS + 8)}
    report = report_of(write_hosts(tmp_path, waits))
    text = "\n".join(lines_of(report))
    assert f"{MAX_HOSTS + 8} hosts in total" in text
    written = json.loads(report_to_bytes(report))
    jsonschema.validate(written, load_schema())
    assert len(written["hosts"]["hosts"]) == MAX_HOSTS + 8


def test_a_straggler_is_told_in_its_row_however_many_hosts_stand_above_it(tmp_path):
    """Steps of unequal length: its share is the smallest, its wait per step the longest."""
    write_hosts(tmp_path, {f"h{number:02}": 500 for number in range(MAX_HOSTS + 2)})
    profile_of("late", 4_000, step_us=40_000).write(tmp_path / RUN / "late.xplane.pb")
    report = report_of(tmp_path)
    (row,) = [line for line in lines_of(report) if line.strip().startswith("late (straggler)")]
    assert "4 ms (+3.5 ms)" in row
    written = json.loads(report_to_bytes(report))["hosts"]["hosts"]
    assert [(host["hostname"], host["excess_wait_ns"]) for host in written if host["is_straggler"]] == [
        ("late", 3_500_000)
    ]


def test_long_names_with_parameters_and_what_autotune_chose(tmp_path):
    profile_of("a", 400).write(tmp_path / RUN / "a.xplane.pb")
    text = " ".join(" ".join(lines_of(report_of(tmp_path))).split())
    assert "Iterator::Root::BatchV2: 20 calls, batch_size 32" in text
    assert "Iterator::Root::BatchV2::ParallelMapV2: 20 calls, parallelism 4 (chosen by AUTOTUNE)" in text


def test_a_narrow_terminal_still_shows_the_hosts(tmp_path):
    lines = lines_of(report_of(write_hosts(tmp_path, {"a": 100, "b": 400})), width=50)
    assert any(line.strip().startswith("b ") for line in lines)
    assert max(map(len, lines)) <= 50
