"""Repeats a case study: a script, what `advisor analyze` says of it, the change that `advisor fix` proves, and the script after.

    python benchmarks/case_study.py [flowers_like ...] [--budget 10min] [--pipeline-only] [--write-docs]

In: a script of `examples/`.  Out: the page of the case as Markdown: the printed reports, the figures of their JSON, and the
commits before and after. With `--write-docs` it is put between the markers of the page in `docs/case-studies/`, and its row
into the table of the cases, so no figure is typed by hand.

The script is committed to a new git repository, fixed there with `advisor fix --write`, and committed again. Author and date of
the commits are fixed, so whoever repeats a case gets the same commit before, and the same commit after if the same change is
proved. A case takes two to eight minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from published import machine_sentence, write_section

from advisor.model import units

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "case-studies"
INDEX = PAGES / "README.md"
SECTION, TABLE = "case", "cases"
"""Markers in the page of a case, and in the index."""
COLUMNS = 100
"""Width of the printed reports."""
BUSY_SHARE, LOOK_S = 0.15, 3.0
"""If other programs take a larger share of the cores in the seconds before the run, the page says that they ran."""
COMMITTER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "case study"), ("EMAIL", "case@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
}
SCRIPT = "train.py"
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Case:
    """A script of `examples/` and how it is fixed."""

    name: str
    permission: tuple[str, ...] = ()
    """Options of `advisor fix` that permit the change, as the report proposes them."""
    modules: tuple[str, ...] = ()
    """Modules of `examples/` that the script imports."""
    budget: str = "4min"
    is_pipeline_only: bool = False

    @property
    def page(self) -> Path:
        """The page of the case."""
        return PAGES / f"{self.name.replace('_', '-')}.md"

    @property
    def fix_command(self) -> list[str]:
        """The command that makes the change."""
        alone = ["--pipeline-only"] if self.is_pipeline_only else []
        return ["advisor", "fix", "--write", *self.permission, *alone, "--budget", self.budget, SCRIPT]


CASES = (
    Case("flowers_like", ("--allow", "rerandomized"), ("sample_data.py", "flowers_like_dataset.py"), budget="10min"),
    Case("parse_per_record", ("--only", "parse-per-record"), ("sample_data.py",)),
    Case("rebuilt_every_epoch"),
)


@dataclass(frozen=True)
class Step:
    """A command that was run: what it printed, its report.json, and how long it took."""

    text: str
    report: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Study:
    """A case that was run."""

    case: Case
    conditions: str
    before: Step
    fix: Step
    after: Step
    commits: tuple[str, str]
    diff: str


def main() -> None:
    """Run a case, print its page, and write it on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"{', '.join(case.name for case in CASES)} (default: all)"
    )
    parser.add_argument("--pipeline-only", action="store_true", help="for a busy machine: prove on the pipeline alone")
    parser.add_argument("--keep", type=Path, help="folder in which the repository and the runs of each case are kept")
    parser.add_argument("--budget", help="of the proof, for a busy machine; the default keeps a case below six minutes")
    parser.add_argument("--write-docs", action="store_true", help="put the result into docs/case-studies/")
    options = parser.parse_args()
    cases = [case for case in CASES if case.name in (options.cases or [case.name])]
    if unknown := set(options.cases) - {case.name for case in cases}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    for case in cases:
        changed = replace(case, budget=options.budget or case.budget, is_pipeline_only=options.pipeline_only)
        with folder_for(options.keep and options.keep / case.name) as folder:
            study = run(changed, folder)
        lines = section(study)
        print("\n".join(lines))
        if options.write_docs:
            write_section(SECTION, lines, case.page)
            write_row(study)


@contextmanager
def folder_for(kept: Path | None) -> Iterator[Path]:
    """Provide a new folder, which is deleted unless it has a name."""
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="advisor-case-") as folder:
        yield Path(folder)


def run(case: Case, folder: Path) -> Study:
    """Commit the script, analyse it, fix it, commit it again, and analyse it again.

    Raises:
        SystemExit: A command failed, or no change was proved.
    """
    conditions = f"{machine_sentence()} {busy_sentence()}"
    repository = folder / "repository"
    before = first_commit(case, repository)
    analysis = step(["advisor", "analyze", SCRIPT], repository, folder / "before")
    fix = step(case.fix_command, repository, folder / "fix")
    if not fix.report["proof"]["changed_files"]:
        sys.exit(f"{fix.text}\n\nNo change was proved in {case.budget}, so nothing was written.")
    after = commit(repository, shlex.join(case.fix_command))
    diff = git(repository, "diff", "--no-color", "--full-index", before, after)
    return Study(
        case, conditions, analysis, fix, step(["advisor", "analyze", SCRIPT], repository, folder / "after"), (before, after), diff
    )  # fmt: skip


