"""Tries the advice on the training step on the whole script: on the example of each rule, and on scripts from the wild.

    python benchmarks/step_advice.py [--only NAME] [--corpus DIR [--sources DIR]] [--budget 10min] [--results FILE] [--write-docs]

In: the examples of the six rules that change the step; with `--corpus`, the recipes in `benchmarks/wild/recipes`, whose scripts
and data lie in DIR as with `wild_scripts.py --work DIR`.  Out: what became of each change (proved, crashed, not faster, ...), its
measured speedup and the deviation of the loss, and how often each was the case; exit code 1 if a change that was not proved is
among the findings. With `--results`, rows are kept in FILE, and what it holds is not measured again.

Each script is run by `advisor fix --allow numerics` with the six rules alone: the whole script, without and with the change, in
alternation. Nothing else may run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from published import machine_sentence, note_run, write_section

from advisor.model.errors import AdvisorError
from advisor.model.outcome import Interval
from advisor.model.units import format_range, format_share, parse_seconds

EXAMPLES = {
    "short-steps": "short_steps",
    "eager-step": "eager_step",
    "small-batch": "small_batch",
    "retracing": "retracing_shapes",
    "full-precision": "full_precision",
    "no-xla": "no_xla",
}
"""Rule -> its example whose change can be written."""
FOLDER = Path(__file__).parents[1] / "examples"
PROVED, CRASHED, BROKEN, NOT_FASTER = "proved", "crashed", "broken", "not faster"
NOT_MEASURED, NOT_WRITTEN, NOT_TRIED, SILENT = "not measured", "not written", "not tried", "no advice"
TRIED = (PROVED, CRASHED, BROKEN, NOT_FASTER)
OUTCOMES = {
    PROVED: "faster with the whole script",
    CRASHED: "the script fails with the change",
    BROKEN: "the change alters the data, or moves the loss by more than rounding does",
    NOT_FASTER: "same or slower with the whole script",
    NOT_MEASURED: "written, but not measured within the budget",
    NOT_WRITTEN: "a hint whose change is left to the user",
    NOT_TRIED: "rejected before any run: the model's largest product gains too little",
    SILENT: "the rule has nothing to say",
}
_FAILS = "the script fails with it: "
"""What precedes the error of a script in the reason of a rejected change (`advisor.prove.search.step_trials`)."""


@dataclass(frozen=True)
class Row:
    """What became of the advice of one rule on one script."""

    script: str
    rule: str
    outcome: str
    speedup: Interval | None = None
    loss: float | None = None
    """Largest relative deviation of the mean loss of the first batches; None if it is unknown."""
    between: float | None = None
    """The same deviation between unchanged runs; None if it is unknown."""
    why: str = ""
    is_above_the_fold: bool = False
    """Whether it is among the findings."""

    @property
    def is_misplaced(self) -> bool:
        """Whether advice that was not proved is among the findings."""
        return self.is_above_the_fold and self.outcome != PROVED


@dataclass(frozen=True)
class Script:
    """A script to try, and how it is run."""

    name: str
    words: tuple[str, ...]
    """The script and its arguments."""
    folder: Path
    environment: Mapping[str, str]
    rules: tuple[str, ...]


def main() -> int:
    """Try the changes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="an example or a recipe; may be repeated")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="try scripts from the wild too; their folder")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="copies of repositories, as <owner>+<name>/<path>")
    parser.add_argument("--budget", default="10min", help="for each script (default: %(default)s)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep the rows in this file")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    kept = read_rows(options.results)
    examples, corpus = [], []
    for script in chosen(examples_of_rules(), options.only):
        examples += rows_of(script, kept, options.budget, options.results)
    for script in chosen(scripts_from_the_wild(options.corpus, options.sources), options.only):
        corpus += rows_of(script, kept, options.budget, options.results)
    lines = [machine_sentence(options.results), "", *table(examples)]
    if corpus:
        lines += ["", *counts(corpus), "", *table([row for row in corpus if row.outcome != SILENT])]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("step-advice", lines)
    return 1 if any(row.is_misplaced for row in (*examples, *corpus)) else 0


def chosen(scripts: Iterator[Script], only: Sequence[str] | None) -> Iterator[Script]:
    """The scripts with these names; all without names."""
    return (script for script in scripts if only is None or script.name in only)


def examples_of_rules() -> Iterator[Script]:
    """The examples, each for its own rule."""
    for rule, name in EXAMPLES.items():
        yield Script(name, (str(FOLDER / f"{name}.py"),), FOLDER, {}, (rule,))


def scripts_from_the_wild(work: Path | None, sources: Path | None) -> Iterator[Script]:
    """The scripts of the recipes, for all rules; those whose packages or files are missing are named and left out."""
    if work is None:
        return
    from wild.recipe import read_recipes
    from wild_scripts import environment, prepare

    work.mkdir(parents=True, exist_ok=True)
    for recipe in read_recipes():
        try:
            folder = prepare(recipe, work.resolve(), sources)
        except AdvisorError as error:
            print(f"{recipe.name}: left out: {error}", flush=True)
            continue
        words = (str(recipe.local_path(recipe.script)), *recipe.arguments)
        yield Script(recipe.name, words, folder, environment(recipe, folder), tuple(EXAMPLES))


