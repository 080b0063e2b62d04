"""`advisor watch --attach`: a running job, followed through its profiler server."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from rich.console import Console

from advisor.cli import main
from advisor.model.errors import AdvisorError
from advisor.workflows.watch_job import JobToFollow, follow
from tests.capture.remote.conftest import job
from tests.collecting import free_port

__all__ = ["job"]
pytest.importorskip("grpc")

TRAINS = """
def load(x):
    time.sleep(0.01)
    return x
data = tf.data.Dataset.range(10**9).map(lambda x: tf.numpy_function(load, [x], tf.int64))
begun = time.time()
for x in data:
    time.sleep(0.002)
    if time.time() - begun > SECONDS: break
"""
LINE = re.compile(r"\d\d:\d\d:\d\d  [\d,]+ steps, .* per step, .* of it waiting for input, bottleneck ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name a script to run, or a running job with --attach HOST:PORT."),
        (["--attach", "localhost:1", "train.py"], "so train.py is not run"),
        (["--attach", "localhost:1", "--jsonl", "live.jsonl"], "--jsonl applies only to a script"),
        (["--attach", "localhost:1", "--windows-every", "10min"], "--windows-every applies only to a script"),
        (
            ["--attach", "localhost:1", "--every", "1s", "--duration", "2s"],
            "--every must not be shorter than --duration",
        ),
        (["--attach", "localhost:1", "--source", "nowhere.py"], "--source nowhere.py: no such script"),
        (["--attach", "localhost"], "is not the address of a profiler server"),
        (["--attach", "a:1,b:2"], "--attach follows one job"),
        (["--duration", "2s", "train.py"], "--duration applies only to a running job"),
    ],
)
def test_wrong_options_are_one_sentence(options, message, capsys):
    assert main(["watch", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_a_job_that_does_not_run_is_one_sentence(capsys):
    assert main(["watch", "--attach", f"grpc://localhost:{free_port()}"]) == 2
    error = capsys.readouterr().err
    assert "No profiler server listens at" in error and error.count("\n") == 1


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_job_is_followed_to_its_end(job, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    _, address = job(TRAINS.replace("SECONDS", "20"))
    shown, left = io.StringIO(), []

    def pause(seconds):
        left.append(len(list((tmp_path / "tmp").rglob("*.xplane.pb"))))
        time.sleep(seconds)

    assert follow(JobToFollow(f"grpc://{address}", 3.0, 1.0, None, pause), Console(file=shown, width=200), False) == 0
    lines = shown.getvalue().splitlines()
    captures = [line for line in lines if LINE.match(line)]
    assert len(captures) >= 2, lines
    assert f"The job at {address} has ended: nothing listens there any more." in lines
    (total,) = [line for line in lines if re.match(r"\d+ captures? with [\d,]+ steps", line)]
    assert "of the time waiting for input" in total
    assert any(line.startswith("The captures took ") and "of a core on this machine" in line for line in lines)
    assert set(left) == {0}, "no profile is left between two captures"
    assert list((tmp_path / "tmp").glob("advisor-*")) == []


@pytest.mark.tensorflow
@pytest.mark.long
def test_ctrl_c_ends_following_with_a_summary_and_the_job_trains_on(job):
    process, address = job(TRAINS.replace("SECONDS", "600"))
    command = [sys.executable, "-m", "advisor", "watch", "--attach", address, "--every", "2s"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    threading.Timer(12, child.send_signal, (signal.SIGINT,)).start()
    _, error = child.communicate(timeout=120)
    assert child.returncode == 130, error
    assert any(LINE.match(line) for line in error.splitlines()), error
    assert "The captures took " in error and "Traceback" not in error
    assert process.poll() is None


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_job_that_does_not_train_is_a_sentence(job):
    _, address = job("time.sleep(600)")
    with pytest.raises(AdvisorError, match="has no events"):
        follow(JobToFollow(address, 2.0, 0.3), Console(file=io.StringIO()), False)
