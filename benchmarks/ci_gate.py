"""A pull request per change: does `advisor check` catch five regressions, and is it silent on ten harmless commits?

    python benchmarks/ci_gate.py [--only WORD] [--times 2] [--results FILE] [--write-docs]

In: `benchmarks/gated`, which becomes a git repository with the settings and the baseline of a project.  Out: one line per check,
then a table; exit code 1 if a regression was missed, or a harmless commit failed the check or was warned about.

Each change is committed, and checked as in the workflow of docs/ci.md: `advisor check --against HEAD^1 train.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from published import machine_sentence, note_run, write_section

GATED = Path(__file__).parent / "gated"
WINDOW = ("--steps", "128", "--warmup", "140", "--seconds", "30")
"""An epoch has 128 steps. The cache is full before the window, and the second epoch ends in it."""
SETTINGS = """[tool.advisor.budgets]
step_time = ["error", { max_ratio = 1.02 }]
memory = ["error", { max_ratio = 1.10 }]
findings = "error"
"""
IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Commit:
    """A change of one file; `before` must occur once."""

    name: str
    is_regression: bool
    file: str
    before: str
    after: str


REGRESSIONS = (
    Commit(
        "cache removed", True, "pipeline.py",
        "    images = images.cache()\n    images = images.map(augment", "    images = images.map(augment",
    ),
    Commit("parallelism lost", True, "pipeline.py", "map(augment, num_parallel_calls=4)", "map(augment)"),
    Commit("shuffle buffer grown", True, "pipeline.py", "shuffle(64)", "shuffle(TRAINING)"),
    Commit(
        "validation slowed", True, "pipeline.py",
        "    images = images.map(load, num_parallel_calls=4)\n    images = images.cache()\n    return",
        "    images = images.map(load)\n    return",
    ),
    Commit("map 5 % slower", True, "pipeline.py", "AUGMENT_S = 0.004, 0.02", "AUGMENT_S = 0.004, 0.021"),
)  # fmt: skip
MAIN = "def main():\n"
HARMLESS = (
    Commit("a comment", False, "pipeline.py", "def load(", "# The storage answers in four milliseconds.\ndef load("),
    Commit("a docstring", False, "train.py", MAIN, f'{MAIN}    """Train until somebody stops it."""\n'),
    Commit(
        "a renamed variable", False, "pipeline.py",
        "    image = tf.numpy_function(jitter, [image], tf.float32)\n    return tf.ensure_shape(image,",
        "    brighter = tf.numpy_function(jitter, [image], tf.float32)\n    return tf.ensure_shape(brighter,",
    ),
    Commit("a message", False, "train.py", 'print(f"epoch {epoch}")', 'print(f"Epoch {epoch + 1} has ended.", flush=True)'),
    Commit("type hints", False, "pipeline.py", "def training():", "def training() -> tf.data.Dataset:"),
    Commit(
        "calls in one chain", False, "pipeline.py",
        "    images = images.shuffle(64)\n    return images.batch", "    return images.shuffle(64).batch",
    ),
    Commit("a lambda", False, "pipeline.py", "images.map(augment, num", "images.map(lambda image: augment(image), num"),
    Commit(
        "a new function", False, "train.py",
        MAIN, f"def steps_per_epoch(elements, batch):\n    return elements // batch\n\n\n{MAIN}",
    ),
    Commit("a name", False, "pipeline.py", "images.shuffle(64)", 'images.shuffle(64, name="mix")'),
    Commit("less validation", False, "pipeline.py", "VALIDATION, BATCH = 512, 128,", "VALIDATION, BATCH = 512, 112,"),
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One check."""

    name: str
    is_regression: bool
    time: int
    code: int
    caught_by: tuple[str, ...]
    """Budgets that failed, with the ratio where there is one."""
    warned: tuple[str, ...]
    pairs: int
    seconds: float

    @property
    def is_right(self) -> bool:
        """A regression fails the check; a harmless commit passes without a warning."""
        return self.code == 1 if self.is_regression else self.code == 0 and not self.warned


