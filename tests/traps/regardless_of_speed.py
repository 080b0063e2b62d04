"""What `advisor fix` would write if every change were fast: planning and equivalence as they are, no speed measured.

    python tests/traps/regardless_of_speed.py SCRIPT RESULT [--allow LEVEL]... [--only RULE]... [--budget SECONDS]

In: a script.  Out: RESULT, a JSON object: the texts of the script with all fixes that the proof keeps together and with the first
of them, the first two and so on, and what became of every fix that was tried.

Run by path with the Python of any version of the advisor: it imports nothing of the test suite. Three places of the advisor are
replaced in this process and in the proof's child, and nothing else: the process that holds the script
(`advisor.prove.session.held_process._CHILD`), the A/B measurement (`advisor.prove.trial.trial_runner.measure`) and the runs of
the whole script (`advisor.prove.search.whole_script.measure_end_to_end`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("unmeasured_child.py")


def main() -> int:
    """Write RESULT."""
    parser = argparse.ArgumentParser()
    parser.add_argument("script", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--allow", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--budget", type=float, default=1800.0)
    options = parser.parse_args()
    sys.path.pop(0)  # this folder: its modules are none of the advisor's
    options.result.write_text(json.dumps(run(options)), encoding="utf-8")
    return 0


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The result as a JSON object."""
    from advisor.model.errors import AdvisorError
    from advisor.workflows import fix, fix_phases, fix_request
    from advisor.workflows.analyze import Request, load

    seen = _replace_measurements(fix_phases)
    folder = options.result.with_suffix(".run")
    request = Request(path=options.script.resolve(), out=folder, allow=tuple(options.allow), steps=20, warmup=5)
    rules, settings = load(request)
    asked = fix_request.FixRequest(request, options.budget, only=tuple(options.only))
    try:
        result = fix.fix(asked, rules, settings, lambda progress: None)
    except AdvisorError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    report = result.report
    together = _texts(result.patch)
    return {
        "error": "",
        "together": together,
        "steps": []
        if not together or len(seen.kept) < 2
        else [_up_to(seen.proposals, seen.kept[: number + 1]) for number in range(len(seen.kept))],
        "fixes": [
            {
                "rule": fix.rule,
                "title": fix.title,
                "safety": str(fix.safety_claimed),
                "verdict": fix.verdict,
                "applied": fix.is_applied,
                "note": fix.note,
            }
            for fix in report.fixes
        ],
        "safeties": sorted(seen.safeties | _safeties(report)),
        "sentence": report.proof.sentence if report.proof else "",
        "left_out": list(report.proof.left_out) if report.proof else [],
    }


class _Seen:
    """What the proof kept, for the texts with the first fixes of it."""

    def __init__(self) -> None:
        self.proposals: Any = None
        self.kept: tuple[Any, ...] = ()
        self.safeties: set[str] = set()


def _replace_measurements(fixing: Any) -> _Seen:
    """Let every measurement say `faster`; returns where the kept fixes are noted. Raises RuntimeError where a name is gone."""
    from advisor.model.outcome import Interval
    from advisor.prove.measure.end_to_end_result import EndToEnd
    from advisor.prove.search import whole_script
    from advisor.prove.session import held_process

    for owner, name in (
        (held_process, "_CHILD"),
        (whole_script, "measure_end_to_end"),
        (fixing, "report_of"),
        (fixing, "Proposals"),
    ):
        if not hasattr(owner, name):
            raise RuntimeError(f"{owner.__name__}.{name} is gone: regardless_of_speed.py has to follow.")
    held_process._CHILD = CHILD
    speedup = Interval(2.0, 1.9, 2.1)
    whole_script.measure_end_to_end = lambda *args, **kwargs: EndToEnd("faster", speedup)
    seen = _Seen()
    conclude, proposals = fixing.report_of, fixing.Proposals

    def report_of(report: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
        seen.kept = tuple(loop.kept)
        return conclude(report, loop, *args, **kwargs)

    def make_proposals(*args: Any, **kwargs: Any) -> Any:
        seen.proposals = made = proposals(*args, **kwargs)
        propose = made.propose

        def noting(report: Any, kept: Any) -> Any:
            seen.safeties |= _safeties(report)
            return propose(report, kept)

        made.propose = noting
        return made

    fixing.report_of, fixing.Proposals = report_of, make_proposals
    return seen


def _safeties(report: Any) -> set[str]:
    """What the fixes of a report claim to do to the data, whether they are tried or not."""
    return {str(finding.fix.safety) for finding in report.findings if finding.fix is not None}


def _up_to(proposals: Any, kept: Any) -> dict[str, Any]:
    """The texts with a fix and those kept before it: what the tool writes if it drops the later ones, the latest first.

    A later fix was judged on top of the earlier ones: a cache before a map that an earlier one has moved away.
    """
    patch, last = proposals.patch(kept), kept[-1]
    return {"rule": last.rule, "title": last.title, "texts": _texts(patch) if hasattr(patch, "files") else {}}


def _texts(patch: Any) -> dict[str, str]:
    return {path.name: after.decode("utf-8") for path, (_, after) in patch.files.items()}


if __name__ == "__main__":
    sys.exit(main())
