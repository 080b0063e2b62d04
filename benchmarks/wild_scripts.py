"""Analyses training scripts from public repositories, as a new user would, and checks the verdicts by intervention.

    python benchmarks/wild_scripts.py [--sources DIR] [--work DIR] [--only NAME] [--as-if-step 5ms] [--check] [--write-docs]

In: the recipes in `benchmarks/wild/recipes`; the scripts come from GitHub or from DIR.  Out: per script the verdict, the seconds
and steps until then, the first finding, and with `--check` what an intervention says; exit code 1 if a script has no verdict, if
a verdict is not the wanted one, or if it took more than 60 s and more than the time of 12 steps. With `--work`, rows are kept in
`rows.jsonl` there, and what it holds is not measured again.

The time until the verdict has four parts, from the recording of the run: `start` (until the first element is asked for; in a loop
inside a tf.function, until the window opens), `first step` (which traces and fills buffers), `window` (until the end of what was
measured) and `after the window` (the profile is written and read).

`--check` runs each script again. On the training: with its first batch repeated, so that the pipeline costs nothing. With
`--as-if-step`: the pipeline alone, drained as fast as possible. What the recipes need beyond the extra `examples` is in `wild`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from published import machine_sentence, write_section
from wild.fetch import place_files
from wild.phases import Phases, phases_of, read_recording
from wild.recipe import Recipe, read_recipes
from wild.stand_ins import make_stand_in

from advisor.model.errors import AdvisorError
from advisor.model.units import NS_PER_S, format_ns, format_share, parse_seconds

LIMIT_S = 900.0
SOON_S = 60.0
SOON_STEPS = 12
BOUND = 1.2
"""Speedup without the pipeline from which on a script is input-bound, as in `bottleneck_accuracy.py`."""
FREE = 1.1
"""Up to this speedup it is not; in between, the intervention decides nothing."""
ROWS = "rows.jsonl"
FONTS = ".matplotlib"
DRAINED = "0.001ms"
"""Imagined step with which the pipeline is read as fast as it goes."""


@dataclass(frozen=True)
class Answer:
    """What `advisor analyze` said."""

    seconds: float
    steps: int
    """All steps until the verdict: warm-up, unprofiled, profiled."""
    is_input_bound: bool
    wait: float | None
    """Share of the step spent waiting for input; None without a verdict, or if only the buffer's fill is known."""
    level: str
    """`none`, `moderate`, `high` or `unknown`."""
    step_ns: float | None
    finding: str
    """The first finding with its line."""
    rules: tuple[str, ...]
    """The rules of all findings."""
    phases: Phases | None = None
    """None without a measured window, and in rows of earlier versions."""

    @property
    def has_verdict(self) -> bool:
        """Whether it says if input is the problem."""
        return self.level != "unknown"

    @property
    def verdict(self) -> str:
        """In the words of the recipes; `none` without a verdict."""
        return "none" if not self.has_verdict else "input-bound" if self.is_input_bound else "not-input-bound"

    @property
    def is_soon(self) -> bool:
        """Whether there is a verdict, and it came after at most a minute or the time of a dozen steps, whichever is longer.

        The steps that Python counts do not decide: of a loop inside a tf.function it counts none.
        """
        return self.has_verdict and self.seconds <= max(SOON_S, SOON_STEPS * (self.step_ns or 0.0) / NS_PER_S)


@dataclass(frozen=True)
class Row:
    """One script."""

    recipe: Recipe
    answer: Answer | None
    failure: str = ""
    speedup: float | None = None
    """Of the step without the cost of the pipeline; None if it was not measured."""

    @property
    def truth(self) -> str:
        """What the intervention says: a verdict, `unclear` or `-`."""
        if self.speedup is None:
            return "-"
        return "input-bound" if self.speedup >= BOUND else "not-input-bound" if self.speedup <= FREE else "unclear"

    @property
    def agrees(self) -> str:
        """Whether the intervention and the verdict are the same: `yes`, `no`, `unclear` or `-`.

        A moderate wait, from 5 % to 20 %, may gain as little as 1.05x, so only a larger gain confirms or refutes it.
        """
        if self.answer is None or self.truth in ("-", "unclear"):
            return self.truth
        if self.answer.level == "moderate" and self.truth == "not-input-bound":
            return "unclear"
        return "yes" if self.answer.verdict == self.truth else "no"


