"""Compares the input wait of imagined steps (`--as-if-step`) with that of the script whose steps really are such waits.

    python benchmarks/as_if_step.py [--step 10ms] [--only NAME] [--write-docs]

In: examples whose loop has a line `loss = train_step(...)`.  Out: per example the share of the step time spent waiting for
input, as imagined and as measured on a copy in which that line is a `time.sleep` of the same length; then the median difference.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from published import machine_sentence, write_section

from advisor.model.units import NS_PER_S, format_ns, format_share, parse_seconds

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = (
    "serial_map", "misplaced_prefetch", "missing_prefetch", "late_shuffle", "serial_files", "serial_interleave",
    "map_inside_interleave", "parse_per_record", "capped_parallelism", "small_reads",
)  # fmt: skip
TRAINING = re.compile(r"^(\s+)loss = train_step\(.*\)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One script."""

    script: str
    imagined: float
    """Input wait, as a share of the step."""
    real: float


def main() -> None:
    """Measure all scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--step", type=parse_seconds, default="10ms", metavar="T", help="length of a step (default: 10ms)"
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="the file's name without .py; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    for name in NAMES:
        if options.only is not None and name not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="as-if-") as folder:
            copy = Path(folder) / f"{name}.py"
            text, count = TRAINING.subn(
                rf"\1import time; time.sleep({options.step}); loss = 0.0", (EXAMPLES / f"{name}.py").read_text("utf-8")
            )
            if count != 1:
                raise SystemExit(f"{name}.py has {count} lines `loss = train_step(...)`; one is needed.")
            copy.write_text(text, "utf-8")
            real = wait_share(copy, Path(folder) / "real")
            imagined = wait_share(EXAMPLES / f"{name}.py", Path(folder) / "imagined", "--as-if-step", f"{options.step}")
        if real is None or imagined is None:
            print(f"{name}: no verdict", flush=True)
            continue
        rows.append(Row(name, imagined, real))
        print(f"{name}: imagined {format_share(imagined)}, real {format_share(real)}", flush=True)
    lines = [machine_sentence(), f"Steps of {format_ns(options.step * NS_PER_S)}.", "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("as-if-step", lines)


def wait_share(script: Path, out: Path, *options: str) -> float | None:
    """The input wait of a script; None without a verdict."""
    command = [sys.executable, "-m", "advisor", "analyze", "--quiet", "--json", "-", "--out", str(out), *options]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    share: float | None = json.loads(done.stdout)["verdict"]["input_wait_share"]
    return share


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, and the summary."""
    lines = ["| script | input wait, imagined steps | input wait, real waits |", "|---|---|---|"]
    lines += [f"| {row.script} | {format_share(row.imagined)} | {format_share(row.real)} |" for row in rows]
    if rows:
        apart = [abs(row.imagined - row.real) for row in rows]
        lines += ["", f"Median difference {statistics.median(apart):.1%} of the step, largest {max(apart):.1%}."]
    return lines


if __name__ == "__main__":
    main()
