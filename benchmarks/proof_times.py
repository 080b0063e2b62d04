"""Measures how long a proof takes: `advisor fix` on every example with a fix, as a user runs it.

    python benchmarks/proof_times.py [--only flowers_like] [--results FILE] [--write-docs]

In: the scripts of `examples/` that `predictions.py` measures.  Out: for each, the seconds from the command to the verdict of the
analysis, to the first change that is proved, to the last result of the whole script and to the end of the command; the phases of
the report; median and worst. `--results` keeps what was measured, as JSON lines, so that an interrupted run goes on.

A time is that of a line on stderr. An analysis that is not counted makes the data of a script beforehand and keeps its files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from predictions import EXAMPLES, IN_LITTLE_MEMORY, chosen, limited
from published import machine_sentence, note_run, write_section

from advisor.engine import load_rules
from advisor.model.settings import Settings

LIMIT_S = 900.0
"""A command that takes longer is an error of its budget."""
WHOLE = "Whole script, "
"""How a line on a result of the whole script begins."""
PHASES = ("analysis", "trials", "whole script")
WANTED_MEDIAN_S, WANTED_WORST_S = 180.0, 300.0


class Proof(msgspec.Struct, frozen=True):
    """One run of `advisor fix`. Times are seconds since the command was started; None: there was no such line."""

    script: str
    verdict_s: float | None
    first_s: float | None
    """To the first change that was proved, on the pipeline alone or on the whole script."""
    whole_s: float | None
    """To the last result of the whole script."""
    end_s: float
    runs: int
    """Starts of the script."""
    pairs: int
    """Pairs of runs of the whole script."""
    verdict: str
    training: str
    phases: dict[str, float]
    """Seconds by name."""
    notes: tuple[str, ...] = ()

    @property
    def is_on_script(self) -> bool:
        """Whether the runs of the whole script have ended with a result."""
        return self.whole_s is not None and self.training != "not measured"


def main() -> None:
    """Measure what `--results` does not hold yet, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="an example; may be repeated")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON lines of the examples measured so far")
    parser.add_argument("--note", default="", metavar="TEXT", help="what else the machine did, for the table")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    done: list[Proof] = []
    if options.results and options.results.exists():
        done = [msgspec.json.decode(line, type=Proof) for line in options.results.read_bytes().splitlines()]
    for name in chosen(options.only, load_rules([], Settings())):
        if name in {proof.script for proof in done}:
            continue
        done.append(measure(name))
        print(done[-1], flush=True)
        if options.results:
            note_run(options.results)
            with options.results.open("ab") as lines:
                lines.write(msgspec.json.encode(done[-1]) + b"\n")
    section = [f"{machine_sentence(options.results)} {options.note}".strip(), "", *table(done)]
    print("\n".join(["", *section]))
    if options.write_docs:
        write_section("proof-times", section)


def measure(name: str) -> Proof:
    """Run `advisor fix` on one example."""
    limit_mib, arguments = IN_LITTLE_MEMORY.get(name, (None, ()))
    target = [str(EXAMPLES / f"{name}.py"), *arguments]
    with tempfile.TemporaryDirectory(prefix="proof-times-") as folder, limited(limit_mib):
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "advisor"]
        prepared = [*command, "analyze", "--quiet", "--in-place", "--steps", "20", "--out", f"{folder}/run", *target]
        subprocess.run(prepared, capture_output=True, timeout=LIMIT_S, check=False)
        began = time.monotonic()
        with report.open("wb") as out:
            process = subprocess.Popen(
                [*command, "fix", "--json", "-", "--out", f"{folder}/fix", *target],
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stderr is not None
            lines = [(time.monotonic() - began, line.strip()) for line in process.stderr]
            code = process.wait(timeout=LIMIT_S)
        end_s = time.monotonic() - began
        if code:
            raise SystemExit(f"{name}: advisor fix ended with {code}: {lines[-1][1] if lines else ''}")
        return proof_of(name, lines, end_s, json.loads(report.read_text(encoding="utf-8")))


def proof_of(name: str, lines: Sequence[tuple[float, str]], end_s: float, report: dict[str, Any]) -> Proof:
    """Read a report, and the lines that were printed until then.

    Args:
        name: Name of the example.
        lines: (seconds, line) in order.
        end_s: Seconds to the end of the command.
        report: The report of `advisor fix`.
    """
    proof = report["proof"]
    return Proof(
        script=name,
        verdict_s=first(lines, lambda line: line == report["verdict"]["sentence"]),
        first_s=first(lines, is_proof),
        whole_s=first(reversed(lines), lambda line: line.startswith(WHOLE)),
        end_s=end_s,
        runs=proof["runs"],
        pairs=proof["end_to_end_turns"],
        verdict=proof["verdict"],
        training=proof["training"],
        phases={phase["name"]: phase["seconds"] for phase in proof["phases"]},
        notes=tuple(proof["notes"]),
    )


def is_proof(line: str) -> bool:
    """Whether a line says that a change is proved, on the pipeline alone or on the whole script."""
    return line.endswith("; kept.") or (line.startswith(WHOLE) and ", faster (" in line)


def first(lines: Iterable[tuple[float, str]], is_wanted: Callable[[str], bool]) -> float | None:
    """Seconds to the first line that is wanted; None if there is none."""
    return next((seconds for seconds, line in lines if is_wanted(line)), None)


def table(proofs: Sequence[Proof]) -> list[str]:
    """The lines of Markdown."""
    lines = [
        "| script | verdict | first proved change | last result of the whole script | end | "
        + " | ".join(f"of it {name}" for name in PHASES)
        + " | starts | pairs | proof | training |",
        "|" + "---|" * 12,
    ]
    for proof in proofs:
        times = proof.verdict_s, proof.first_s, proof.whole_s, proof.end_s, *map(proof.phases.get, PHASES)
        cells = [
            proof.script,
            *map(seconds_of, times),
            str(proof.runs),
            str(proof.pairs),
            proof.verdict,
            proof.training,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    measured = [proof for proof in proofs if proof.is_on_script]
    lines += ["", summary("Whole scripts measured", measured), summary("All", proofs)]
    return lines


def summary(title: str, proofs: Sequence[Proof]) -> str:
    """Median and worst time to the end of the command, as a paragraph of a list."""
    if not proofs:
        return f"* {title}: none."
    middle, worst = statistics.median(proof.end_s for proof in proofs), max(proofs, key=lambda proof: proof.end_s)
    first_s = [proof.first_s for proof in proofs if proof.first_s is not None]
    early = f" First proved change: median {statistics.median(first_s):.0f} s." if first_s else ""
    return (
        f"* {title} ({len(proofs)}): median {middle:.0f} s (wanted: {WANTED_MEDIAN_S:.0f} s), worst {worst.end_s:.0f} s "
        f"({worst.script}; wanted: {WANTED_WORST_S:.0f} s).{early}"
    )


def seconds_of(seconds: float | None) -> str:
    """`42 s`, or a dash."""
    return "-" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    main()
