"""Ctrl-C in each phase of `advisor fix`, with real signals: what was proved is kept, and nothing is written."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.model.termination import CtrlC

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return project


def interrupted_after(folder: Path, line: str, *options: str, delay_s: float = 0.0) -> tuple[int, str, str]:
    """Run `advisor fix`, and send SIGINT as a terminal does, once a line of stderr contains `line`."""
    child = subprocess.Popen(
        [sys.executable, "-m", "advisor", "fix", *options, "--json", "-", "train.py", "a b"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stderr is not None and child.stdout is not None
    out: list[str] = []
    reader = threading.Thread(target=lambda: out.append(child.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    lines = []
    is_sent = False
    for text in child.stderr:
        lines.append(text)
        if line in text and not is_sent:
            time.sleep(delay_s)
            os.killpg(child.pid, signal.SIGINT)
            is_sent = True
    reader.join(60)
    code = child.wait(60)
    assert is_sent, "".join(lines)
    assert (folder / "train.py").read_text() == SCRIPT
    return code, out[0], "".join(lines)


@pytest.mark.long
@pytest.mark.tensorflow
def test_in_the_analysis_nothing_is_kept_and_the_command_is_repeated(folder: Path) -> None:
    code, out, err = interrupted_after(folder, "The script will be run", delay_s=3.0)
    assert (code, out) == (130, "")
    assert "Interrupted before the script was analysed: nothing was tried" in err
    assert f"Next: advisor fix {shlex.join(['train.py', 'a b'])}" in err
    assert err.splitlines()[-1] == "error: Interrupted."


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("options", [(), pytest.param(("--pipeline-only",), marks=pytest.mark.slow)])
def test_in_the_first_trial_the_analysis_is_kept(folder: Path, options: tuple[str, ...]) -> None:
    code, out, err = interrupted_after(folder, "To be tried:", "--write", *options, delay_s=2.0)
    assert code == 130, err
    proof = json.loads(out)["proof"]
    assert proof["next_why"] == "interrupted in the trials"
    assert "Next: Interrupted while changes were tried; nothing was proved until then" in " ".join(err.split())
    words = shlex.split(proof["next_command"])
    assert words[:3] == ["advisor", "fix", "--write"] and words[-2:] == ["train.py", "a b"]
    assert "interrupted in the trials" in [entry["why"] for entry in proof["untried"]], proof


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.tensorflow
def test_after_a_trial_what_it_has_proved_is_kept(folder: Path) -> None:
    code, out, err = interrupted_after(folder, "kept.", "--only", "repeated-work", "--write", "--pipeline-only")
    assert code == 130, err
    report = json.loads(out)
    assert [(fix["verdict"], fix["applied"]) for fix in report["fixes"]] == [("faster", False)]
    assert report["proof"]["diff"]
    assert report["proof"]["next_why"] == "interrupted in the trials"
    stored = list((folder.parent / "state").rglob("runs/*/report.json"))
    assert [json.loads(path.read_text())["proof"]["next_why"] for path in stored] == ["interrupted in the trials"]


@pytest.fixture
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_handler")
def test_while_the_report_is_made_the_first_one_is_noted_and_the_second_one_ends() -> None:
    with CtrlC() as ctrl_c:
        ctrl_c.hold()
        signal.raise_signal(signal.SIGINT)
        assert ctrl_c.has_come
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_handler")
def test_before_the_report_is_made_the_first_one_ends() -> None:
    with CtrlC() as ctrl_c, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not ctrl_c.has_come
