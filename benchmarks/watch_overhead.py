"""Measures what counting the steps costs: step times with the counters beside those of the same run without the advisor.

    python benchmarks/watch_overhead.py [--pairs 45] [--only NAME] [--write-docs]

In: the five scripts of `capture_overhead.py`, and a loop that does nothing with its elements.  Out: per script the ratio of the
mean step with `advisor.watch(sinks=[...])` to the mean step without, median over the pairs with its 95 % interval; the same for
the processor time of a step, which what else runs on the machine affects less; and the processor time of the process of
`advisor watch`. The loop that does nothing shows the cost of a step best.

From one process to the next, the step of an unchanged script differs by more than the counters cost (by 10 % and more on a
virtual machine). So both kinds of stretches alternate within one process: `advisor.install` and `watch` put the hooks in and
start the counters, and `uninstall` restores TensorFlow's own functions. `advisor watch` counts in the same way, and reads the
samples in another process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from capture_overhead import COMMON, SCRIPTS, make_images
from published import machine_sentence, write_section

from advisor.host.calibration.window import SETTLE_S
from advisor.model.intervals import median_interval
from advisor.model.units import format_ns, format_share

WATCHED = (sys.executable, "-m", "advisor", "watch", "--no-profile", "--quiet")
STRETCH_S = 2.0
MARGIN_S = 0.4
"""Left out after each change, in which the hooks are put in or removed and the counters are started or stopped."""
PLAIN, COUNTED = "plain", "counted"
ALTERNATING = f"""
import atexit, json, os, threading, time, advisor
advisor.install()
stretches = []
def alternate():
    watch = advisor.watch(sinks=["jsonl:" + os.environ["SAMPLES"]], quiet=True)
    while len(globals().get("stamps", ())) < 3:
        time.sleep(0.05)
    time.sleep({SETTLE_S.value})
    advisor.uninstall()
    kind = "{PLAIN}"
    for wanted in json.loads(os.environ["KINDS"]):
        if wanted != kind and wanted == "{COUNTED}":
            watch.start()
        elif wanted != kind:
            watch.finish()
        kind = wanted
        time.sleep({MARGIN_S})
        begin, cpu = time.time_ns(), time.process_time_ns()
        time.sleep({STRETCH_S})
        stretches.append((kind, begin, time.time_ns(), time.process_time_ns() - cpu))
    watch.finish()
    global deadline
    deadline = 0
atexit.register(lambda: json.dump(stretches, open(os.environ["STRETCHES"], "w")))
threading.Thread(target=alternate, daemon=True).start()
"""


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
    """The steps of two seconds. Times are in ns."""

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
    watching_cores: float
    """Cores that the process of `advisor watch` uses beside the script's."""

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
    parser.add_argument("--pairs", type=int, default=45)
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
            (data / "script.py").write_text(textwrap.dedent(text))
            (data / "alternating.py").write_text(ALTERNATING + textwrap.dedent(text))
            rows.append(Row(name, alternating(data, options.pairs), watching_cores(data)))
            print(table(rows)[-1], flush=True)
    lines = [machine_sentence(), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("watch-overhead", lines)


def alternating(data: Path, pairs: int) -> tuple[tuple[Stretch, Stretch], ...]:
    """Run the script once, and return its stretches without and with the counters, in the order of the pairs."""
    orders = itertools.islice(itertools.cycle([(PLAIN, COUNTED), (COUNTED, PLAIN)]), pairs)
    kinds = [kind for order in orders for kind in order]
    environment = {
        **environment_in(data),
        "TRAINING_S": str(3600),  # the stretches end it
        "KINDS": json.dumps(kinds),
        "STRETCHES": str(data / "stretches.json"),
        "SAMPLES": str(data / "samples.jsonl"),
    }
    (data / "samples.jsonl").unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, str(data / "alternating.py"), str(data)], env=environment, check=True, capture_output=True
    )
    samples = (data / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    if len(samples) < pairs * STRETCH_S / 2:
        raise SystemExit(f"{len(samples)} samples were written, so the steps were not counted.")
    stamps = json.loads((data / "stamps.json").read_text())
    found: dict[str, list[Stretch]] = {PLAIN: [], COUNTED: []}
    for kind, begin, end, cpu_ns in json.loads((data / "stretches.json").read_text()):
        first, last = bisect_left(stamps, begin), bisect_left(stamps, end) - 1
        step_ns = (stamps[last] - stamps[first]) / (last - first)
        found[kind].append(Stretch(step_ns, cpu_ns * step_ns / (end - begin)))
    return tuple(zip(found[PLAIN], found[COUNTED], strict=True))


def watching_cores(data: Path) -> float:
    """Run the script under `advisor watch`, and return the cores that the latter's process uses once it runs."""
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
    return used / passed


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
        "| script | pairs | step without the advisor | with the counters, relative to it | processor time per step | "
        "with the counters, relative to it | process of `advisor watch` |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.name,
            str(len(row.pairs)),
            format_ns(statistics.median(plain.step_ns for plain, _ in row.pairs)),
            with_interval(row.ratios),
            format_ns(statistics.median(plain.cpu_ns for plain, _ in row.pairs)),
            with_interval(row.cpu_ratios),
            f"{format_share(row.watching_cores)} of a core",
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
