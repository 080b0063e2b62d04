"""Measures what counting the steps costs: step times beside those of the same script without the advisor.

The steps are counted by `advisor watch --no-profile`, and by `advisor.watch(sinks=[...])` inside the script.

    python benchmarks/watch_overhead.py [--pairs 9] [--only NAME] [--write-docs]

In: the five scripts of `capture_overhead.py`.  Out: per script and way the median over the rounds of (mean step while watched /
mean step without), with the smallest and the largest value.

The three kinds of runs alternate. Each script records the time of every step itself; the steps of the first seconds
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
WAYS = ("plain", "command", "program")
"""Without the advisor; `advisor watch`; `advisor.watch` inside the script."""
FROM_INSIDE = """
import atexit, os, advisor
advisor.install()
watch = advisor.watch(sinks=["jsonl:" + os.environ["SAMPLES"]], quiet=True)
watch.start()
atexit.register(watch.finish)
"""


@dataclass(frozen=True)
class Row:
    """One script: mean steps in ns, one per round."""

    name: str
    steps_ns: dict[str, tuple[float, ...]]
    """Way -> mean steps."""

    def ratios(self, way: str) -> list[float]:
        """Step time while watched that way, relative to that without the advisor."""
        return [watched / plain for plain, watched in zip(self.steps_ns["plain"], self.steps_ns[way], strict=True)]


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
            (data / "script.py").write_text(textwrap.dedent(text))
            (data / "program.py").write_text(FROM_INSIDE + textwrap.dedent(text))
            steps: dict[str, list[float]] = {way: [] for way in WAYS}
            for number in range(options.pairs):
                for way in WAYS if number % 2 else reversed(WAYS):
                    steps[way].append(mean_step_ns(data, way))
            rows.append(Row(name, {way: tuple(found) for way, found in steps.items()}))
            print(table(rows)[-1], flush=True)
    lines = [machine_sentence(), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("watch-overhead", lines)


def mean_step_ns(data: Path, way: str) -> float:
    """Run the script and return the mean time between its steps, without those of the first seconds."""
    stamps, samples = data / "stamps.json", data / "samples.jsonl"
    samples.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "STAMPS": str(stamps),
        "SAMPLES": str(samples),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XDG_STATE_HOME": str(data / "state"),
    }
    script = data / ("program.py" if way == "program" else "script.py")
    command = [*(WATCHED if way == "command" else PLAIN), str(script), str(data)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    times = json.loads(stamps.read_text())
    begin = times[2] + SETTLE_S.value * NS_PER_S
    kept = [time for time in times if time >= begin]
    return float((kept[-1] - kept[0]) / (len(kept) - 1))


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table."""
    lines = [
        "| script | step without the advisor | `advisor watch`, relative to it | `advisor.watch`, relative to it |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cells = [format_ns(statistics.median(row.steps_ns["plain"]))]
        for way in WAYS[1:]:
            ratios = row.ratios(way)
            cells.append(f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
        lines.append(f"| {row.name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
