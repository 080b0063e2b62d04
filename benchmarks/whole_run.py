"""Compares the predicted with the measured gain over whole runs: all epochs as written, and with the best plan.

    python benchmarks/whole_run.py [--epochs 1,2,3,10] [--turns 3] [--only NAME] [--results FILE] [--write-docs]

In: nothing.  Out: one line per script and number of epochs, then the errors of the predictions.

Each script is analysed with its number of epochs, and the best plan of the report (without one, its first change) is written into
a copy, without being tried first. Then the two run in turn. They print the time of all epochs, from the first element to the last
step, without imports and without the first call of the training step. The error is `measured / predicted - 1`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from published import machine_sentence, note_run, write_section
from worth import percentile

import advisor
from advisor.model.finding import RunGain
from advisor.rewrite.combined_edits import combine
from advisor.rewrite.patch import CannotRewrite, patch_for

TIME = "EPOCHS_S "
"""Begins the line with the time of all epochs."""
HEAD = """import sys, time
import numpy as np
import tensorflow as tf
EPOCHS = int(sys.argv[1])
numbers = np.random.default_rng(1)
noise = [numbers.integers(0, 255, [128, 128, 3], np.uint8) for _ in range(32)]
images = tf.data.Dataset.from_tensor_slices([tf.io.encode_png(pixels).numpy() for pixels in noise] * 200)
def decode(image):
    return tf.image.resize(tf.io.decode_png(image, channels=3), [48, 48]) / 255.0
weights = tf.Variable(tf.random.normal([256, 256]))
@tf.function(reduce_retracing=True)
def train_step(x):
    y = tf.reduce_mean(x)
    for _ in range(STEP):
        weights.assign(tf.linalg.matmul(weights, weights) * 1e-2 + y)
"""
LOOP = """
train_step(tf.zeros([32, 48, 48, 3]))
began = time.perf_counter()
for epoch in range(EPOCHS):
    for x in data:
        train_step(x)
print("EPOCHS_S", time.perf_counter() - began)
"""
SHORT, LONG = HEAD.replace("STEP", "4"), HEAD.replace("STEP", "60")
"""With a step much shorter than the time in which a batch is decoded, and with one about as long."""
SCRIPTS = {
    "decoding before a shuffle": f"""{SHORT}
data = images.map(decode).shuffle(100).batch(32, drop_remainder=True)
{LOOP}""",
    "decoding, with a long step": f"""{LONG}
data = images.map(decode).batch(32, drop_remainder=True)
{LOOP}""",
    "a cache before the decoding": f"""{SHORT}
data = images.cache().map(decode).batch(32, drop_remainder=True)
{LOOP}""",
    "repeated data": f"""{SHORT}
data = images.map(decode).batch(32, drop_remainder=True).repeat(EPOCHS)
train_step(tf.zeros([32, 48, 48, 3]))
began = time.perf_counter()
for x in data:
    train_step(x)
print("EPOCHS_S", time.perf_counter() - began)
""",
    "random augmentation": f"""{SHORT}
def augment(x):
    return tf.image.random_saturation(tf.image.random_hue(x, 0.1), 0.8, 1.2)
data = images.map(decode).map(augment).batch(32, drop_remainder=True)
{LOOP}""",
    "a function that decodes and augments": f"""{SHORT}
def load(image):
    image = tf.image.resize(tf.io.decode_png(image, channels=3), [48, 48]) / 255.0
    return tf.image.random_flip_left_right(image)
data = images.map(load).batch(32, drop_remainder=True)
{LOOP}""",
    "a dataset made in every epoch": f"""{SHORT}
train_step(tf.zeros([32, 48, 48, 3]))
began = time.perf_counter()
for epoch in range(EPOCHS):
    data = images.map(decode).cache().batch(32, drop_remainder=True)
    for x in data:
        train_step(x)
print("EPOCHS_S", time.perf_counter() - began)
""",
    "Keras fit": f"""{SHORT}
