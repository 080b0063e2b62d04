"""`advisor offload` on real scripts: real workers, files, the change of the source and its undoing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from advisor.cli import main
from advisor.commands import offload as command
from advisor.model.offload_result import MOVABLE, REFUSED, Movability, Offload, ServiceProof, Sizing
from advisor.offload.dispatcher import Dispatcher
from advisor.offload.files import server_text
from advisor.prove import whole_script
from advisor.prove.end_to_end import measure_end_to_end
from advisor.prove.trial.service_processes import ServiceProcesses

long = [pytest.mark.tensorflow, pytest.mark.long]
MOVABLE_SCRIPT = """
    import time
    import tensorflow as tf

    def heavy(x):
        m = tf.fill((150, 150), tf.cast(x, tf.float32) / 1e6)
        for _ in range(8):
            m = tf.matmul(m, m)
        return tf.reduce_sum(m), x

    dataset = tf.data.Dataset.range(256).map(heavy, num_parallel_calls=tf.data.AUTOTUNE).batch(8)
    for epoch in range(10_000):
        for batch in dataset:
            time.sleep(0.001)
    """
FINITE_SCRIPT = """
    import time
    import tensorflow as tf

    dataset = tf.data.Dataset.range(200)
    dataset = dataset.map(lambda x: x * 2)
    dataset = dataset.batch(8)
    total = 0
    for batch in dataset:
        total += int(tf.reduce_sum(batch))
        time.sleep(0.1)
    print(total)
    """
REPEATED_SCRIPT = """
    import collections
    import time
    import tensorflow as tf

    seen = collections.Counter()

    def heavy(x):
        m = tf.fill((150, 150), tf.cast(x, tf.float32) / 1e6)
        for _ in range(8):
            m = tf.matmul(m, m)
        return x + tf.cast(0.0 * tf.reduce_sum(m), tf.int64)

    def noted(x):
        seen[int(x)] += 1
        return x

    dataset = tf.data.Dataset.range(96).map(heavy)
    dataset = dataset.map(lambda x: tf.ensure_shape(tf.numpy_function(noted, [x], tf.int64), []))
    dataset = dataset.batch(8).repeat(3)
    for batch in dataset:
        time.sleep(0.1)
    print(len(seen), set(seen.values()))
    """
KERAS_SCRIPT = """
    import time
    import keras
    import tensorflow as tf

    class Steps(keras.callbacks.Callback):
        counts = []

        def on_epoch_begin(self, epoch, logs=None):
            self.counts.append(0)

        def on_train_batch_end(self, batch, logs=None):
            self.counts[-1] += 1
            time.sleep(0.05)

    def row(x):
        x = tf.reshape(tf.cast(x, tf.float32) / 100, [1])
        return x, 3 * x

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.range(100).map(row)
    rows = rows.batch(8)
    model.fit(rows, epochs=3, verbose=0, callbacks=[Steps()])
    print(Steps.counts)
    """
PYTHON_SCRIPT = """
    import tensorflow as tf

    def work(x):
        return x * 2

    dataset = tf.data.Dataset.range(200).map(lambda x: tf.numpy_function(work, [x], tf.int64)).batch(4)
    for epoch in range(10_000):
        for batch in dataset:
            pass
    """
WAITING_SCRIPT = """
    import time
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    def read(part):
        return tf.data.Dataset.range(part * 8, part * 8 + 8).apply(sleep(20_000))

    dataset = tf.data.Dataset.range(16).repeat()
    dataset = dataset.interleave(read, cycle_length=2, num_parallel_calls=2)
    dataset = dataset.batch(4)
    for batch in dataset:
        time.sleep(0.004)
    """

WAITING_FIT_SCRIPT = """
    import keras
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    def read(part):
        return tf.data.Dataset.range(part * 8, part * 8 + 8).apply(sleep(20_000))

    def row(x):
        x = tf.reshape(tf.cast(x, tf.float32) / 128, [1])
        return x, 3 * x

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.range(16)
    rows = rows.interleave(read, cycle_length=2, num_parallel_calls=2)
    rows = rows.map(row).batch(4)
    model.fit(rows, epochs=1000, verbose=0)
    """


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def write(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


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
        assert '.batch(8).apply(tf.data.experimental.service.distribute("distributed_epoch"' in text
        assert text.index("distribute(") < text.index(".prefetch(tf.data.AUTOTUNE)")
        assert {path.name for path in Path("tfdata-service").iterdir()} >= {"server.py", "Dockerfile"}
        assert main(["offload", "--undo", "train.py"]) == 0
        assert path.read_bytes() == before


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
        assert f'distribute("distributed_epoch", "{service.address}")' in path.read_text()
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
