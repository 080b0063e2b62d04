"""Measures the gain of each rule's fix: predicted and measured gain, claimed and observed safety level, on every example.

    python benchmarks/predictions.py [--only serial_map] [--keep] [--every-fix] [--write-docs]

In: the scripts of `examples/`: one for each rule that has a fix, and the realistic ones.  Out: one row per rule and a summary
of all fixes: errors of the predictions, predicted gains that were measured as losses, precision. The results of each script
are stored as JSON (`--cache`) next to its profile, so `--keep` continues an interrupted run. It keeps the measurements and
applies the model to the profiles again.

The proof is that of `advisor fix --pipeline-only`: the script is held at its first element, its pipeline is profiled and
analysed, and fixes are compared and benchmarked in alternation. Unlike there, each fix is tried alone on the original script,
because the rules are being judged: on a rule's example its own fix (with `--every-fix` all that are found), on a realistic
script all, those that `advisor fix` tries only with `--only` included. A fix that changes only how pipeline and training
overlap is proved by `advisor fix` on the whole script of its own example.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
from little_memory import cgroup
from published import machine_sentence, write_section
from worth import REALISTIC, Row, rule_table, summary

from advisor.capture.request import CaptureRequest
from advisor.engine import LoadedRule, load_rules
from advisor.engine.rules_document import kinds_of
from advisor.model.errors import AdvisorError
from advisor.model.finding import Safety
from advisor.model.outcome import Report
from advisor.model.settings import Settings
from advisor.prove.search.proposals import Proposals
from advisor.prove.session.carried_state import with_state_of
from advisor.prove.session.proof_session import ProofSession
from advisor.rewrite.project import project_root
from advisor.workflows.analyze import analyze_run

EXAMPLES = Path(__file__).parents[1] / "examples"
OVERLAPPING = ("missing-prefetch", "misplaced-prefetch", "late-shuffle")
"""Rules whose fix changes how pipeline and training overlap: the pipeline in isolation gains nothing."""
ONLY_IN_THE_TEXT = ("rebuilt-every-epoch",)
"""Rules whose fix moves calls in the script's text: there is nothing to replay on the pipeline alone."""
WHOLE_SCRIPT = tuple(rule_id.replace("-", "_") for rule_id in (*OVERLAPPING, *ONLY_IN_THE_TEXT))
IN_LITTLE_MEMORY = {"repeated_work_on_disk": (3000, ("--images", "4500"))}
"""Examples whose subject is lack of memory: run in a cgroup of that many MiB, with these arguments."""
ALLOWED = frozenset(Safety) - {Safety.CHANGES}
REALISTIC_S, EXAMPLE_S = 300.0, 240.0
"""Budget of a proof session. Starting the script and profiling it take about 20 s. The turns of a trial get the rest, at least
10 s, so that the trial of a rule's example ends as soon as there is an interval."""
WHOLE_SCRIPT_BUDGET = "5min"
WINDOW = ("--steps", "40", "--warmup", "20", "--seconds", "3")


