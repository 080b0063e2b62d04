"""Compares `advisor fix --write` with an expert, on realistic scripts that are not among the rules' examples.

    python benchmarks/expert.py [--only windows] [--turns 5] [--seconds 30] [--budget T] [--results FILE] [--keep DIR]
        [--fixed DIR] [--write-docs]

In: `benchmarks/by_hand/written/*.py`, and the same scripts as an expert would write them, in `by_hand/expert/`.  Out: for each
script, the time of a pass over the data and of the whole run: as written, with AUTOTUNE everywhere, by the expert, and as
`advisor fix` leaves it, unasked and with `--allow reordered`. A ratio of 1 means as fast as the expert.

Passes of all variants alternate in one process, after a first pass of each that fills caches; those of the expert and of fixed
scripts go on for `--seconds` more. Whole runs of these alternate in fresh processes; their time begins behind the import of
TensorFlow.
Where no change waits for `--allow reordered`, the script that was fixed unasked stands for that one, too.
`--results` keeps what was measured, as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import libcst
import libcst.matchers as m
import msgspec
from published import machine_sentence, note_run, write_section

from advisor.model.intervals import median_interval

FOLDER = Path(__file__).resolve().parent / "by_hand"
WRITTEN, AUTOTUNE, EXPERT, FIXED, ALLOWED = "as written", "AUTOTUNE", "expert", "fixed", "fixed, reordered"
CACHEABLE = frozenset({"simulated_rows", "cached_rows", "image_records", "rebuilt"})
"""Scripts in which a cache of what is costly is legal as they are written, and is read more than once."""

WITHOUT_PASSES = frozenset({"rebuilt"})
"""Scripts that make their dataset in every pass. Its passes are timed over one dataset, so that only their whole runs compare."""


@dataclass(frozen=True)
class Result:
    """One script: seconds of every pass and of every whole run, and the rules whose fixes were kept."""

    name: str
    passes: dict[str, list[float]]
    runs: dict[str, list[float]]
    kept: dict[str, list[str]]
    fix_seconds: dict[str, float]

    def pass_ratios(self, variant: str) -> list[float]:
        """Speed of a pass in comparison with the expert's, in each turn of both."""
        return [expert / mine for expert, mine in zip(self.passes[EXPERT], self.passes[variant], strict=False)]

    def pass_ratio(self, variant: str) -> float:
        """Speed of a pass in comparison with the expert's; the median over the turns."""
        return statistics.median(self.pass_ratios(variant))

    def ratio(self, variant: str) -> float:
        """Speed of a pass, or of the whole run of a script that makes its dataset in every pass."""
        return self.run_ratio(variant) if self.name in WITHOUT_PASSES else self.pass_ratio(variant)

    def run_ratio(self, variant: str) -> float:
        """Speed of the whole run in comparison with the expert's."""
        return statistics.median(
            expert / mine for expert, mine in zip(self.runs[EXPERT], self.runs[variant], strict=True)
        )


