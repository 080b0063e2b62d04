"""`advisor check` on recorded runs, and on a short script against another revision."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from advisor.cli import main
from advisor.report.check_json import load_schema

DATA = Path(__file__).parents[1] / "data"
BASELINE = "advisor-baseline.json"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A folder with recorded runs, outside of CI."""
    for variable in ("CI", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("interleave_map", "keras_fit", "model_bound"):
        shutil.copytree(DATA / name, folder / name)
    budgets(folder, "")
    return folder


def budgets(folder, text):
    (folder / "pyproject.toml").write_text(f"[tool.advisor]\n{text}")


def checked(capsys, *args, code=0):
    assert main(["check", "--json", "-", *args]) == code
    out, err = capsys.readouterr()
    data = json.loads(out)
    jsonschema.Draft202012Validator(load_schema()).validate(data)
    assert data["result"] == ("failed" if code else "passed")
    return data, err


def results(data):
    return {(row["quantity"], row["unit"]): (row["result"], row["severity"]) for row in data["budgets"]}


def without_finding(run, rule_line):
    """Turn a copy of a run into one in which the call of a line has another text, as after an edit."""
    path = Path(run) / "recording.json"
    recording = json.loads(path.read_bytes())
    for call in recording["calls"]:
        if call["site"]["line"] == rule_line:
            call["text"] = ".something_else()"
    path.write_text(json.dumps(recording))


def test_schema_is_sound_and_closed():
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in [schema, *schema["$defs"].values()]:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def test_new_findings_fail_without_any_settings(capsys, project):
    data, err = checked(capsys, "interleave_map", code=1)
    assert results(data) == {("findings", "findings"): ("failed", "error")}
    assert {finding["rule"] for finding in data["new_findings"]} == {"serial-interleave", "map-inside-interleave"}
    assert "Check failed: new findings." in err and ".map(heavy): Parallelise map(heavy)" in err
    assert "advisor check --update-baseline" in err
    assert not (project / BASELINE).exists(), "it never grows by itself"


def test_known_findings_pass_and_the_file_stays_as_it_is(capsys, project):
    data, err = checked(capsys, "--update-baseline", "interleave_map")
    assert sum(entry["count"] for entry in data["baseline"]["added"]) == 2 and data["baseline"]["is_written"]
    written = (project / BASELINE).read_bytes()
    data, err = checked(capsys, "interleave_map")
    assert (data["baseline"]["known"], data["baseline"]["is_written"]) == (2, False)
    assert (project / BASELINE).read_bytes() == written
    assert "2 findings are known from advisor-baseline.json" in err


def test_a_finding_that_the_baseline_lacks_fails_and_is_not_added(capsys, project):
    checked(capsys, "--update-baseline", "interleave_map")
    held = json.loads((project / BASELINE).read_text())
    entries = held["scripts"]["scripts/interleave_map.py"]
    held["scripts"]["scripts/interleave_map.py"] = entries[:1]
    (project / BASELINE).write_text(json.dumps(held))
    before = (project / BASELINE).read_bytes()
    data, _ = checked(capsys, "interleave_map", code=1)
    assert [finding["rule"] for finding in data["new_findings"]] == [entries[1]["rule"]]
    assert (project / BASELINE).read_bytes() == before


def test_the_baseline_shrinks_by_itself_and_spares_other_scripts(capsys, project):
    checked(capsys, "--update-baseline", "interleave_map")
    checked(capsys, "--update-baseline", "keras_fit")
    without_finding("interleave_map", 14)
    data, err = checked(capsys, "interleave_map", code=1)  # the changed call is a new finding
    assert [(entry["rule"], entry["call"]) for entry in data["baseline"]["removed"]] == [
        ("map-inside-interleave", ".map(heavy)")
    ]
    held = json.loads((project / BASELINE).read_text())["scripts"]
    assert [entry["rule"] for entry in held["scripts/interleave_map.py"]] == ["serial-interleave"]
    assert len(held["scripts/keras_fit.py"]) == 1
    assert "Commit the smaller file" in " ".join(err.split())


@pytest.mark.parametrize("value", ["true", "1"])
def test_a_ci_job_leaves_the_baseline_as_it_is_and_says_so(capsys, project, monkeypatch, value):
    checked(capsys, "--update-baseline", "interleave_map")
    before = (project / BASELINE).read_bytes()
    without_finding("interleave_map", 14)
    monkeypatch.setenv("CI", value)
    data, err = checked(capsys, "interleave_map", code=1)
    assert (project / BASELINE).read_bytes() == before
    assert data["baseline"]["removed"] and not data["baseline"]["is_written"]
    assert "This is a CI job" in err
    checked(capsys, "--update-baseline", "interleave_map")
    assert (project / BASELINE).read_bytes() != before, "asked for, it is written in CI as well"


def test_a_run_without_steps_removes_nothing_and_passes_nothing(capsys, project):
    checked(capsys, "--update-baseline", "interleave_map")
    before = (project / BASELINE).read_bytes()
    path = project / "interleave_map/recording.json"
    recording = json.loads(path.read_bytes())
    path.write_text(json.dumps({**recording, "steps": [], "window": None, "consumers": []}))
    shutil.rmtree(project / "interleave_map/plugins")
    data, err = checked(capsys, "interleave_map", code=1)
    assert results(data) == {("findings", "findings"): ("not measured", "error")}
    assert (project / BASELINE).read_bytes() == before
    assert "no entry was removed" in err
    budgets(project, 'budgets = { findings = ["error", { not_measured = "warn" }] }\n')
    assert results(checked(capsys, "interleave_map")[0]) == {("findings", "findings"): ("not measured", "warn")}


@pytest.mark.long
def test_entries_of_a_rule_that_failed_stay(capsys, project):
    checked(capsys, "--update-baseline", "interleave_map")
    held = json.loads((project / BASELINE).read_text())
    held["scripts"]["scripts/interleave_map.py"].append({"rule": "broken", "call": "", "count": 1})
    (project / BASELINE).write_text(json.dumps(held))
    rules = project / "rules"
    rules.mkdir()
    (rules / "broken.py").write_text(
        "from dataclasses import dataclass\nfrom advisor.rule import *\n\n@dataclass(frozen=True)\nclass Broken(Rule):\n"
        '    """Broken."""\n    def check(self, analysis):\n        raise ValueError("no")\n'
    )
    data, _ = checked(capsys, "--rules", str(rules), "interleave_map")
    assert data["baseline"]["removed"] == []
    assert any("broken" in note for note in data["notes"])


def test_budgets_of_the_settings(capsys, project):
    budgets(
        project,
        """[tool.advisor.budgets]
input_wait = ["error", { max = 0.10 }]
step_time = ["warn", { max = "0.001ms", max_ratio = 1.1 }]
memory = ["error", { max = "1TiB", not_measured = "warn" }]
[tool.advisor.budgets."scripts/keras_*.py"]
input_wait = ["warn", { max = 0.01 }]
""",
    )
    data, err = checked(capsys, "interleave_map", code=1)
    outcomes = results(data)
    assert outcomes["input_wait", "share"] == ("failed", "error")
    assert outcomes["step_time", "ns"] == ("failed", "warn")
    assert outcomes["step_time", "ratio"] == ("skipped", "ok")
    assert ("findings", "findings") not in outcomes and data["baseline"] is None
    assert "Check failed: input wait." in err and "needs --against REV" in err
    data, err = checked(capsys, "keras_fit")
    assert results(data)["input_wait", "share"] == ("failed", "warn")


def test_no_budget_at_all_is_said(capsys, project):
    budgets(project, 'budgets = { findings = "off" }\n')
    data, err = checked(capsys, "interleave_map")
    assert data["budgets"] == [] and "Nothing was checked" in err


@pytest.mark.long
def test_several_saved_runs_are_aggregated(capsys, project):
    budgets(project, '[tool.advisor.budgets]\ninput_wait = ["error", { max = 1, aggregation = "pessimistic" }]\n')
    data, err = checked(capsys, "interleave_map", "keras_fit", "model_bound")
    (row,) = data["budgets"]
    assert len(row["values"]) == 3 and row["value"] == max(row["values"])
    assert len(data["run_folders"]) == 3
    assert "not of the same script" in err


def test_the_summary_is_added_to_that_of_the_job(capsys, project, monkeypatch):
    job = project / "job.md"
    job.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    checked(capsys, "--summary", "own.md", "interleave_map", code=1)
    own = (project / "own.md").read_text()
    assert job.read_text() == f"before\n{own}\n"
    assert "❌ tf.data: Check failed: new findings." in own and "`.map(heavy)`" in own
    checked(capsys, "--summary", "own.md", "interleave_map", code=1)  # its own file may be replaced
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "no/such/folder"))
    _, err = checked(capsys, "interleave_map", code=1)
    assert "cannot be written" in err


