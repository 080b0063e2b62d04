"""Checks in real runs that rules are silent on healthy scripts, and each rule on its near misses.

    python benchmarks/silence.py [--only NAME] [--write-docs]

In: `benchmarks/healthy/*.py` and `examples/tuned.py`, on which no rule may report anything; `benchmarks/near_misses/`, one
script per rule on which that rule must be silent.  Out: what was reported nevertheless; exit code 1 if anything was.

Each script is analysed by `advisor analyze` in a separate process, with a short window.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from near_misses import NEAR_MISSES, script_of
from published import machine_sentence, write_section

from advisor.engine import load_rules
from advisor.model.settings import Settings

ROOT = Path(__file__).parents[1]
HEALTHY = (*sorted((ROOT / "benchmarks" / "healthy").glob("*.py")), ROOT / "examples" / "tuned.py")
WINDOW = ("--steps", "40", "--warmup", "20", "--seconds", "3")


@dataclass(frozen=True)
class Case:
    """One script; `rule` is None if no rule may report anything."""

    name: str
    script: Path
    rule: str | None


def main() -> int:
    """Analyse all scripts and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="a healthy script or a rule; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the counts into docs/benchmarks.md")
    options = parser.parse_args()
    alarms: list[str] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="silence-") as folder:
        cases = [case for case in cases_in(Path(folder)) if options.only is None or case.name in options.only]
        for case in cases:
            start = time.monotonic()
            report = analyze(case, Path(folder) / "run")
            found = (
                []
                if report is None
                else [each for each in (*report["findings"], *report["hints"]) if case.rule in (None, each["rule"])]
            )
            alarms += [f"{case.name}: {each['rule']}: {each['title']}" for each in found]
            failed += [case.name] if report is None or report["rule_errors"] else []
            print(f"{case.name} ({time.monotonic() - start:.0f} s): {said(report, found)}", flush=True)
    without = sorted(
        {rule.id for rule in load_rules([], Settings()) if rule.is_shipped} - {case.rule for case in cases}
    )
    healthy = sum(case.rule is None for case in cases)
    lines = [
        f"{machine_sentence()} {healthy} healthy scripts and {len(cases) - healthy} near misses, one of each rule: "
        f"{len(alarms)} findings{''.join(f'; {alarm}' for alarm in alarms)}.",
        *([f"Not analysed, or a rule failed: {', '.join(failed)}."] if failed else []),
    ]
    print("\n".join(["", *lines]))
    if options.only is None:
        print(f"Rules without a near miss here: {', '.join(without) or 'none'}.")
    if options.write_docs:
        write_section("silence", lines)
    return 1 if alarms or failed else 0


def cases_in(folder: Path) -> list[Case]:
    """All cases; the scripts of near misses are written into `folder`."""
    cases = [Case(path.stem, path, None) for path in HEALTHY]
    for number, near_miss in enumerate(NEAR_MISSES):  # a rule may have several
        script = folder / f"{near_miss.rule.replace('-', '_')}_{number}.py"
        script.write_text(script_of(near_miss), encoding="utf-8")
        cases.append(Case(near_miss.rule, script, near_miss.rule))
    return cases


def analyze(case: Case, out: Path) -> dict[str, Any] | None:
    """The report of the script; None, with the reason on stderr, if it could not be analysed."""
    command = [
        sys.executable,
        "-m",
        "advisor",
        "analyze",
        *WINDOW,
        "--quiet",
        "--out",
        str(out),
        "--json",
        "-",
        str(case.script),
    ]
    modules = os.pathsep.join((str(ROOT / "examples"), str(ROOT / "benchmarks" / "by_hand")))
    environment = {**os.environ, "PYTHONPATH": modules, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def said(report: dict[str, Any] | None, found: list[dict[str, Any]]) -> str:
    """One line for display: the verdict and the findings."""
    if report is None:
        return "not analysed"
    wait = report["verdict"]["input_wait_share"]
    titles = [f"{each['rule']}: {each['title']} ({each['because']})" for each in found]
    titles += [f"{each['rule']} failed: {each['message']}" for each in report["rule_errors"]]
    return f"{'' if wait is None else f'{wait:.0%} wait, '}{'; '.join(titles) or 'silent'}"


if __name__ == "__main__":
    sys.exit(main())
