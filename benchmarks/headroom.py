"""Compares the headroom that a report predicts with the measured rate of the same pipeline alone.

    python benchmarks/headroom.py [--only NAME] [--write-docs]

In: `benchmarks/healthy/*.py` and `examples/tuned.py`, whose training does not wait for input.
Out: per script the predicted time per element with its range, the measured one, and the error; then the median of the errors.

A script is analysed once (`advisor analyze`). Then it is held at its first element, and its pipeline is iterated over as fast as
possible, without training; the mean time per element of the unprofiled stretch is the measurement.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from predictions import training
from published import machine_sentence, write_section
from silence import HEALTHY

from advisor.capture.request import CaptureRequest
from advisor.engine import LoadedRule, load_rules
from advisor.model.errors import AdvisorError
from advisor.model.outlook import Headroom
from advisor.model.settings import Settings
from advisor.model.units import format_ns
from advisor.predict.structure import consumed_call
from advisor.prove.proof_session import ProofSession
from advisor.workflows.analyze import analyze_run

EXAMPLES = Path(__file__).parents[1] / "examples"
SESSION_S = 120.0


@dataclass(frozen=True)
class Row:
    """One script."""

    script: str
    predicted: Headroom
    measured_ns: float

    @property
    def error(self) -> float:
        """Relative error of the predicted rate: 0.1 means that 10 % more elements were predicted than measured."""
        return self.measured_ns / self.predicted.element_ns - 1

    @property
    def is_inside(self) -> bool:
        """Whether the measurement is inside the predicted range."""
        return self.predicted.low_ns <= self.measured_ns <= self.predicted.high_ns


def main() -> None:
    """Measure all scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="the file's name without .py; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(EXAMPLES)  # some scripts read the data that the examples make
    rules = load_rules([], Settings())
    rows = []
    for script in HEALTHY:
        if options.only is not None and script.stem not in options.only:
            continue
        try:
            row = measure(script, rules)
        except AdvisorError as error:
            print(f"{script.stem}: {str(error).splitlines()[-1]}", flush=True)
            continue
        if isinstance(row, str):
            print(f"{script.stem}: {row}", flush=True)
            continue
        rows.append(row)
        print(
            f"{row.script}: predicted {format_ns(row.predicted.element_ns)} ({format_ns(row.predicted.low_ns)} to "
            f"{format_ns(row.predicted.high_ns)}), measured {format_ns(row.measured_ns)}, {row.error:+.0%}",
            flush=True,
        )
    lines = [machine_sentence(), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("headroom", lines)


def measure(script: Path, rules: list[LoadedRule]) -> Row | str:
    """The row of a script, or why there is none."""
    with tempfile.TemporaryDirectory(prefix="headroom-") as folder, training(script, (), rules) as report:
        predicted = report.outlook.headroom if report.outlook is not None else None
        main = report.analysis.main
        if predicted is None or main is None:
            return f"no headroom is predicted ({report.analysis.verdict.sentence})"
        consumed = consumed_call(report.analysis, main)
        if consumed is None:
            return "the consumed dataset is unknown"
        request = CaptureRequest(Path(folder) / "run", script)
        calls = report.analysis.calls
        with ProofSession(request, consumed, SESSION_S, lambda progress: None, calls) as session:
            alone = analyze_run(session.profile(()), rules, Settings())
    steps = alone.analysis.verdict.steps
    if steps is None:
        return "the pipeline alone has too few steps"
    return Row(script.stem, predicted, steps.mean_ns)


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, and the summary."""
    lines = [
        "| script | predicted, per element | range | measured | error of the rate |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        made = row.predicted
        lines.append(
            f"| {row.script} | {format_ns(made.element_ns)} | {format_ns(made.low_ns)} to {format_ns(made.high_ns)} | "
            f"{format_ns(row.measured_ns)} | {row.error:+.0%} |"
        )
    if rows:
        inside = sum(row.is_inside for row in rows)
        middle = statistics.median(abs(row.error) for row in rows)
        lines += [
            "",
            f"Median error {middle:.0%}; {inside} of {len(rows)} measurements are inside the predicted range.",
        ]
    return lines


if __name__ == "__main__":
    main()
