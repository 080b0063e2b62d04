"""Compares the headroom of a report with the measured rate of the same pipeline alone.

    python benchmarks/headroom.py [--only NAME] [--write-docs]

In: `benchmarks/healthy/*.py` and `examples/tuned.py`, whose training does not wait for input.
Out: per script the time per element as reported, with its range, how it was found (read for a second after the window, or
predicted from the profile), the measured one, and the error; then the median of the errors.

Both come from one command, `advisor analyze --headroom`: it analyses the training, then runs the script once more, holds it at
its first element and reads its pipeline as fast as possible, without training; the mean time per element of the unprofiled
stretch is the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from published import machine_sentence, write_section
from silence import HEALTHY, WINDOW

from advisor.model.units import format_ns

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Row:
    """One script. Times in ns per element."""

    script: str
    is_read: bool
    """Whether the pipeline was read for a second after the window, and not predicted."""
    reported_ns: float
    low_ns: float
    high_ns: float
    measured_ns: float

    @property
    def error(self) -> float:
        """Relative error of the reported rate: 0.1 means that 10 % more elements were reported than measured."""
        return self.measured_ns / self.reported_ns - 1

    @property
    def how(self) -> str:
        """How the reported time was found."""
        return "read" if self.is_read else "predicted"

    @property
    def is_inside(self) -> bool:
        """Whether the measurement is inside the reported range."""
        return self.low_ns <= self.measured_ns <= self.high_ns


def main() -> None:
    """Measure all scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="the file's name without .py; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    for script in HEALTHY:
        if options.only is not None and script.stem not in options.only:
            continue
        row = measure(script)
        if isinstance(row, str):
            print(f"{script.stem}: {row}", flush=True)
            continue
        rows.append(row)
        print(
            f"{row.script}: {row.how} {format_ns(row.reported_ns)} ({format_ns(row.low_ns)} to {format_ns(row.high_ns)}), "
            f"measured {format_ns(row.measured_ns)}, {row.error:+.0%}",
            flush=True,
        )
    lines = [machine_sentence(), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("headroom", lines)


def measure(script: Path) -> Row | str:
    """The row of a script, or why there is none."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "TF_CPP_MIN_LOG_LEVEL": "2"}  # for the data of examples
    with tempfile.TemporaryDirectory(prefix="headroom-") as folder:
        options = ["--quiet", "--headroom", "--json", "-", "--out", f"{folder}/run", *WINDOW]
        command = [sys.executable, "-m", "advisor", "analyze", *options, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    report = json.loads(done.stdout)
    found = (report["outlook"] or {}).get("headroom")
    if found is None or found["measured_ns"] is None:
        return f"no headroom was measured ({report['verdict']['sentence']} {report['warnings']})"
    return Row(
        script.stem,
        found["read_ns"] is not None,
        found["element_ns"],
        found["low_ns"],
        found["high_ns"],
        found["measured_ns"],
    )


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, and the summary."""
    lines = [
        "| script | reported, per element | how | range | measured | error of the rate |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.script} | {format_ns(row.reported_ns)} | {row.how} | {format_ns(row.low_ns)} to {format_ns(row.high_ns)} | "
            f"{format_ns(row.measured_ns)} | {row.error:+.0%} |"
        )
    if rows:
        inside = sum(row.is_inside for row in rows)
        lines += ["", f"{median_error(rows)} {inside} of {len(rows)} measurements are inside the range."]
    return lines


def median_error(rows: Sequence[Row]) -> str:
    """A sentence with the median errors, of all and by how they were found."""
    parts = {
        "": rows,
        "read": [row for row in rows if row.is_read],
        "predicted": [row for row in rows if not row.is_read],
    }
    middles = {how: statistics.median(abs(row.error) for row in part) for how, part in parts.items() if part}
    by_how = ", ".join(f"{middle:.0%} where {how} ({len(parts[how])})" for how, middle in middles.items() if how)
    return f"Median error {middles['']:.0%}: {by_how}."


if __name__ == "__main__":
    main()