def main() -> int:
    """Analyse the scripts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="a recipe; may be repeated")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="copies of repositories, as <owner>+<name>/<path>")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for scripts and data, which is kept")
    parser.add_argument("--as-if-step", type=parse_seconds, metavar="T", help="imagine steps of this length")
    parser.add_argument("--check", action="store_true", help="verify the verdict by an intervention")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    with work_folder(options.work) as work:
        kept = read_rows(work / ROWS)
        for recipe in read_recipes():
            if options.only is not None and recipe.name not in options.only:
                continue
            key = f"{recipe.name} {options.as_if_step} {options.check}"
            row = kept.get(key) or measure(recipe, work, options.sources, options.as_if_step, options.check)
            if key not in kept and row.answer is not None:
                with (work / ROWS).open("ab") as file:
                    file.write(msgspec.json.encode((key, row)) + b"\n")
            rows.append(row)
            print(said(row), flush=True)
    lines = [machine_sentence(), *summary(rows, options.as_if_step), "", *table(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("wild" if options.as_if_step is None else "wild-as-if", lines)
    return 1 if any(faults(row, options.as_if_step) for row in rows) else 0


@contextmanager
def work_folder(kept: Path | None) -> Iterator[Path]:
    """The folder for scripts and data: one that is kept, or a temporary one."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="wild-") as folder:
        yield Path(folder).resolve()


def read_rows(path: Path) -> dict[str, Row]:
    """The rows that an earlier run measured."""
    if not path.exists():
        return {}
    return dict(msgspec.json.decode(line, type=tuple[str, Row]) for line in path.read_bytes().splitlines())


def measure(recipe: Recipe, work: Path, sources: Path | None, as_if_step: float | None, has_check: bool) -> Row:
    """Analyse one script in its own folder below `work`."""
    try:
        folder = prepare(recipe, work, sources)
        if as_if_step is None:
            answer = answer_of(*analyze(recipe, folder))
        else:
            answer = answer_of(*analyze(recipe, folder, "--as-if-step", f"{as_if_step}"))
    except AdvisorError as error:
        return Row(recipe, None, str(error))
    try:
        return Row(recipe, answer, speedup=intervention(recipe, folder, as_if_step) if has_check else None)
    except AdvisorError as error:
        return Row(recipe, answer, f"not checked: {error}")


def prepare(recipe: Recipe, work: Path, sources: Path | None) -> Path:
    """The script's working folder, with its files and its data; data that is already there is kept.

    Raises:
        AdvisorError: If a package is missing or a file is not the one that the recipe was written for.
    """
    missing = [name for name in recipe.packages if not is_installed(name)]
    if missing:
        raise AdvisorError(f"{recipe.name} needs {', '.join(missing)}: install the extra `wild`.")
    if (
        "matplotlib" in recipe.packages and not (work / FONTS).exists()
    ):  # a trial run would make its font cache and lose it
        command = [sys.executable, "-c", "import matplotlib.pyplot"]
        subprocess.run(command, env={**os.environ, "MPLCONFIGDIR": str(work / FONTS)}, check=True)
    folder = work / recipe.name
    stamp, wanted = folder / ".stand_ins.json", msgspec.json.encode(recipe.stand_ins)
    place_files(recipe, folder, sources)
    if not stamp.exists() or stamp.read_bytes() != wanted:
        for stand_in in recipe.stand_ins:
            make_stand_in(stand_in.make, folder / stand_in.into, stand_in.options)
        stamp.write_bytes(wanted)
    return folder


def is_installed(package: str) -> bool:
    """Whether the distribution is there."""
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def analyze(recipe: Recipe, folder: Path, *options: str) -> tuple[dict[str, Any], float, Phases | None]:
    """The report of the script, the seconds of the command, and where they went.

    Raises:
        AdvisorError: If it could not be analysed; with the last line that the command printed.
    """
    with tempfile.TemporaryDirectory(prefix="wild-run-") as place:
        run = Path(place) / "run"
        command = [sys.executable, "-m", "advisor", "analyze", "--quiet", "--json", "-", "--out", str(run), *options]
        start_ns = time.time_ns()
        try:
            done = subprocess.run(
                [*command, str(recipe.local_path(recipe.script)), *recipe.arguments],
                capture_output=True, text=True, check=False, cwd=folder, env=environment(recipe, folder), timeout=LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise AdvisorError(f"no answer within {LIMIT_S:.0f} s") from error
        seconds = (time.time_ns() - start_ns) / NS_PER_S
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise AdvisorError(f"exit code {done.returncode}: {last}")
        return json.loads(done.stdout), seconds, phases_of(read_recording(run), start_ns, time.time_ns())


def environment(recipe: Recipe, folder: Path) -> dict[str, str]:
    """The environment of the script: data of Keras and of tensorflow-datasets lies in its folder, plots are not shown."""
    return {
        **os.environ,
        "KERAS_HOME": str(folder / "keras"),
        "TFDS_DATA_DIR": str(folder / "tfds"),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder.parent / FONTS),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **recipe.environment,
    }


