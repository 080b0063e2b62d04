"""Repeats the accuracy of bottlenecks, the predictions and `advisor fix` on 2, 4, 8 ... cores of one machine, in one command.

    python benchmarks/many_cores.py --results DIR [--cores 2 4 8 16] [--minutes 9] [--only KIND ...] [--stored] [--write-docs]

In: the scripts of `benchmarks/bottlenecks` and `examples/`.  Out: a table with one row per number of cores.

Each part is one script on one number of cores (set by the processor affinity, which the advisor counts). Parts that need only
some of the cores run side by side, each on cores of its own. The result of a part is a file in DIR, so that a machine that is
lent for some minutes at a time can be used: with `--minutes`, no part starts that would end after that time if it took as long
as the longest one of its kind so far, and the next call goes on. Run it alone.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck_accuracy import is_right, measure_truth, read_cases, run_advisor
from predictions import EXAMPLES, IN_LITTLE_MEMORY, fixing, measure, write_json
from published import machine_sentence, note_run, write_section
from worth import REALISTIC, Row, is_inside, percentile

from advisor.engine import load_rules
from advisor.model.settings import Settings

KINDS = BOTTLENECK, PREDICTION, FIX = "bottleneck", "prediction", "fix"
TURNS = 3
BUDGET = "5min"


@dataclass(frozen=True)
class Part:
    """One script on one number of cores."""

    kind: str
    name: str
    cores: int

    def file(self, results: Path) -> Path:
        """Where its result is stored."""
        return results / f"{self.cores}-cores" / self.kind / f"{self.name}.json"


def main() -> int:
    """Run the parts that are missing, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--cores", type=int, nargs="+", metavar="N", help="default: 2, 4, 8 ... and all that are usable"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="stop in time for this limit")
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--part", nargs=2, metavar=("KIND", "NAME"), help="run one part here and print its result as JSON"
    )
    parser.add_argument(
        "--stored", action="store_true", help="run nothing: the table of what is stored in DIR, of any machine"
    )
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if options.part:
        kind, name = options.part
        with contextlib.redirect_stdout(sys.stderr):
            result = {BOTTLENECK: bottleneck, PREDICTION: prediction, FIX: fix}[kind](name)
        print(json.dumps(result))
        return 0
    usable = sorted(os.sched_getaffinity(0))
    counts = options.cores or [count for count in (2, 4, 8, 16, 32, 64) if count < len(usable)] + [len(usable)]
    if options.stored:
        counts = sorted(int(folder.name.partition("-")[0]) for folder in options.results.glob("*-cores"))
    elif max(counts) > len(usable):
        parser.error(f"--cores: {max(counts)} cores were asked for, {len(usable)} are usable.")
    parts = [part for count in counts for part in parts_on(count) if part.kind in options.only]
    missing = 0 if options.stored else run_missing(parts, options.results, usable, options.minutes)
    lines = [machine_sentence(options.results), "", *table(counts, parts, options.results)]
    print("\n".join(["", *lines, *([f"{missing} of {len(parts)} parts have not run yet."] if missing else [])]))
    if options.write_docs:
        write_section("many-cores", lines)
    return 1 if missing else 0


def parts_on(cores: int) -> Iterator[Part]:
    """The scripts, those of each kind in the order of their names."""
    rules = load_rules([], Settings())
    names = (*REALISTIC, *(rule.replace("-", "_") for rule in fixing(rules)))
    yield from (Part(FIX, name, cores) for name in REALISTIC)
    yield from (Part(BOTTLENECK, case.name, cores) for case in read_cases([]))
    yield from (Part(PREDICTION, name, cores) for name in names if name not in IN_LITTLE_MEMORY)


def run_missing(parts: Sequence[Part], results: Path, usable: Sequence[int], minutes: float | None) -> int:
    """Run what has no result yet, and return how many parts are left."""
    until = None if minutes is None else time.monotonic() + 60 * minutes
    waiting = [part for part in parts if not part.file(results).exists()]
    for count, same in itertools.groupby(waiting, lambda part: part.cores):
        run_side_by_side(
            list(same), results, [usable[at : at + count] for at in range(0, len(usable) - count + 1, count)], until
        )
    return sum(not part.file(results).exists() for part in parts)


