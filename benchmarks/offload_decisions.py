"""Pipelines of which it is known whether they can move to tf.data service: what `advisor offload` says of them.

    python benchmarks/offload_decisions.py [NAME ...] [--write-docs]

In: the pipelines of `offload_pipelines.py`, each with the truth: whether it can move, after which call, or why it cannot and on
which line.  Out: a table: the truth and the decision of `advisor offload`, which runs those that may move through worker
processes and compares the elements. The table shows no measured time, so other programs may run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload_pipelines import MARK, PIPELINES, Pipeline, make_data, script_of
from published import machine_sentence, write_section


@dataclass(frozen=True)
class Decision:
    """What `advisor offload` said of a pipeline."""

    pipeline: Pipeline
    verdict: str
    after: str
    cause: str
    line: int
    """Line of the first objection; 0 if there is none."""
    marked_line: int
    compared: str
    diff: str

    @property
    def is_right(self) -> bool:
        """Whether verdict and place, or verdict, cause and line, are the true ones, and the change has what it has to have."""
        truth = self.pipeline
        if (self.verdict, self.cause) != (truth.verdict, truth.cause) or not self.has_all_changes:
            return False
        return self.after == truth.after if truth.after else self.line == self.marked_line

    @property
    def has_all_changes(self) -> bool:
        """Whether the diff adds what the truth names."""
        added = "\n".join(line for line in self.diff.splitlines() if line.startswith("+"))
        shortened = re.sub(r"\.apply\(tf\.data\.experimental\.service\.distribute\([^()]*\)\)", "...", added)
        return all(part in shortened for part in self.pipeline.written)

    def cells(self) -> str:
        """The row of the table."""
        truth = self.pipeline
        true = f"{truth.verdict}, {truth.cause}" if truth.cause else f"{truth.verdict}, after `{truth.after}`"
        where = f"{self.cause}, line {self.line}" if self.cause else f"after `{self.after}`"
        said = "right" if self.is_right else f"**wrong**: {self.verdict}, {where}"
        if not self.has_all_changes:
            said += ", without the change of the script that it takes"
        return f"| {truth.name} | {truth.what} | {true} | {said} | {self.compared} |"


def main() -> None:
    """Decide on all pipelines and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these pipelines")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    chosen = [pipeline for pipeline in PIPELINES if not options.names or pipeline.name in options.names]
    with tempfile.TemporaryDirectory(prefix="offload-decisions-") as name:
        data = Path(name) / "data"
        make_data(data)
        decisions = []
        for pipeline in chosen:
            decisions.append(decided(pipeline, Path(name), data))
            print(decisions[-1].cells(), flush=True)
    lines = report(decisions)
    print("\n".join(lines))
    if options.write_docs:
        write_section("offload-decisions", lines)


def decided(pipeline: Pipeline, folder: Path, data: Path) -> Decision:
    """Run `advisor offload` on one pipeline."""
    script = folder / f"{pipeline.name.replace(' ', '_')}.py"
    text = script_of(pipeline, data)
    script.write_text(text)
    marked = next((number for number, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)), 0)
    command = [sys.executable, "-m", "advisor", "offload", "--budget", "4min", "--quiet", "--json", "-", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(f"{pipeline.name}: advisor offload ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    movability, measured = found["movability"], found["measurement"]
    objections = sorted(
        movability["objections"], key=lambda found: found["verdict"] != "refused"
    )  # the sentence names the first
    first = next(iter(objections), None)
    compared = (
        "" if measured is None else {True: "equal", False: "different", None: "not compared"}[measured["same_elements"]]
    )
    site = first["site"] if first is not None else None
    return Decision(
        pipeline,
        movability["verdict"],
        movability["after"],
        first["cause"] if first is not None else "",
        site["line"] if site is not None else 0,
        marked,
        compared,
        found["diff"],
    )


def report(decisions: Sequence[Decision]) -> list[str]:
    """Return the table with its summary."""
    right = sum(decision.is_right for decision in decisions)
    movable = sum(decision.pipeline.verdict == "movable" for decision in decisions)
    return [
        machine_sentence(),
        f"{right} of {len(decisions)} decisions are right: {movable} pipelines can move, {len(decisions) - movable} cannot, or "
        "it is undecidable. Right means: the verdict, the call after which the elements leave the workers and the change of the "
        "script, or the verdict, the cause and its line.",
        "",
        "| pipeline | what is special | truth | `advisor offload` | elements through workers |",
        "|---|---|---|---|---|",
        *(decision.cells() for decision in decisions),
    ]


if __name__ == "__main__":
    main()
