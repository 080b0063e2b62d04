"""Kills `advisor fix` and `advisor analyze` at random moments and checks that no process and no temporary folder is left.

The script also starts a process, so that grandchildren are counted. Each shot is SIGKILL or SIGQUIT, alternating, at a
random moment up to `--longest` seconds after the start of the command.

    python benchmarks/kill_anywhere.py [--shots 30] [--longest 20] [--seed 1]

Exit code 1 if anything was left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SCRIPT = """
import subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
import tensorflow as tf
def slow(x):
    for _ in range(4):
        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
    return x
for epoch in range(10_000):
    for batch in tf.data.Dataset.from_tensor_slices(tf.ones([64, 120, 120])).map(slow).batch(8):
        pass
"""
MARK = "KILL_ANYWHERE"
"""Environment variable that every process of a shot inherits."""
SETTLE_S = 5.0
"""Longest time between the shot and the end of all cleanup."""


@dataclass(frozen=True)
class Shot:
    """One run that was killed, and what it left behind."""

    command: str
    signal: str
    after_s: float
    in_time: bool
    """Whether the run had not ended before."""
    processes: int
    """Number of its processes just before."""
    orphans: list[str]
    """Command lines of the processes left `SETTLE_S` later."""
    folders: list[str]
    """Names of the temporary files and folders left then."""
    half_runs: list[str]
    """Names of the run folders without a recording."""


def processes_with(mark: str) -> list[str]:
    """Command lines of the running processes that carry the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                is_marked = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
                is_dead = ") Z " in (folder / "stat").read_text()
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if is_marked and not is_dead:
                found.append(line[:150])
    return found


def shoot(folder: Path, command: str, number: int, after_s: float) -> Shot:
    """Kill one run of the advisor after some seconds."""
    temporary, state = folder / "temporary", folder / "state"
    mark = f"{folder.name}-{time.monotonic_ns()}"
    environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary), "XDG_STATE_HOME": str(state)}
    tool = subprocess.Popen(
        [sys.executable, "-m", "advisor", command, "train.py"],
        cwd=folder / "project", env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    time.sleep(after_s)
    alive = tool.poll() is None
    before = len(processes_with(mark))
    tool.send_signal(number)
    tool.wait()
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline and (processes_with(mark) or any(temporary.iterdir())):
        time.sleep(0.1)
    left, folders = processes_with(mark), sorted(path.name for path in temporary.iterdir())
    runs = [path for path in state.rglob("runs/*") if not (path / "recording.json").exists()]
    return Shot(
        command=command,
        signal=signal.Signals(number).name,
        after_s=round(after_s, 2),
        in_time=alive,
        processes=before,
        orphans=left,
        folders=folders,
        half_runs=[path.name for path in runs],
    )


def main() -> int:
    """Fire all shots; print a line per shot and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shots", type=int, default=30)
    parser.add_argument("--longest", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    orphans = folders = runs = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("project", "temporary", "state"):
            (folder / part).mkdir()
        (folder / "project" / "train.py").write_text(SCRIPT)
        for turn in range(options.shots):
            command = ("fix", "analyze")[turn % 2]
            number = (signal.SIGKILL, signal.SIGQUIT)[turn // 2 % 2]
            shot = shoot(folder, command, number, chance.uniform(0.0, options.longest))
            print(f"{turn + 1:3}", *(f"{key}={value}" for key, value in asdict(shot).items()), flush=True)
            orphans += len(shot.orphans)
            folders += len(shot.folders)
            runs += len(shot.half_runs)
            for path in (folder / "temporary").iterdir():
                print("    left:", path)
    print(
        f"{options.shots} shots: {orphans} orphans, {folders} temporary files or folders, {runs} half run folders left"
    )
    return 1 if orphans or folders or runs else 0


if __name__ == "__main__":
    sys.exit(main())
