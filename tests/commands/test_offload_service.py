"""`advisor offload --service` on real scripts and a running service: its proof, and workers and dispatchers that are lost."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.offload.dispatcher import Dispatcher
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.search import whole_script
from tests.commands.offload_scripts import WAITING_FIT_SCRIPT, WAITING_SCRIPT
from tests.in_one_line import in_one_line

long = [pytest.mark.tensorflow, pytest.mark.long]


class TestRunningService:
    pytestmark = long

    @pytest.fixture
    def service(self, monkeypatch, tmp_path):
        monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        from running_service import RunningService

        folder = tmp_path / "servers"
        folder.mkdir()
        with RunningService(folder) as running:
            running.start_dispatcher()
            yield running

    @pytest.mark.slow
    def test_two_workers_are_proved_written_and_undone(self, script, service, capsys) -> None:
        service.start_worker()
        service.start_worker()
        path = script(WAITING_SCRIPT)
        before = path.read_bytes()
        arguments = [
            "offload",
            "--service",
            service.address,
            "--write",
            "--fail-on",
            "no-gain",
            "--json",
            "-",
            "train.py",
        ]
        code = main(arguments)
        output = capsys.readouterr()
        result = json.loads(output.out)
        assert code == 0, (result["sentence"], result["notes"], output.err)
        assert result["measurement"]["same_elements"] is True and result["measurement"]["local_elements"] == 128
        proof = result["proof"]
        assert (proof["verdict"], proof["workers"], proof["lost_workers"]) == ("faster", 2, [])
        assert proof["step_speedup"]["low"] > 1 and proof["turns"] >= 3
        assert 1.2 < proof["predicted_speedup"] < 3  # 2 on an idle machine
        assert result["runs"] == 2 + 2 * proof["turns"]
        assert result["changed_files"] == [str(path)] and not result["files"]
        assert f'distribute("distributed_epoch", "{service.address}")' in in_one_line(path.read_text())
        assert main(["offload", "--undo", "train.py"]) == 0
        assert path.read_bytes() == before

    @pytest.mark.slow
    def test_fit_with_steps_per_epoch_is_proved_written_and_undone(self, script, service, capsys) -> None:
        """The length of the dataset is unknown: the number of steps is that of the epochs that `fit` finished."""
        service.start_worker()
        service.start_worker()
        path = script(WAITING_FIT_SCRIPT)
        before = path.read_bytes()
        code = main(["offload", "--service", service.address, "--write", "--json", "-", "train.py"])
        output = capsys.readouterr()
        result = json.loads(output.out)
        assert code == 0, (result["sentence"], result["notes"], output.err)
        assert result["proof"]["verdict"] == "faster" and result["movability"]["safety"] == "numerics"
        assert "model.fit(rows, epochs=1000, verbose=0, steps_per_epoch=32)" in path.read_text()
        assert ".map(row).repeat().batch(4).apply(" in path.read_text()
        assert main(["offload", "--undo", "train.py"]) == 0
        assert path.read_bytes() == before

    @pytest.mark.slow
    def test_a_worker_that_ends_during_the_runs_is_said(self, script, service, capsys, monkeypatch) -> None:
        service.start_worker()
        service.start_worker()
        script(WAITING_SCRIPT)
        timers = []

        def measure(*args, **kwargs):
            timers.append(threading.Timer(15.0, service.workers[0].kill))
            timers[0].start()
            return measure_end_to_end(*args, **kwargs)

        monkeypatch.setattr(whole_script, "measure_end_to_end", measure)
        assert main(["offload", "--service", service.address, "--json", "-", "train.py"]) == 0
        timers[0].join()
        proof = json.loads(capsys.readouterr().out)["proof"]
        assert len(proof["lost_workers"]) == 1 and proof["lost_workers"][0] in proof["sentence"]
        assert proof["turns"] >= 3

    @pytest.mark.slow
    def test_a_dispatcher_that_is_lost_during_the_runs_ends_them_in_bounded_time(
        self, script, service, capsys, monkeypatch
    ) -> None:
        service.start_worker()
        script(WAITING_SCRIPT)
        timers = []

        def measure(*args, **kwargs):
            timers.append(threading.Timer(8.0, service.dispatcher.kill))
            timers[0].start()
            return measure_end_to_end(*args, **kwargs)

        monkeypatch.setattr(whole_script, "measure_end_to_end", measure)
        began = time.monotonic()
        assert main(["offload", "--service", service.address, "--budget", "130s", "--json", "-", "train.py"]) == 0
        assert time.monotonic() - began < 170
        timers[0].join()
        result = json.loads(capsys.readouterr().out)
        assert result["proof"]["verdict"] in ("broken", "not measured"), result["proof"]
        assert any("No dispatcher of tf.data service answers" in note for note in result["notes"]), result["notes"]

    def test_a_service_without_workers_is_refused_before_anything_runs(
        self, script, service, capsys, monkeypatch
    ) -> None:
        monkeypatch.setattr(Dispatcher.wait_for_workers, "__defaults__", (lambda: None, 1.0))
        script("raise SystemExit('it was run')")
        assert main(["offload", "--service", service.address, "train.py"]) == 2
        error = capsys.readouterr().err
        assert "has no workers" in error and "Nothing was run." in error and "it was run" not in error


def test_a_dispatcher_that_is_not_there_is_said_before_anything_runs(script, capsys) -> None:
    script("raise SystemExit('it was run')")
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    assert main(["offload", "--service", f"grpc://localhost:{port}", "train.py"]) == 2
    error = capsys.readouterr().err
    assert f"No dispatcher of tf.data service answers at localhost:{port}" in error and "Nothing was run." in error
    assert "it was run" not in error and "Traceback" not in error
