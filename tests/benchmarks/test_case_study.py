"""The pages of the case studies: of the present scripts, with figures that were written by a run and none typed by hand."""

import re
import subprocess
import sys

import pytest

from tests.examples.conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "benchmarks"))

import case_study

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


def written(case):
    """What a run of the case has written."""
    text = parts(case)[1]
    if "Not run on an idle machine yet" in text:
        pytest.skip(f"python benchmarks/case_study.py {case.name} --write-docs has not been run yet")
    return text


@CASES
def test_the_commits_can_be_made_again(case, tmp_path):
    page = written(case)
    before, after = re.findall(r"Commit `([0-9a-f]{40})`", page)
    repository = tmp_path / "repository"
    assert case_study.first_commit(case, repository) == before, (
        f"run python benchmarks/case_study.py {case.name} --write-docs"
    )
    diff = re.search(r"```diff\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    subprocess.run(["git", "apply"], input=diff.encode(), cwd=repository, check=True)
    command = re.search(r"^\$ (advisor fix .*)$", page, re.MULTILINE)[1]
    assert case_study.commit(repository, command) == after


@CASES
def test_the_page_shows_the_script(case):
    assert (REPOSITORY / f"examples/{case.name}.py").read_text("utf-8").rstrip() in written(case)


@CASES
def test_no_figure_is_typed_by_hand(case):
    prose = "".join((parts(case)[0], parts(case)[2]))
    assert prose.strip() and re.findall(r"\d", re.sub(r"\]\([^)]*\)", "]", prose)) == []


@CASES
def test_the_index_has_a_row_of_each_case(case):
    assert written(case)
    assert f"\n| [{case.name}]({case.page.name}) | " in case_study.INDEX.read_text("utf-8")


def test_the_diff_is_shown_once():
    assert case_study.without_diff(PRINTED) == (
        "Proved on the training: a step is 2x faster.\n\n...\n\nMeasured: pipeline alone."
    )


def test_the_bottleneck_is_that_of_the_printed_report():
    text = "Input is the problem.\n\nBottleneck\n  train.py:45 .map(decode)  77.9 % of the wait, runs as ParallelMapV2\n  45 | x"
    assert case_study.bottleneck(text) == "`train.py:45 .map(decode)`, 77.9 % of the wait"
    assert case_study.bottleneck("Input is not the problem.") == "no call of a pipeline"


@pytest.mark.parametrize(
    ("proved_on", "cells"),
    [
        ("training", "training | 2 ms → 1 ms | 2.0x (1.90x to 2.1x) faster"),
        ("pipeline", "pipeline alone | 10 elements/s → 40 elements/s | 4.0x (3.9x to 4.1x) faster"),
    ],
)
def test_a_row_replaces_that_of_its_case_alone(proved_on, cells, monkeypatch, tmp_path):
    index = tmp_path / "README.md"
    other = "| [parse_per_record](parse-per-record.md) | kept |"
    index.write_text(
        f"<!-- cases: begin -->\n| [flowers_like](flowers-like.md) | old |\n{other}\n<!-- cases: end -->\n"
    )
    monkeypatch.setattr(case_study, "INDEX", index)
    fix = {
        "fixes": [{"rule": "repeated-work", "applied": True}, {"rule": "late-shuffle", "applied": False}],
        "proof": {
            "proved_on": proved_on,
            "before": {"step_time_ms": 2.0, "elements_per_s": 10.0},
            "after": {"step_time_ms": 1.0, "elements_per_s": 40.0},
        },
        "comparison": {
            "end_to_end": {"value": 2.0, "low": 1.9, "high": 2.1},
            "pipeline": {"speedup": 4.0, "low": 3.9, "high": 4.1},
        },
    }
    before = case_study.Step("\nBottleneck\n  train.py:1 .map(f)  90 % of the wait, runs as Map", {}, 1.0)
    proof = case_study.Step("", fix, 1.0)
    case_study.write_row(case_study.Study(case_study.CASES[0], "", before, proof, before, ("a", "b"), ""))
    assert [line for line in index.read_text().splitlines() if line.startswith("| [")] == [
        "| [flowers_like](flowers-like.md) | `train.py:1 .map(f)`, 90 % of the wait | "
        f"[repeated-work](../rules.md#repeated-work) | {cells} |",
        other,
    ]
