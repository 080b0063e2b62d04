"""`advisor fix` as a user runs it: real scripts, real signals; whatever happens, the file is untouched or wholly changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.cli import main

SCRIPT = """import os, time
import tensorflow as tf
with open(os.path.join(os.environ["TFDS_DATA_DIR"], "starts"), "a") as file: file.write(f"{os.getpid()}\\n")
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
HEALTHY = """import time
import tensorflow as tf
for batch in tf.data.Dataset.range(10_000_000).batch(8).prefetch(2):
    time.sleep(0.01)
"""
PLANTED = '''"""A rule that proposes what TensorFlow itself takes out again, and one thing that changes the data."""
from dataclasses import dataclass
from advisor.rule import *

@dataclass(frozen=True, kw_only=True)
class Planted(Rule):
    """Planted."""
    def check(self, analysis):
        call = consumed_call(analysis, analysis.main)
        for name, edit in (("Skip none", InsertAfter(call.id, "skip", (("count", 0),))),
                           ("Skip one", InsertAfter(call.id, "skip", (("count", 1),)))):
            yield self.finding(name, "Planted.", call=call, prediction=Prediction(9.0, 8.0, 10.0),
                               fix=Fix((edit,), Safety.EXACT, is_auto=True))

EXAMPLES = ()
'''
"""`repeated-work` would fix the script; `--only planted` leaves it out."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "datasets").mkdir()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "datasets"))  # a cache of data sets: what runs write there stays
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return project


def starts_in(folder):
    """Where the script notes each of its runs."""
    return folder.parent / "datasets" / "starts"


@pytest.mark.parametrize("late", ["--write", "--budget=5min"])
def test_an_option_after_the_script_is_noted(late, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["fix", "--budget", "14", "train.py", late]) == 2  # too short, so nothing is run
    name = late.partition("=")[0]
    assert capsys.readouterr().err.startswith(f"Note: {name} follows the script, so it is passed to it;")
    assert main(["fix", "--budget", "14", "train.py", "--steps", "5"]) == 2
    assert "Note" not in capsys.readouterr().err


def start(folder, *args):
    return subprocess.Popen(
        [sys.executable, "-m", "advisor", "fix", *map(str, args)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def fix(folder, *args):
    child = start(folder, *args)
    out, err = child.communicate(timeout=600)
    return child.returncode, out, err


def wait_for_starts(folder, count, child):
    """The process ids of the script's runs, once there have been so many."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and child.poll() is None:
        if starts_in(folder).exists():
            starts = starts_in(folder).read_text().split()
            if len(starts) >= count:
                return [int(pid) for pid in starts]
        time.sleep(0.05)
    raise AssertionError("the script was not run so often")


