"""Checks that the advisor names the call whose removal helps most, on pipelines whose bottleneck is known by intervention.

    python benchmarks/bottleneck_accuracy.py [CASE ...] [--refresh] [--truth-only] [--runs DIR] [--write-docs]

In: the scripts of `benchmarks/bottlenecks/`.  Out: a table and a summary; `benchmarks/bottlenecks/truth.json` with the
measured rates; with `--write-docs` the table in `docs/benchmarks.md`. Exit code 1 if a named call is wrong.

The truth is measured first: each script runs without the advisor, unchanged and once without the cost of each of its nodes, in
alternation (`bottlenecks/lab.py`). The bottleneck is the node whose removal speeds up the consumer most. Rates in truth.json are
reused while the script that they were measured with has not changed. Then the unmodified script is captured and analysed
like any user's script, and the line that the advisor names is compared with the line marked `# node: <name>`.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.graph import analyse
from advisor.host.machine import describe_host
from advisor.model.codec import decode
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis, Iterator
from advisor.model.recording import Recording
from advisor.profile import read_trace

FOLDER = Path(__file__).resolve().parent / "bottlenecks"
TRUTH = FOLDER / "truth.json"
DOCS = FOLDER.parents[1] / "docs" / "benchmarks.md"
DOCS_BEGIN, DOCS_END = "<!-- bottlenecks: begin -->", "<!-- bottlenecks: end -->"
NODE = re.compile(r"# node: (\w+)")

CLEAR_SPEEDUP = 1.5
"""A node is the bottleneck if the consumer is at least this much faster without it ..."""
CLEAR_LEAD = 1.1
"""... and at least this much faster than without any other node. Differences below 10 % are within the noise."""
NO_SPEEDUP = 1.2
"""If no removal gives more, there is no bottleneck: on few cores even a free pipeline leaves the model more CPU time."""

CASE_TIMEOUT_S = 300
RUN_SECONDS = 60
"""Longest training time under the advisor, which stops the script once its window is measured."""


@dataclass(frozen=True)
class Case:
    """One script: its nodes and the lines on which they are marked."""

    name: str
    script: Path
    lines: dict[str, tuple[int, ...]]

    def digest(self) -> str:
        """Changes when earlier rates are no longer valid for this script."""
        code = "".join(_code_of(path) for path in (self.script, FOLDER / "lab.py"))
        return hashlib.sha256(code.encode()).hexdigest()[:16]

    def node_at(self, first_line: int, last_line: int) -> str | None:
        """The node marked within a call's lines."""
        for node, lines in self.lines.items():
            if any(first_line <= line <= last_line for line in lines):
                return node
        return None


def _code_of(path: Path) -> str:
    """The lines of a file without comments, docstrings and empty lines, whose wording changes no rate."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.end_lineno is not None:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


@dataclass(frozen=True)
class Truth:
    """Results of the interventions. Rates are steps per second of the consumer, one per turn."""

    digest: str
    measured_at: str
    as_is: list[float]
    without: dict[str, list[float]]
    machine: dict[str, object] = field(default_factory=dict)

    def speedups(self) -> dict[str, float]:
        """Node -> consumer's rate without its cost divided by the unchanged rate (medians over the turns)."""
        base = statistics.median(self.as_is)
        return {node: statistics.median(rates) / base for node, rates in self.without.items()}

    def verdict(self) -> str:
        """The bottleneck's node, `none`, or `unclear`."""
        ranked = sorted(self.speedups().items(), key=lambda item: -item[1])
        best, best_speedup = ranked[0]
        if best_speedup < NO_SPEEDUP:
            return "none"
        second_speedup = ranked[1][1] if len(ranked) > 1 else 1.0
        if best_speedup >= CLEAR_SPEEDUP and best_speedup >= CLEAR_LEAD * second_speedup:
            return best
        return "unclear"


@dataclass(frozen=True)
class Named:
    """The advisor's answer."""

    node: str
    """A node's name, `none` (not input-bound), or the place that was named instead."""
    line: int | None = None
    blame_share: float | None = None
    resource: str = ""
    iterator: str = ""
    is_never_right: bool = False
    """Whether an injected iterator, a shuffle or the root was blamed."""


