"""Checks whether TensorBoard's tf.data bottleneck analysis names the right iterator on the same captures.

    python benchmarks/bottleneck_accuracy.py --runs RUNS
    python -m venv official && official/bin/pip install tensorboard-plugin-profile==2.19.0
    python benchmarks/official_tool.py RUNS official/bin/python [--write-docs]

In: run folders stored by `bottleneck_accuracy.py`, `bottlenecks/truth.json`, and a Python with the last release that contains
the tool (`tf_data_bottleneck_analysis^`).  Out: for each script what the tool names, and how often it is right.

The tool has no source lines, so they are supplied: the iterator that it names is looked up in the advisor's graph of the same
run. The answer is right if the call of that iterator is on the line of the bottleneck. If the tool finds no bottleneck ("not
input bound"), it is right if there is none.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from bottleneck_accuracy import Case, read_cases, read_truths, what_is_named
from published import machine_sentence, write_section

from advisor.graph import analyse
from advisor.model.codec import decode
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording
from advisor.profile import read_trace

TOOL = "tf_data_bottleneck_analysis"
_TASK = """
import json, sys
from tensorboard_plugin_profile.convert import raw_to_tool_data
print(raw_to_tool_data.xspace_to_tool_data(sys.argv[2:], sys.argv[1] + "^", {})[0])
"""
_BOTTLENECK = re.compile(r"<b>(.*?)</b>.*?</u>: (.*?)<br/>")


def main() -> None:
    """Run the tool on every run, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("python", type=Path, help="an interpreter with tensorboard-plugin-profile 2.19.0")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    truths = read_truths()
    rows, right, ours, judged = [], 0, 0, 0
    for case in read_cases([]):
        truth = truths[case.name].verdict()
        analysis = analysis_of(case, options.runs / case.name)
        named, node = ask(case, options.runs / case.name, options.python, analysis)
        advisor = what_is_named(case, analysis).node
        if truth != "unclear":
            judged, right, ours = judged + 1, right + (node == truth), ours + (advisor == truth)
        rows.append(
            f"| {case.name} | {truth} | {named} | {node} | {yes(node == truth)} | {advisor} | {yes(advisor == truth)} |"
        )
        print(rows[-1], flush=True)
    summary = (
        f"On the same captures: TensorBoard's {TOOL} is right in {right} of {judged} cases, the advisor in {ours}."
    )
    print(summary)
    if options.write_docs:
        head = "| case | bottleneck by intervention | the tool names | that is | right | the advisor names | right |"
        write_section("official-tool", [machine_sentence(), summary, "", head, "|---|---|---|---|---|---|---|", *rows])


def yes(is_so: bool) -> str:
    """For display."""
    return "yes" if is_so else "no"


def analysis_of(case: Case, run: Path) -> Analysis:
    """The analysis of a run folder.

    Raises:
        SystemExit: If it cannot be read.
    """
    try:
        recording = decode((run / "recording.json").read_bytes(), Recording)
        return analyse(read_trace(run), recording, str(case.script))
    except (AdvisorError, OSError) as error:
        sys.exit(f"{run} cannot be read ({error}); run bottleneck_accuracy.py --runs {run.parent} first.")


def ask(case: Case, run: Path, python: Path, analysis: Analysis) -> tuple[str, str]:
    """The tool's answer and its node: `none` for not input-bound."""
    profiles = [str(path) for path in sorted(run.glob("plugins/profile/*/*.xplane.pb"))]
    done = subprocess.run([python, "-c", _TASK, TOOL, *profiles], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"fails: {done.stderr.strip().splitlines()[-1]}", "nothing"
    tables = json.loads(done.stdout)
    answer = tables[2]
    if answer["p"]["is_input_bound"] != "true":
        return "not input bound", "none"
    columns = [column["id"] for column in answer["cols"]]
    rows = [dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True)) for row in answer["rows"]]
    if not rows:
        return "nothing", "nothing"
    worst = max(rows, key=lambda row: row["max_latency"])
    found = _BOTTLENECK.search(worst["bottleneck"])
    name, long_name = found.groups() if found else ("?", "")
    return name, node_of(case, analysis, name, long_name)


def node_of(case: Case, analysis: Analysis, name: str, long_name: str) -> str:
    """The node whose line contains the call of that iterator."""
    plain = re.sub(r"\[\d+\]", "", long_name)
    iterators = [it for pipeline in analysis.pipelines for it in pipeline.iterators if it.name == name]
    iterators = [it for it in iterators if re.sub(r"\[\d+\]", "", it.long_name) == plain] or iterators
    for iterator in iterators:
        call = iterator.main_call
        if call is not None and call.site is not None:
            node = case.node_at(call.site.line, call.site.end_line)
            if node:
                return node
    return "injected or none of the script's"


if __name__ == "__main__":
    main()
