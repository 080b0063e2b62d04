"""Checks in real runs that every report that names input as the problem also says what to do next.

    python benchmarks/no_dead_ends.py [--only NAME] [--write-docs]

In: `examples/*.py`, `benchmarks/bottlenecks/*.py` and `benchmarks/by_hand/written/*.py`, which are to have an entry under "What
to change" if their verdict is input-bound; `benchmarks/healthy/*.py` and `examples/tuned.py`, which are to have none.  Out: the
verdict and the entries of each; exit code 1 if one has no entry, or a healthy one has one of the rule `next-step`.

Each script is analysed by `advisor analyze` in a separate process, with a short window.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from published import machine_sentence, write_section
from silence import HEALTHY, ROOT, Case, analyze, said

BY_HAND = ROOT / "benchmarks" / "by_hand"
NO_SCRIPTS = ("sample_data", "flowers_like_dataset", "lab")
SCRIPTS = sorted(
    path
    for folder in (ROOT / "examples", ROOT / "benchmarks" / "bottlenecks", BY_HAND / "written")
    for path in folder.glob("*.py")
    if path.stem not in NO_SCRIPTS
)


def main() -> int:
    """Analyse all scripts and print those that break the rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="a script; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the counts into docs/benchmarks.md")
    options = parser.parse_args()
    wrong: list[str] = []
    count = bound = 0
    for script in dict.fromkeys((*HEALTHY, *SCRIPTS)):
        if options.only is not None and script.stem not in options.only:
            continue
        name = f"{script.parent.name}/{script.stem}"
        if script.parent.parent == BY_HAND:  # it makes its input files, and what an analysed script writes is discarded
            environment = {**os.environ, "PYTHONPATH": str(BY_HAND)}
            subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True)
        with tempfile.TemporaryDirectory(prefix="no-dead-ends-") as folder:
            report = analyze(Case(name, script, None), Path(folder) / "run")
        count += 1
        found = [] if report is None else report["findings"]
        is_bound = report is not None and report["verdict"]["input_bound"]
        bound += is_bound
        has_step = any(finding["rule"] == "next-step" for finding in found)
        if report is None or (is_bound and not found) or (script in HEALTHY and has_step):
            wrong.append(name)
        print(f"{name}: {'input-bound' if is_bound else 'not input-bound'}, {said(report, found)}", flush=True)
    print(f"\n{count} scripts, {len(wrong)} of them wrong{': ' if wrong else ''}{', '.join(wrong)}.")
    if options.write_docs:
        names = f": {', '.join(wrong)}" if wrong else ""
        sentence = f"{count} scripts, {bound} of them input-bound. Wrong: {len(wrong)}{names}."
        write_section("no-dead-ends", [machine_sentence(), "", sentence])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