def leftovers(folder):
    """What a proof might have left: files beside the script, temporary ones, run folders of ours half written."""
    beside = {path.name for path in folder.iterdir()} - {"train.py", "rules"}
    temporary = {path.name for path in (folder.parent / "temporary").iterdir()}
    runs = list((folder.parent / "state").rglob("runs/*"))
    return beside | temporary, [run for run in runs if not (run / "report.json").exists()]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["fix"], "SCRIPT"),
        (["fix", "/not/there.py"], "There is no /not/there.py"),
        (["fix", "."], "is a saved run; `advisor fix` needs the script"),
        (["fix", "--write", "--undo", "train.py"], "mutually exclusive"),
        (["fix", "--undo", "train.py"], "Nothing to undo: no change of"),
        (["fix", "--undo", "train.py", "x"], "takes no script arguments, as nothing is run (got x)"),
        (["fix", "--only", "serial-mop", "train.py"], "Did you mean serial-map?"),
        (["fix", "--fail-on", "serial-mop", "train.py"], "Did you mean serial-map?"),
        (["fix", "--budget", "soon", "train.py"], "'soon' is not a duration"),
        (["fix", "--allow", "changes", "train.py"], "--allow"),
    ],
)
def test_mistakes_run_nothing(args, says, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(args) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not starts_in(folder).exists()


@pytest.mark.long
@pytest.mark.tensorflow
def test_healthy_script_has_nothing_to_fix(folder, validate):
    (folder / "train.py").write_text(HEALTHY)
    code, out, err = fix(folder, "--json", "-", "--fail-on", "any", "--write", "--steps", "30", "train.py")
    assert code == 0
    report = json.loads(out)
    validate(report)
    assert report["proof"]["verdict"] == "nothing"
    assert report["proof"]["runs"] == 1
    assert "Nothing to fix." in err
    assert (folder / "train.py").read_text() == HEALTHY


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.tensorflow
def test_written_and_undone(folder, validate):
    """Windows line breaks and all: what comes back is what was there."""
    original = SCRIPT.replace("\n", "\r\n").encode()
    (folder / "train.py").write_bytes(original)
    has_git = shutil.which("git") is not None
    if has_git:
        subprocess.run(["git", "init"], cwd=folder, check=True, capture_output=True)
    options = ["--pipeline-only", "--only", "repeated-work", "--budget", "3min", "--write", "--json", "-"]
    code, out, err = fix(folder, *options, "train.py")
    assert code == 0, err
    assert err.startswith("The script will be run once, up to its first element; it will not train.")
    report = json.loads(out)
    validate(report)
    assert report["proof"]["runs"] == len(starts_in(folder).read_text().split()) == 2  # once more with the changes
    assert report["proof"]["verdict"] == "faster"
    assert str(starts_in(folder)) in report["proof"]["written_files"]
    kept = [fix for fix in report["fixes"] if fix["applied"]]
    assert [finding["rule"] for finding in kept] == ["repeated-work"]
    assert kept[0]["safety_seen"] == "exact"
    assert kept[0]["measured"]["low"] > 1
    assert report["comparison"]["pipeline"]["after"] > report["comparison"]["pipeline"]["before"]
    changed = (folder / "train.py").read_bytes()
    assert (
        changed.count(b".cache()") == 1
    )  # behind map or batch: what they make is as large, and nothing is to do in between
    assert changed.replace(b".cache()", b"") == original
    assert report["proof"]["changed_files"] == [str(folder / "train.py")]
    assert has_git == any("train.py has uncommitted changes" in note for note in report["proof"]["notes"])
    code, out, _ = fix(folder, "--undo", "train.py")
    assert (code, out) == (0, f"Restored {folder / 'train.py'}.\n")
    assert (folder / "train.py").read_bytes() == original
    assert fix(folder, "--undo", "train.py")[0] == 2


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.tensorflow
def test_fixes_without_gain_or_with_wrong_data_are_not_applied(folder, validate):
    (folder / "rules").mkdir()
    (folder / "rules/planted.py").write_text(PLANTED)
    args = ["--pipeline-only", "--write", "--rules", "rules", "--only", "planted", "--fail-on", "any", "--json", "-"]
    code, out, err = fix(folder, *args, "--budget", "5min", "train.py")
    assert code == 1, err  # found, and nothing could be proved faster
    report = json.loads(out)
    validate(report)
    verdicts = {fix["title"]: fix for fix in report["proof"]["fixes"]}
    outcomes = dict(zip(verdicts, report["fixes"], strict=True))
    assert outcomes["Skip none"]["verdict"] in ("same", "slower")  # on a busy machine; never faster
    assert outcomes["Skip one"]["verdict"] == "broken"
    assert outcomes["Skip one"]["safety_seen"] != "exact"
    (mistake,) = report["rule_errors"]
    assert mistake["rule"] == "planted"
    assert mistake["message"].startswith("Skip one: Claimed to be exact, but the elements show changes")
    assert "Rule errors" in err
    assert not any(fix["applied"] for fix in report["fixes"])
    assert "No change is proved to help" in err and "Nothing to fix" not in err
    assert (folder / "train.py").read_text() == SCRIPT


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.tensorflow
def test_script_edited_meanwhile_keeps_the_edit(folder):
    child = start(folder, "--pipeline-only", "--only", "repeated-work", "--budget", "2min", "--write", "train.py")
    wait_for_starts(folder, 1, child)
    edited = SCRIPT + "# a thought\n"
    (folder / "edited.py").write_text(edited)
    (folder / "edited.py").replace(
        folder / "train.py"
    )  # the script may be reading its text, which must not be half written
    _, err = child.communicate(timeout=300)
    assert child.returncode == 2, err
    assert "has changed since" in err.splitlines()[-1]
    assert (folder / "train.py").read_text() == edited


@pytest.mark.long
@pytest.mark.tensorflow
def test_interrupt_on_the_way_to_the_first_element_leaves_nothing(folder):
    child = start(folder, "--pipeline-only", "--write", "train.py")
    (pid,) = wait_for_starts(folder, 1, child)
    os.killpg(child.pid, signal.SIGINT)
    assert ended(child, folder) == (130, "error: Interrupted.")
    assert not is_alive(pid)


@pytest.mark.long
@pytest.mark.tensorflow
def test_sigterm_while_a_fix_is_tried_leaves_nothing(folder):
    """As `kill`, `timeout` and a batch system end it: the script itself is told nothing."""
    child = start(folder, "--pipeline-only", "--write", "train.py")
    (pid,) = wait_for_starts(folder, 1, child)
    time.sleep(4)
    child.send_signal(signal.SIGTERM)
    assert ended(child, folder) == (143, "error: Terminated.")
    assert not is_alive(pid)


def ended(child, folder):
    """(exit code, last line) of a command that was told to end, and left nothing."""
    _, err = child.communicate(timeout=60)
    assert "Traceback" not in err
    assert (folder / "train.py").read_text() == SCRIPT
    assert leftovers(folder) == (set(), [])
    return child.returncode, err.splitlines()[-1]


@pytest.mark.long
@pytest.mark.tensorflow
def test_killed_child_is_one_sentence(folder):
    child = start(folder, "--pipeline-only", "--write", "train.py")
    (pid,) = wait_for_starts(folder, 1, child)
    time.sleep(3)
    os.kill(pid, signal.SIGKILL)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 2, err
    assert "killed by signal 9" in err.splitlines()[-1]
    assert (folder / "train.py").read_text() == SCRIPT
    beside, runs = leftovers(folder)
    assert beside == set()
    assert runs == []


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.tensorflow
def test_whole_script_by_turns(folder, validate):
    """Analysed and held in one run, and 3 to 8 pairs of runs; nothing is written without --write."""
    code, out, err = fix(folder, "--json", "-", "--steps", "40", "train.py")
    assert code == 0, err
    assert err.startswith("The script will be run up to 18 times")
    report = json.loads(out)
    validate(report)
    proof = report["proof"]
    assert 3 <= proof["end_to_end_turns"] <= 8
    assert proof["runs"] == len(starts_in(folder).read_text().split()) == 1 + 2 * proof["end_to_end_turns"]
    assert proof["verdict"] == "faster"
    assert report["comparison"]["end_to_end"]["low"] > 1
    assert proof["after"]["step_time_ms"] < proof["before"]["step_time_ms"]
    assert report["comparison"]["input_wait_share"]["after"] < report["comparison"]["input_wait_share"]["before"]
    assert "+data = data.map(slow).batch(8).cache()" in proof["diff"]
    assert (folder / "train.py").read_text() == SCRIPT
    assert leftovers(folder) == (set(), [])


@pytest.mark.slow
@pytest.mark.tensorflow
def test_interrupt_between_turns(folder):
    """Analysed and held in one run, and run as it is and with the changes; then Ctrl-C: what was proved by then is reported."""
    options = ["--steps", "10", "--warmup", "2", "--only", "repeated-work", "--write", "--json", "-"]
    child = start(folder, *options, "train.py")
    pids = wait_for_starts(folder, 3, child)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err.splitlines()[-1]) == (130, "error: Interrupted.")
    assert "Cache after batch: " in err.split("Proved")[0]  # told when it was proved
    report = json.loads(out)
    assert report["proof"]["training"] == "not measured"
    assert any("Interrupted" in note for note in report["proof"]["notes"])
    assert [(fix["verdict"], fix["applied"]) for fix in report["fixes"]] == [("faster", False)]
    assert (folder / "train.py").read_text() == SCRIPT
    assert leftovers(folder) == (set(), [])
    assert not any(is_alive(pid) for pid in pids)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False
