"""Compares the verdict on a profile of one step, as Keras' TensorBoard callback takes it, with that on a long capture.

    python benchmarks/one_step.py [SCRIPT...] [--batch 2] [--write-docs]

In: scripts that call Keras' `fit`.  Out: one row per script: both verdicts with their wait shares and bottlenecks.

Each script runs twice: with the callback added to its `fit` (it ends soon after the profiled batch), and in `advisor analyze`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section

from advisor.model.units import format_share

ROOT = Path(__file__).parents[1]
SCRIPTS = (
    "examples/text_lines.py",
    "benchmarks/healthy/cached_text.py",
    "benchmarks/healthy/model_bound_fit.py",
    "benchmarks/healthy/time_series.py",
    "benchmarks/healthy/validated_fit.py",
    "tests/data/scripts/keras_fit.py",
)
RUNNER = """
import os, runpy, sys
import keras
logdir, batch, script = sys.argv[1:4]
fit = keras.Model.fit

class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, number, logs=None):
        if number >= int(batch) + 1:
            raise SystemExit

def fit_with_callback(model, *args, **kwargs):
    board = keras.callbacks.TensorBoard(logdir, profile_batch=int(batch), write_graph=False)
    kwargs["callbacks"] = [*(kwargs.get("callbacks") or []), board, Stop()]
    return fit(model, *args, **kwargs)

keras.Model.fit = fit_with_callback
sys.argv = [script]
sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
runpy.run_path(script, run_name="__main__")
"""


def main() -> None:
    """Run all scripts, print the rows, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", type=Path, default=[ROOT / script for script in SCRIPTS])
    parser.add_argument("--batch", type=int, default=2, help="the profiled batch; 2 was the callback's default")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    head = "| script | one step | wait | bottleneck | long capture | wait | bottleneck | same level |"
    rows, same = [], 0
    for script in options.scripts:
        with tempfile.TemporaryDirectory(prefix="one-step-") as folder:
            run([sys.executable, "-c", RUNNER, f"{folder}/logs", str(options.batch), str(script)])
            short = analyze(f"{folder}/logs")
            long = analyze("--out", f"{folder}/run", str(script))
        levels = [report["verdict"]["level"] for report in (short, long)]
        same += levels[0] == levels[1]
        rows.append(f"| {script.stem} | {cells(short)} | {cells(long)} | {'yes' if levels[0] == levels[1] else 'no'} |")
        print(rows[-1], flush=True)
    summary = f"The verdict on batch {options.batch} alone has the level of the long capture in {same} of {len(rows)} scripts."
    print(summary)
    if options.write_docs:
        write_section("one-step", [machine_sentence(), summary, "", head, "|---|---|---|---|---|---|---|---|", *rows])


def cells(report: dict[str, Any]) -> str:
    """Level, wait share and bottleneck."""
    verdict = report["verdict"]
    main = next((pipeline for pipeline in report["pipelines"] if pipeline["is_main"]), None)
    bottleneck = main["bottleneck"] if main else None
    wait = verdict["input_wait_share"]
    return f"{verdict['level']} | {'–' if wait is None else format_share(wait)} | {bottleneck['name'] if bottleneck else '–'}"


def analyze(*arguments: str) -> dict[str, Any]:
    """Run `advisor analyze` and return its report."""
    report: dict[str, Any] = json.loads(
        run([sys.executable, "-m", "advisor", "analyze", "--quiet", "--json", "-", *arguments])
    )
    return report


def run(command: list[str]) -> str:
    """Run a command and return its output; ends the program if it fails."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'examples'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return done.stdout


if __name__ == "__main__":
    main()