def read_cases(names: Iterable[str]) -> list[Case]:
    """All scripts of the benchmark, or the given ones.

    Raises:
        SystemExit: If a given name does not exist.
    """
    cases = {}
    for script in sorted(FOLDER.glob("*.py")):
        text = script.read_text(encoding="utf-8")
        if "lab.run(main)" not in text or script.name == "lab.py":
            continue
        lines: dict[str, tuple[int, ...]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if marker := NODE.search(line):
                lines[marker[1]] = (*lines.get(marker[1], ()), number)
        cases[script.stem] = Case(script.stem, script, lines)
    if missing := [name for name in names if name not in cases]:
        raise SystemExit(f"No case {missing[0]} in {FOLDER}; there are {', '.join(cases)}.")
    return [cases[name] for name in names or cases]


def read_truths() -> dict[str, Truth]:
    """Case name -> rates measured earlier."""
    if not TRUTH.exists():
        return {}
    return {name: Truth(**entry) for name, entry in json.loads(TRUTH.read_text(encoding="utf-8")).items()}


def measure_truth(case: Case, turns: int) -> Truth:
    """Run the script without the advisor, unchanged and without each node, in alternation."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "truth.json"
        environment = {
            **os.environ, "BOTTLENECK_TRUTH": str(result), "BOTTLENECK_TURNS": str(turns), "TF_CPP_MIN_LOG_LEVEL": "3",
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, str(case.script)], env=environment, capture_output=True, text=True, timeout=CASE_TIMEOUT_S
        )
        if ended.returncode:
            raise SystemExit(f"{case.script} failed:\n{ended.stderr[-2000:]}")
        rates = json.loads(result.read_text(encoding="utf-8"))
    host = describe_host()
    machine = {"cores": host.cores, "memory_gib": round(host.memory_bytes / 2**30, 1), "python": sys.version.split()[0]}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Truth(case.digest(), now, rates["as_is"], rates["without"], machine)


def write_truths(truths: dict[str, Truth]) -> None:
    """Store the rates of every case, rounded to significant digits."""
    entries = {}
    for name, truth in sorted(truths.items()):
        entry = asdict(truth)
        entry["as_is"] = [round(rate, 2) for rate in truth.as_is]
        entry["without"] = {node: [round(rate, 2) for rate in rates] for node, rates in truth.without.items()}
        entries[name] = entry
    TRUTH.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def run_advisor(case: Case, folder: Path) -> Named:
    """Capture and analyse the script like a user's, and return which of its nodes is named."""
    os.environ["BOTTLENECK_RUN_SECONDS"] = str(RUN_SECONDS)
    try:
        run = capture(CaptureRequest(out=folder / case.name, script=case.script), on_progress=lambda progress: None)
        recording = decode((run / "recording.json").read_bytes(), Recording)
        analysis = analyse(read_trace(run), recording, str(case.script))
    except AdvisorError as error:
        return Named(f"error: {error}")
    return what_is_named(case, analysis)


def what_is_named(case: Case, analysis: Analysis) -> Named:
    """The node of the main pipeline's bottleneck; `none` if the verdict is not input-bound."""
    pipeline = analysis.main
    if not analysis.verdict.is_input_bound:
        return Named("none", resource=analysis.verdict.limit)
    if pipeline is None or pipeline.bottleneck is None:
        return Named("nothing named")
    bottleneck = pipeline.bottleneck
    iterator = pipeline.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    site = call.site if call else None
    node = None
    if site and Path(site.file).resolve() == case.script:
        node = case.node_at(site.line, site.end_line)
    return Named(
        node=node or (f"unmarked {iterator.name}"),
        line=site.line if site else None,
        blame_share=bottleneck.blame_share,
        resource=bottleneck.resource,
        iterator=iterator.name,
        is_never_right=is_never_right(iterator),
    )


def is_never_right(iterator: Iterator) -> bool:
    """Whether the call is never the cause: an injected iterator, a shuffle's fill, the root."""
    return iterator.injected_by_tensorflow or iterator.name in ("Root", "Model") or iterator.name.startswith("Shuffle")


def print_table(rows: list[tuple[Case, Truth, Named | None]], console: Console) -> None:
    """One line per case."""
    table = Table(
        "case", "bottleneck by intervention", "faster without it", "named", "iterator", "line", "blame", "resource", "right",
    )  # fmt: skip
    for case, truth, named in rows:
        verdict = truth.verdict()
        fastest = max(truth.speedups().values())
        cells = [case.name, verdict, f"{fastest:.2f}x"]
        if named is not None:
            line = "" if named.line is None else f"{case.script.name}:{named.line}"
            blame = "" if named.blame_share is None else f"{named.blame_share:.0%}"
            cells += [named.node, named.iterator, line, blame, named.resource, is_right(truth, named)]
        table.add_row(*cells)
    console.print(table)


def is_right(truth: Truth, named: Named) -> str:
    """`yes`, `no`, or `unclear` if the interventions do not single out a node."""
    verdict = truth.verdict()
    return "unclear" if verdict == "unclear" else "yes" if named.node == verdict else "no"


def summarize(rows: list[tuple[Case, Truth, Named | None]]) -> str:
    """The counts of right, wrong and unclear cases in one sentence."""
    unclear = [case.name for case, truth, _ in rows if truth.verdict() == "unclear"]
    text = f"{len(rows)} cases, {len(rows) - len(unclear)} with a clear bottleneck or clearly none"
    text += f" (unclear: {', '.join(unclear)})." if unclear else "."
    judged = [(truth, named) for _, truth, named in rows if named is not None and truth.verdict() != "unclear"]
    if judged:
        right = sum(is_right(truth, named) == "yes" for truth, named in judged)
        never = [named.iterator for _, named in judged if named.is_never_right]
        text += (
            f" Named rightly: {right} of {len(judged)}. Injected iterator, shuffle or root blamed: {len(never)} times"
        )
        text += f" ({', '.join(never)})." if never else "."
    return text


def write_docs(rows: list[tuple[Case, Truth, Named | None]]) -> None:
    """Replace the table in docs/benchmarks.md between its markers."""
    first = rows[0][1]
    where = f"{first.machine['cores']:g} cores, {first.machine['memory_gib']} GiB"
    when = f"Interventions of {first.measured_at[:10]} on {where}; the advisor's answers of {datetime.date.today()}."
    lines = [
        DOCS_BEGIN, "", f"{when} {summarize(rows)}", "",
        "| case | bottleneck by intervention | consumer without it | named | right |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for case, truth, named in rows:
        fastest = max(truth.speedups().values())
        said = "" if named is None else named.node if named.line is None else f"{named.node} (line {named.line})"
        verdict = "" if named is None else is_right(truth, named)
        lines.append(f"| {case.name} | {truth.verdict()} | {fastest:.2f}x | {said} | {verdict} |")
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition(DOCS_BEGIN)
    _, _, after = rest.partition(DOCS_END)
    DOCS.write_text(before + "\n".join([*lines, "", DOCS_END]) + after, encoding="utf-8")


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--refresh", action="store_true", help="measure the truth again even where it is known")
    parser.add_argument("--truth-only", action="store_true", help="do not run the advisor")
    parser.add_argument("--turns", type=int, default=3, help="how often each variant runs (default 3)")
    parser.add_argument("--runs", type=Path, help="keep the run folders here")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()

    console = Console(width=160)
    progress = Console(stderr=True)
    cases = read_cases(arguments.cases)
    truths = read_truths()
    for number, case in enumerate(cases, 1):
        known = truths.get(case.name)
        if arguments.refresh or known is None or known.digest != case.digest():
            progress.print(f"truth {number}/{len(cases)}: {case.name}")
            truths[case.name] = measure_truth(case, arguments.turns)
            write_truths(truths)
    rows: list[tuple[Case, Truth, Named | None]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.runs or Path(scratch)
        for number, case in enumerate(cases, 1):
            named = None
            if not arguments.truth_only:
                progress.print(f"advisor {number}/{len(cases)}: {case.name}")
                named = run_advisor(case, folder)
            rows.append((case, truths[case.name], named))
    print_table(rows, console)
    console.print(summarize(rows), highlight=False)
    if arguments.write_docs:
        write_docs(rows)
    return int(any(named is not None and is_right(truth, named) == "no" for _, truth, named in rows))


if __name__ == "__main__":
    sys.exit(main())
