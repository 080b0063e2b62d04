"""No output option destroys what this tool did not write."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli import main

RUN = Path(__file__).parents[1] / "data" / "keras_fit"
SCRIPT = "import tensorflow as tf\n\nfor value in tf.data.Dataset.range(3):\n    print(value)\n"


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(RUN, tmp_path / "run", ignore=shutil.ignore_patterns("report.*")))


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "base.py"
    path.write_text(SCRIPT)
    return path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


THEIRS = {
    "base.py": SCRIPT,
    "note.ipynb": '{"cells": []}',
    "config.json": '{"schema_version": 1, "learning_rate": 0.1}',
    "page.html": "<!doctype html><title>mine</title>",
    "results.csv": "run,loss\n1,0.5\n",
    "trace.json": '{"displayTimeUnit":"ns","traceEvents":[]}',
    "NOTES.md": "### tf.data: what I found\n",
    "pyproject.toml": "[tool.advisor]\n",
}
OPTIONS = {
    "analyze --json": ["analyze", "--json", "{file}", "{run}"],
    "analyze --html": ["analyze", "--html", "{file}", "{run}"],
    "compare --json": ["compare", "--json", "{file}", "{run}", "{run}"],
    "export perfetto": ["export", "{run}", "--to", "perfetto", "--out", "{file}"],
    "export sarif": ["export", "{run}", "--to", "sarif", "--out", "{file}"],
    "export markdown": ["export", "{run}", "--to", "markdown", "--out", "{file}"],
    "export csv": ["export", "{run}", "--to", "csv", "--table", "iterators", "--out", "{file}"],
}


def filled(args, **values):
    return [arg.format(**values) for arg in args]


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("option", OPTIONS)
def test_files_of_others_stay(option, name, run, tmp_path, capsys):
    theirs = tmp_path / name
    theirs.write_text(THEIRS[name])
    before = contents(tmp_path)
    assert main(filled(OPTIONS[option], file=theirs, run=run)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert name in line and line.startswith("error: ")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("command", ["analyze", "fix"])
def test_a_script_is_not_overwritten_by_its_own_report_and_not_even_run(command, option, base, capsys):
    assert main([command, option, str(base), str(base)]) == 2
    assert base.read_text() == SCRIPT
    assert "names a source file" in capsys.readouterr().err


def test_a_script_that_does_not_exist_yet_is_not_made(run, tmp_path, capsys):
    assert main(["analyze", "--json", str(tmp_path / "new.py"), str(run)]) == 2
    assert not (tmp_path / "new.py").exists()


@pytest.mark.long
@pytest.mark.parametrize("option", OPTIONS)
def test_an_earlier_output_is_written_anew(option, run, tmp_path, capsys):
    """The habit of CI: the same command again."""
    args = filled(OPTIONS[option], file=tmp_path / "out.txt", run=run)
    for _ in range(2):
        assert main(args) == 0, capsys.readouterr().err
        assert (tmp_path / "out.txt").stat().st_size
    for other in OPTIONS.values():
        if other != OPTIONS[option]:  # what is ours, but something else, stays too
            assert main(filled(other, file=tmp_path / "out.txt", run=run)) == 2


def test_a_packed_timeline_is_written_anew(run, tmp_path):
    args = ["export", str(run), "--to", "perfetto", "--out", str(tmp_path / "t.json.gz")]
    assert [main(args), main(args)] == [0, 0]


def test_the_report_of_an_input_is_not_replaced_by_a_comparison(run, capsys):
    assert main(["analyze", "--quiet", str(run)]) == 0
    before = contents(run)
    assert main(["compare", "--quiet", "--json", str(run / "report.json"), str(run), str(run)]) == 2
    assert contents(run) == before


def test_one_file_for_two_outputs_is_refused(run, tmp_path, capsys):
    assert main(["analyze", "--json", str(tmp_path / "x"), "--html", str(tmp_path / "x"), str(run)]) == 2
    assert not (tmp_path / "x").exists()


def test_an_empty_file_is_written_to(run, tmp_path):
    """`mktemp` makes one."""
    (tmp_path / "tmp.aX3").touch()
    assert main(["analyze", "--quiet", "--json", str(tmp_path / "tmp.aX3"), str(run)]) == 0
    assert json.loads((tmp_path / "tmp.aX3").read_text())["schema_version"] == 1


@pytest.mark.parametrize("link", ["symlink", "hardlink"])
def test_a_link_to_a_file_of_others_is_refused(link, run, base, tmp_path, capsys):
    path = tmp_path / "report.json"
    path.symlink_to(base) if link == "symlink" else path.hardlink_to(base)
    assert main(["analyze", "--json", str(path), str(run)]) == 2
    assert base.read_text() == SCRIPT and path.read_text() == SCRIPT


@pytest.mark.long
def test_a_link_to_an_earlier_report_stays_a_link(run, tmp_path):
    real, link = tmp_path / "kept" / "report.json", tmp_path / "latest.json"
    real.parent.mkdir()
    link.symlink_to(real)
    assert main(["analyze", "--quiet", "--json", str(real), str(run)]) == 0
    real.write_text(real.read_text().replace("keras_fit", "changed"))
    assert main(["analyze", "--quiet", "--json", str(link), str(run)]) == 0
    assert link.is_symlink() and "changed" not in real.read_text()


def test_a_link_to_nothing_is_refused(run, tmp_path, capsys):
    (tmp_path / "r.json").symlink_to(tmp_path / "gone" / "r.json")
    assert main(["analyze", "--json", str(tmp_path / "r.json"), str(run)]) == 2
    assert "broken link" in capsys.readouterr().err


def test_saved_run_with_out_keeps_files_of_the_same_names(run, tmp_path, capsys):
    out = tmp_path / "site"
    out.mkdir()
    (out / "report.html").write_text("<h1>my page</h1>")
    assert main(["analyze", "--out", str(out), str(run)]) == 2
    assert contents(out) == {out / "report.html": b"<h1>my page</h1>"}


def test_links_in_a_run_folder_from_elsewhere_lead_nowhere(run, base, capsys):
    (run / "report.json").symlink_to(base)
    assert main(["analyze", "--quiet", str(run)]) == 0
    assert base.read_text() == SCRIPT and (run / "report.json").is_symlink()


@pytest.mark.parametrize(
    "device",
    ["/dev/stdout", *(pytest.param(name, marks=pytest.mark.long) for name in ("/dev/fd/1", "/proc/self/fd/1"))],
)
def test_stdout_by_its_name_is_written_to_and_stays(device, run, tmp_path):
    """Behind the name stands a file that the shell redirects to."""
    name = Path("/dev/stdout")
    before = name.readlink()
    with (tmp_path / "out.json").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "advisor", "analyze", "--quiet", "--json", device, str(run)], stdout=out
        )
    assert done.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["schema_version"] == 1
    assert name.is_symlink() and name.readlink() == before