model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = images.map(lambda image: (decode(image), 1.0)).batch(32, drop_remainder=True)
model.train_on_batch(tf.zeros([32, 48, 48, 3]), tf.ones([32]))
class Clock(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.began = getattr(self, "began", time.perf_counter())
clock = Clock()
model.fit(data, epochs=EPOCHS, verbose=0, callbacks=[clock])
print("EPOCHS_S", time.perf_counter() - clock.began)
""",
}


@dataclass(frozen=True)
class Row:
    """One script with one number of epochs."""

    script: str
    epochs: int
    fixes: tuple[str, ...]
    """Rules of the plan; empty if the report proposes none."""
    passes: float | None
    """Passes over the data that the report counts with; None if it does not know their number."""
    basis: str
    predicted: tuple[float, float, float] | None
    """(value, low, high) over the whole run; None if the number of passes is unknown."""
    measured: tuple[float, ...]
    """Time of all epochs as written over that with the plan, one per turn."""
    problem: str = ""
    """Why the plan could not be written; empty if it could, or if there is none."""

    @property
    def gain(self) -> float | None:
        """The median of the turns."""
        return statistics.median(self.measured) if self.measured else None

    @property
    def error(self) -> float | None:
        """The relative error of the prediction."""
        gain = self.gain
        return None if gain is None or self.predicted is None else gain / self.predicted[0] - 1

    @property
    def is_inside(self) -> bool:
        """Whether the measured gain is in the predicted range."""
        gain = self.gain
        return gain is not None and self.predicted is not None and self.predicted[1] <= gain <= self.predicted[2]

    def line(self) -> str:
        """The row of the table."""
        predicted = "" if self.predicted is None else "{:.2f}x ({:.2f} to {:.2f})".format(*self.predicted)
        measured = (
            "" if self.gain is None else f"{self.gain:.2f}x ({min(self.measured):.2f} to {max(self.measured):.2f})"
        )
        error = "" if self.error is None else f"{self.error:+.0%}"
        fixes = ", ".join(self.fixes) or "none proposed"
        fixes += f" (not written: {self.problem})" if self.problem else ""
        return f"| {self.script} | {self.epochs} | {fixes} | {self.basis} | {predicted} | {measured} | {error} |"


def judge(name: str, text: str, epochs: int, turns: int, folder: Path) -> Row:
    """Analyse a script, write its best plan into a copy, and measure both."""
    script, fixed = folder / "as_written.py", folder / "as_fixed.py"
    script.write_text(text, encoding="utf-8")
    report = advisor.analyze_script(script, [epochs], out=folder / "run")
    outlook = report.outlook
    plan = outlook.plan if outlook is not None else None
    findings = [report.findings[place] for place in plan.findings] if plan is not None else []
    gain = plan.over_run if plan is not None else None
    if plan is None:  # a change without an effect on single calls (a dataset made once) is in no plan
        written = (finding for finding in report.findings if finding.fix is not None and finding.over_run is not None)
        findings = list(itertools.islice(written, 1))
        gain = findings[0].over_run if findings else None
    if not findings:
        over = outlook.horizon if outlook is not None else None
        passes, basis = (None, "unknown") if over is None else (over.passes, over.basis)
        return Row(name, epochs, (), passes, basis, None, ())
    rules = tuple(finding.rule for finding in findings)
    calls = {call.id: call for call in report.analysis.calls}
    patch = patch_for(combine([finding.fix for finding in findings if finding.fix], calls), calls, folder)
    if isinstance(patch, CannotRewrite):
        return Row(name, epochs, rules, *_predicted(gain), (), patch.reason)
    fixed.write_bytes(patch.after()[str(script.resolve())])
    ratios = []
    for turn in range(turns):
        sides = (script, fixed) if turn % 2 else (fixed, script)
        seconds = {path: run(path, epochs) for path in sides}
        ratios.append(seconds[script] / seconds[fixed])
    return Row(name, epochs, rules, *_predicted(gain), tuple(ratios))


def _predicted(gain: RunGain | None) -> tuple[float | None, str, tuple[float, float, float] | None]:
    if gain is None:
        return None, "unknown", None
    whole = gain.prediction
    return gain.passes, gain.basis, None if whole is None else (whole.value, whole.low, whole.high)


def run(script: Path, epochs: int) -> float:
    """Run a script in a process of its own and return the time of its epochs in seconds."""
    command = [sys.executable, script.name, str(epochs)]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=True)
    return next(float(line.removeprefix(TIME)) for line in done.stdout.splitlines() if line.startswith(TIME))


def summary(rows: Sequence[Row]) -> list[str]:
    """The errors of all predictions."""
    errors = sorted(abs(row.error) for row in rows if row.error is not None)
    if not errors:
        return ["No plan was predicted and measured."]
    inside = sum(row.is_inside for row in rows)
    return [
        f"Error of the predicted gain over the whole run: median {statistics.median(errors):.0%}, 90th percentile "
        f"{percentile(errors, 0.9):.0%} of {len(errors)} runs; {inside} of {len(errors)} are inside the predicted range.",
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """One line per script and number of epochs."""
    return [
        "| script | epochs | plan | passes | predicted | measured | error |",
        "|---|---|---|---|---|---|---|",
        *(row.line() for row in rows),
    ]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", default="1,2,3,10", help="numbers of epochs")
    parser.add_argument("--turns", type=int, default=3, help="runs of each script as written and as fixed")
    parser.add_argument("--only", action="append", choices=[*SCRIPTS], help="this script; can be repeated")
    parser.add_argument("--results", type=Path, help="the rows as JSON: those in it are kept, new ones added")
    parser.add_argument("--write-docs", action="store_true", help="write the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows: list[Row] = []
    if options.results is not None and options.results.exists():
        rows = msgspec.json.decode(options.results.read_bytes(), type=list[Row])
    done = {(row.script, row.epochs) for row in rows}
    for name in options.only or SCRIPTS:
        for epochs in map(int, options.epochs.split(",")):
            if (name, epochs) in done:
                continue
            with tempfile.TemporaryDirectory(prefix="whole-run-") as folder:
                rows.append(judge(name, SCRIPTS[name], epochs, options.turns, Path(folder)))
            print(rows[-1].line(), flush=True)
            if options.results is not None:
                note_run(options.results)
                options.results.write_text(json.dumps([asdict(row) for row in rows], indent=2), encoding="utf-8")
    print("\n".join(summary(rows)))
    if options.write_docs:
        write_section("whole-run", [machine_sentence(options.results), "", *table(rows), "", *summary(rows)])


if __name__ == "__main__":
    main()
