"""Changes of known truth: what `advisor prove` says about 30 changes of a short script.

    python benchmarks/proved_changes.py [--only WORD] [--pipeline-only] [--results FILE] [--write-docs]

In: nothing.  Out: one line per change, then a table; exit code 1 if a verdict is wrong.

Each change is one `advisor prove` in its own process. A verdict is right if it is the one of the change's kind: `cannot tell` is
never right here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from published import machine_sentence, note_run, write_section

WINDOW = ("--seconds", "3", "--budget", "8min")
FASTER, SAME, SLOWER, DATA = "equal and faster", "same", "slower", "different data"
VERDICTS = {
    FASTER: ("equal and faster",),
    SAME: ("same",),
    SLOWER: ("slower",),
    DATA: ("different data", "faster but different data"),
}
SCRIPT = """import time
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images = rng.integers(0, 255, (480, 48, 48, 3), dtype=np.uint8)
labels = np.arange(480) % 10

def work(seconds, value):
    time.sleep(seconds)
    return value

def decode(image, label):
    image = tf.numpy_function(lambda value: work(0.002, value), [image], tf.uint8)
    image.set_shape((48, 48, 3))
    image = tf.image.resize(tf.cast(image, tf.float32), (32, 32))
    return image / 255.0, label

def augment(image, label):
    return tf.image.random_flip_left_right(image), label

everything = tf.data.Dataset.from_tensor_slices((images, labels))
train = everything.take(400).map(decode).shuffle(400).map(augment).batch(16)
valid = everything.skip(400).map(decode).batch(16)
for epoch in range(10_000):
    for image, label in train:
        time.sleep(0.01)
    for image, label in valid:
        pass
"""
SEEDED = SCRIPT.replace("rng =", "tf.random.set_seed(1)\nrng =").replace("shuffle(400)", "shuffle(400, seed=7)")
NOT_INJECTED = SCRIPT.replace("shuffle(400)", "shuffle(32)").replace(
    "valid = everything",
    "options = tf.data.Options()\noptions.autotune.enabled = False\n"
    "options.experimental_optimization.apply_default_optimizations = False\n"
    "train = train.with_options(options)\nvalid = everything",
)
"""With default options TensorFlow adds a prefetch at the end, and fuses the last map with its batch, which then makes the next
batch while the training runs: one prefetch more, or one less, changes nothing. Nor does it change much where a shuffle buffer
holds the whole epoch: it is filled before the first step, when no training goes on."""
OWN_CACHE = SCRIPT.replace("take(400).map(decode)", "take(400).map(decode).cache()")


@dataclass(frozen=True)
class Change:
    """A change of a text, and what is true of it."""

    name: str
    kind: str
    edits: tuple[tuple[str, str], ...]
    text: str = SCRIPT

    @property
    def after(self) -> str:
        """The changed text."""
        text = self.text
        for old, new in self.edits:
            if old not in text:
                raise SystemExit(f"{self.name}: the script has no {old!r}")
            text = text.replace(old, new)
        return text


def change(name: str, kind: str, *edits: tuple[str, str], text: str = SCRIPT) -> Change:
    """Describe a change."""
    return Change(name, kind, edits, text)


CHANGES = (
    change("cache", FASTER, ("take(400).map(decode)", "take(400).map(decode).cache()")),
    change("cache of the source and of the results", FASTER, ("take(400).map(decode)", "take(400).cache().map(decode).cache()")),
    change("parallel map", FASTER, ("map(decode)", "map(decode, num_parallel_calls=8)")),
    change("parallel map, AUTOTUNE", FASTER, ("map(decode)", "map(decode, num_parallel_calls=tf.data.AUTOTUNE)")),
    change("parallel map and prefetch", FASTER, ("map(decode)", "map(decode, num_parallel_calls=8)"),
           ("map(augment).batch(16)", "map(augment).batch(16).prefetch(tf.data.AUTOTUNE)")),
    change("prefetch where none is injected", FASTER, ("map(augment).batch(16)", "map(augment).batch(16).prefetch(2)"),
           text=NOT_INJECTED),
    change("less work for the same result", FASTER, ("work(0.002", "work(0.0002")),
    change("no Python in the pipeline", FASTER,
           ("tf.numpy_function(lambda value: work(0.002, value), [image], tf.uint8)", "image")),
    change("parallel map and cache", FASTER, ("map(decode)", "map(decode, num_parallel_calls=8).cache()")),
    change("another source, in parallel", FASTER, ("everything = tf.data.Dataset.from_tensor_slices((images, labels))",
           "everything = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(images), "
           "tf.data.Dataset.from_tensor_slices(labels)))"), ("map(decode)", "map(decode, num_parallel_calls=8)")),
    change("renamed variables", SAME, ("everything", "source"), ("decode", "read_image")),
    change("comments and blank lines", SAME, ("def augment", "# flips half of the images\n\n\ndef augment")),
    change("another way to write the source", SAME, ("everything = tf.data.Dataset.from_tensor_slices((images, labels))",
           "everything = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(images), "
           "tf.data.Dataset.from_tensor_slices(labels)))")),
    change("a function for the pipeline", SAME, ("train = everything.take(400).map(decode).shuffle(400).map(augment).batch(16)",
           "def pipeline(source):\n    return source.map(decode).shuffle(400).map(augment).batch(16)\n\n"
           "train = pipeline(everything.take(400))")),
    change("prefetch of a cached pipeline's source", SAME, ("take(400).map", "take(400).prefetch(1).map"), text=OWN_CACHE),
    change("a sleep", SLOWER, ("work(0.002", "work(0.004")),
    change("removed cache", SLOWER, ("map(decode).cache()", "map(decode)"), text=OWN_CACHE),
    change("removed parallel map", SLOWER, ("map(decode, num_parallel_calls=8)", "map(decode)"),
           text=SCRIPT.replace("map(decode)", "map(decode, num_parallel_calls=8)")),
    change("removed prefetch where none is injected", SLOWER, (".batch(16).prefetch(2)", ".batch(16)"),
           text=NOT_INJECTED.replace("map(augment).batch(16)", "map(augment).batch(16).prefetch(2)")),
    change("decoded twice", SLOWER, ("take(400).map(decode)",
           "take(400).map(lambda image, label: (decode(image, label)[0] * 0.0 + decode(image, label)[0], label))")),
    change("off-by-one batch", DATA, ("map(augment).batch(16)", "map(augment).batch(15)")),
    change("dropped remainder", DATA, ("map(augment).batch(24)", "map(augment).batch(24, drop_remainder=True)"),
           text=SCRIPT.replace("map(augment).batch(16)", "map(augment).batch(24)")),
    change("label shift", DATA, ("/ 255.0, label", "/ 255.0, label + 1")),
    change("other resize method", DATA, ("(32, 32))", "(32, 32), method='bicubic')")),
    change("reshuffled validation", DATA, ("skip(400).map(decode)", "skip(400).map(decode).shuffle(80)")),
    change("float16 cast", DATA, ("image / 255.0", "tf.cast(tf.cast(image / 255.0, tf.float16), tf.float32)")),
    change("cached augmentation", DATA, ("map(augment)", "map(augment).cache()")),
    change("seed change", DATA, ("seed=7", "seed=8"), text=SEEDED),
    change("duplicated epoch", DATA, ("map(augment).batch(16)", "map(augment).repeat(2).batch(16)")),
    change("leaked split", DATA, ("skip(400)", "skip(384)")),
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A verdict on a change."""

    name: str
    kind: str
    verdict: str
    data: str
    safety: str | None
    speedup: float | None
    runs: int
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether this is the verdict of the change's kind."""
        return self.verdict in VERDICTS[self.kind]


