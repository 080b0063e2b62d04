"""The files by which GitHub and others read the repository: valid by their schemas, and in agreement with the project."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import check_jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from advisor.model.version import __version__

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
BY_SCHEMA = [
    *((path, "github-workflows") for path in WORKFLOWS),
    *((path, "github-issue-forms") for path in FORMS),
    (ROOT / ".github/ISSUE_TEMPLATE/config.yml", "github-issue-config"),
    (ROOT / "CITATION.cff", "citation-file-format"),
]
PERMISSIONS_TO_WRITE = {"attest": {"id-token", "attestations"}, "draft": {"contents"}, "publish": {"id-token"}}
"""Job of the release -> what it may write; all others only read."""

READ_BY_PEOPLE = {".md", ".yml", ".cff", ".toml", ".py"}
ADDRESS = re.compile(r"(?:https?://|uses: |--repo )((?:[\w.${}-]+/)+)tfdata[-_]advisor\b")
"""`github.com/OWNER/tfdata-advisor` and the like; the part before the name."""
PLACEHOLDERS = {"OWNER/", "github.com/OWNER/"}


def load(path):
    return YAML(typ="safe").load(path.read_text("utf-8"))


@pytest.mark.parametrize(("path", "schema"), BY_SCHEMA, ids=lambda value: getattr(value, "name", value))
def test_it_is_valid(path, schema):
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", f"vendor.{schema}", str(path)])
    assert done.exit_code == 0, done.output


def test_the_citation_names_this_version():
    citation = load(ROOT / "CITATION.cff")
    assert (citation["title"], citation["version"], citation["license"]) == (
        "tfdata-advisor",
        __version__,
        "Apache-2.0",
    )


def test_forms_about_failures_ask_for_the_doctor():
    for name in ("bug_report.yml", "wrong_result.yml"):
        fields = {field.get("id"): field for field in load(ROOT / ".github/ISSUE_TEMPLATE" / name)["body"]}
        assert "`advisor doctor`" in fields["doctor"]["attributes"]["label"]
        assert fields["doctor"]["validations"]["required"] is True


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_read_only_unless_a_job_needs_more(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        writable = {scope for scope, level in job.get("permissions", {}).items() if level == "write"}
        assert writable == PERMISSIONS_TO_WRITE.get(name, set()), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_text_of_an_event_becomes_part_of_a_script(path):
    scripts = [step["run"] for job in load(path)["jobs"].values() for step in job["steps"] if "run" in step]
    assert scripts and not any("${{" in script for script in scripts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = set(re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8")))
    assert called <= targets


def test_the_security_page_names_real_files():
    named = re.findall(r"`((?:tests|benchmarks|\.github)/[\w./-]+)`", (ROOT / "SECURITY.md").read_text("utf-8"))
    assert named and all((ROOT / name).exists() for name in named)


def test_no_address_of_the_project_is_made_up():
    """It is unknown until the project has one: links are relative, and workflows read the address from their own run."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [
        name for name in listed.split("\0") if Path(name).suffix in READ_BY_PEOPLE and not name.startswith("tests/")
    ]
    texts = {name: (ROOT / name).read_text("utf-8") for name in names if (ROOT / name).is_file()}
    named = {(name, owner) for name, text in texts.items() for owner in ADDRESS.findall(text)}
    assert texts and {(name, owner) for name, owner in named if owner not in PLACEHOLDERS} == set()
