"""Compares the predicted with the measured speedup of a training when the cost of one node is removed.

    python benchmarks/bottleneck_accuracy.py --runs RUNS
    python benchmarks/removed_costs.py RUNS [--write-docs]

In: run folders stored by `bottleneck_accuracy.py`, and its `truth.json`: the consumer's speedup, measured without the
advisor, when a node's cost was removed.  Out: the prediction of that speedup and its error for every node of every script.

`predictions.py` measures what fixes gain in the pipeline alone. Here, the consumer computes on the same cores as the pipeline,
nodes are located before and after buffers, and most removals gain little, so a model that predicts too much is detected.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bottleneck_accuracy import Case, read_cases, read_truths
from published import machine_sentence, write_section

from advisor.graph import analyse
from advisor.model.calls import Call
from advisor.model.codec import decode
from advisor.model.errors import AdvisorError
from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator
from advisor.model.recording import Recording
from advisor.predict import predict_speedup
from advisor.profile import read_trace

TOLERANCE = 0.05
"""Uncertainty of the median of three turns; a range that misses by less counts as inside."""
WORTH_IT = 1.1
"""Gains above this are those that a user would act on."""


@dataclass(frozen=True)
class Row:
    """One node of one script."""

    script: str
    node: str
    predicted: Prediction
    measured: float
    """At least 1: removing a cost makes nothing slower, so lower values are noise."""

    @property
    def error(self) -> float:
        """Relative error: above 0 if the prediction exceeds the measurement."""
        return self.predicted.value / self.measured - 1

    @property
    def is_inside(self) -> bool:
        """Whether the predicted range contains the measurement."""
        return self.predicted.low * (1 - TOLERANCE) <= self.measured <= self.predicted.high * (1 + TOLERANCE)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    truths = read_truths()
    rows: list[Row] = []
    finished = (path.parent.name for path in options.runs.glob("*/recording.json"))
    for name in sorted(name for name in finished if name in truths):
        try:
            rows += rows_of(read_cases([name])[0], options.runs / name, truths[name].speedups())
        except AdvisorError as error:
            print(f"{name}: {error}")
    for row in sorted(rows, key=lambda row: -abs(row.error)):
        p = row.predicted
        print(
            f"{row.script:22} {row.node:12} {p.value:6.2f} ({p.low:.2f} to {p.high:.2f})  {row.measured:6.2f}  {row.error:+.0%}"
        )
    lines = [machine_sentence(), "", *summary(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("removed-costs", lines)


def rows_of(case: Case, run: Path, speedups: dict[str, float]) -> list[Row]:
    """The nodes of one script that appear in the profile.

    Raises:
        AdvisorError: If there is no profile.
    """
    recording = decode((run / "recording.json").read_bytes(), Recording)
    analysis = analyse(read_trace(run), recording, str(case.script))
    rows = []
    for node, speedup in speedups.items():
        costs = left_without(analysis, case, node)
        predicted = predict_speedup(analysis, analysis.main, costs, costs) if analysis.main and costs else None
        if predicted is not None:
            rows.append(Row(case.name, node, predicted, max(1.0, speedup)))
    return rows


def left_without(analysis: Analysis, case: Case, node: str) -> dict[str, float]:
    """Iterator id -> the share of its cost that remains when a node's cost is removed."""
    left: dict[str, float] = {}
    for iterator in analysis.main.iterators if analysis.main else ():
        for call in iterator.calls:
            site = call.site
            if site and Path(site.file).resolve() == case.script and case.node_at(site.line, site.end_line) == node:
                left[iterator.id] = left.get(iterator.id, 1.0) - share_of(iterator, call)
    return {iterator_id: max(0.0, share) for iterator_id, share in left.items()}


def share_of(iterator: Iterator, call: Call) -> float:
    """For an iterator into which several calls are fused: this call's share of its work."""
    if len(iterator.calls) == 1:
        return 1.0
    function = min(1.0, iterator.function_ns / iterator.busy_ns) if iterator.busy_ns else 0.0
    return function if call.function is not None else 1 - function


def summary(rows: Sequence[Row]) -> list[str]:
    """A table of errors, for all nodes and for those that matter."""
    lines = [
        "| nodes | | median error | 90th percentile | median ratio | inside the range |",
        "|---|---|---|---|---|---|",
    ]
    worth = [row for row in rows if max(row.measured, row.predicted.value) > WORTH_IT]
    for name, chosen in (("all", rows), (f"predicted or measured above {WORTH_IT}x", worth)):
        if chosen:
            errors = sorted(abs(row.error) for row in chosen)
            ratio = statistics.median(row.predicted.value / row.measured for row in chosen)
            lines.append(
                f"| {name} | {len(chosen)} | {statistics.median(errors):.0%} | {errors[int(0.9 * (len(errors) - 1))]:.0%} | "
                f"{ratio:.2f} | {sum(row.is_inside for row in chosen)} |"
            )
    return lines


if __name__ == "__main__":
    main()