def busy_sentence() -> str:
    """Whether other programs ran just before."""
    busy = psutil.cpu_percent(LOOK_S) / 100
    if busy <= BUSY_SHARE:
        return f"Other programs took {busy:.0%} of the cores before the run."
    return f"Other programs took {busy:.0%} of the cores before the run, so these are no figures of an idle machine."


def step(command: list[str], repository: Path, run_folder: Path) -> Step:
    """Run a command of the advisor in the repository.

    Raises:
        SystemExit: It failed.
    """
    report = run_folder.with_suffix(".json")
    name, verb, *rest = command
    words = [sys.executable, "-m", name, verb, "--out", str(run_folder), "--json", str(report), *rest]
    began = time.monotonic()
    done = subprocess.run(
        words, cwd=repository, env={**os.environ, "COLUMNS": str(COLUMNS)}, stdout=subprocess.PIPE, text=True
    )
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with exit code {done.returncode}.\n{done.stdout}")
    shown = [line for line in done.stdout.splitlines() if not line.startswith("Run folder:")]
    return Step("\n".join(shown).rstrip(), json.loads(report.read_text("utf-8")), seconds)


def first_commit(case: Case, repository: Path) -> str:
    """Make a repository with the script and the modules that it imports.

    Returns:
        The hash of its commit.
    """
    repository.mkdir()
    git(repository, "init", "--quiet", "--object-format=sha1")
    for source, target in ((f"{case.name}.py", SCRIPT), *((module, module) for module in case.modules)):
        (repository / target).write_bytes((ROOT / "examples" / source).read_bytes())
        git(repository, "add", target)
    return commit(repository, f"examples/{case.name}.py")


def commit(repository: Path, message: str) -> str:
    """Commit the changes of known files; return the hash."""
    git(repository, "commit", "--quiet", "--all", "--message", message)
    return git(repository, "rev-parse", "HEAD").strip()


def git(repository: Path, *words: str) -> str:
    """Run git without the settings of this machine and its user."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**outside, **COMMITTER, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=repository, env=env, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode("utf-8")


def section(study: Study) -> list[str]:
    """Return the generated part of the page."""
    case = study.case
    script = (ROOT / "examples" / f"{case.name}.py").read_text("utf-8")
    before, after = study.commits
    return [
        study.conditions,
        "",
        *figures(study),
        "",
        "One command repeats all of it, with the figures of your machine:",
        "",
        *fenced(shlex.join(["python", "benchmarks/case_study.py", *unusual_options(case), case.name])),
        "",
        "## Before",
        "",
        f"Commit `{before}`: the script as `{SCRIPT}`{f', and {listed(case.modules)}' if case.modules else ''}.",
        "",
        *fenced(script, "python"),
        "",
        "## The report",
        "",
        *fenced(f"$ advisor analyze {SCRIPT}\n{study.before.text}", "console"),
        "",
        "## The proof",
        "",
        *fenced(f"$ {shlex.join(case.fix_command)}\n{without_diff(study.fix.text)}", "console"),
        "",
        "## After",
        "",
        f"Commit `{after}`:",
        "",
        *fenced(study.diff, "diff"),
        "",
        "The report on the changed script begins:",
        "",
        *fenced(f"$ advisor analyze {SCRIPT}\n{beginning(study.after.text)}", "console"),
    ]


def unusual_options(case: Case) -> list[str]:
    """Return the options with which the case was run, as on a busy machine."""
    usual = next(one for one in CASES if one.name == case.name)
    budget = [] if case.budget == usual.budget else ["--budget", case.budget]
    return [*budget, *(["--pipeline-only"] if case.is_pipeline_only else [])]


def figures(study: Study) -> list[str]:
    """Return the table with the figures of the case, from the JSON of the three commands."""
    proof = study.fix.report["proof"]
    comparison = study.fix.report["comparison"] or {}
    pipeline = comparison.get("pipeline") or {}
    sides = (proof["before"], proof["after"])
    rows = [
        ("the training waits for", bottleneck(study.before.text)),
        ("changes", listed(changes(study))),
        ("effect on the data", listed(sorted({fix["safety_seen"] or "not compared" for fix in kept(study)}))),
        ("training step", f"{both(sides, 'step_time_ms', milliseconds)}, {gain(comparison.get('end_to_end'), 'value')}"),
        ("pipeline alone", f"{both(sides, 'elements_per_s', units.format_rate)}, {gain(pipeline, 'speedup')}"),
        ("input wait in the proof", both(sides, "input_wait_share", units.format_share)),
        ("peak memory", both(sides, "peak_rss_bytes", units.format_bytes)),
        ("input wait in the reports", " → ".join(wait(step.report) for step in (study.before, study.after))),
        ("time to the report, to the proof", f"{seconds(study.before)}, {seconds(study.fix)}"),
        ("runs of the script in the proof", units.format_count(proof["runs"])),
    ]  # fmt: skip
    measured = [(name, value) for name, value in rows if not value.startswith(NOT_MEASURED)]
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in measured)]


def bottleneck(text: str) -> str:
    """Name the call that the training waits for, from the section of the printed report."""
    lines = text.partition("\nBottleneck\n")[2].splitlines()
    if not lines:
        return "no call of a pipeline"
    call, _, rest = lines[0].strip().partition("  ")
    return f"`{call}`, {rest.partition(',')[0].strip()}"


def kept(study: Study) -> list[dict[str, Any]]:
    """Return the proved changes."""
    return [fix for fix in study.fix.report["fixes"] if fix["applied"]]


def changes(study: Study) -> list[str]:
    """Return the rules whose changes were proved, as links."""
    return [f"[{fix['rule']}](../rules.md#{fix['rule']})" for fix in kept(study)]


def both(sides: tuple[dict[str, Any], dict[str, Any]], field: str, write: Callable[[float], str]) -> str:
    """Write a figure before and after."""
    return " → ".join(NOT_MEASURED if side[field] is None else write(side[field]) for side in sides)


def gain(ratio: dict[str, Any] | None, field: str) -> str:
    """Write a measured speedup with its 95 % interval."""
    if not ratio or None in (ratio[field], ratio["low"], ratio["high"]):
        return "gain not measured"
    return f"{units.format_range(ratio[field], ratio['low'], ratio['high'])} faster"


def wait(report: dict[str, Any]) -> str:
    """Write the share of the step time that is input wait."""
    share = report["verdict"]["input_wait_share"]
    return NOT_MEASURED if share is None else units.format_share(share)


def seconds(step: Step) -> str:
    """Write how long a command took."""
    return units.format_ns(step.seconds * units.NS_PER_S)


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Join names for a sentence or a cell."""
    return " and ".join(f"`{word}`" if word.endswith(".py") else word for word in words)


