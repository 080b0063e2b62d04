"""Measures what `advisor watch --no-profile` costs: step times beside those of the same script without the advisor.

    python benchmarks/watch_overhead.py [--pairs 9] [--only NAME] [--write-docs]

In: the five scripts of `capture_overhead.py`.  Out: per script the median over the pairs of (mean step while watched / mean step
without), with the smallest and the largest value.

Runs with and without the advisor alternate. Each script records the time of every step itself; the steps of the first seconds
are left out in both, so that AUTOTUNE has had the same time to settle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from capture_overhead import SCRIPTS, make_images
from published import machine_sentence, write_section

from advisor.host.calibration.window import SETTLE_S
from advisor.model.units import NS_PER_S, format_ns

PLAIN = (sys.executable,)
WATCHED = (sys.executable, "-m", "advisor", "watch", "--no-profile", "--quiet")


@dataclass(frozen=True)
class Row:
    """One script: mean steps in ns, one per pair."""

    name: str
    plain_ns: tuple[float, ...]
    watched_ns: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Step time while watched, relative to that without the advisor."""
        return [watched / plain for plain, watched in zip(self.plain_ns, self.watched_ns, strict=True)]


def main() -> None:
    """Measure all scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", help="part of a script's name")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="watch-overhead-") as folder:
        data = Path(folder)
        make_images(data)
        for name, text in SCRIPTS.items():
            if options.only and options.only not in name:
                continue
            script = data / "script.py"
            script.write_text(textwrap.dedent(text))
            plain: list[float] = []
            watched: list[float] = []
            for number in range(options.pairs):
                order = (True, False) if number % 2 else (False, True)
                for is_watched in order:
                    (watched if is_watched else plain).append(mean_step_ns(script, data, is_watched))
            rows.append(Row(name, tuple(plain), tuple(watched)))
            print(table(rows)[-1], flush=True)
    lines = [machine_sentence(), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("watch-overhead", lines)


def mean_step_ns(script: Path, data: Path, is_watched: bool) -> float:
    """Run the script and return the mean time between its steps, without those of the first seconds."""
    stamps = data / "stamps.json"
    environment = {
        **os.environ,
        "STAMPS": str(stamps),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XDG_STATE_HOME": str(data / "state"),
    }
    command = [*(WATCHED if is_watched else PLAIN), str(script), str(data)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    times = json.loads(stamps.read_text())
    begin = times[2] + SETTLE_S.value * NS_PER_S
    kept = [time for time in times if time >= begin]
    return float((kept[-1] - kept[0]) / (len(kept) - 1))


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table."""
    lines = ["| script | step without the advisor | while watched, relative to it |", "|---|---|---|"]
    for row in rows:
        ratios = row.ratios
        middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
        lines.append(
            f"| {row.name} | {format_ns(statistics.median(row.plain_ns))} | {middle:.3f} ({low:.3f} to {high:.3f}) |"
        )
    return lines


if __name__ == "__main__":
    main()
