"""Every command once, with TensorFlow: on a script, on a job, and on the run that the first one left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.cli import COMMANDS, main
from tests.collecting import EXAMPLES, free_port, start_job

pytestmark = pytest.mark.tensorflow
SCRIPT = """import time
import tensorflow as tf
def slow(x):
    for _ in range(6):
        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
    return tf.reduce_mean(x)
data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 200, 200]))
data = data.map(slow).batch(8)
for epoch in range(10_000):
    for batch in data:
        time.sleep(0.002)
"""
MAP_LINE = 8


@dataclass(frozen=True)
class Project:
    """A folder with a script, and with the run that `advisor analyze` made of it."""

    folder: Path
    report: dict

    @property
    def script(self) -> Path:
        return self.folder / "train.py"

    @property
    def run(self) -> str:
        return self.report["run_folder"]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.chdir(folder)
        code = main(["analyze", "--steps", "30", "--warmup", "5", "--quiet", "--json", "report.json", "train.py"])
        assert code == 0
        yield Project(folder, json.loads((folder / "report.json").read_text()))


def analyze(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (pipeline,) = project.report["pipelines"]
    assert pipeline["bottleneck"]["site"]["line"] == MAP_LINE
    assert "repeated-work" in {finding["rule"] for finding in project.report["findings"]}


def capture(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    job = start_job(EXAMPLES / "profiler_server.py", "--port", port)
    try:
        assert main(["capture", f"localhost:{port}", "--duration", "500ms", "--out", "sampled", "--json", "-"]) == 0
    finally:
        job.kill()
        job.wait()
    assert json.loads(capsys.readouterr().out)["pipelines"][0]["bottleneck"]["name"] == "MapAndBatch"


def check(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "--steps", "30", "--warmup", "5", "--json", "-"]
    assert main([*command, "train.py"]) == 1
    findings = json.loads(capsys.readouterr().out)["new_findings"]
    assert ".map(slow)" in {finding["call"] for finding in findings}
    assert main(["check", "--json", "-", "--update-baseline", project.run]) == 0
    baseline = json.loads(Path("advisor-baseline.json").read_text())
    assert ".map(slow)" in {entry["call"] for entry in baseline["scripts"]["train.py"]}


def compare(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--json", "-", project.run, project.run]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict in ("same", "unknown")  # the latter where the steps of one run vary by more than a quarter


def doctor(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "-"]) == 0
    lines = {check["name"]: check["value"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert lines["TensorFlow"].startswith(f"{project.report['tensorflow_version']} ")
    assert lines["its profiler"] == "works"


def explain(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for rule in {finding["rule"] for finding in project.report["findings"]}:
        assert main(["explain", rule]) == 0
        assert rule in capsys.readouterr().out


def export(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", project.run, "--to", "sarif"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    places = [location["physicalLocation"] for result in run["results"] for location in result["locations"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"train.py"}
    assert MAP_LINE in {place["region"]["startLine"] for place in places}


def fix(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it is faster depends on what else runs; `test_fix.py` asks that alone."""
    command = ["fix", "--pipeline-only", "--only", "repeated-work", "--budget", "60s", "--write", "--json", "-"]
    assert main([*command, "train.py"]) == 0
    proof = json.loads(capsys.readouterr().out)["proof"]
    assert proof["runs"] >= 1
    is_changed = proof["verdict"] == "faster"
    assert proof["changed_files"] == ([str(project.script)] if is_changed else [])
    assert project.script.read_text().count(".cache()") == is_changed
    assert main(["fix", "--undo", "train.py"]) == (0 if is_changed else 2)
    assert project.script.read_text() == SCRIPT


def offload(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The recording alone; `test_offload.py` and `test_offload_service.py` start workers."""
    assert main(["offload", "--files", "service", "--json", "-", project.run]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["movability"]["verdict"] == "movable" and result["movability"]["after"] == "batch"
    assert "\n+    .apply(\n" in result["diff"] and '"distributed_epoch"' in result["diff"]
    assert sorted(path.name for path in Path("service").iterdir()) == sorted(
        Path(name).name for name in result["files"]
    )


def prove(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The data are equal whatever else runs; `tests/workflows/test_prove.py` asks for the speed."""
    changed = project.folder / "changed.py"
    changed.write_text(SCRIPT.replace(".map(slow)", ".map(slow, num_parallel_calls=2)"))
    assert main(["prove", "train.py", "--with", "changed.py", "--pipeline-only", "--budget", "60s", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["data"] == "equal" and result["datasets"][0]["safety"] == "exact"
    assert result["verdict"] in ("equal and faster", "same", "slower", "cannot tell")


def rules(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line}
    assert {finding["rule"] for finding in project.report["findings"]} <= listed


def runs(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert Path(project.run).name in capsys.readouterr().out


def skill(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "--write", str(project.folder)]) == 0
    written = project.folder / "tfdata-advisor" / "SKILL.md"
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == f"Wrote {written}.\n{written.read_text('utf-8')}"


def watch(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The script ends by itself, with its own exit code."""
    finite = project.folder / "finite.py"
    finite.write_text(SCRIPT.replace("range(10_000)", "range(20)") + "raise SystemExit(7)\n")
    assert main(["watch", "--no-profile", "--csv", "steps.csv", "finite.py"]) == 7
    rows = Path("steps.csv").read_text().splitlines()
    assert len(rows) >= 2 and rows[-1].split(",")[5] == "160"
    assert "finite.py:10 for: 160 steps in 20 epochs" in capsys.readouterr().err


CHECKS: dict[str, Callable[[Project, pytest.CaptureFixture[str]], None]] = {
    one.__name__: one
    for one in (
        analyze,
        capture,
        check,
        compare,
        doctor,
        explain,
        export,
        fix,
        offload,
        prove,
        rules,
        runs,
        skill,
        watch,
    )
}


@pytest.mark.parametrize("command", COMMANDS)
def test_command(
    command: str, project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # so that names of runs are in one piece
    CHECKS[command](project, capsys)
