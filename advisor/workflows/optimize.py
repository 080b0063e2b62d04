"""The phases of `advisor.optimize`, and of `advisor.analyze` for dataset objects, all in the program's own process.

In: a `tf.data.Dataset`.  Out: the dataset proved faster, with `.report`; or the `Report` alone.

    rebuild -> profile -> analyse -> greedy loop -> replay with the kept fixes
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.capture.instrument.dataset_ids import is_dataset
from advisor.model.errors import AdvisorError
from advisor.model.finding import Safety
from advisor.model.settings import ALLOWABLE
from advisor.model.termination import cleaning_up_when_terminated
from advisor.prove.outcomes import ProofFacts, report_of
from advisor.prove.search.first_pass import FirstPass
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.loop_result import LoopResult, edits_of
from advisor.prove.search.proposals import Proposals
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import Request, analyze_run, load

if TYPE_CHECKING:
    from advisor.capture.request import Progress
    from advisor.model.calls import Call, Site
    from advisor.model.outcome import Report
    from advisor.prove.trial.in_process_proof import InProcessSession
    from advisor.replay.program_state import Trace
    from advisor.replay.rebuild import Rebuilt

REPORT_ATTRIBUTE = "report"


def optimize(dataset: Any, allow: Sequence[str], budget_s: float, rules: Sequence[Path], only: Sequence[str]) -> Any:  # noqa: ANN401
    """See `advisor.optimize`, which checks and converts the arguments.

    Args:
        dataset: What the user passed; refused unless it is a `tf.data.Dataset`.
        allow: Names of safety levels in addition to `exact`.
        budget_s: Seconds for everything.
        rules: Folders with additional rules.
        only: Ids of the rules whose fixes are tried; empty: all.

    Returns:
        The faster dataset, or the same object, with the report as attribute.
    """
    levels = _levels(allow)
    _check(dataset)
    from advisor.replay.program_state import program_state_kept

    with program_state_kept(dataset) as trace:
        return _optimize(dataset, levels, allow, budget_s, rules, only, trace)


def _optimize(
    dataset: Any,  # noqa: ANN401
    levels: frozenset[Safety],
    allow: Sequence[str],
    budget_s: float,
    rules: Sequence[Path],
    only: Sequence[str],
    trace: Trace,
) -> Any:  # noqa: ANN401
    began = time.monotonic()
    rebuilt = _rebuilt(dataset)
    request = Request(rule_directories=tuple(rules), allow=tuple(allow))
    loaded, settings = load(request)
    levels = levels or frozenset(Safety(level) for level in settings.allow)
    with (
        cleaning_up_when_terminated(),
        temporary_folder("optimize") as folder,
        _progress(budget_s) as on_progress,
    ):
        session = _session(rebuilt, folder, began + budget_s, on_progress)

        def analyse(path: Path) -> Report:
            return replace(analyze_run(path, loaded, settings), run_folder="")

        report = analyse(session.profile(()))
        calls = {call.id: call for call in report.analysis.calls}
        recording = report.analysis.recording
        seeded = recording is None or recording.is_reproducible
        proposals = Proposals(calls, None, levels, seeded, frozenset(only))
        loop = LoopResult()

        if proposals.propose_for_pipeline(report, ()):
            loop = prove_fixes(session, report, calls, proposals.propose_for_pipeline, analyse, began + budget_s, on_progress,
                               is_asked=proposals.is_asked, first_pass=FirstPass(proposals, report.analysis))  # fmt: skip
        edits = edits_of(loop.kept, calls)
        result = session.dataset(edits) if edits else dataset
    about = ProofFacts(
        seconds=time.monotonic() - began,
        is_applied=bool(edits),
        left_out=proposals.left_out([attempt.finding for attempt in loop.attempts]),
        notes=(*_notes(rebuilt), *trace.notes),
    )
    object.__setattr__(result, REPORT_ATTRIBUTE, report_of(report, loop, None, about))
    return result


def analyze_dataset(dataset: Any, rules: Sequence[Path]) -> Report:  # noqa: ANN401
    """Analyse a dataset with a consumer that only reads, so that the report shows the limit of the pipeline alone."""
    _check(dataset)
    from advisor.replay.program_state import program_state_kept

    loaded, settings = load(Request(rule_directories=tuple(rules)))
    with (
        program_state_kept(dataset) as trace,
        cleaning_up_when_terminated(),
        temporary_folder("analyze") as folder,
    ):
        rebuilt = _rebuilt(dataset)
        session = _session(rebuilt, folder, time.monotonic() + 60, lambda progress: None)
        report = analyze_run(session.profile(()), loaded, settings)
    return replace(report, run_folder="", warnings=(*report.warnings, *_notes(rebuilt), *trace.notes))


def analyze_function(
    function: object, args: Sequence[object], out: str | Path | None, warmup: int | None, steps: int | None
) -> Report:
    """Run a function in this process and analyse the datasets it consumes. Its exceptions propagate.

    Args:
        function: What the user passed; refused unless it can be called.
        args: Its positional arguments.
        out: A logdir; None: the user's state folder.
        warmup: Number of steps before the measurement starts; None: until the step time is steady.
        steps: Number of steps to profile; None: until the figures are stable.

    Raises:
        AdvisorError: It cannot be called, or nothing could be measured.
    """
    if not callable(function):
        raise AdvisorError(f"advisor.analyze_function takes a function, not a {type(function).__name__}.")
    from advisor.workflows.watch import watch

    with watch(out, warmup=warmup, steps=steps, quiet=True) as run:
        function(*args)
    if run.report is None:
        raise AdvisorError(run.problem or "Nothing was measured.")
    return run.report


def _check(dataset: Any) -> None:  # noqa: ANN401
    """Raise AdvisorError for other objects, for a distributed dataset, and inside a tf.function."""
    if not is_dataset(dataset):
        kind = type(dataset).__name__
        hint = " Pass the dataset that was distributed." if "Distributed" in kind else ""
        raise AdvisorError(f"advisor takes a tf.data.Dataset here, not a {kind}.{hint}")
    tensorflow = sys.modules["tensorflow"]
    if not tensorflow.executing_eagerly():
        raise AdvisorError("A dataset can only be measured outside of a tf.function: call advisor there.")


def _rebuilt(dataset: Any) -> Rebuilt:  # noqa: ANN401
    """Rebuild the dataset from the object; raise AdvisorError if no part of it can be rebuilt."""
    from advisor.replay.rebuild import rebuild

    warnings: dict[str, None] = {}
    rebuilt = rebuild(dataset, _callers_line(), _known_call, warnings.setdefault)
    if rebuilt.call_id is None:
        raise AdvisorError(f"A {type(dataset).__name__} cannot be rebuilt, so it cannot be changed.")
    return rebuilt


def _session(
    rebuilt: Rebuilt, folder: Path, deadline: float, on_progress: Callable[[Progress], None]
) -> InProcessSession:
    from advisor.prove.trial.in_process_proof import InProcessSession

    place = _callers_line()
    target = f"dataset at {Path(place.file).name}:{place.line}" if place is not None else "dataset"
    return InProcessSession(rebuilt, target, folder, deadline, on_progress)


def _known_call(call_id: str) -> Call | None:
    """The call as recorded when the dataset was created, if the hooks were installed by then."""
    in_process = sys.modules.get("advisor.capture.in_process")
    return in_process.hooks().recorder.call(call_id) if in_process is not None else None


def _callers_line() -> Site | None:
    """The user's line that called the advisor."""
    from advisor.capture.instrument.call_sites import SiteFinder

    return SiteFinder().place(sys._getframe(1)).site


def _notes(rebuilt: Rebuilt) -> tuple[str, ...]:
    names = dict.fromkeys(rebuilt.opaque)
    if not names:
        return ()
    notes = [
        f"Used unchanged, together with its inputs: {', '.join(names)}. It cannot be rebuilt from the object alone."
    ]
    if rebuilt.advanced:
        notes.append(
            f"Reading it during the trials changed {', '.join(rebuilt.advanced)}, which could not be restored."
        )
    return tuple(notes)


def _levels(allow: Sequence[str]) -> frozenset[Safety]:
    unknown = [level for level in allow if level not in ALLOWABLE]
    if unknown:
        raise AdvisorError(f"allow accepts {', '.join(ALLOWABLE)}, not {unknown[0]!r}.")
    return frozenset(Safety(level) for level in allow)


def _progress(budget_s: float) -> Any:  # noqa: ANN401
    """A progress bar on a terminal, nothing elsewhere."""
    from rich.console import Console

    from advisor.report.progress import show_budget

    return show_budget(Console(stderr=True), is_quiet=False, budget_s=budget_s)