def run_side_by_side(waiting: list[Part], results: Path, places: Sequence[Sequence[int]], until: float | None) -> None:
    """Run parts with one number of cores: as many at a time as there are places, which are disjoint sets of cores."""
    longest_s: dict[str, float] = {}

    def work(place: Sequence[int]) -> None:
        os.sched_setaffinity(0, place)  # of this thread; the process that it starts inherits it
        while waiting:
            part, start = waiting.pop(0), time.monotonic()
            if until is not None and start + longest_s.get(part.kind, 0.0) > until:
                continue
            command = [sys.executable, __file__, "--results", str(results), "--part", part.kind, part.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            seconds = time.monotonic() - start
            longest_s[part.kind] = max(longest_s.get(part.kind, 0.0), seconds)
            if done.returncode:
                print(
                    f"{part.cores} cores, {part.kind} {part.name} failed: {done.stderr[-2000:]}",
                    file=sys.stderr,
                    flush=True,
                )
                continue
            write_json(part.file(results), {**json.loads(done.stdout.splitlines()[-1]), "seconds": seconds})
            note_run(results)
            print(f"{part.cores} cores, {part.kind} {part.name}: {seconds:.0f} s", flush=True)

    with ThreadPoolExecutor(len(places)) as pool:
        list(pool.map(work, places))


def bottleneck(name: str) -> dict[str, Any]:
    """What is named, and whether interventions on as many cores say the same."""
    (case,) = read_cases([name])
    truth = measure_truth(case, TURNS)
    with tempfile.TemporaryDirectory(prefix="many-cores-") as folder:
        named = run_advisor(case, Path(folder))
    return {"truth": truth.verdict(), "named": named.node, "right": is_right(truth, named)}


def prediction(name: str) -> dict[str, Any]:
    """The fixes of one example: predicted and measured."""
    with tempfile.TemporaryDirectory(prefix="many-cores-") as folder:
        return measure(EXAMPLES / f"{name}.py", load_rules([], Settings()), True, Path(folder) / "run")


def fix(name: str) -> dict[str, Any]:
    """The gain of `advisor fix` on the whole script."""
    with tempfile.TemporaryDirectory(prefix="many-cores-") as folder:
        path = Path(folder) / "fix.json"
        command = [sys.executable, "-m", "advisor", "fix", "--quiet", "--allow", "rerandomized", "--budget", BUDGET]
        command += ["--json", str(path), "--out", str(Path(folder) / "run"), str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"error": done.stderr.strip().rpartition("\n")[2]}
        report = json.loads(path.read_text(encoding="utf-8"))
    kept = [each["rule"] for each in report["fixes"] if each["verdict"] == "faster"]
    return {"kept": kept, "whole": (report["comparison"] or {}).get("end_to_end")}


def table(counts: Sequence[int], parts: Sequence[Part], results: Path) -> list[str]:
    """One row per number of cores."""
    lines = [
        "| cores | named rightly | fixes | error of predictions: median, 90th percentile | inside the range | `advisor fix` |",
        "|---|---|---|---|---|---|",
    ]
    for count in counts:
        done = {kind: list(read(parts, results, kind, count)) for kind in (BOTTLENECK, PREDICTION, FIX)}
        lines.append(
            f"| {count} | {' | '.join((accuracy(done[BOTTLENECK]), *errors(done[PREDICTION]), gains(done[FIX])))} |"
        )
    return lines


def read(parts: Sequence[Part], results: Path, kind: str, cores: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names and results of one kind that are there."""
    for part in parts:
        path = part.file(results)
        if part.kind == kind and part.cores == cores and path.exists():
            yield part.name, json.loads(path.read_text(encoding="utf-8"))


def accuracy(done: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """`30 of 31`, of the cases with a clear answer."""
    clear = [result["right"] for _, result in done if result["right"] != "unclear"]
    return f"{clear.count('yes')} of {len(clear)}" if done else "not run"


def errors(done: Sequence[tuple[str, dict[str, Any]]]) -> tuple[str, str, str]:
    """Number of fixes, errors of their predictions, and how many are inside the range."""
    rows = [Row(**row) for _, result in done for row in result["rows"]]
    off = sorted(abs(row.error) for row in rows if row.error is not None)
    if not off:
        return "not run" if not done else f"{len(rows)}", "", ""
    inside = sum(is_inside(row) for row in rows)
    return f"{len(rows)}", f"{statistics.median(off):.0%}, {percentile(off, 0.9):.0%}", f"{inside} of {len(off)}"


def gains(done: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """`flowers_like 4.1x (3.6 to 4.4)`, for each script."""
    said = []
    for name, result in done:
        whole = result.get("whole")
        gain = f"{whole['value']:.2f}x ({whole['low']:.2f} to {whole['high']:.2f})" if whole else "nothing proved"
        said.append(f"{name} {result.get('error') or gain}")
    return ", ".join(said) or "not run"


if __name__ == "__main__":
    sys.exit(main())