def answer_of(report: dict[str, Any], seconds: float, phases: Phases | None) -> Answer:
    """The parts of a report that the table shows."""
    verdict, window = report["verdict"], report["window"] or {}
    step = verdict["step_time_ms"]
    findings = report["findings"]
    first = findings[0] if findings else None
    site = first and first["site"]
    where = f" ({Path(site['file']).name}:{site['line']})" if site else ""
    return Answer(
        seconds=seconds,
        steps=sum(window.get(part, 0) for part in ("warmup_steps", "plain_steps", "steps")),
        is_input_bound=verdict["input_bound"],
        wait=verdict["input_wait_share"],
        level=verdict["level"],
        step_ns=None if step is None else step["median"] * 1e6,
        finding=f"{first['rule']}{where}" if first else "",
        rules=tuple(finding["rule"] for finding in findings),
        phases=phases,
    )


def intervention(recipe: Recipe, folder: Path, as_if_step: float | None) -> float:
    """The speedup of the step without the cost of the pipeline.

    Raises:
        AdvisorError: If it could not be measured.
    """
    if as_if_step is None:
        report, *_ = analyze(recipe, folder, "--ceiling")
        if not report["verdict"]["is_ceiling_measured"]:
            raise AdvisorError("; ".join(report["warnings"]) or "the ceiling was not measured")
        return float(report["verdict"]["max_speedup"])
    report, *_ = analyze(recipe, folder, "--as-if-step", DRAINED)
    step = report["verdict"]["step_time_ms"]
    if step is None:
        raise AdvisorError("; ".join(report["warnings"]) or "the pipeline alone was not measured")
    return max(1.0, float(step["mean"]) * 1e6 / (as_if_step * NS_PER_S))


def faults(row: Row, as_if_step: float | None) -> list[str]:
    """What of a row is not as it should be."""
    if row.answer is None:
        return [f"not analysed: {row.failure}"]
    found = [row.failure] if row.failure else []
    if not row.answer.has_verdict:
        found.append("no verdict")
    elif as_if_step is None and row.answer.verdict != row.recipe.wanted:
        found.append(f"wanted {row.recipe.wanted}")
    if not row.answer.is_soon and row.answer.has_verdict:
        step = "" if row.answer.step_ns is None else f" with steps of {format_ns(row.answer.step_ns)}"
        found.append(f"late: {row.answer.seconds:.0f} s{step}")
    if row.agrees == "no":
        found.append(f"the intervention says {row.truth}")
    return found


def summary(rows: Sequence[Row], as_if_step: float | None) -> list[str]:
    """What the rows have in common, in sentences."""
    answers = [row.answer for row in rows if row.answer is not None]
    checked = [row for row in rows if row.agrees in ("yes", "no")]
    scripts = len({(row.recipe.repository, row.recipe.script) for row in rows})
    lines = [
        f"{len(rows)} recipes of {scripts} scripts from {len({row.recipe.repository for row in rows})} repositories."
    ]
    if as_if_step is not None:
        lines.append(f"Imagined steps of {format_ns(as_if_step * NS_PER_S)}.")
    else:
        right = sum(answer.verdict == row.recipe.wanted for row in rows if (answer := row.answer) is not None)
        lines.append(f"The wanted verdict: {right} of {len(rows)}.")
    lines.append(f"Without a verdict: {len(rows) - sum(answer.has_verdict for answer in answers)}.")
    lines.append(
        f"A verdict within {SOON_S:.0f} s or the time of {SOON_STEPS} steps: "
        f"{sum(answer.is_soon for answer in answers)} of {len(rows)}."
    )
    if checked:
        lines.append(f"Confirmed by intervention: {sum(row.agrees == 'yes' for row in checked)} of {len(checked)}.")
    return lines


def table(rows: Sequence[Row]) -> list[str]:
    """The Markdown table."""
    lines = [
        "| script | verdict | input wait | step | until the verdict | start | first step | window | after the window | soon "
        "| findings | without the pipeline | agrees |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = f"{row.recipe.name}: {row.recipe.title}"
        if row.answer is None:
            lines.append(f"| {name} | {row.failure} | | | | | | | | | | | |")
            continue
        found = ", ".join([row.answer.finding, *row.answer.rules[1:]]) or "none"
        lines.append(
            f"| {name} | {row.answer.verdict} | {'-' if row.answer.wait is None else format_share(row.answer.wait)} | "
            f"{'-' if row.answer.step_ns is None else format_ns(row.answer.step_ns)} | {row.answer.seconds:.0f} s, "
            f"{row.answer.steps} steps | {' | '.join(parts_of(row.answer.phases))} | {'yes' if row.answer.is_soon else 'no'} | "
            f"{found} | {'-' if row.speedup is None else f'{row.speedup:.2f}x'} | {row.agrees} |"
        )
    return lines


def parts_of(phases: Phases | None) -> list[str]:
    """The cells for the four parts of the time until the verdict."""
    if phases is None:
        return ["-"] * 4
    parts = (phases.start_s, phases.first_step_s, phases.window_s, phases.after_s)
    return ["-" if part is None else f"{part:.1f} s" for part in parts]


def said(row: Row) -> str:
    """One line for display."""
    return " ".join(table([row])[2].strip("| ").split(" | "))[:300]


if __name__ == "__main__":
    sys.exit(main())
