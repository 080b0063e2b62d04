"""Every bad input ends in one clear sentence and exit code 2, or in a report; in bounded time and memory, harmlessly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.cases import CASES

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
IS_OPEN = all(folder.stat().st_mode & 0o001 for folder in (ROOT, *ROOT.parents))
"""Whether another user may enter the project's folder and read its rules."""


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The rows of one run over all cases, by name."""
    folder = tmp_path_factory.mktemp("h")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.runner", folder],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
    rows_by_name = {row["name"]: row for row in rows}
    for name, row in rows_by_name.items():
        report = folder / f"{name}.json"
        row["json"] = json.loads(report.read_text("utf-8")) if report.exists() else None
    rows_by_name["_runner"] = {"code": done.returncode, "err": done.stderr[-2000:]}
    return rows_by_name


def test_the_table_is_long_enough_and_was_run_to_its_end(results):
    assert len(CASES) >= 60
    assert results["_runner"]["code"] == 0, results["_runner"]["err"]


@pytest.mark.parametrize("name", CASES)
def test_bad_input(results, name):
    case, row = CASES[name], results[name]
    if case.is_strangers and not IS_OPEN:
        pytest.skip("the case runs as another user, who may not enter the folder of the project")
    out, err = row["out"], row["err"]
    assert row["code"] in ((0, 2) if case.code is None else (case.code,)), f"{row['code']}: {err[-800:]}{out[-300:]}"
    assert "Traceback" not in out + err
    assert "bug in advisor" not in err
    assert "Rules that failed" not in out
    assert not [char for char in out + err if not char.isprintable() and char != "\n"], "nothing may steer a terminal"
    flat = " ".join((out + err).split())
    assert case.said in flat or case.said in json.dumps(row["json"])
    if row["code"] == 2:
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert len(err) < 1500
        assert out == ""
        assert row["json"] is None
    else:
        assert err == ""
        assert row["json"]["schema_version"] == 1
