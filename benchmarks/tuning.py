"""Measures the gain of `advisor fix` on the realistic examples, compared with AUTOTUNE on every call and with an expert's
version.

    python benchmarks/tuning.py [--only flowers_like] [--turns 6] [--json FILE] [--write-docs]

In: the realistic scripts of `examples/`, and the replacements that create the two variants of each.  Out: a table of step
times and of speedups with 95 % intervals: the fixed script against the original, against AUTOTUNE everywhere, and against the
expert; and which fixes were kept, with the effect of each on the data.

`advisor fix --write` changes a copy of the example. Then all four alternate, each in a fresh process without the profiler,
and are timed over one whole epoch after the first one (which fills caches and is the warm-up of all four). One run is one
observation; ratios are computed per turn.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.host.machine import describe_host
from advisor.model.codec import decode
from advisor.model.intervals import median_interval
from advisor.model.outcome import Interval
from advisor.model.recording import Recording

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
DOCS = ROOT / "docs" / "benchmarks.md"
BUDGET = "15min"
"""Enough time to judge on the whole script what the pipeline alone cannot decide, and all changes together."""
FIXED, WRITTEN, AUTOTUNE, EXPERT = "fixed", "as written", "AUTOTUNE everywhere", "expert"
ORDER = (WRITTEN, AUTOTUNE, EXPERT, FIXED)


PARALLEL = "num_parallel_calls=tf.data.AUTOTUNE"


@dataclass(frozen=True)
class Example:
    """A realistic script, and the replacements that create its variants."""

    name: str
    autotune: tuple[tuple[str, str], ...]
    expert: tuple[tuple[str, str], ...]


SCRIPTS = (
    Example(
        "flowers_like",
        autotune=(
            ("train.map(decode)", f"train.map(decode, {PARALLEL})"),
            ("train.map(augment)", f"train.map(augment, {PARALLEL})"),
            ("train.batch(BATCH_SIZE)", f"train.batch(BATCH_SIZE, {PARALLEL}).prefetch(tf.data.AUTOTUNE)"),
        ),
        expert=(
            ("train = train.map(augment)\n", ""),
            ("train.map(decode)", f"train.map(decode, {PARALLEL}).cache()"),
            ("train.shuffle(1000)", f"train.shuffle(1000).map(augment, {PARALLEL})"),
            ("train.batch(BATCH_SIZE)", "train.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)"),
        ),
    ),
    Example(
        "image_folder",
        autotune=(
            ("dataset.map(load)", f"dataset.map(load, {PARALLEL})"),
            ("drop_remainder=True)", f"drop_remainder=True, {PARALLEL}).prefetch(tf.data.AUTOTUNE)"),
        ),
        expert=(
            ("dataset.map(load)", f"dataset.map(load, {PARALLEL}).cache()"),
            ("drop_remainder=True)", "drop_remainder=True).prefetch(tf.data.AUTOTUNE)"),
        ),
    ),
    Example(
        "text_lines",
        autotune=(
            ("dataset.map(to_word_ids)", f"dataset.map(to_word_ids, {PARALLEL})"),
            ("drop_remainder=True)", "drop_remainder=True).prefetch(tf.data.AUTOTUNE)"),
        ),
        expert=(
            ("dataset.map(to_word_ids)", f"dataset.map(to_word_ids, {PARALLEL}).cache()"),
            ("drop_remainder=True)", "drop_remainder=True).prefetch(tf.data.AUTOTUNE)"),
        ),
    ),
)


def main() -> None:
    """Fix, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="name of one example")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--allow", default="rerandomized", help="what `advisor fix` may do to the data beyond exact")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    results: dict[str, Result] = {}
    for example in SCRIPTS:
        if options.only in (None, example.name):
            results[example.name] = measure(example, options.turns, options.allow)
            print(row(example.name, results[example.name]), flush=True)
    host = describe_host()
    machine = f"{host.cores:g} cores, {host.cpu_model}, {host.memory_bytes / 2**30:.0f} GiB, TensorFlow {tensorflow_version()}"
    print(f"{machine}; {options.turns} turns, nothing else running")
    if options.json:
        figures = {name: {"mean_step_ns": each.times, "kept": each.kept} for name, each in results.items()}
        options.json.write_text(json.dumps(figures, indent=1))
    if options.write_docs:
        write_docs(results, f"{machine}; {options.turns} turns; `--allow {options.allow}`.")


@dataclass(frozen=True)
class Result:
    """The results of one example."""

    times: dict[str, list[float]]
    """Variant -> mean step time in nanoseconds of each turn."""
    kept: list[str]
    """The fixes that were written: the rule, and its effect on the data if that is not `exact`."""


