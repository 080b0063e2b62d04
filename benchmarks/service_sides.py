"""On which side of a tf.data service the bottleneck is, according to the profiles of a trainer and two workers.

    python benchmarks/service_sides.py [--case CASE] [--results FILE] [--keep FOLDER] [--write-docs]

In: trainings with a planted cause (`service_causes`). Dispatcher, workers and trainer are processes, each with a network of its
own where the kernel allows it. They are profiled as users are told to: `advisor capture` asks trainer and workers at the same
time, and `advisor analyze` reads the profiles.
Out: a table: the planted side, the side that the report names, and its sentence. Exit code 1 if a side is wrong.

Without networks of their own (`unshare`, `ip`, `tc`), the slow link is left out, and without a C compiler the slow storage. Half
a minute per case.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section
from running_service import RunningService, inside_own_network, may_isolate, may_limit, prepare_own_network
from service_causes import CAUSES, Cause, script_of, write_files
from slow_storage import slow_storage, why_not

WORKERS = 2
CAPTURE_S = 4
OPEN = "does not tell whether it unpacks records or waits for slow storage"
INSIDE = "--inside-own-network"
NO_SERVICE = "nothing"
"""What is said if the report names no side."""


@dataclass(frozen=True)
class Row:
    """One cause."""

    cause: str
    planted: str
    said: str
    sentence: str
    why_not: str = ""
    """Why it was not planted."""
    is_open: bool = False
    """Whether another side was named that the profiles do not tell from the planted one, and the sentence says so."""

    @property
    def is_right(self) -> bool:
        """Whether the planted side was named or left open, or nothing was planted."""
        return bool(self.why_not) or self.is_open or self.said == self.planted

    def cells(self) -> str:
        """The row of the table."""
        if self.why_not:
            return f"| {self.cause} | {self.planted} | not measured | {self.why_not} |"
        said = f"{self.said}, or {self.planted}" if self.is_open else self.said if self.is_right else f"**{self.said}**"
        return f"| {self.cause} | {self.planted} | {said} | {self.sentence} |"


def main() -> None:
    """Measure the causes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [cause.name for cause in CAUSES]
    parser.add_argument("--case", action="append", choices=names, help="may be repeated (default: all)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="results are read from it and added to it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the profiles there")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument(INSIDE, dest="is_isolated", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = read_rows(options.results)
    asked = [cause for cause in CAUSES if cause.name in (options.case or names) and cause.name not in rows]
    missing = [name for name in names if name not in rows and name not in {cause.name for cause in asked}]
    if options.write_docs and missing:
        parser.error(f"--write-docs needs all cases; add --results FILE with {', '.join(missing)}")
    if not options.is_isolated and may_isolate():
        inside_own_network([*sys.argv, INSIDE])
    if options.is_isolated:
        prepare_own_network()
    for cause in asked:
        problem = obstacle(cause, options.is_isolated)
        rows[cause.name] = (
            Row(cause.text, cause.side, "", "", problem)
            if problem
            else row_of(cause, options.is_isolated, options.keep)
        )
        print(rows[cause.name].cells(), flush=True)
        if options.results is not None:
            options.results.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}), "utf-8")
    shown = [rows[name] for name in names if name in rows]
    lines = report(shown, options.is_isolated, os.getloadavg()[2])
    print("\n".join(lines))
    if options.write_docs:
        write_section("service-sides", lines)
    raise SystemExit(0 if all(row.is_right for row in shown) else 1)


def read_rows(path: Path | None) -> dict[str, Row]:
    """The rows of earlier runs, by the name of the cause; none if there are none."""
    if path is None or not path.exists():
        return {}
    return {name: Row(**row) for name, row in json.loads(path.read_text("utf-8")).items()}


def obstacle(cause: Cause, is_isolated: bool) -> str:
    """Say why a cause cannot be planted here; empty if it can."""
    if cause.link_bits_per_s and not (is_isolated and may_limit()):
        return "The kernel allows no networks of their own, or there is no `tc`, so that no link can be limited."
    return why_not() if cause.read_us else ""


def row_of(cause: Cause, is_isolated: bool, kept: Path | None) -> Row:
    """Plant one cause, capture the profiles, and ask for the side."""
    with tempfile.TemporaryDirectory(prefix="service-sides-") as name:
        folder = Path(name)
        found = limit(captured(cause, folder, is_isolated))
        if kept is not None:
            shutil.copytree(folder / "profiles", kept / cause.name, dirs_exist_ok=True)
    if found is None:
        return Row(cause.text, cause.side, NO_SERVICE, "")
    is_open = found["side"] == cause.also and OPEN in found["sentence"]
    return Row(cause.text, cause.side, found["side"], found["sentence"], is_open=is_open)


def captured(cause: Cause, folder: Path, is_isolated: bool) -> Path:
    """Run the service and the training with a planted cause, and return the folder with the profiles of all three."""
    data, script = folder / "data", folder / "train.py"
    data.mkdir()
    script.write_text(script_of(cause), "utf-8")
    if cause.files:
        write_files(cause, data)
    slow = slow_storage(data, cause.read_us, folder) if cause.read_us else {}
    with RunningService(folder, is_isolated) as service:
        service.start_dispatcher()
        for _ in range(WORKERS):
            service.start_worker(is_profiled=True, environment=slow)
        trainer = service.start_trainer([sys.executable, str(script), str(data)])
        if cause.link_bits_per_s:
            service.limit_link(trainer, cause.link_bits_per_s)
        profiles = folder / "profiles"
        addresses = ",".join(reversed(service.profilers))  # the trainer first
        # the queues behind a limited link fill first
        command = ["capture", addresses, "--delay", "3s", "--duration", f"{CAPTURE_S}s", "--no-report", "--quiet"]
        advisor(*command, "--out", str(profiles))
    return profiles


def limit(profiles: Path) -> dict[str, Any] | None:
    """Return what the report says about the side, if anything."""
    report = json.loads(advisor("analyze", "--quiet", "--json", "-", str(profiles)))
    found: dict[str, Any] | None = (report["hosts"] or {}).get("service_bottleneck")
    return found


def advisor(*arguments: str) -> str:
    """Return what the command prints."""
    done = subprocess.run([sys.executable, "-m", "advisor", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"advisor {arguments[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def report(rows: Sequence[Row], is_isolated: bool, load: float) -> list[str]:
    """Return the table with what it was measured on."""
    left_open = sum(row.is_open for row in rows)
    planted = [row for row in rows if not row.why_not]
    where = (
        "each with a network of its own" if is_isolated else "without networks of their own, which the kernel refused"
    )
    return [
        f"{machine_sentence()} Trainer, dispatcher and {WORKERS} workers are processes of this machine, {where}. "
        f"The mean load of the last quarter of an hour was {load:.1f}, other programs included: that may change the shares, but "
        "must not change the side.",
        "",
        f"The right side was named in {sum(row.is_right for row in planted)} of {len(planted)} cases"
        f"{f', in {left_open} of them beside another one' if left_open else ''}.",
        "",
        "| planted cause | side | said | sentence in the report |",
        "|---|---|---|---|",
        *(row.cells() for row in rows),
    ]


if __name__ == "__main__":
    main()
