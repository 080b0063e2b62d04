"""An agent without a language model: it makes a script faster as SKILL.md says, and knows the script by the JSON alone.

    python -m tests.workflows.scripted_agent      (in the folder of train.py)

analyse -> the finding with the best predicted gain -> prove its diff -> keep it only if it is equal and faster -> analyse again
-> prove all changes together on the whole script

It keeps nothing in memory that it needs after a crash: started again, it begins with the original script, reads the runs that are
stored, and gets the verdicts of earlier proofs from the journal.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from advisor.cli import main

JOURNAL = "advisor-journal.jsonl"
KEPT = "equal and faster"
TRIED = ("exact", "rerandomized")
"""Effects on the data that may turn out to be none."""
ORIGINAL = "original.py"


@dataclass
class Agent:
    """Works on `train.py` in the current folder."""

    saved_runs: list[str] = field(
        default_factory=lambda: list(takewhile(is_run, (f"run{number}" for number in count())))
    )
    """Runs to read in place of new ones: what is left of an agent that has crashed."""
    runs: list[str] = field(default_factory=list)
    """The analysed runs."""
    proofs: list[dict[str, Any]] = field(default_factory=list)
    """The JSON of every proof of a finding."""
    kept: list[str] = field(default_factory=list)
    """Rules whose changes were kept."""

    def run(self) -> dict[str, Any] | None:
        """Search, and prove all changes together; None if none was kept."""
        self.search()
        return self.prove_total() if self.kept else None

    def search(self) -> None:
        """Go on until nothing is left to try."""
        if Path(ORIGINAL).exists():
            shutil.copy(ORIGINAL, "train.py")
        else:
            shutil.copy("train.py", ORIGINAL)
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
        """Return the verdict on the diff of a finding, by the pipeline alone."""
        Path("change.diff").write_text(finding["diff"])
        return advisor(
            "prove", "--pipeline-only", "--budget", "5min", "--journal", JOURNAL, "--resume", "--hypothesis", finding["title"],
            "--patch", "change.diff", "train.py",
        )  # fmt: skip

    def prove_total(self) -> dict[str, Any]:
        """Return the verdict on all changes together, by the whole script."""
        return advisor("prove", "--journal", JOURNAL, "--resume", "--with", "train.py", ORIGINAL)


def is_run(folder: str) -> bool:
    """Whether a run was analysed to its end."""
    return Path(folder, "report.json").is_file()


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


if __name__ == "__main__":
    Agent().run()