def main() -> None:
    """Prove, print, and write the tables on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="an example; may be repeated")
    parser.add_argument("--keep", action="store_true", help="use results that are there, measure the others")
    parser.add_argument(
        "--cache", type=Path, default=Path(platformdirs.user_cache_dir("tfdata-advisor")) / "predictions", metavar="DIR"
    )
    parser.add_argument("--every-fix", action="store_true", help="also fixes of other rules than the example's own")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    rules = load_rules([], Settings())
    names = chosen(options.only, rules)
    rows: list[Row] = []
    for name in names:
        kept, run = options.cache / f"{name}.json", options.cache / "runs" / name
        if not (options.keep and kept.exists()):
            shutil.rmtree(run, ignore_errors=True)
            write_json(kept, measure(EXAMPLES / f"{name}.py", rules, options.every_fix or name in REALISTIC, run))
        result = json.loads(kept.read_text(encoding="utf-8"))
        if options.keep and not run.exists() and any(not row.get("is_whole_script") for row in result["rows"]):
            profile_again(EXAMPLES / f"{name}.py", run)
        if run.exists():
            predict_again(result["rows"], run, rules)
        print(f"{name} ({result['seconds']:.0f} s)", *result["left_out"], sep="\n  left out: ", flush=True)
        for row in (Row(**each) for each in result["rows"]):
            print(f"  {row}", flush=True)
            rows.append(row)
    table = rule_table(rows, [rule_id for rule_id in fixing(rules) if rule_id.replace("-", "_") in names])
    lines = [machine_sentence(), "", *table, "", *summary(rows)]
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("predictions", lines)


def fixing(rules: list[LoadedRule]) -> list[str]:
    """Ids of the rules with a fix of the pipeline, according to the findings on their own examples.

    Changes of the training step are judged by `training_step.py`.
    """
    return [
        rule.id
        for rule in rules
        if any(kind.startswith(("auto", "ask")) and "numerics" not in kind for kind in kinds_of(rule))
    ]


def chosen(only: list[str] | None, rules: list[LoadedRule]) -> list[str]:
    """Names of the examples to run."""
    names = [*REALISTIC, *(rule_id.replace("-", "_") for rule_id in fixing(rules))]
    unknown = set(only or ()) - set(names)
    if unknown:
        sys.exit(f"No example of a fix: {', '.join(sorted(unknown))}. There are: {', '.join(sorted(names))}.")
    return [name for name in names if only is None or name in only]


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, indent=1), encoding="utf-8")
    part.replace(path)


def predict_again(rows: list[dict[str, Any]], run: Path, rules: list[LoadedRule]) -> None:
    """Replace the predictions made at the time of the measurement by those of the current model and rules."""
    report = analyze_run(run, rules, Settings())
    now = {(finding.rule, finding.title): finding for finding in report.findings}
    for row in rows:
        finding = now.get((row["rule"], row["title"]))
        if finding is not None and finding.fix is not None and not row.get("is_whole_script"):
            row |= {"predicted": ratio(finding.prediction)}


def profile_again(script: Path, run: Path) -> None:
    """Profile a script whose gains were measured before, for `predict_again`."""
    with tempfile.TemporaryDirectory(prefix="predictions-") as folder:
        request = CaptureRequest(Path(folder) / "run", script)
        with ProofSession(request, None, EXAMPLE_S, lambda progress: None) as session:
            shutil.copytree(session.profile(()), run)


def measure(script: Path, rules: list[LoadedRule], has_every_fix: bool, run: Path) -> dict[str, Any]:
    """The fixes of one script: `{"seconds", "left_out", "rows"}`. `run`: where the profile of the pipeline alone is stored."""
    start = time.monotonic()
    own = script.stem.replace("_", "-")
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    try:
        if script.stem in WHOLE_SCRIPT:
            rows, left_out = prove_whole_script(script)
        if script.stem not in WHOLE_SCRIPT or has_every_fix:
            on_the_whole = {*OVERLAPPING, *ONLY_IN_THE_TEXT}
            is_tried = {rule.id: rule.id not in on_the_whole and (has_every_fix or rule.id == own) for rule in rules}
            more, why = prove_pipeline(script, [rule.id for rule in rules if is_tried[rule.id]], rules, run)
            rows, left_out = [*rows, *more], [*left_out, *why]
    except (AdvisorError, SystemExit) as error:  # SystemExit: no cgroup can be made here; the other examples need none
        left_out.append(str(error))
    return {"seconds": time.monotonic() - start, "left_out": left_out, "rows": rows}


def prove_pipeline(
    script: Path, tried: Collection[str], rules: list[LoadedRule], run: Path
) -> tuple[list[dict[str, Any]], list[str]]:
    """The writable fixes of the rules `tried`, each measured alone on the pipeline alone; and why others were not tried."""
    budget_s = REALISTIC_S if script.stem in (*REALISTIC, *IN_LITTLE_MEMORY) else EXAMPLE_S
    rows, left_out = [], []
    with tempfile.TemporaryDirectory(prefix="predictions-") as folder:
        limit_mib, arguments = IN_LITTLE_MEMORY.get(script.stem, (None, ()))
        request = CaptureRequest(Path(folder) / "run", script, args=arguments)
        with (
            limited(limit_mib),
            training(script, arguments, rules) as first,
            ProofSession(request, None, budget_s, lambda progress: None) as session,
        ):
            shutil.copytree(session.profile(()), run)
            with_state_of(first.analysis, run)
            fixes = {
                **{(finding.rule, ""): finding.fix for finding in first.findings if finding.fix is not None},
                **{(finding.rule, finding.title): finding.fix for finding in first.findings},
            }
            report = analyze_run(run, rules, Settings())
            calls = {call.id: call for call in report.analysis.calls}
            proposals = Proposals(calls, project_root(script), ALLOWED, only=frozenset(tried))
            for finding in report.findings:
                if finding.rule not in tried:
                    continue
                if not proposals.propose(replace(report, findings=(finding,)), ()) or finding.fix is None:
                    continue
                trial = session.try_fix((), finding.fix.edits, finding.fix.safety, finding.memory_bytes)
                if trial.speedup is None and trial.safety_seen is None:
                    left_out.append(f"{finding.title}: {trial.note}")
                    continue
                speedup = trial.speedup
                rows.append(
                    {
                        "script": script.stem,
                        "rule": finding.rule,
                        "title": finding.title,
                        "is_auto": (
                            fixes.get((finding.rule, finding.title)) or fixes.get((finding.rule, "")) or finding.fix
                        ).is_auto,
                        "predicted": ratio(finding.prediction),
                        "measured": ratio(speedup),
                        "verdict": trial.verdict,
                        "claimed": str(finding.fix.safety),
                        "seen": str(trial.safety_seen),
                        "memory_bytes": [trial.memory_before_bytes, trial.memory_after_bytes],
                        "note": trial.note,
                    }
                )
            left_out += proposals.left_out() if not rows else ()
    return rows, left_out


@contextlib.contextmanager
def training(script: Path, arguments: Collection[str], rules: list[LoadedRule]) -> Iterator[Report]:
    """The report on the script's own run, which shows its epochs and the state that changes while it trains."""
    with tempfile.TemporaryDirectory(prefix="predictions-") as folder:
        command = [
            sys.executable,
            "-m",
            "advisor",
            "analyze",
            "--quiet",
            *WINDOW,
            "--out",
            f"{folder}/run",
            str(script),
        ]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AdvisorError(done.stderr)
        yield analyze_run(Path(folder) / "run", rules, Settings())


