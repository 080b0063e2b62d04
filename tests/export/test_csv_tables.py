"""CSV tables: the report's figures in full, one row each, safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json

import pytest

from advisor.cli import main
from advisor.export.csv_tables import HEADERS, TABLES, table_to_csv
from advisor.report.statistics_json import statistics_to_dict
from tests.report.html.samples import DATA, GPU, gpu_report, hostile, proved, real_report
from tests.report.test_statistics_json import huge


def rows(name, *runs):
    return list(csv.DictReader(io.StringIO(table_to_csv(name, runs), newline="")))


def test_iterators_are_the_reports():
    report = real_report("interleave_map")
    table = rows("iterators", ("run", report))
    wanted = [iterator for pipeline in report["pipelines"] for iterator in pipeline["iterators"]]
    assert [int(row["self_ns"]) for row in table] == [iterator["self_ns"] for iterator in wanted]
    assert [float(row["blame_share"]) for row in table] == [iterator["blame_share"] for iterator in wanted]
    assert {row["run"] for row in table} == {"run"}


@pytest.mark.long
def test_rows_of_several_runs_are_concatenated():
    table = rows("pipelines", ("a", real_report("keras_fit")), ("b", real_report("mirrored")))
    assert {row["run"] for row in table} == {"a", "b"}


def test_proof_has_its_interval():
    (first, _) = rows("fixes", ("run", proved()))
    assert (first["measured.speedup"], first["measured.low"], first["measured.high"]) == ("2.5", "2.4", "2.6")


@pytest.mark.skipif(not GPU.is_dir(), reason="the profiles of others are not beside this checkout")
def test_statistics_have_tables():
    report = gpu_report()
    assert len(rows("kernels", ("run", report))) == len(report["statistics"]["kernels"])
    assert len(rows("ops", ("run", report))) == len(report["statistics"]["ops"])
    assert rows("memory", ("run", report))


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠1"]
)
def test_text_is_no_formula(text):
    report = proved()
    report["findings"][0]["title"] = text
    (row,) = rows("findings", (text, report))
    assert (row["title"], row["run"]) == ("'" + text, "'" + text)


def test_numbers_stay_numbers():
    report = proved()
    report["fixes"][0]["measured"] = {"speedup": -0.5, "low": -1, "high": 1}
    assert rows("fixes", ("run", report))[0]["measured.speedup"] == "-0.5"


@pytest.mark.parametrize("name", TABLES)
def test_hostile_and_missing_data_make_sound_tables(name):
    assert table_to_csv(name, [("run", {**proved(), "statistics": None})]) is not None
    for row in rows(name, ("=run", hostile())):
        assert None not in row
        assert not any(value.startswith(("=", "+", "@")) for value in row.values() if value)


def test_command_writes_all_tables_or_one(tmp_path, capsys):
    run = str(DATA / "keras_fit")
    assert main(["export", run, "--to", "csv", "--out", str(tmp_path / "tables")]) == 0
    names = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert {"verdicts", "pipelines", "iterators"} <= names <= set(TABLES)
    assert main(["export", run, "--to", "csv", "--table", "iterators"]) == 0
    assert capsys.readouterr().out.replace("\r\n", "\n") == (tmp_path / "tables/iterators.csv").read_text()
    assert main(["export", run, "--to", "csv"]) == 2
    assert main(["export", run, "--to", "csv", "--table", "none"]) == 2
    assert main(["export", run, "--to", "sarif", "--table", "ops"]) == 2


def test_files_of_others_are_not_replaced(tmp_path, capsys):
    run = str(DATA / "keras_fit")
    theirs = tmp_path / "findings.csv"
    theirs.write_text("theirs")
    (tmp_path / "report.json").write_text(json.dumps(proved()))
    assert main(["export", str(tmp_path), "--to", "csv", "--out", str(tmp_path)]) == 2
    assert theirs.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["findings.csv", "report.json"]
    assert "would overwrite a file that advisor did not write" in capsys.readouterr().err
    theirs.unlink()
    for _ in range(2):  # its own tables it writes anew
        assert main(["export", str(tmp_path), "--to", "csv", "--out", str(tmp_path)]) == 0
    assert main(["export", run, "--to", "csv", "--out", str(tmp_path / "report.json")]) == 2
    assert "cannot be created" in capsys.readouterr().err


def test_report_of_the_folder_is_used_with_its_proof(tmp_path, capsys):
    (tmp_path / "report.json").write_text(json.dumps(proved()))
    assert main(["export", str(tmp_path), "--to", "csv", "--table", "fixes"]) == 0
    assert "faster" in capsys.readouterr().out
    (tmp_path / "report.json").write_text("{}")
    assert main(["export", str(tmp_path / "report.json"), "--to", "csv", "--table", "fixes"]) == 2


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_recognised_by_its_first_line(name):
    with_device = {**real_report("keras_fit"), "statistics": statistics_to_dict(huge())}
    reports = [("a", proved()), ("b", hostile()), ("c", real_report("keras_fit")), ("d", with_device)]
    texts = [text for report in reports if (text := table_to_csv(name, [report]))]
    assert texts and all(text.startswith(HEADERS[name]) for text in texts)


def test_a_table_without_rows_takes_the_place_of_an_earlier_one(tmp_path, capsys):
    out = tmp_path / "findings.csv"
    for report in (proved(), {**proved(), "findings": []}):
        (tmp_path / "report.json").write_text(json.dumps(report))
        assert main(["export", str(tmp_path), "--to", "csv", "--table", "findings", "--out", str(out)]) == 0
    assert out.read_text() == ""