def test_text_of_a_run_is_no_markup(project, capsys):
    path = project / "interleave_map/recording.json"
    recording = json.loads(path.read_bytes())
    for call in recording["calls"]:
        call["text"] = ".map(</td>|`@someone` \x1b[31m\n# x)"
    path.write_text(json.dumps(recording))
    checked(capsys, "--summary", "own.md", "interleave_map", code=1)
    own = (project / "own.md").read_text()
    assert "\x1b" not in own
    rows = [line for line in own.splitlines() if "someone" in line]
    assert rows and all(row.replace("\\|", "").count("|") == 5 for row in rows)


def test_json_replaces_its_own_file_and_no_other(project, capsys):
    assert main(["check", "--quiet", "--json", "check.json", "model_bound"]) == 0
    assert main(["check", "--quiet", "--json", "check.json", "model_bound"]) == 0
    shutil.copy("interleave_map/recording.json", "mine.json")
    assert main(["check", "--json", "mine.json", "model_bound"]) == 2
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "SCRIPT"),
        (["nothing.py"], "nothing.py"),
        (["--against", "HEAD", "interleave_map"], "--against applies only to scripts"),
        (["--runs", "2", "interleave_map"], "--runs applies only to scripts"),
        (["--steps", "3", "interleave_map"], "--steps applies only to scripts"),
        (["interleave_map", "nothing.py"], "so nothing.py must be one, too"),
        (["--baseline", "pyproject.toml", "interleave_map"], "damaged or of another version"),
        (["--baseline", "no/folder/b.json", "interleave_map"], "no folder"),
        (["--against", "HEAD", "train.py"], "needs a git repository"),
    ],
)
def test_mistakes_are_one_sentence(args, says, project, capsys, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    (project / "train.py").write_text("raise SystemError('ran')\n")
    assert main(["check", *args]) == 2
    err = capsys.readouterr().err
    assert says in err and "ran" not in err.replace("train", "")
    assert len([line for line in err.splitlines() if line.startswith("error:")]) == 1


def test_a_baseline_is_found_above_the_current_folder(project, capsys, monkeypatch):
    checked(capsys, "--update-baseline", "interleave_map")
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    data, _ = checked(capsys, "../interleave_map", code=1)  # started in sub/, it is sub/scripts/interleave_map.py
    assert Path(data["baseline"]["path"]) == project / BASELINE and data["baseline"]["is_present"]


@pytest.mark.long
def test_a_baseline_that_cannot_be_made_smaller_is_no_reason_to_fail(project, capsys, monkeypatch):
    from advisor.model.errors import AdvisorError

    checked(capsys, "--update-baseline", "interleave_map")
    without_finding("interleave_map", 17)
    without_finding("interleave_map", 14)
    checked(capsys, "--baseline", "other.json", "--update-baseline", "interleave_map")

    def refuse(option, path, kind, data):
        raise AdvisorError(f"Cannot write {path}: Read-only file system.")

    monkeypatch.setattr("advisor.workflows.check.write_output", refuse)
    data, _ = checked(capsys, "interleave_map", code=1)
    assert "Read-only file system, so it was left as it is." in data["baseline"]["note"]
    assert main(["check", "--update-baseline", "interleave_map"]) == 2
    assert "Read-only file system" in capsys.readouterr().err


def test_entries_that_another_check_has_written_meanwhile_stay(project, capsys, monkeypatch):
    from advisor.workflows import check as workflow

    checked(capsys, "--update-baseline", "interleave_map")
    analyze = workflow._analyze_all

    def slow_analyze(*args):
        held = json.loads((project / BASELINE).read_text())
        held["scripts"]["other.py"] = [{"rule": "serial-map", "call": "", "count": 1}]
        (project / BASELINE).write_text(json.dumps(held))
        return analyze(*args)

    monkeypatch.setattr(workflow, "_analyze_all", slow_analyze)
    checked(capsys, "--update-baseline", "keras_fit")
    assert set(json.loads((project / BASELINE).read_text())["scripts"]) == {
        "other.py", "scripts/interleave_map.py", "scripts/keras_fit.py",
    }  # fmt: skip


# ---- A script, with TensorFlow

SCRIPT = """import time
import tensorflow as tf
def work(x):
    return tf.py_function(lambda v: time.sleep(PAUSE) or v, [x], tf.int64)
for x in tf.data.Dataset.range(100_000).map(work):
    time.sleep(0.002)
"""


def git(*words):
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


@pytest.mark.long
@pytest.mark.tensorflow
def test_several_runs_of_a_script_are_aggregated(project, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    (project / "train.py").write_text(f"PAUSE = 0.004\n{SCRIPT}")
    budgets(project, '[tool.advisor.budgets]\nstep_time = ["error", { max = "1h" }]\n')
    data, _ = checked(capsys, "--update-baseline", "--runs", "2", "--steps", "40", "--warmup", "10", "train.py")
    assert len(set(data["run_folders"])) == 2
    (budget,) = (budget for budget in data["budgets"] if budget["quantity"] == "step_time")
    assert len(budget["values"]) == 2


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(("pause", "code", "result"), [("0.02", 1, "failed"), ("0.001", 0, "passed")])
def test_a_script_against_another_revision(project, capsys, monkeypatch, pause, code, result):
    """The base imports a module that the working tree lacks; up to 17 runs of a second or two each."""
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    budgets(project, '[tool.advisor.budgets]\nstep_time = ["error", { max_ratio = 1.25 }]\n')
    git("init", "-q")
    (project / "pauses.py").write_text("PAUSE = 0.006\n")
    (project / "train.py").write_text("from pauses import PAUSE\n" + SCRIPT)
    git("add", "pauses.py", "train.py")
    git("commit", "-q", "-m", "base")
    (project / "pauses.py").unlink()
    head = f"PAUSE = {pause}\n{SCRIPT}"
    (project / "train.py").write_text(head)
    data, _ = checked(capsys, "--against", "HEAD", "--steps", "60", "--warmup", "20", "train.py", code=code)
    assert results(data) == {("step_time", "ratio"): (result, "error" if code else "ok")}
    assert data["base"]["files"] == ["pauses.py", "train.py"] and data["base"]["turns"] >= 3
    ratio = data["budgets"][0]["interval"]
    assert ratio["low"] > 1.25 if code else ratio["high"] <= 1.25
    assert (project / "train.py").read_text() == head and not (project / "pauses.py").exists()
