"""SARIF: valid against the format's own schema, findings at their lines, rules with help."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from advisor.cli import main
from advisor.engine import load_rules
from advisor.export.line_hashes import line_hashes
from advisor.export.sarif import report_to_sarif
from advisor.model.settings import Settings
from tests.export.code_scanning import violations
from tests.report.html.samples import hostile, proved, real_report

SCHEMA = json.loads((Path(__file__).parent / "data/sarif-2.1.0.schema.json").read_text())
"""The schema of SARIF 2.1.0 as SchemaStore publishes it (MIT licence)."""
PAGES = {loaded.id: loaded.page for loaded in load_rules([], Settings())}


@pytest.mark.parametrize(
    "made", [proved, hostile, lambda: real_report("interleave_map"), lambda: real_report("keras_fit")]
)
def test_log_is_valid(made):
    jsonschema.Draft4Validator(SCHEMA).validate(report_to_sarif([made()], PAGES))


def test_a_finding_is_located_at_its_line_with_its_rule():
    report = proved()
    (run,) = report_to_sarif([report], PAGES)["runs"]
    (finding,), (result,) = report["findings"], run["results"]
    place = result["locations"][0]["physicalLocation"]
    start = {"startLine": finding["site"]["line"], "startColumn": finding["site"]["column"]}
    assert place["region"] == start | {"endLine": 4, "endColumn": 20}  # the span of the recorded call
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
    assert place == {"uri": "a%20b/train%231.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == tmp_path.as_uri() + "/"


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


# ---- the rules of code scanning ----------------------------------------------------------------------------------------

GPU = Path(__file__).parents[2] / "../shared/profiles/gpu-tf24-many-kernels"
"""A profile without a recording: its findings have no call."""


def without_site():
    report = proved()
    return {**report, "findings": [{**report["findings"][0], "site": None}]}


@pytest.fixture
def repository(tmp_path):
    """A repository with a script in it, whose lines are those of the report."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    script = root / "src" / "train.py"
    script.parent.mkdir()
    script.write_text("".join(f"line {number}\n" for number in range(1, 60)))
    return root


def report_on(script, site=True):
    report = proved()
    (finding,) = report["findings"]
    place = {**finding["site"], "file": str(script)} if site else None
    return {**report, "target": str(script), "findings": [{**finding, "site": place}]}


@pytest.mark.parametrize(
    "reports",
    [
        lambda: [proved()],
        lambda: [without_site()],
        lambda: [hostile()],
        lambda: [hostile(), hostile(), proved(), proved()],
        lambda: [real_report("interleave_map"), real_report("keras_fit"), real_report("keras_fit")],
        lambda: [
            {**without_site(), "target": target} for target in ("", "logs/run", "train.py", "a b#c.py", "gs://b/x")
        ],
        lambda: [proved()] * 30,
    ],
)
def test_code_scanning_takes_it(reports):
    log = report_to_sarif(reports(), PAGES)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert list(violations(log)) == []


@pytest.mark.long
@pytest.mark.skipif(not GPU.is_dir(), reason="no real profiles beside the checkout")
def test_code_scanning_takes_findings_of_a_bare_profile(capsys):
    assert main(["export", "--to", "sarif", str(GPU)]) == 0
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert log["runs"][0]["results"] and list(violations(log)) == []


def test_rules_of_ones_own_have_all_that_is_shown():
    log = report_to_sarif([proved()], {})
    assert list(violations(log)) == []


def test_runs_of_one_file_have_categories_of_their_own(repository):
    report = report_on(repository / "src/train.py")
    runs = report_to_sarif([report, report, report_on(repository / "src/other.py")], PAGES)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == [
        "advisor/src/train.py/", "advisor/src/train.py-2/", "advisor/src/other.py/",
    ]  # fmt: skip
    again = report_to_sarif([report], PAGES)["runs"][0]["automationDetails"]["id"]
    assert again == "advisor/src/train.py/", "the same from one upload to the next"


@pytest.mark.parametrize("inside", [True, False])
def test_paths_are_relative_to_the_repository_wherever_the_command_runs(inside, repository, tmp_path, monkeypatch):
    monkeypatch.chdir(repository / "src" if inside else tmp_path)
    (run,) = report_to_sarif([report_on(repository / "src/train.py")], PAGES)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "src/train.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": repository.as_uri() + "/"}}


