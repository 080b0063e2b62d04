"""An agent without a language model: it makes a script faster as SKILL.md says, and knows the script by the JSON alone.

analyse -> the finding with the best predicted gain -> prove its diff -> keep it only if it is equal and faster -> analyse again
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.cli import main

JOURNAL = "advisor-journal.jsonl"
KEPT = "equal and faster"
TRIED = ("exact", "rerandomized")
"""Effects on the data that may turn out to be none."""


@dataclass
class Agent:
    """Works on `train.py` in the current folder."""

    saved_runs: list[str] = field(default_factory=list)
    """Runs to read in place of new ones, as after a crash."""
    runs: list[str] = field(default_factory=list)
    """The analysed runs."""
    proofs: list[dict[str, Any]] = field(default_factory=list)
    """The JSON of every proof."""
    kept: list[str] = field(default_factory=list)
    """Rules whose changes were kept."""

    def run(self) -> None:
        """Go on until nothing is left to try."""
        tried: set[str] = set()
        while True:
            report = self.analyze()
            if not report["verdict"]["input_bound"]:
                return
            for finding in untried(report, tried):
                tried.add(finding["diff"])
                proof = self.prove(finding)
                self.proofs.append(proof)
                if proof["verdict"] == KEPT:
                    subprocess.run(["git", "apply"], input=finding["diff"].encode(), check=True)
                    self.kept.append(finding["rule"])
                    break
            else:
                return

    def analyze(self) -> dict[str, Any]:
        """Return the report of the next run."""
        is_saved = len(self.runs) < len(self.saved_runs)
        run = self.saved_runs[len(self.runs)] if is_saved else f"run{len(self.runs)}"
        target = [run] if is_saved else ["--out", run, "--steps", "30", "--warmup", "5", "train.py"]
        report = advisor("analyze", *target)
        self.runs.append(report["run_folder"])
        return report

    def prove(self, finding: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict on the diff of a finding."""
        Path("change.diff").write_text(finding["diff"])
        return advisor(
            "prove", "--pipeline-only", "--budget", "5min", "--journal", JOURNAL, "--resume", "--hypothesis", finding["title"],
            "--patch", "change.diff", "train.py",
        )  # fmt: skip


def untried(report: dict[str, Any], tried: set[str]) -> Iterator[dict[str, Any]]:
    """The findings with an edit that may keep the data, the best prediction first."""
    possible = [finding for finding in report["findings"] if finding["diff"] and finding["safety"] in TRIED]
    for finding in sorted(possible, key=gain, reverse=True):
        if finding["diff"] not in tried:
            yield finding


def gain(finding: dict[str, Any]) -> float:
    """The predicted speedup of the run, or of a step if the epochs are not counted; 0 if there is none."""
    over_run = finding["over_run"] or {}
    ratio = over_run.get("predicted_speedup") or finding["predicted_speedup"] or {}
    return ratio.get("value") or 0.0


def advisor(command: str, *args: str) -> dict[str, Any]:
    """Run a command, and return its JSON."""
    result = Path("result.json")
    result.unlink(missing_ok=True)
    code = main([command, "--quiet", "--json", str(result), *args])
    assert code == 0, f"advisor {command} {' '.join(args)} ended with {code}"
    return json.loads(result.read_text())