def main() -> int:
    """Judge, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="judge only changes whose name contains this")
    parser.add_argument("--pipeline-only", action="store_true", help="do not run the training")
    parser.add_argument(
        "--results", type=Path, help="JSON lines of the verdicts so far, to which this run adds its own"
    )
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    done: list[Judged] = []
    if options.results and options.results.exists():
        done = [msgspec.json.decode(line, type=Judged) for line in options.results.read_bytes().splitlines()]
    for each in CHANGES:
        if options.only not in each.name or each.name in {judged.name for judged in done}:
            continue
        done.append(judged(each, options.pipeline_only))
        print(f"{'right' if done[-1].is_right else 'WRONG'}  {done[-1]}", flush=True)
        if options.results:
            note_run(options.results)
            with options.results.open("ab") as lines:
                lines.write(msgspec.json.encode(done[-1]) + b"\n")
    section = table(done, machine_sentence(options.results))
    print("\n".join(["", *section]))
    if options.write_docs:
        write_section("proved-changes", section)
    return 0 if all(each.is_right for each in done) else 1


def judged(one: Change, is_pipeline_only: bool) -> Judged:
    """Return the verdict on one change."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="proved-changes-") as place:
        folder = Path(place)
        (folder / "train.py").write_text(one.text, encoding="utf-8")
        (folder / "other.py").write_text(one.after, encoding="utf-8")
        command = [sys.executable, "-m", "advisor", "prove", "--quiet", "--json", "-", *WINDOW]
        command += ["--pipeline-only"] if is_pipeline_only else []
        done = subprocess.run(
            [*command, "--with", "other.py", "train.py"], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{one.name}: {done.stderr or done.stdout}")
    result = json.loads(done.stdout)
    return Judged(
        one.name,
        one.kind,
        result["verdict"],
        result["data"],
        result["datasets"][0]["safety"],
        (result["speedup"] or {}).get("speedup"),
        result["runs"],
        time.monotonic() - start,
    )


def table(done: list[Judged], machine: str) -> list[str]:
    """Return the section of docs/benchmarks.md."""
    right = sum(each.is_right for each in done)
    lines = [
        f"`python benchmarks/proved_changes.py --write-docs` judges changes of known truth with `advisor prove`: {right} of "
        f"{len(done)} verdicts are right. {machine}",
        "",
        "| change | truth | verdict | training's elements | speedup | runs | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in done:
        speedup = "" if each.speedup is None else f"{each.speedup:.2f}x"
        verdict = each.verdict if each.is_right else f"**{each.verdict}**"
        lines.append(
            f"| {each.name} | {each.kind} | {verdict} | {each.safety or 'unknown'} | {speedup} | {each.runs} | "
            f"{each.seconds:.0f} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
