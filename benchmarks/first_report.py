"""Measures the time until a user sees a result: from the command to the first report, and to the proof.

    python benchmarks/first_report.py [--only flowers_like] [--no-proof] [--repeats 3] [--write-docs]

In: the realistic scripts of `examples/` and a small one.  Out: a table of the seconds from the command to the end of the
script's own start-up (its first step), to the report on the screen, to the proof and its diff with `advisor fix`, and to the
report of a saved run, which needs no TensorFlow.

Each figure is the wall time of a fresh process that runs the command as a user would. The script's data is generated
beforehand by a run that is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from published import machine_sentence, write_section

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = ("flowers_like", "image_folder", "text_lines", "serial_map")
"""Three realistic scripts and a small one."""
LIMIT_S = 900.0


@dataclass(frozen=True)
class Times:
    """Seconds, medians of the repetitions; None: not measured."""

    script: str
    first_step_s: float
    """To the script's first step: start of Python, TensorFlow and the script, which the advisor cannot shorten."""
    report_s: float
    saved_s: float
    """`advisor analyze RUN`."""
    proof_s: float | None
    runs: int | None
    """How many times the proof ran the script."""


def main() -> None:
    """Measure, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SCRIPTS, help="may be repeated")
    parser.add_argument("--repeats", type=int, default=3, help="of the report; the proof is measured once")
    parser.add_argument("--no-proof", action="store_true")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    found = []
    for name in options.only or SCRIPTS:
        found.append(measure(EXAMPLES / f"{name}.py", options.repeats, not options.no_proof))
        print(found[-1], flush=True)
    lines = [machine_sentence(), "", *table(found)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("first-report", lines)


def measure(script: Path, repeats: int, has_proof: bool) -> Times:
    """Run the commands as a user would."""
    with tempfile.TemporaryDirectory(prefix="advisor-benchmark-") as folder:
        run = Path(folder) / "run"
        starts, reports, saved = [], [], []
        timed(["analyze", "--quiet", "--steps", "20", "--out", str(run), str(script)])  # makes the data
        for _ in range(repeats):
            began = time.time_ns()
            reports.append(timed(["analyze", "--out", str(run), str(script)]))
            starts.append((first_step_ns(run) - began) / 1e9)
            saved.append(timed(["analyze", str(run)]))
        proof_s, runs = None, None
        if has_proof:
            report = Path(folder) / "report.json"
            proof_s = timed(["fix", "--json", str(report), "--out", str(Path(folder) / "fix"), str(script)])
            runs = json.loads(report.read_text(encoding="utf-8"))["proof"]["runs"]
        median = statistics.median
        return Times(script.stem, median(starts), median(reports), median(saved), proof_s, runs)


def timed(arguments: Sequence[str]) -> float:
    """The duration of the command in seconds.

    Raises:
        RuntimeError: If the command fails; with its output.
    """
    start = time.perf_counter()
    command = [sys.executable, "-m", "advisor", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}: {result.stderr[-2000:]}")
    return time.perf_counter() - start


def first_step_ns(run: Path) -> int:
    """Unix time at which the main consumer's first step began; for a very long loop, the earliest step that was stored."""
    recording = json.loads((run / "recording.json").read_text(encoding="utf-8"))
    main = [consumer["id"] for consumer in recording["consumers"] if consumer.get("is_main")]
    starts: list[int] = [
        series["start_ns"][0] for series in recording["steps"] if series["consumer_id"] in main and series["start_ns"]
    ]
    return min(starts)


def table(found: Sequence[Times]) -> list[str]:
    """The Markdown table."""
    lines = [
        "| script | its first step | report | proof | runs of the script | report on the saved run |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        proof = "-" if each.proof_s is None else f"{each.proof_s:.0f} s"
        lines.append(
            f"| {each.script} | {each.first_step_s:.1f} s | {each.report_s:.1f} s | {proof} | "
            f"{'-' if each.runs is None else each.runs} | {each.saved_s:.2f} s |"
        )
    return lines


if __name__ == "__main__":
    main()
