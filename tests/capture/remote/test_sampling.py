"""Sampling mode on real jobs."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time

import pytest

from advisor.cli import main
from tests.collecting import EXAMPLES, free_port, start_job

pytest.importorskip("grpc")
pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

STEPS = "for x in tf.data.Dataset.range(10**9).map(lambda i: tf.random.normal((200, 200))).batch(4): tf.reduce_sum(x)"


@pytest.fixture(scope="module")
def training():
    """The address of a job that trains all the time."""
    port = free_port()
    job = start_job(EXAMPLES / "profiler_server.py", "--port", port)
    yield f"grpc://localhost:{port}"
    job.kill()
    job.wait()


def test_a_running_job_is_profiled_and_reported(training, tmp_path, capsysbinary):
    out = tmp_path / "logs"
    assert main(["capture", training, "--out", str(out), "--duration", "1s", "--json", "-"]) == 0
    captured = capsysbinary.readouterr()
    report = json.loads(captured.out)
    assert report == json.loads((out / "report.json").read_bytes())
    assert report["target"] == training and report["verdict"]["input_bound"]
    assert report["pipelines"][0]["bottleneck"]["name"] == "MapAndBatch"
    assert 0.5 < report["verdict"]["step_time_ms"]["count"] * report["verdict"]["step_time_ms"]["median"] / 1000 < 1.5
    assert b"\x1b" not in captured.err, "progress is for terminals"


def test_a_second_run_is_added_and_the_gate_holds(training, tmp_path, capsys):
    out = tmp_path / "logs"
    assert main(["capture", training, "--out", str(out), "--duration", "300ms", "--no-report"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    command = ["capture", training, "--out", str(out), "--duration", "500ms", "--fail-on", "input-bound", "--quiet"]
    assert main(command) == 1
    assert capsys.readouterr().out == ""
    assert len(list(out.glob("plugins/profile/*/*.xplane.pb"))) == 2


def test_lines_with_the_jobs_script(training, tmp_path, capsys):
    out, script = tmp_path / "logs", EXAMPLES / "profiler_server.py"
    assert main(["capture", training, "--out", str(out), "--duration", "1s", "--source", str(script)]) == 0
    line = next(n for n, text in enumerate(script.read_text().splitlines(), 1) if ".map(distort)" in text)
    assert f"profiler_server.py:{line}" in capsys.readouterr().out


def test_tracer_levels_reach_the_job(training, tmp_path, capsys):
    """TensorFlow 2.21's own client drops them: `session_manager.cc: python_tracer_level expects an i value`."""
    profiles = []
    for options in (["--host-tracer-level", "1"], [], ["--python-tracer-level", "1"]):
        out = tmp_path / str(len(profiles))
        assert main(["capture", training, "--out", str(out), "--duration", "500ms", "--no-report", *options]) == 0
        (path,) = out.glob("plugins/profile/*/*.xplane.pb")
        profiles.append(path.read_bytes())
    little, ordinary, python = profiles
    assert b"Iterator::Root" in ordinary and b"Iterator::Root" not in little
    assert "does not record tf.data iterators" in capsys.readouterr().err
    assert b"polymorphic_function.py" in python and b"polymorphic_function.py" not in ordinary


def test_delay_and_duration_are_kept(training, tmp_path):
    began = time.monotonic()
    assert (
        main(["capture", training, "--out", str(tmp_path), "--delay", "700ms", "--duration", "500ms", "--quiet"]) == 0
    )
    assert time.monotonic() - began > 1.2


def test_two_captures_of_one_job(training, tmp_path, capsys):
    """TensorFlow has one profiler: the second one is told, or waits its turn."""
    first = threading.Thread(
        target=main, args=(["capture", training, "--out", str(tmp_path / "a"), "--duration", "3s"],)
    )
    first.start()
    time.sleep(1)
    command = ["capture", training, "--out", str(tmp_path / "b"), "--duration", "300ms", "--quiet"]
    assert main([*command, "--retries", "0"]) == 2
    assert "is being profiled already" in capsys.readouterr().err and not (tmp_path / "b").exists()
    assert main([*command, "--retries", "10"]) == 0
    first.join()


def test_a_job_that_does_nothing(job, tmp_path, capsys):
    _, address = job("time.sleep(60)")
    command = ["capture", f"grpc://{address}", "--out", str(tmp_path / "logs"), "--duration", "200ms", "--retries", "1"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "2 attempts" in error and "while the job trains" in error and error.count("\n") == 1


def test_a_job_that_profiles_itself(job, tmp_path, capsys):
    _, address = job(f"tf.profiler.experimental.start({str(tmp_path / 'own')!r})\n{STEPS}")
    assert main(["capture", f"grpc://{address}", "--out", str(tmp_path / "logs"), "--retries", "1"]) == 2
    assert "is being profiled already" in capsys.readouterr().err


def test_a_job_that_ends_meanwhile(job, tmp_path, capsys):
    process, address = job(STEPS)
    threading.Timer(1, process.send_signal, (signal.SIGKILL,)).start()
    out = tmp_path / "logs"
    assert main(["capture", f"grpc://{address}", "--out", str(out), "--duration", "5s", "--retries", "0"]) == 2
    assert "ended, or the connection broke" in capsys.readouterr().err and not out.exists()
    assert process.wait(10) == -signal.SIGKILL


def test_a_training_cluster_is_no_profiled_job(tmp_path):
    """Without a training in it, TensorFlow's own server answers and has nothing to give."""
    port = free_port()
    script = tmp_path / "cluster.py"
    script.write_text(
        "import time\nimport tensorflow as tf\n"
        f"server = tf.distribute.Server({{'worker': ['localhost:{port}']}}, job_name='worker', task_index=0)\n"
        "print('listening', flush=True)\ntime.sleep(60)\n"
    )
    process: subprocess.Popen[str] = start_job(script)
    try:
        command = ["capture", f"grpc://localhost:{port}", "--out", str(tmp_path / "logs"), "--duration", "200ms"]
        assert main([*command, "--retries", "0"]) == 2
    finally:
        process.kill()
        process.wait()