def test_a_script_outside_of_any_repository_is_relative_to_its_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "train.py").write_text("x\n")
    monkeypatch.chdir(tmp_path / "here")
    (run,) = report_to_sarif([report_on(tmp_path / "there/train.py")], PAGES)["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"


def test_a_finding_without_a_call_is_located_at_the_scripts_first_line(repository):
    (run,) = report_to_sarif([report_on(repository / "src/train.py", site=False)], PAGES)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/train.py" and place["region"]["startLine"] == 1


def test_without_a_script_it_is_located_at_the_consumer(repository):
    report = report_on(repository / "src/train.py", site=False)
    consumer = {"file": str(repository / "src/train.py"), "line": 12, "kind": "for"}
    pipelines = [{**pipeline, "consumer": consumer} for pipeline in report["pipelines"]]
    assert pipelines
    (run,) = report_to_sarif([{**report, "target": "logs/run", "pipelines": pipelines}], PAGES)["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("src/train.py", 12)


def test_the_hash_is_that_of_the_line(repository):
    report = report_on(repository / "src/train.py")
    line = report["findings"][0]["site"]["line"]
    (run,) = report_to_sarif([report], PAGES)["runs"]
    wanted = line_hashes((repository / "src/train.py").read_text())[line - 1]
    assert run["results"][0]["partialFingerprints"]["primaryLocationLineHash"] == wanted


def test_omissions_beyond_the_limits_are_reported():
    report = proved()
    (run,) = report_to_sarif([{**report, "findings": report["findings"] * 5_001}], PAGES)["runs"]
    assert len(run["results"]) == 5_000
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert any("5001 findings, of which the first 5,000 are listed" in note for note in notes)
    runs = report_to_sarif([report] * 23, PAGES)["runs"]
    notes = [note["message"]["text"] for note in runs[-1]["invocations"][0]["toolExecutionNotifications"]]
    assert len(runs) == 20 and any("3 of 23 runs were omitted" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (" a\nb\n  \t\tc\n d", ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"]),
        (
            "alpha\nbeta\nalpha\n",
            ["8d07ce75f7b3af45:1", "ca140c3f893ffa65:1", "26f09ff008857193:1", "c129715d7a2bc9a3:1"],
        ),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_hashes_are_those_of_the_upload_action(text, hashes, line_end):
    """Values that GitHub's own action gives for these texts."""
    assert line_hashes(text.replace("\n", line_end)) == hashes


def test_equal_neighbourhoods_are_counted():
    hashes = line_hashes("x\n" * 200)
    assert hashes[0].endswith(":1") and hashes[1] == hashes[0].replace(":1", ":2")
    assert len(hashes) == 201


@pytest.mark.parametrize(
    ("target", "label"),
    [
        ("src/train.py --epochs 1", "src/train.py"),
        ("src/train.py src/other.py", "src/train.py"),
        ("src/two words.py --flag", "src/two%20words.py"),
        ("gone.py --flag x.py", "gone.py"),
        ("-m package.train --epochs 1", "-m%20package.train"),
    ],
)
def test_arguments_do_not_make_another_category(repository, monkeypatch, target, label):
    monkeypatch.chdir(repository)
    (repository / "src/two words.py").write_text("x\n")
    (run,) = report_to_sarif([{**without_site(), "target": target}], PAGES)["runs"]
    assert run["automationDetails"]["id"] == f"advisor/{label}/"
    if label.endswith(".py"):
        (location,) = run["results"][0]["locations"]
        place = location["physicalLocation"]
        assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (label, 1)


def test_with_arguments_the_category_does_not_depend_on_the_folder_either(repository, monkeypatch):
    monkeypatch.chdir(repository / "src")
    (run,) = report_to_sarif([{**without_site(), "target": "train.py --epochs 1"}], PAGES)["runs"]
    assert run["automationDetails"]["id"] == "advisor/src/train.py/"


def complete(repository):
    """Reports that make use of every part that a log may have."""
    report = report_on(repository / "src/train.py")
    (finding,) = report["findings"]
    run = {"sentence": "It saves 3 s."}
    gain = {"value": 2.0, "low": 1.5, "high": 2.5}
    findings = [
        {**finding, "over_run": {**(finding["over_run"] or {}), **run}, "predicted_speedup": gain, "memory_bytes": 1},
        {**finding, "site": None, "predicted_speedup": None, "over_run": None, "diff": None, "safety": None},
        {**finding, "rule": "my-own"},
        {**finding, "site": {"file": "/elsewhere/lib.py", "line": 3, "column": 2}},
    ]
    errors = [{"rule": "my-own", "message": "It raised."}]
    first = {**report, "findings": findings, "warnings": ["A warning."], "rule_errors": errors}
    return [first, {**report, "findings": findings * 1_500}] + [report] * 20


def paths_of(part, above=""):
    """The path of every property, with `*` for the elements of arrays."""
    if isinstance(part, dict):
        for name, inner in part.items():
            yield f"{above}/{name}"
            yield from paths_of(inner, f"{above}/{name}")
    elif isinstance(part, list):
        for inner in part:
            yield from paths_of(inner, f"{above}/*")


@pytest.mark.long
def test_a_log_with_every_optional_part_is_valid(repository):
    log = report_to_sarif(complete(repository), PAGES)
    checker = jsonschema.FormatChecker()
    jsonschema.Draft4Validator(SCHEMA, format_checker=checker).validate(log)
    assert list(violations(log)) == []
    run, rule, result = "/runs/*", "/runs/*/tool/driver/rules/*", "/runs/*/results/*"
    assert set(paths_of(log)) >= {
        f"{run}/automationDetails/id",
        f"{run}/columnKind",
        f"{run}/originalUriBaseIds/%SRCROOT%/uri",
        f"{run}/invocations/*/toolExecutionNotifications/*/descriptor/id",
        f"{rule}/name",
        f"{rule}/help/markdown",
        f"{rule}/properties/tags",
        f"{result}/locations/*/physicalLocation/artifactLocation/uriBaseId",
        f"{result}/locations/*/physicalLocation/region/endColumn",
        f"{result}/partialFingerprints/primaryLocationLineHash",
        f"{result}/properties/predictedSpeedup/value",
    }
    levels = {note["level"] for note in log["runs"][0]["invocations"][0]["toolExecutionNotifications"]}
    assert levels == {"warning", "error"}
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in log["runs"][0]["results"]}
    assert uris == {"src/train.py", "file:///elsewhere/lib.py"}


@pytest.mark.long
def test_the_command_says_what_it_cut(repository, tmp_path, capsys):
    report = report_on(repository / "src/train.py")
    folders = []
    for number in range(21):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        findings = report["findings"] * (5_001 if number == 0 else 1)
        (folder / "report.json").write_text(json.dumps({**report, "findings": findings}))
        folders.append(str(folder))
    assert main(["export", "--to", "sarif", *folders]) == 0
    out, err = capsys.readouterr()
    assert list(violations(json.loads(out))) == []
    assert "5001 findings, of which the first 5,000 are listed" in err and "1 of 21 runs were omitted" in err
    assert main(["export", "--to", "sarif", folders[1]]) == 0
    assert capsys.readouterr().err == ""