def main() -> int:
    """Check every change, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="part of a change's name; may be repeated")
    parser.add_argument("--times", type=int, default=2, metavar="N")
    parser.add_argument("--results", type=Path, metavar="FILE", help="results are read from it and added to it")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    chosen = [
        commit
        for commit in (*REGRESSIONS, *HARMLESS)
        if not options.only or any(word in commit.name for word in options.only)
    ]
    results = read_results(options.results)
    with tempfile.TemporaryDirectory(prefix="ci-gate-") as folder:
        repository = Path(folder) / "repository"
        prepare(repository)
        for number in range(1, options.times + 1):
            for commit in chosen:
                if any((each.name, each.time) == (commit.name, number) for each in results):
                    continue
                results.append(checked(repository, commit, number))
                print(line_of(results[-1]), flush=True)
                if options.results is not None:
                    note_run(options.results)
                    options.results.write_text(json.dumps([asdict(each) for each in results], indent=1), "utf-8")
    lines = [machine_sentence(options.results), "", *table(results)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("gate", lines)
    return 0 if all(each.is_right for each in results) else 1


def read_results(path: Path | None) -> list[Result]:
    """The results of an interrupted run."""
    if path is None or not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Result(**{**row, "caught_by": tuple(row["caught_by"]), "warned": tuple(row["warned"])}) for row in rows]


def prepare(repository: Path) -> None:
    """Make the repository, with the findings of its first commit in the baseline."""
    shutil.copytree(GATED, repository, ignore=shutil.ignore_patterns("__pycache__"))
    (repository / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    git(repository, "init", "-q")
    advisor(repository, "--update-baseline", is_in_ci=False)
    commit_all(repository, "base")
    git(repository, "tag", "base")


def checked(repository: Path, commit: Commit, number: int) -> Result:
    """Commit the change and run the check as the job of a pull request does."""
    git(repository, "checkout", "-q", "-B", "change", "base")
    path = repository / commit.file
    text = path.read_text(encoding="utf-8")
    if text.count(commit.before) != 1:
        raise SystemExit(
            f"{commit.name}: the text to replace occurs {text.count(commit.before)} times in {commit.file}."
        )
    path.write_text(text.replace(commit.before, commit.after), encoding="utf-8")
    commit_all(repository, commit.name)
    start = time.monotonic()
    code, data = advisor(repository, "--against", "HEAD^1", is_in_ci=True)
    return Result(
        commit.name,
        commit.is_regression,
        number,
        code,
        caught_by=tuple(said(row) for row in data["budgets"] if row["severity"] == "error"),
        warned=tuple(said(row) for row in data["budgets"] if row["severity"] == "warn"),
        pairs=data["base"]["turns"],
        seconds=time.monotonic() - start,
    )


def said(row: dict[str, Any]) -> str:
    """A budget in a few words: `step_time 1.05 (1.04 to 1.06)`."""
    name = f"{row['quantity']} of {row['loop']}" if row["loop"] else str(row["quantity"])
    interval = row["interval"]
    if isinstance(interval, dict):
        return f"{name} {interval['value']:.3f}x ({interval['low']:.3f} to {interval['high']:.3f})"
    return f"{name} {row['value']}"


def advisor(repository: Path, *options: str, is_in_ci: bool) -> tuple[int, dict[str, Any]]:
    """Run `advisor check` on the script; its exit code and its JSON."""
    environment = {**os.environ, "XDG_STATE_HOME": str(repository.parent / "state")}
    environment.pop("CI", None)
    if is_in_ci:
        environment["CI"] = "true"
    command = [sys.executable, "-m", "advisor", "check", *WINDOW, *options, "--json", "-", "train.py"]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"advisor check ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.returncode, json.loads(done.stdout)


def git(repository: Path, *words: str) -> None:
    """Run git in the repository."""
    subprocess.run(["git", *IDENTITY, *words], cwd=repository, check=True, capture_output=True)


def commit_all(repository: Path, message: str) -> None:
    """Commit the tree, without what Python leaves in it."""
    git(repository, "add", "--", "*.py", "*.toml", "*.json")
    git(repository, "commit", "-q", "-m", message)


def line_of(result: Result) -> str:
    """One line for the terminal."""
    said_of = "; ".join((*result.caught_by, *(f"warned: {each}" for each in result.warned))) or "silent"
    verdict = "right" if result.is_right else "WRONG"
    return f"{verdict}: {result.name} ({result.time}): {said_of}; {result.pairs} pairs, {result.seconds:.0f} s"


def table(results: list[Result]) -> list[str]:
    """One row per check, and the counts."""
    lines = ["| change | time | failed budgets | warnings | pairs of runs | seconds |", "|---|---|---|---|---|---|"]
    for each in results:
        cells = (
            each.name,
            each.time,
            ", ".join(each.caught_by),
            ", ".join(each.warned),
            each.pairs,
            f"{each.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    bad, good = [r for r in results if r.is_regression], [r for r in results if not r.is_regression]
    caught, silent = sum(r.is_right for r in bad), sum(r.is_right for r in good)
    return [
        *lines,
        "",
        f"{caught} of {len(bad)} regressions caught, silent on {silent} of {len(good)} harmless commits.",
    ]


if __name__ == "__main__":
    sys.exit(main())
