"""Checks that `analyze`, `fix` and `compare` leave a project unchanged: names, modes, modification times, bytes.

The script resumes from its newest checkpoint and writes checkpoints, TensorBoard logs, CSV, SQLite and a pickle, using relative
paths and paths below `__file__`. Each command runs in a project left by an earlier training: with a private view of the
disk, in a folder where overlayfs is refused, and where mounts are refused.

    python benchmarks/no_trace.py [--commands analyze,compare,fix] [--views private,overlay,namespace]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import csv, pickle, sqlite3, sys
from pathlib import Path
import tensorflow as tf

here = Path(__file__).resolve().parent
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9
model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(8)])
optimizer = tf.keras.optimizers.SGD()
model(tf.zeros([1, 64]))
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
manager = tf.train.CheckpointManager(checkpoint, str(here / "checkpoints"), max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
print("resumed at", int(step), flush=True)
writer = tf.summary.create_file_writer("logs")
table = csv.writer(open("losses.csv", "a", newline=""))
base = sqlite3.connect(here / "runs.sqlite")
base.execute("create table if not exists losses (step, loss)")

def slow(x):
    for _ in range(4):
        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
    return tf.reshape(x, [-1])[:64]

data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 120, 120])).map(slow).batch(8).repeat()
for batch in data.take(steps):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(batch) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    step.assign_add(1)
    if int(step) % 5 == 0:
        manager.save(checkpoint_number=int(step))
        with writer.as_default():
            tf.summary.scalar("loss", loss, step)
        table.writerow([int(step), float(loss)])
        base.execute("insert into losses values (?, ?)", (int(step), float(loss)))
        base.commit()
        with (here / "state.pickle").open("wb") as file:
            pickle.dump({"step": int(step)}, file)
        model.save_weights("last.weights.h5")
"""
COMMANDS = {
    "analyze": ["analyze", "--steps", "30", "train.py"],
    "compare": ["compare", "--steps", "20", "train.py", "other.py"],
    "fix": ["fix", "--steps", "20", "--warmup", "5", "train.py"],
}
VIEWS = {"private": "", "overlay": "overlay", "namespace": "namespace"}
"""What the kernel refuses; see `advisor.sandbox.namespace.REFUSE`."""


def tree_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in the folder, including the folder itself."""
    paths = (folder, *sorted(folder.rglob("*")))
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in paths
    }


def make_project(folder: Path) -> Path:
    """A project in which ten steps have been trained."""
    project = folder / "project"
    project.mkdir()
    for name in ("train.py", "other.py"):
        (project / name).write_text(SCRIPT)
    subprocess.run([sys.executable, "-B", "train.py", "10"], cwd=project, check=True, capture_output=True)
    return project


def measure(project: Path, command: list[str], refused: str) -> dict[str, object]:
    """Run one command; returns what it changed and what it printed."""
    before = tree_of(project)
    state, temporary = project.parent / "state", project.parent / "temporary"
    for path in (state, temporary):
        path.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(state),
        "TMPDIR": str(temporary),
        "TFDATA_ADVISOR_REFUSE": refused,
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "advisor", command[0], "--json", "-", *command[1:]],
        cwd=project, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = tree_of(project)
    outputs = [path.read_text() for path in state.rglob("script.out")]
    text = done.stdout + done.stderr
    return {
        "command": command[0],
        "refused": refused or "nothing",
        "exit code": done.returncode,
        "changed": sorted(name for name in {*before, *after} if before.get(name) != after.get(name)),
        "temporary folders": sorted(path.name for path in temporary.iterdir()),
        "resumed at": sorted(
            {line for output in outputs for line in output.splitlines() if line.startswith("resumed")}
        ),
        "says": sorted({line for line in _warnings(done.stdout) if "refused" in line or "really" in line}),
        "seconds": round(time.monotonic() - began),
        "error": "" if done.returncode == 0 else text[-500:],
    }


def _warnings(text: str) -> list[str]:
    try:
        report = json.loads(text)
    except ValueError:
        return []
    proof = report.get("proof") or {}
    return [*report.get("warnings", []), *report.get("notes", []), *proof.get("notes", [])]


def main() -> int:
    """Run the commands; exit code 1 if one of them changed anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--views", default=",".join(VIEWS))
    options = parser.parse_args()
    is_clean = True
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder))
        for view in options.views.split(","):
            for name in options.commands.split(","):
                row = measure(project, COMMANDS[name], VIEWS[view])
                is_clean &= not row["changed"] and not row["temporary folders"] and not row["exit code"]
                print(json.dumps(row), flush=True)
    print("0 changed" if is_clean else "something was changed or failed")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
