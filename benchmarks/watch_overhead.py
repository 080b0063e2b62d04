"""Measures what counting the steps costs: step times with the counters beside those of the same run without the advisor.

    python benchmarks/watch_overhead.py [--pairs 9] [--pair-seconds 6] [--only NAME] [--write-docs]

In: the five scripts of `capture_overhead.py`, and a loop that does nothing with its elements.  Out: a row per script, with two
measurements that do not depend on each other:

* the step and its processor time with the counters of `advisor.watch(sinks=[...])`, relative to those without: median over the
  pairs with its 95 % interval. The step of one unchanged script drifts by several per cent within seconds, so short blocks with
  and without counters alternate within one process (`counted_blocks.py`). A pair is the ratio of the sums over six seconds;
* the time inside the hooks per step, and, with the processor time of the advisor's threads, its share of the time that passed.

The processor time of the process of `advisor watch`, which only reads the samples, is measured once. Takes about eight minutes.
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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from capture_overhead import COMMON, SCRIPTS, make_images
from published import machine_sentence, write_section

from advisor.model.intervals import median_interval
from advisor.model.units import format_ns, format_share

WATCHED = (sys.executable, "-m", "advisor", "watch", "--no-profile", "--quiet")
PREAMBLE = f"""import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import counted_blocks
blocks = counted_blocks.Blocks()
"""
LAST_LINE_OF_TICK = "    return time.time() < deadline\n"

EMPTY = (
    COMMON
    + """
for x in tf.data.Dataset.range(10**12):
    if not tick():
        break
"""
)


@dataclass(frozen=True)
class Stretch:
    """The blocks of one kind in a pair. Times are in ns."""

    step_ns: float
    """Mean step."""
    cpu_ns: float
    """Processor time of the process per step, with tf.data's threads and with the counters."""


@dataclass(frozen=True)
class Row:
    """One script."""

    name: str
    pairs: tuple[tuple[Stretch, Stretch], ...]
    """Without the advisor, and with the counters."""
    hooks_ns: float
    """Time inside the hooks per step, without TensorFlow's functions that they call."""
    advisor_share: float
    """Time inside the hooks and processor time of the advisor's threads, relative to the time that passed."""

    @property
    def ratios(self) -> list[float]:
        """Step time with the counters, relative to that without."""
        return [counted.step_ns / plain.step_ns for plain, counted in self.pairs]

    @property
    def cpu_ratios(self) -> list[float]:
        """Processor time of a step with the counters, relative to that without."""
        return [counted.cpu_ns / plain.cpu_ns for plain, counted in self.pairs]


def main() -> None:
    """Measure all scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--pair-seconds", type=float, default=6.0)
    parser.add_argument("--only", help="part of a script's name")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="watch-overhead-") as folder:
        data = Path(folder)
        make_images(data)
        for name, text in {**SCRIPTS, "empty steps": EMPTY}.items():
            if options.only and options.only not in name:
                continue
            rows.append(alternating(data, name, text, options.pairs, options.pair_seconds))
            print(table(rows)[-1], flush=True)
        watching = (
            f"The process of `advisor watch` took at most {format_share(watching_cores(data))} of a core beside it."
        )
    lines = [machine_sentence() + " " + watching, "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("watch-overhead", lines)


def alternating(data: Path, name: str, text: str, pairs: int, pair_s: float) -> Row:
    """Run a script once, in alternating blocks without and with the counters."""
    if text.count(LAST_LINE_OF_TICK) != 1:
        raise SystemExit(f"{name} does not end tick() as expected.")
    script, result, samples = data / "alternating.py", data / "result.json", data / "samples.jsonl"
    script.write_text(PREAMBLE + text.replace(LAST_LINE_OF_TICK, "    return blocks.step()\n"))
    for path in (result, samples):
        path.unlink(missing_ok=True)
    environment = {
        **environment_in(data),
        "PAIRS": str(pairs),
        "PAIR_S": str(pair_s),
        "RESULT": str(result),
        "SAMPLES": str(samples),
    }
    done = subprocess.run(
        [sys.executable, str(script), str(data)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or not result.exists():
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    measured = json.loads(result.read_text())
    if len(samples.read_text(encoding="utf-8").splitlines()) < measured["samples"]:
        raise SystemExit(
            f"{name}: fewer samples were written than asked for, so the steps were not counted all the time."
        )
    direct = measured["direct"]
    threads_share = direct["poll_ns"] / direct["passed_ns"] + measured["sampler_share"]
    return Row(
        name,
        tuple((stretch(pair["0"]), stretch(pair["1"])) for pair in measured["pairs"]),
        direct["hooks_ns"] / direct["steps"],
        direct["hooks_ns"] / direct["passed_ns"] + threads_share,
    )


def stretch(sums: Sequence[int]) -> Stretch:
    """Return the means of one kind of blocks, from the number of their steps, their time and their processor time."""
    steps, took_ns, cpu_ns = sums
    return Stretch(took_ns / steps, cpu_ns / steps)


def watching_cores(data: Path) -> float:
    """Run a script under `advisor watch`, and return the most cores that the latter's process uses once it runs."""
    (data / "script.py").write_text(textwrap.dedent(SCRIPTS["model-bound"]))
    command = [*WATCHED, str(data / "script.py"), str(data)]
    environment = {**environment_in(data), "TRAINING_S": "20"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as child:
        time.sleep(15)
        before, began = cpu_s(child.pid), time.monotonic()
        time.sleep(8)
        used, passed = cpu_s(child.pid) - before, time.monotonic() - began
        if child.wait() != 0:
            raise SystemExit(f"advisor watch ended with {child.returncode}.")
    return (used + 1 / os.sysconf("SC_CLK_TCK")) / passed  # the kernel counts whole ticks


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def environment_in(data: Path) -> dict[str, str]:
    """The environment of a script that writes the times of its steps into the folder."""
    return {
        **os.environ,
        "STAMPS": str(data / "stamps.json"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XDG_STATE_HOME": str(data / "state"),
    }


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table."""
    lines = [
        "| script | pairs | step without the advisor | with the counters, relative to it | "
        "processor time per step, relative to that without | in the hooks, per step | hooks and threads, of the time |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.name,
            str(len(row.pairs)),
            format_ns(statistics.median(plain.step_ns for plain, _ in row.pairs)),
            with_interval(row.ratios),
            with_interval(row.cpu_ratios),
            format_ns(row.hooks_ns),
            format_share(row.advisor_share),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def with_interval(ratios: Sequence[float]) -> str:
    """Return the median with its 95 % interval."""
    interval = median_interval(ratios)
    within = "" if interval is None else f" ({interval.low:.3f} to {interval.high:.3f})"
    return f"{statistics.median(ratios):.3f}{within}"


if __name__ == "__main__":
    main()
