"""`advisor offload` on real scripts: real workers, files, the change of the source and its undoing; what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from advisor.cli import main
from advisor.commands import offload as command
from advisor.model.offload_result import MOVABLE, REFUSED, Movability, Offload, ServiceProof, Sizing
from advisor.offload.files import server_text
from advisor.prove.trial.service.service_processes import ServiceProcesses
from tests.commands.offload_scripts import (
    FINITE_SCRIPT,
    KERAS_SCRIPT,
    MOVABLE_SCRIPT,
    PYTHON_SCRIPT,
    REPEATED_SCRIPT,
)
from tests.in_one_line import in_one_line

long = [pytest.mark.tensorflow, pytest.mark.long]


def servers() -> list[int]:
    """The dispatcher and worker processes that a measurement of the current test started. Other tests run beside it."""
    test = os.environ["PYTEST_CURRENT_TEST"]  # pytest sets it, and child processes inherit it
    pids = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        is_server = any(word.endswith("service_child.py") for word in process.info["cmdline"] or ())
        if is_server and (process.info["environ"] or {}).get("PYTEST_CURRENT_TEST") == test:
            pids.append(process.pid)
    return pids


class TestReal:
    pytestmark = long

    def test_a_pipeline_is_measured_the_files_written_and_nothing_left(self, script, capsys) -> None:
        path = script(MOVABLE_SCRIPT)
        before = path.read_text()
        assert main(["offload", "--files", "service", "--budget", "5min", "--json", "-", "train.py"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["movability"]["verdict"] == "movable" and result["movability"]["after"] == "batch"
        assert result["measurement"]["same_elements"] is True, result["measurement"]["comparison"]
        assert result["measurement"]["local_elements"] == result["measurement"]["service_elements"] == 256
        assert {rate["compression"] for rate in result["measurement"]["rates"]} == {"AUTO", "none"}
        assert result["sizing"]["verdict"] in ("workers", "no gain")
        assert {Path(name).name for name in result["files"]} == {
            "server.py", "Dockerfile", "kubernetes.yaml", "compose.yaml",
        }  # fmt: skip
        assert path.read_text() == before and not result["changed_files"]
        assert servers() == []

    def test_python_code_is_refused_with_its_line_and_no_worker_is_started(self, script, capsys) -> None:
        script(PYTHON_SCRIPT)
        arguments = ["offload", "--files", "service", "--json", "-", "--fail-on", "refused", "train.py"]
        assert main(arguments) == 1
        result = json.loads(capsys.readouterr().out)
        objection = result["movability"]["objections"][0]
        assert (objection["verdict"], objection["cause"], objection["site"]["line"]) == ("refused", "python", 7)
        assert result["measurement"] is None and result["runs"] == 1 and not Path("service").exists()

    @pytest.mark.slow
    def test_the_changed_script_reads_the_same_elements_from_the_service(self, script, capsys, tmp_path) -> None:
        path = script(FINITE_SCRIPT)
        folder = tmp_path / "servers"
        folder.mkdir()
        with ServiceProcesses(server_text(), folder, lambda: None) as processes:
            processes.start_dispatcher()
            processes.start_worker()
            command = ["offload", "--no-measurement", "--address", processes.address, "--json", "-", "train.py"]
            assert main(command) == 0
            diff = json.loads(capsys.readouterr().out)["diff"]
            subprocess.run(["git", "apply", "-"], input=diff, text=True, check=True)
            assert processes.address in path.read_text()
            done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == str(sum(range(0, 400, 2))), done.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("text", "parts", "printed"),
        [
            (REPEATED_SCRIPT, [".map(heavy).repeat(3).batch(8).apply(", ".unbatch()"], "96 {3}"),
            (KERAS_SCRIPT, [".map(row).repeat()", "callbacks=[Steps()], steps_per_epoch=13)"], "[13, 13, 13]"),
        ],
        ids=["repeat moves", "fit"],
    )
    def test_passes_are_one_job_with_the_same_elements(self, text, parts, printed, script, capsys, tmp_path) -> None:
        """Through two workers, each element comes as often as before in the whole stream; an epoch of `fit` has its steps."""
        path = script(text)
        folder = tmp_path / "servers"
        folder.mkdir()
        with ServiceProcesses(server_text(), folder, lambda: None) as processes:
            processes.start_dispatcher()
            processes.start_worker()
            processes.start_worker()
            command = ["offload", "--no-measurement", "--address", processes.address, "--json", "-", "train.py"]
            assert main(command) == 0
            result = json.loads(capsys.readouterr().out)
            subprocess.run(["git", "apply", "-"], input=result["diff"], text=True, check=True)
            assert all(part in path.read_text() for part in parts), result
            done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == printed, done.stderr

    def test_the_change_is_written_runs_and_is_undone(self, script, capsys) -> None:
        """With enough waiting that workers help on every machine: the consumer takes no time."""
        path = script(MOVABLE_SCRIPT.replace("time.sleep(0.001)", "time.sleep(0)"))
        before = path.read_bytes()
        arguments = ["offload", "--write", "--worker-cores", "64", "--budget", "5min", "--json", "-", "train.py"]
        code = main(arguments)
        output = capsys.readouterr()
        result = json.loads(output.out)
        if result["sizing"]["workers"] is None:
            assert code == 2 and "Nothing was written" in output.err and path.read_bytes() == before
            return
        assert code == 0 and result["changed_files"] == [str(path)]
        text = path.read_text()
        assert '.batch(8).apply(tf.data.experimental.service.distribute("distributed_epoch"' in in_one_line(text)
        assert text.index("distribute(") < text.index(".prefetch(tf.data.AUTOTUNE)")
        assert {path.name for path in Path("tfdata-service").iterdir()} >= {"server.py", "Dockerfile"}
        assert main(["offload", "--undo", "train.py"]) == 0
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--service", "localhost:5000", "train.py"], "--service localhost:5000 is not of the form"),
        (["--service", "grpc://h:1", "--address", "grpc://h:1", "train.py"], "--address is not needed"),
        (["--service", "grpc://h:1", "--no-measurement", "train.py"], "mutually exclusive"),
        (["--write", "--undo", "train.py"], "mutually exclusive"),
        (["--undo", "train.py", "more"], "takes no script arguments"),
        (["--address", "dispatcher:5000", "train.py"], "not of the form"),
        (["--address", 'grpc://a"b:1', "train.py"], "not of the form"),
        (["--write", "--no-measurement", "train.py"], "needs the measurement"),
        (["--budget", "5s", "train.py"], "too short"),
    ],
)  # fmt: skip
def test_misuse_is_one_sentence_and_runs_nothing(script, capsys, arguments, message) -> None:
    script("raise SystemExit('it was run')")
    assert main(["offload", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and "it was run" not in error


def test_files_of_others_are_refused_before_anything_runs(script, capsys) -> None:
    script("raise SystemExit('it was run')")
    Path("service").mkdir()
    Path("service/Dockerfile").write_text("FROM scratch\n")
    assert main(["offload", "--files", "service", "train.py"]) == 2
    assert "not written by advisor offload" in capsys.readouterr().err


def test_results_for_fail_on() -> None:
    refused = Offload("t", "", Movability(REFUSED, ""), None, None, "dynamic", "")
    assert command._results(refused) == {"refused"}
    useless = Offload("t", "", Movability(MOVABLE, ""), None, Sizing("no gain", ""), "dynamic", "")
    assert command._results(useless) == {"movable", "no-gain"}
    useful = Offload(
        "t", "", Movability(MOVABLE, ""), None, None, "dynamic", "", ServiceProof("grpc://d:1", "faster", "")
    )
    assert command._results(useful) == {"movable"}
    for verdict in ("same", "slower", "broken", "undecided", "not measured"):
        proof = ServiceProof("grpc://d:1", verdict, "")
        assert command._results(replace(useful, proof=proof)) == {"movable", "no-gain"}
