"""The pages of the case studies: of the present scripts, with figures that were written by a run and none typed by hand."""

import re
import subprocess
import sys

import pytest

from tests.examples.conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "benchmarks"))

import case_study  # noqa: E402

CASES = pytest.mark.parametrize("case", case_study.CASES, ids=lambda case: case.name)
BEGIN, END = "<!-- case: begin -->", "<!-- case: end -->"
PRINTED = """Proved on the training: a step is 2x faster.

The change
  --- a/train.py
  +++ b/train.py
  -a

  +b

Measured: pipeline alone."""


def parts(case):
    """The text before the markers, between them, and after them."""
    before, _, rest = case.page.read_text("utf-8").partition(BEGIN)
    return before, *rest.split(END)


@CASES
def test_the_commits_can_be_made_again(case, tmp_path):
    _, written, _ = parts(case)
    before, after = re.findall(r"Commit `([0-9a-f]{40})`", written)
    repository = tmp_path / "repository"
    assert case_study.first_commit(case, repository) == before, f"run python benchmarks/case_study.py {case.name} --write-docs"
    diff = re.search(r"```diff\n(.*?)^```", written, re.MULTILINE | re.DOTALL)[1]
    subprocess.run(["git", "apply"], input=diff.encode(), cwd=repository, check=True)
    command = re.search(r"^\$ (advisor fix .*)$", written, re.MULTILINE)[1]
    assert case_study.commit(repository, command) == after


@CASES
def test_the_page_shows_the_script(case):
    assert (REPOSITORY / f"examples/{case.name}.py").read_text("utf-8").rstrip() in parts(case)[1]


@CASES
def test_no_figure_is_typed_by_hand(case):
    prose = "".join((parts(case)[0], parts(case)[2]))
    assert prose.strip() and re.findall(r"\d", re.sub(r"\]\([^)]*\)", "]", prose)) == []


def test_the_index_has_a_row_of_each_case():
    index = case_study.INDEX.read_text("utf-8")
    assert re.findall(r"^\| \[(\w+)\]\(", index, re.MULTILINE) == [case.name for case in case_study.CASES]


def test_the_diff_is_shown_once():
    assert case_study.without_diff(PRINTED) == (
        "Proved on the training: a step is 2x faster.\n\n...\n\nMeasured: pipeline alone."
    )


def test_the_bottleneck_is_that_of_the_printed_report():
    text = "Input is the problem.\n\nBottleneck\n  train.py:45 .map(decode)  77.9 % of the wait, runs as ParallelMapV2\n  45 | x"
    assert case_study.bottleneck(text) == "`train.py:45 .map(decode)`, 77.9 % of the wait"
    assert case_study.bottleneck("Input is not the problem.") == "no call of a pipeline"


def test_a_row_replaces_that_of_its_case_alone(monkeypatch, tmp_path):
    index = tmp_path / "README.md"
    index.write_text("<!-- cases: begin -->\n| [flowers_like](flowers-like.md) | old |\n| [parse_per_record](parse-per-record.md) | kept |\n<!-- cases: end -->\n")
    monkeypatch.setattr(case_study, "INDEX", index)
    side = {"step_time_ms": 2.0}
    fix = {
        "fixes": [{"rule": "repeated-work", "applied": True}, {"rule": "late-shuffle", "applied": False}],
        "proof": {"before": side, "after": {"step_time_ms": 1.0}},
        "comparison": {"end_to_end": {"value": 2.0, "low": 1.9, "high": 2.1}},
    }
    before = case_study.Step("\nBottleneck\n  train.py:1 .map(f)  90 % of the wait, runs as Map", {}, 1.0)
    study = case_study.Study(
        case_study.CASES[0], "", before, case_study.Step("", fix, 1.0), before, ("a", "b"), ""
    )  # fmt: skip
    case_study.write_row(study)
    rows = [line for line in index.read_text().splitlines() if line.startswith("| [")]
    assert rows == [
        "| [flowers_like](flowers-like.md) | `train.py:1 .map(f)`, 90 % of the wait | [repeated-work](../rules.md#repeated-work) "
        "| 2 ms → 1 ms | 2.0x (1.90x to 2.1x) faster |",
        "| [parse_per_record](parse-per-record.md) | kept |",
    ]