@contextlib.contextmanager
def limited(limit_mib: int | None) -> Iterator[None]:
    """Move this process and its children into a cgroup with that much memory.

    Raises:
        SystemExit: If no cgroup can be created.
    """
    if limit_mib is None:
        yield
        return
    with cgroup(limit_mib << 20) as (group, tasks):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        home = next(path for _, kinds, path in lines if kinds == ("memory" if group.parent.name == "memory" else ""))
        tasks.write_text(str(os.getpid()))
        try:
            yield
        finally:
            (group.parent / home.lstrip("/") / tasks.name).write_text(str(os.getpid()))


def prove_whole_script(script: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The result of `advisor fix` for the script's own rule, on the whole training."""
    rule = script.stem.replace("_", "-")
    with tempfile.TemporaryDirectory(prefix="predictions-") as folder:
        path = Path(folder) / "fix.json"
        command = [sys.executable, "-m", "advisor", "fix", "--quiet", "--only", rule, "--budget", WHOLE_SCRIPT_BUDGET]
        command += ["--json", str(path), "--out", str(Path(folder) / "run"), str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise AdvisorError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "advisor fix failed.")
        report = json.loads(path.read_text(encoding="utf-8"))
    is_auto = {each["rule"]: each["auto"] for each in report["findings"]}
    whole = (report["comparison"] or {}).get("end_to_end")
    if (
        whole and len(report["fixes"]) == 1
    ):  # faster on the pipeline alone, so the whole script was run with all fixes: this one
        report["fixes"][0]["measured"] = {"speedup": whole["value"], "low": whole["low"], "high": whole["high"]}
        report["fixes"][0]["verdict"] = "faster" if whole["low"] > 1 else "same"
        report["proof"]["fixes"][0]["end_to_end"] = True
    rows = [
        {
            "script": script.stem,
            "rule": fix["rule"],
            "title": more["title"],
            "is_auto": is_auto.get(fix["rule"], False),
            "predicted": list(fix["predicted_speedup"].values()) if fix["predicted_speedup"] else None,
            "measured": list(fix["measured"].values()) if fix["measured"] else None,
            "verdict": fix["verdict"],
            "claimed": fix["safety_claimed"],
            "seen": str(fix["safety_seen"]),
            "memory_bytes": [more["memory_bytes"]["before"], more["memory_bytes"]["after"]],
            "note": more["note"],
            "is_whole_script": more["end_to_end"],
        }
        for fix, more in zip(report["fixes"], report["proof"]["fixes"], strict=True)
    ]
    return rows, [*report["proof"]["left_out"], *report["proof"]["notes"]] if not rows else []


def ratio(interval: Any) -> list[float] | None:
    """`[value, low, high]` of a prediction or a measurement."""
    return None if interval is None else [interval.value, interval.low, interval.high]


if __name__ == "__main__":
    main()