def main() -> None:
    """Measure what `--results` does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="a script; may be repeated")
    parser.add_argument("--turns", type=int, default=5, help="passes of each variant (default: 5)")
    parser.add_argument("--seconds", type=float, default=30, metavar="S", help="go on with passes (default: 30)")
    parser.add_argument("--runs", type=int, default=5, help="whole runs of the expert's and fixed scripts (default: 5)")
    parser.add_argument("--budget", metavar="T", help="budget of each `advisor fix` (default: its own)")
    parser.add_argument("--results", type=Path, help="JSON lines of the scripts measured so far")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the fixed scripts and the reports there")
    parser.add_argument("--fixed", type=Path, metavar="DIR", help="take the fixed scripts that `--keep` copied there")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    done: dict[str, Result] = {}
    if options.results and options.results.exists():
        lines = options.results.read_bytes().splitlines()
        done = {result.name: result for result in (msgspec.json.decode(line, type=Result) for line in lines)}
    for script in sorted((FOLDER / "written").glob("*.py")):
        name = script.stem
        if name in done or (options.only and name not in options.only):
            continue
        done[name] = measured(name, options)
        print(row(done[name]), flush=True)
        if options.results:
            note_run(options.results)
            with options.results.open("ab") as file:
                file.write(msgspec.json.encode(done[name]) + b"\n")
    section = table(list(done.values()), machine_sentence(options.results))
    print("\n".join(["", *section]))
    if options.write_docs:
        write_section("expert", section)


def measured(name: str, options: argparse.Namespace) -> Result:
    """Make the variants of one script in a folder of their own, and measure them."""
    budget, keep = options.budget, options.keep
    with tempfile.TemporaryDirectory(prefix="expert-") as place:
        scripts: dict[str, Path] = {}
        written = (FOLDER / "written" / f"{name}.py").read_text(encoding="utf-8")
        texts = {WRITTEN: written, AUTOTUNE: with_autotune(written), FIXED: written, ALLOWED: written}
        texts[EXPERT] = (FOLDER / "expert" / f"{name}.py").read_text(encoding="utf-8")
        for variant, text in texts.items():
            folder = Path(place) / variant.replace(", ", "_").replace(" ", "_")
            folder.mkdir()
            shutil.copy(FOLDER / "workload.py", folder)
            scripts[variant] = folder / f"{name}.py"
            scripts[variant].write_text(text, encoding="utf-8")
        run_seconds(scripts[WRITTEN])  # makes the input files: a script that writes its own input gets no cache unasked
        kept: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        for variant, allow in ((FIXED, ()), (ALLOWED, ("--allow", "reordered"))):
            if variant == ALLOWED and not waits_for(scripts[FIXED], "--allow reordered"):
                del scripts[ALLOWED]  # the same changes are found, tried and kept
                kept[ALLOWED], seconds[ALLOWED] = kept[FIXED], seconds[FIXED]
                continue
            reused = options.fixed and options.fixed / scripts[variant].parent.name / name
            if reused and reused.is_dir():
                shutil.copytree(reused, scripts[variant].parent, dirs_exist_ok=True)
                kept[variant], seconds[variant] = kept_rules(scripts[variant]), 0.0
            else:
                kept[variant], seconds[variant] = fix(scripts[variant], budget, allow)
            if keep is not None:
                for file in (*scripts[variant].parent.glob("*.py"), *scripts[variant].parent.glob("fix.json")):
                    folder = keep / scripts[variant].parent.name / name
                    folder.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, folder)
        shutil.copy(FOLDER / "workload.py", place)
        shutil.copy(FOLDER / "passes.py", place)
        command = [sys.executable, str(Path(place) / "passes.py"), *map(str, (options.turns, options.seconds, 2))]
        command += map(str, scripts.values())
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        passes = dict(zip(scripts, json.loads(printed), strict=True))
        shown = [variant for variant in scripts if variant not in (WRITTEN, AUTOTUNE)]
        whole: dict[str, list[float]] = {variant: [] for variant in shown}
        for _ in range(options.runs):
            for variant in shown:
                whole[variant].append(run_seconds(scripts[variant]))
        for times in (passes, whole):
            times.setdefault(ALLOWED, times[FIXED])
        return Result(name, passes, whole, kept, seconds)


def fix(script: Path, budget: str | None, allow: tuple[str, ...]) -> tuple[list[str], float]:
    """Let the advisor fix a copy. Returns the rules whose fixes it wrote, and the seconds that it took."""
    report = script.parent / "fix.json"
    command = [sys.executable, "-m", "advisor", "fix", "--write", "--quiet", "--json", str(report)]
    command += [] if budget is None else ["--budget", budget]
    state = {**os.environ, "XDG_STATE_HOME": str(script.parent / "state")}  # backups of a copy must not be kept
    began = time.monotonic()
    subprocess.run([*command, *allow, str(script)], env=state, check=False, capture_output=True, cwd=script.parent)
    seconds = time.monotonic() - began
    if not report.exists():
        return ["failed"], seconds
    return kept_rules(script), seconds


def kept_rules(script: Path) -> list[str]:
    """Return the rules whose changes the report next to a fixed script names as written."""
    document = json.loads((script.parent / "fix.json").read_text(encoding="utf-8"))
    return [entry["rule"] for entry in document["fixes"] if entry["applied"]]


def waits_for(script: Path, permission: str) -> bool:
    """Whether the report of a fixed script names a change that needs a permission."""
    report = script.parent / "fix.json"
    return not report.exists() or permission in report.read_text(encoding="utf-8")


def run_seconds(script: Path) -> float:
    """Return the time of a whole run in a fresh process."""
    times = script.parent / "seconds.txt"
    environment = {**os.environ, "BY_HAND_SECONDS": str(times), "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True, cwd=script.parent)
    return float(times.read_text(encoding="utf-8"))


class _Autotune(libcst.CSTTransformer):
    """Adds `num_parallel_calls` to every `map` and `interleave`, and a prefetch to what `dataset` returns."""

    parallel = libcst.parse_expression("f(num_parallel_calls=tf.data.AUTOTUNE)")

    def leave_Call(self, original_node: libcst.Call, updated_node: libcst.Call) -> libcst.Call:
        called = m.Call(func=m.Attribute(attr=m.Name("map") | m.Name("interleave")))
        given = any(
            argument.keyword and argument.keyword.value == "num_parallel_calls" for argument in updated_node.args
        )
        if given or not m.matches(updated_node, called):
            return updated_node
        assert isinstance(self.parallel, libcst.Call)
        return updated_node.with_changes(args=[*updated_node.args, *self.parallel.args])

    def leave_FunctionDef(
        self, original_node: libcst.FunctionDef, updated_node: libcst.FunctionDef
    ) -> libcst.FunctionDef:
        if original_node.name.value != "dataset":
            return updated_node
        code = libcst.Module([]).code_for_node(updated_node).rstrip()
        if not code.rsplit("\n", 1)[1].rpartition(".")[2].startswith("prefetch("):
            code += ".prefetch(tf.data.AUTOTUNE)"
        function = libcst.parse_module(code + "\n").body[0]
        assert isinstance(function, libcst.FunctionDef)
        return function


def with_autotune(text: str) -> str:
    """Return the script as the textbook would have it."""
    return libcst.parse_module(text).visit(_Autotune()).code


def table(results: list[Result], machine: str) -> list[str]:
    """Return the section of docs/benchmarks.md."""
    lines = [
        f"{machine} Nothing else was running.",
        "",
        "| script | pass as written | AUTOTUNE | expert | fixed | fixed / expert | reordered / expert | run: fixed / expert "
        "| reordered / expert | kept | kept with `--allow reordered` |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *map(row, results),
        "",
    ]
    groups = {
        "all": results,
        "without a legal cache": [result for result in results if result.name not in CACHEABLE],
    }
    for group, members in groups.items():
        if members:
            ratios = {variant: [result.ratio(variant) for result in members] for variant in (FIXED, ALLOWED)}
            whole = statistics.median(result.run_ratio(FIXED) for result in members)
            lines.append(
                f"{len(members)} scripts, {group}: fixed / expert {statistics.median(ratios[FIXED]):.2f} in the median, "
                f"{min(ratios[FIXED]):.2f} in the worst; with `--allow reordered` {statistics.median(ratios[ALLOWED]):.2f} and "
                f"{min(ratios[ALLOWED]):.2f}; whole run {whole:.2f} in the median."
            )
    return lines


def row(result: Result) -> str:
    """Return one line of the table."""
    times = [f"{statistics.median(result.passes[each]) * 1e3:.0f} ms" for each in (WRITTEN, AUTOTUNE, EXPERT, FIXED)]
    ratios = [f"{result.pass_ratio(each):.2f}" for each in (FIXED, ALLOWED)]
    interval = median_interval(result.pass_ratios(FIXED))
    ratios[0] += f" ({interval.low:.2f} to {interval.high:.2f})" if interval else ""
    if result.name in WITHOUT_PASSES:
        times, ratios = ["" for _ in times], ["" for _ in ratios]
    ratios += [f"{result.run_ratio(each):.2f}" for each in (FIXED, ALLOWED)]
    kept = [", ".join(result.kept[each]) or "nothing" for each in (FIXED, ALLOWED)]
    return f"| {' | '.join([result.name, *times, *ratios, *kept])} |"


if __name__ == "__main__":
    main()
