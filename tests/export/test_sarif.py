"""SARIF: valid against the format's own schema, findings at their lines, rules with help."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from advisor.cli import main
from advisor.engine import load_rules
from advisor.export.sarif import report_to_sarif
from advisor.settings import Settings
from tests.report.html.samples import hostile, proved, real_report

SCHEMA = json.loads((Path(__file__).parent / "data/sarif-2.1.0.schema.json").read_text())
"""The schema of SARIF 2.1.0 as SchemaStore publishes it (MIT licence)."""
PAGES = {loaded.id: loaded.page for loaded in load_rules([], Settings())}


@pytest.mark.parametrize(
    "made", [proved, hostile, lambda: real_report("interleave_map"), lambda: real_report("keras_fit")]
)
def test_log_is_valid(made):
    jsonschema.Draft4Validator(SCHEMA).validate(report_to_sarif([made()], PAGES))


def test_finding_stands_at_its_line_with_its_rule():
    report = proved()
    (run,) = report_to_sarif([report], PAGES)["runs"]
    (finding,), (result,) = report["findings"], run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": finding["site"]["line"], "startColumn": finding["site"]["column"]}
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "serial-map"
    assert "Why it is slow" in rule["help"]["markdown"]
    assert result["level"] == "warning"


def test_file_below_the_current_folder_is_relative_and_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = proved()
    report["findings"][0]["site"]["file"] = str(tmp_path / "a b" / "train#1.py")
    (run,) = report_to_sarif([report], {})["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20b/train%231.py", "uriBaseId": "SRCROOT"}
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == tmp_path.as_uri() + "/"


def test_a_message_holds_no_link():
    report = proved()
    report["findings"][0]["title"] = "read [this](https://a.example)"
    (run,) = report_to_sarif([report], {})["runs"]
    assert "](" not in run["results"][0]["message"]["text"]


def test_fingerprint_survives_a_move_of_the_line():
    report = proved()
    before = report_to_sarif([report], {})["runs"][0]["results"][0]["partialFingerprints"]
    report["findings"][0]["site"]["line"] += 7
    assert report_to_sarif([report], {})["runs"][0]["results"][0]["partialFingerprints"] == before


def test_command_writes_one_run_each(tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(proved()))
    assert main(["export", "--to", "sarif", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert len(log["runs"]) == 2