def fenced(text: str, language: str = "") -> list[str]:
    """Return a block of code."""
    return [f"```{language}", *text.rstrip("\n").splitlines(), "```"]


def beginning(text: str) -> str:
    """Return a report up to its second paragraph."""
    return "\n\n".join(text.split("\n\n")[:2])


def without_diff(text: str) -> str:
    """Leave the diff out of the printed proof; the page shows that of the commits."""
    lines, is_diff = [], False
    for line in text.splitlines():
        if line == "The change":
            is_diff = True
            lines += ["...", ""]
        elif is_diff and line and not line.startswith(" "):
            is_diff = False
        if not is_diff:
            lines.append(line)
    return "\n".join(lines)


def write_row(study: Study) -> None:
    """Put the case into the table of the index; the other rows stay as they are."""
    link = f"[{study.case.name}]({study.case.page.name})"
    title, values, proved = proved_gain(study)
    cells = (link, bottleneck(study.before.text), listed(changes(study)), title, values, proved)
    text = INDEX.read_text("utf-8").partition(f"<!-- {TABLE}: begin -->")[2].partition(f"<!-- {TABLE}: end -->")[0]
    rows = {row.split("|")[1].strip(): row for row in text.splitlines() if row.startswith("| [")}
    rows[link] = f"| {' | '.join(cells)} |"
    order = [f"[{case.name}]({case.page.name})" for case in CASES]
    head = ["| script | waits for | change | proved on the | before and after | gain |", "|---|---|---|---|---|---|"]
    write_section(TABLE, [*head, *(rows[one] for one in order if one in rows)], INDEX)


def proved_gain(study: Study) -> tuple[str, str, str]:
    """Return what the change is proved on, the figures before and after, and the gain."""
    proof, comparison = study.fix.report["proof"], study.fix.report["comparison"] or {}
    sides = (proof["before"], proof["after"])
    if proof["proved_on"] == "training":
        return "training", both(sides, "step_time_ms", milliseconds), gain(comparison["end_to_end"], "value")
    return "pipeline alone", both(sides, "elements_per_s", units.format_rate), gain(comparison["pipeline"], "speedup")


def milliseconds(value: float) -> str:
    """Write a duration that is given in milliseconds."""
    return units.format_ns(value * 1e6)


if __name__ == "__main__":
    main()
