"""Runs of W&B and MLflow, with the real packages where they are installed, offline and in local files."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import textwrap

import pytest

from advisor.live.tracker_sinks import open_tracker
from advisor.model.errors import AdvisorError

SAMPLES = """
from advisor.live.tracker_sinks import open_tracker
from tests.live.samples import consumer, sample
other = consumer(5, 5, 1.0, consumer_id="c2", is_main=False)
first = sample(1, consumer(40, 40, 10.0, 5.0, buffered=3.0, buffer_size=4.0), other)
second = sample(2, consumer(80, 40, 10.0, 2.5))
def passed_on(sink):
    for new_sample in (first, second):
        sink.write(new_sample, ())
    sink.close()
"""


def run(folder, text, **variables):
    program = folder / "program.py"
    program.write_text(SAMPLES + textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "HOME": str(folder), **variables}  # noqa: PTH109
    done = subprocess.run([sys.executable, str(program)], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_one_sentence(tracker, monkeypatch):
    monkeypatch.setitem(sys.modules, tracker, None)
    with pytest.raises(AdvisorError, match=rf"--log {tracker} needs {tracker}.*: pip install {tracker}\."):
        open_tracker(tracker, f"--log {tracker}", "train.py")


@pytest.fixture
def mlflow(tmp_path):
    pytest.importorskip("mlflow")
    store = tmp_path / "mlruns"
    return {"MLFLOW_TRACKING_URI": store.as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}


@pytest.mark.long
def test_a_run_of_its_own_in_mlflow(tmp_path, mlflow):
    run(
        tmp_path,
        """
        import mlflow
        passed_on(open_tracker("mlflow", "--log mlflow", "input pipeline of train.py"))
        assert mlflow.active_run() is None
        client = mlflow.MlflowClient()
        (run,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
        assert run.info.run_name == "input pipeline of train.py" and run.info.status == "FINISHED"
        history = client.get_metric_history(run.info.run_id, "input_pipeline/input_wait_share")
        assert [(metric.step, metric.value) for metric in history] == [(40, 0.5), (80, 0.25)], history
        assert client.get_metric_history(run.info.run_id, "input_pipeline/step_time_ms")[0].value == 10.0
        """,
        MLFLOW_EXPERIMENT_NAME="mine",
        **mlflow,
    )


@pytest.mark.long
def test_the_programs_own_run_in_mlflow_stays_open_and_none_is_started(tmp_path, mlflow):
    run(
        tmp_path,
        """
        import mlflow
        from advisor.model.errors import AdvisorError
        try:
            open_tracker("mlflow", "mlflow", None)
        except AdvisorError as error:
            assert "no run is active in this thread; call mlflow.start_run() first" in str(error)
        else:
            raise AssertionError
        with mlflow.start_run() as own:
            passed_on(open_tracker("mlflow", "mlflow", None))
            assert mlflow.active_run().info.run_id == own.info.run_id
            client = mlflow.MlflowClient()
            assert client.get_run(own.info.run_id).info.status == "RUNNING"
        assert client.get_run(own.info.run_id).data.metrics["input_pipeline/input_wait_share"] == 0.25
        assert len(client.search_runs(["0"])) == 1
        """,
        **mlflow,
    )


@pytest.mark.long
def test_a_server_that_does_not_answer_is_one_sentence(tmp_path):
    pytest.importorskip("mlflow")
    done = run(
        tmp_path,
        """
        from advisor.model.errors import AdvisorError
        try:
            open_tracker("mlflow", "--log mlflow", "train.py")
        except AdvisorError as error:
            print(error)
        """,
        MLFLOW_TRACKING_URI="http://127.0.0.1:1",
        MLFLOW_HTTP_REQUEST_MAX_RETRIES="0",
    )
    assert done.stdout.startswith("--log mlflow: mlflow could not be used (") and done.stdout.count("\n") == 1


def records(data, place=7, block=32768):
    """W&B's file is a log in the format of LevelDB, after a header of 7 bytes."""
    whole = b""
    while place + 7 <= len(data):
        if block - place % block < 7:
            place += block - place % block
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""


def rows(folder):
    """The rows of the only run; it is written completely when its process has ended."""
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    stored = [Record.FromString(data) for data in records(path.read_bytes())]
    return [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in stored
        if record.HasField("history")
    ]


@pytest.mark.long
def test_a_run_of_its_own_in_wandb(tmp_path):
    pytest.importorskip("wandb")
    run(
        tmp_path,
        """
        import os
        before = dict(os.environ)
        sink = open_tracker("wandb", "--log wandb", "input pipeline of train.py")
        assert dict(os.environ) == before, "the script's own run must not see this one"
        passed_on(sink)
        import wandb
        assert wandb.run is None
        """,
        WANDB_MODE="offline",
    )
    first, second = rows(tmp_path)
    assert (first["input_pipeline/step"], first["input_pipeline/input_wait_share"]) == (40, 0.5)
    assert (second["input_pipeline/step"], second["input_pipeline/input_wait_share"]) == (80, 0.25)


@pytest.mark.long
def test_the_programs_own_run_in_wandb_keeps_its_steps_and_none_is_started(tmp_path):
    pytest.importorskip("wandb")
    run(
        tmp_path,
        """
        import wandb
        from advisor.model.errors import AdvisorError
        try:
            open_tracker("wandb", "wandb", None)
        except AdvisorError as error:
            assert "no run is active; call wandb.init() first" in str(error)
        else:
            raise AssertionError
        own = wandb.init()
        own.log({"loss": 3.0}, step=7)
        sink = open_tracker("wandb", "wandb", None)
        passed_on(sink)
        assert wandb.run is own
        own.log({"loss": 2.0}, step=8)
        own.finish()
        """,
        WANDB_MODE="offline",
    )
    logged = rows(tmp_path)
    assert [(row["loss"], row["_step"]) for row in logged if "loss" in row] == [(3.0, 7), (2.0, 8)]
    assert any("input_pipeline/input_wait_share" in row for row in logged)