def measure(example: Example, turns: int, allow: str) -> Result:
    """Fix a copy of the example, then run all variants in alternation."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "examples"
        shutil.copytree(EXAMPLES, project, ignore=shutil.ignore_patterns("__pycache__"))
        script = project / f"{example.name}.py"
        written = script.read_text()
        texts = {
            WRITTEN: written,
            AUTOTUNE: replaced(written, example.autotune),
            EXPERT: replaced(written, example.expert),
        }
        command = [sys.executable, "-m", "advisor", "fix", "--write", "--allow", allow, "--budget", BUDGET, "--json"]
        report = Path(folder) / "fix.json"
        state = {**os.environ, "XDG_STATE_HOME": folder}  # backups of a copy must not be kept
        subprocess.run([*command, str(report), str(script)], check=True, env=state)
        texts[FIXED] = script.read_text()
        out = Path(folder) / "run"
        epoch_steps = len(step_times(script, out, ("--epochs", "1"), to_end=True))
        times: dict[str, list[float]] = {name: [] for name in ORDER}
        for turn in range(turns):
            for name in ORDER[turn % 4 :] + ORDER[: turn % 4]:
                script.write_text(texts[name])
                times[name].append(statistics.fmean(time_epoch(script, out, epoch_steps)))
        return Result(times, kept_fixes(json.loads(report.read_text())))


def kept_fixes(report: dict[str, Any]) -> list[str]:
    """The fixes that `advisor fix` wrote."""
    kept = [fix for fix in report["fixes"] if fix["applied"]]
    return [
        fix["rule"] if fix["safety_claimed"] == "exact" else f"{fix['rule']} ({fix['safety_claimed']})" for fix in kept
    ]


def replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    """The text after every replacement; each must match exactly once."""
    for old, new in pairs:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the script"
        text = text.replace(old, new)
    return text


def time_epoch(script: Path, out: Path, epoch_steps: int) -> list[int]:
    """Steps of the epoch after the first one, in nanoseconds; filling shuffle buffers counts."""
    steps = step_times(script, out, (), warmup=epoch_steps, steps=epoch_steps)[epoch_steps : 2 * epoch_steps]
    assert len(steps) == epoch_steps, f"{len(steps)} of the {epoch_steps} steps of the second epoch were seen"
    return steps


def step_times(script: Path, out: Path, args: tuple[str, ...], **limits: Any) -> list[int]:
    """All steps of the training loop in a fresh process without the profiler, in nanoseconds."""
    run = capture(CaptureRequest(out, script, args=args, is_profiled=False, **limits), lambda _: None)
    recording = decode((run / "recording.json").read_bytes(), Recording)
    main_id = next(consumer.id for consumer in recording.consumers if consumer.is_main)
    series = next(series for series in recording.steps if series.consumer_id == main_id)
    assert not series.first_step, f"only the steps from {series.first_step} on were kept"
    return [end - start for start, end in zip(series.start_ns, series.end_ns, strict=False)]


def speedup(times: dict[str, list[float]], over: str) -> Interval | None:
    """The speedup of the fixed script; None: too few turns for an interval."""
    return median_interval([other / fixed for other, fixed in zip(times[over], times[FIXED], strict=True)])


def row(name: str, result: Result) -> str:
    """One line of the table."""
    cells = [name, *(f"{statistics.median(result.times[variant]) / 1e6:.2f} ms" for variant in ORDER)]
    for over in (WRITTEN, AUTOTUNE, EXPERT):
        ratio = speedup(result.times, over)
        cells.append("too few turns" if ratio is None else f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})")
    return f"| {' | '.join([*cells, ', '.join(result.kept) or 'nothing'])} |"


def write_docs(results: dict[str, Result], machine: str) -> None:
    """Replace the table between its markers."""
    begin, end = "<!-- tuning: begin -->\n", "<!-- tuning: end -->"
    text = DOCS.read_text()
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    lines = [
        "",
        "| script | as written | AUTOTUNE everywhere | expert | fixed | over as written | over AUTOTUNE | over expert | kept |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row(name, result) for name, result in results.items()),
        "",
        f"Mean step of one epoch after the first; medians over the turns. {machine} Nothing else was running.",
        "",
    ]
    DOCS.write_text(head + begin + "\n".join(lines) + end + tail)


def tensorflow_version() -> str:
    """TensorFlow's version, without importing it."""
    from importlib import metadata

    for name in ("tensorflow", "tensorflow-cpu", "tf-nightly"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "?"


if __name__ == "__main__":
    main()
