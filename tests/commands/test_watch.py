"""`advisor watch`: the script runs as it would without it, and what happens to its steps is seen and dated."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.cli import main

# A change is noticed after five samples, a second apart, and its end after three: each epoch takes 4 s or more.
SLOWER_FROM_EPOCH_3 = """import sys, time
import tensorflow as tf

def load(x):
    time.sleep(0.009 if slow else 0.002)
    return x

def steps_of(epoch):
    return tf.data.Dataset.range(600 if slow else 1800).map(lambda x: tf.numpy_function(load, [x], tf.int64))

slow = False
for epoch in range(1, 5):
    slow = epoch == 3
    for step, x in enumerate(steps_of(epoch)):
        time.sleep(0.001)
    print("epoch", epoch)
print("to stderr", file=sys.stderr)
"""
QUICK = """import tensorflow as tf
for x in tf.data.Dataset.range(50):
    pass
print("done")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.slow
def test_a_slowdown_in_the_third_epoch_is_dated(folder):
    Path("train.py").write_text(SLOWER_FROM_EPOCH_3)
    command = [
        sys.executable,
        "-m",
        "advisor",
        "watch",
        "--no-profile",
        "--jsonl",
        "live.jsonl",
        "--every",
        "2s",
        "train.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"epoch {number}\n" for number in range(1, 5))
    lines = done.stderr.splitlines()
    assert "to stderr" in lines
    (slow,) = [line for line in lines if line.startswith("Between steps")]
    numbers = [int(word.replace(",", "")) for word in slow.split()[2:5:2]]
    assert numbers[0] <= 3600 <= numbers[1] <= 3600 + 500  # the third epoch begins after step 3,600
    assert "(epoch 3, " in slow and "most of it is waiting for input" in slow and "as short as before" in slow
    assert any(line.startswith("advisor: ") and "waiting for input" in line for line in lines)
    assert any("6,000 steps in 4 epochs" in line for line in lines)
    messages = [json.loads(line) for line in Path("live.jsonl").read_text().splitlines()]
    samples = [message for message in messages if message["type"] == "LiveSample"]
    assert sum(consumer["new_steps"] for sample in samples for consumer in sample["consumers"]) == 6000
    began, ended = (message for message in messages if message["type"] == "SlowPeriod")
    assert began["last_step"] is None and ended["last_step"] > began["first_step"] == ended["first_step"]


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.slow
def test_the_suggestion_at_the_end(folder, capfd):
    Path("train.py").write_text(
        "import tensorflow as tf, time\n"
        "def slow(x):\n"
        "    for _ in range(6):\n"
        "        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)\n"
        "    return tf.reduce_mean(x)\n"
        "data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 200, 200])).repeat(400)\n"
        "data = data.map(slow).batch(8)\n"
        "for batch in data:\n"
        "    time.sleep(0.0002)\n"  # on fast machines, too, shorter than the map
    )
    assert main(["watch", "train.py"]) == 0
    err = capfd.readouterr().err
    assert "train.py:8 for: 3,200 steps" in err
    assert "waiting for input" in err and "train.py:7" in err
    assert "Since step " in err and "1 profiled window took " in err
    (hint,) = [line for line in err.splitlines() if line.startswith("The whole report: ")]
    assert Path(hint.split()[-1], "report.json").exists()


@pytest.mark.tensorflow
@pytest.mark.long
def test_on_a_terminal_the_output_of_the_script_stays(folder):
    Path("train.py").write_text(QUICK)
    reader, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "advisor", "watch", "--no-profile", "train.py"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            data = os.read(reader, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    assert child.wait(60) == 0, shown
    lines = [line.strip() for line in shown.decode(errors="replace").splitlines()]
    assert any(line.endswith("done") for line in lines)
    assert any("train.py:2 for: 50 steps" in line for line in lines)


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_script_that_fails_keeps_its_exit_code_and_its_traceback(folder, capfd):
    Path("train.py").write_text(QUICK + "raise ValueError('a bug of the script')\n")
    assert main(["watch", "--no-profile", "train.py"]) == 1
    out, err = capfd.readouterr()
    assert out.startswith("done")
    assert err.count("ValueError: a bug of the script") >= 1
    assert "Traceback" in err and "advisor/" not in err.split("Traceback")[1].split("ValueError")[0]


SAVES_AT_THE_END = """import pathlib, time
import tensorflow as tf
try:
    for x in tf.data.Dataset.range(10**9):
        pathlib.Path("running").touch()
        time.sleep(0.01)
except KeyboardInterrupt:
    time.sleep(6)  # longer than the advisor would wait for a script that it stops itself
    pathlib.Path("checkpoint").write_text("complete")
    raise SystemExit(130)
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_an_interrupted_training_may_take_its_time_to_save(folder):
    Path("train.py").write_text(SAVES_AT_THE_END)
    command = [sys.executable, "-m", "advisor", "watch", "--no-profile", "train.py"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end_at = time.monotonic() + 60
    while not Path("running").exists() and time.monotonic() < end_at:
        time.sleep(0.1)
    time.sleep(1.5)
    os.killpg(child.pid, signal.SIGINT)  # as Ctrl-C in a terminal
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert Path("checkpoint").read_text() == "complete"
    assert "train.py:4 for: " in err and "The run was interrupted" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prometheus", "somewhere"], "'somewhere' is not [HOST:]PORT"),
        (["--prometheus", "99999"], "is not [HOST:]PORT"),
        (["--every", "often"], "often"),
        (["--jsonl", "train.py"], "--jsonl: train.py exists already; name a new file."),
        (["--windows-every", "sometimes"], "'sometimes' is not a duration"),
        (["--windows-every", "5s"], "'5s' is too often"),
        (["--windows-every", "10min", "--no-profile"], "--windows-every needs the profiler; remove --no-profile."),
        (["--log", "comet"], "'comet' is not one of 'wandb', 'mlflow'"),
    ],
)
def test_wrong_options_are_one_sentence(options, message, folder, capsys):
    Path("train.py").write_text(QUICK)
    assert main(["watch", *options, "train.py"]) == 2
    assert message in capsys.readouterr().err


def test_a_saved_run_is_not_watched(folder, capsys):
    Path("run").mkdir()
    Path("run/recording.json").write_text("{}")
    assert main(["watch", "run"]) == 2
    assert "saved run" in capsys.readouterr().err