def read_rows(path: Path | None) -> dict[str, list[Row]]:
    """Script -> the rows that an earlier run measured."""
    if path is None or not path.exists():
        return {}
    return dict(msgspec.json.decode(line, type=tuple[str, list[Row]]) for line in path.read_bytes().splitlines())


def rows_of(script: Script, kept: Mapping[str, list[Row]], budget: str, results: Path | None) -> list[Row]:
    """The rows of one script, measured unless they are kept."""
    rows = kept.get(script.name)
    if rows is None:
        report = fixed(script, budget)
        if isinstance(report, str):
            rows = [Row(script.name, rule, NOT_MEASURED, why=report) for rule in script.rules]
        else:
            rows = [row_of(script.name, rule, report) for rule in script.rules]
            if results is not None:
                note_run(results)
                with results.open("ab") as file:
                    file.write(msgspec.json.encode((script.name, rows)) + b"\n")
    for row in rows:
        print(said(row), flush=True)
    return rows


def fixed(script: Script, budget: str) -> dict[str, Any] | str:
    """The report of `advisor fix`, or the last line that it printed if it failed."""
    only = [word for rule in script.rules for word in ("--only", rule)]
    with tempfile.TemporaryDirectory(prefix="step-advice-") as folder:
        command = [sys.executable, "-m", "advisor", "fix", "--allow", "numerics", *only, "--budget", budget]
        try:
            done = subprocess.run(
                [*command, "--quiet", "--json", "-", "--out", str(Path(folder) / "run"), *script.words],
                capture_output=True, text=True, check=False, cwd=script.folder, env={**os.environ, **script.environment},
                timeout=2 * parse_seconds(budget) + 300,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within twice the budget of {budget}"
    if done.returncode:
        return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def row_of(script: str, rule: str, report: Mapping[str, Any]) -> Row:
    """What a report says about one rule."""
    is_above = any(finding["rule"] == rule for finding in report["findings"])
    rejected = next((entry["reason"] for entry in report["rejected"] if entry["rule"] == rule), "")
    details = report["proof"]["fixes"] if report["proof"] else ()
    tried = [pair for pair in zip(report["fixes"], details, strict=True) if pair[0]["rule"] == rule]
    for fix, detail in tried:
        measured, loss = fix["measured"], detail["loss"]
        speedup = None if measured is None else Interval(measured["speedup"], measured["low"], measured["high"])
        outcome, why = NOT_FASTER, ""
        if fix["verdict"] == "faster":
            outcome = PROVED
        elif fix["verdict"] == "broken":
            outcome, why = CRASHED if rejected.startswith(_FAILS) else BROKEN, rejected.removeprefix(_FAILS)
        apart, between = (None, None) if loss is None else (loss["relative"], loss["between_runs"])
        return Row(script, rule, outcome, speedup, apart, between, why, is_above)
    if rejected:
        return Row(script, rule, NOT_TRIED, why=rejected, is_above_the_fold=is_above)
    hint = next((hint for hint in report["hints"] if hint["rule"] == rule), None)
    if hint is None:
        return Row(script, rule, SILENT, is_above_the_fold=is_above)
    return Row(script, rule, NOT_WRITTEN if hint["diff"] is None else NOT_MEASURED, is_above_the_fold=is_above)


def table(rows: Sequence[Row]) -> list[str]:
    """One line per script and rule."""
    head = [
        "| script | rule | outcome | speedup of a step | deviation of the loss (between unchanged runs) | reason |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *(f"| {' | '.join(cells(row))} |" for row in rows)]


def cells(row: Row) -> tuple[str, ...]:
    """The cells of one line."""
    speed = "-" if row.speedup is None else format_range(row.speedup.value, row.speedup.low, row.speedup.high)
    loss = "-" if row.loss is None else format_share(row.loss)
    if row.between is not None:
        loss += f" ({format_share(row.between)})"
    return row.script, row.rule, row.outcome, speed, loss, row.why.replace("|", "\\|") or "-"


def said(row: Row) -> str:
    """One line for display."""
    return " ".join(cell for cell in cells(row) if cell != "-")[:300]


def counts(rows: Sequence[Row]) -> list[str]:
    """How often the advice of each rule was tried on the corpus, and what came of it."""
    scripts = len({row.script for row in rows})
    lines = [
        f"{scripts} scripts from the wild. Step advice that was not proved among the findings: "
        f"{sum(row.is_misplaced for row in rows)}.",
        "",
        f"| rule | tried | {' | '.join(OUTCOMES)} |",
        f"|---|---|{'---|' * len(OUTCOMES)}",
    ]
    for rule in EXAMPLES:
        of_rule = Counter(row.outcome for row in rows if row.rule == rule)
        cells_ = [rule, sum(of_rule[outcome] for outcome in TRIED), *(of_rule[outcome] for outcome in OUTCOMES)]
        lines.append(f"| {' | '.join(map(str, cells_))} |")
    return [*lines, "", *(f"* {outcome}: {meaning}" for outcome, meaning in OUTCOMES.items())]


if __name__ == "__main__":
    sys.exit(main())
