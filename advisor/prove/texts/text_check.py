"""Checks whether the patched text makes the proved calls.

In: the calls of the unchanged script (`ProofSession.call_graph`), edits and their patch.  Out: `TextVerdict`. The patched
script is run up to the first element of its training and held there; it does not train. If the changed script is to be measured
next, it goes on instead, and is the first run of that measurement. Elements are compared for replayed edits, so without this
check an error in the rewritten text would go unnoticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.request import CaptureRequest, Progress, labelled
from advisor.model.call_graph import CALLS_NAME, CallGraph
from advisor.model.calls import Call
from advisor.model.codec import decode_message
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.prove.measure.end_to_end import record_run_in, temporary_run
from advisor.prove.measure.end_to_end_result import EarlyRun
from advisor.prove.measure.run_steps import steps_of
from advisor.prove.measure.script_windows import ScriptWindow
from advisor.prove.measure.source_overlays import Overlay, overlays
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts.graph_difference import Field, difference, unstable_fields
from advisor.replay.edited import CannotReplay
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch
from advisor.rewrite.shared_calls import spread
from advisor.sandbox.temporary import temporary_folder

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class TextVerdict:
    """Whether the patched text makes the proved calls."""

    is_broken: bool = False
    """It makes different calls, or fails."""
    note: str = ""
    """One sentence, empty if it makes the proved calls. If not `is_broken`, why the check was not possible."""

    @property
    def is_proved(self) -> bool:
        """Whether the calls were compared and are equal."""
        return not self.note


class TextCheck:
    """Checks patches of one script; each patch once."""

    def __init__(
        self,
        request: CaptureRequest,
        calls: Sequence[Call],
        graph: CallGraph | None,
        deadline: float,
        on_progress: OnProgress,
        window_of: Callable[[Sequence[Edit]], ScriptWindow | None] = lambda edits: None,
    ) -> None:
        """Create a checker.

        Args:
            request: How to run the script.
            calls: Calls of the first run, to whose ids edits refer.
            graph: Calls of the unchanged script; None if unknown.
            deadline: A time of `time.monotonic` by which all runs have ended.
            on_progress: Called with progress messages.
            window_of: Returns how the script with these edits will be measured next; None: it will not be.
        """
        self._request, self._deadline, self._on_progress = request, deadline, on_progress
        self._window_of = window_of
        self._early: dict[_Key, tuple[ScriptWindow, EarlyRun]] = {}
        self._calls = {call.id: call for call in calls}
        self._graph = graph
        self._verdicts: dict[_Key, TextVerdict] = {}
        self._unstable: frozenset[Field] | None = None
        self._has_control = False
        self.runs = 0
        """Number of runs of the script for these checks."""

    def check(self, edits: Sequence[Edit], patch: Patch) -> TextVerdict:
        """Compare the calls of the patched script with the edited recorded calls."""
        key = _key_of(patch)
        if key not in self._verdicts:
            self._verdicts[key] = self._check(edits, patch) if patch.files else TextVerdict()
        return self._verdicts[key]

    def early_run(self, patch: Patch, window: ScriptWindow) -> EarlyRun | None:
        """Return the run that has checked this text if it was timed in this way."""
        timed, run = self._early.get(_key_of(patch), (None, None))
        return run if timed == window else None

    def forget_early_runs(self) -> None:
        """Give up runs that were timed: too much time has passed for them to be compared with others."""
        self._early.clear()

    def _check(self, edits: Sequence[Edit], patch: Patch) -> TextVerdict:
        if self._graph is None:
            return TextVerdict(note="Whether the changed text makes the proved calls could not be checked.")
        try:
            expected = edited_graph(self._graph, spread(edits, self._calls))
            code: dict[str, str] = {}
            for before, after in patch.files.values():
                code |= changed_code(before, after)
            with overlays({}, patch.files) as (as_it_is, patched):
                try:
                    actual = self._timed(edits, patch, patched)
                    if actual is None:
                        actual = self._recorded(patched, "the changed text, up to its first element")
                except ScriptFailed as error:
                    if self._fails(as_it_is):
                        return TextVerdict(note=_FAILS_ANYWAY)
                    return TextVerdict(True, f"With the changes: {error}")
                reason = difference(expected, actual, changed_code=code)
                if reason is not None and self._has_unstable_fields(as_it_is):
                    if self._unstable is None:
                        return TextVerdict(note=_UNSTABLE)
                    reason = difference(expected, actual, self._unstable, code)
        except (AdvisorError, SyntaxError, ValueError) as error:
            text = error.reason if isinstance(error, CannotReplay) else str(error)
            return TextVerdict(
                note=f"Whether the changed text makes the proved calls could not be checked: {text.rstrip('.')}."
            )
        if reason is None:
            return TextVerdict()
        return TextVerdict(True, f"The changed text does not make the proved calls: {reason}")

    def _fails(self, as_it_is: Overlay) -> bool:
        """Run the unchanged script once more: what fails without a change, too, is not its fault."""
        try:
            self._recorded(as_it_is, "the unchanged script, up to its first element")
        except ScriptFailed:
            return True
        return False

    def _has_unstable_fields(self, as_it_is: Overlay) -> bool:
        """Run the unchanged script once more: differences between two runs of one text say nothing about a patch."""
        assert self._graph is not None
        if not self._has_control:
            again = self._recorded(as_it_is, "the unchanged script, up to its first element")
            self._unstable, self._has_control = unstable_fields(self._graph, again), True
        return self._unstable is None or bool(self._unstable)

    def _timed(self, edits: Sequence[Edit], patch: Patch, overlay: Overlay) -> CallGraph | None:
        """Run the changed script through its window and return its calls; None if it must be held for that.

        Once a text is not proved, the others, which are to find the cause, are only held.

        Raises:
            OutOfTime: The script does not reach its first element in time.
            ScriptFailed: It fails before that.
        """
        assert self._graph is not None
        is_first = all(verdict.is_proved for verdict in self._verdicts.values())
        window = self._window_of(edits) if is_first else None
        if window is None:
            return None
        self.runs += 1
        began = time.monotonic()
        request = replace(window.request, overlay=overlay, calls_at=self._graph.consumption, deadline=self._deadline)
        with temporary_run(request) as run:
            steps = None
            try:
                recording = record_run_in(run, labelled(self._on_progress, "with the changes: their calls, and turn 1"))
                steps = steps_of(recording, window.epochs is not None, request.warmup)
            except (OutOfTime, ScriptFailed):
                if not (run.out / CALLS_NAME).exists():
                    raise
            if not (run.out / CALLS_NAME).exists():
                return None
            graph = decode_message((run.out / CALLS_NAME).read_bytes(), CallGraph)
        if steps is not None:
            self._early[_key_of(patch)] = window, EarlyRun(steps, time.monotonic() - began)
        return graph

    def _recorded(self, overlay: Overlay, what: str) -> CallGraph:
        """Run the script with these texts and return its calls.

        Raises:
            AdvisorError: The calls cannot be read.
            ScriptFailed: The script fails.
        """
        assert self._graph is not None
        self.runs += 1
        with temporary_folder("check") as folder:
            request = replace(self._request, out=folder / "run", overlay=overlay)
            budget_s = self._deadline - time.monotonic()
            if budget_s <= 0:
                raise OutOfTime("The budget was used up")
            on_progress = labelled(self._on_progress, what)
            with ProofSession(request, None, budget_s, on_progress, hold_at=self._graph.consumption) as session:
                return session.call_graph()


_Key = tuple[tuple[str, bytes], ...]
"""The changed texts, by path."""


def _key_of(patch: Patch) -> _Key:
    return tuple(sorted(patch.after().items()))


_FAILS_ANYWAY = (
    "Whether the changed text makes the proved calls could not be checked: the script failed with the changes, and then without "
    "them, too."
)
_UNSTABLE = (
    "Whether the changed text makes the proved calls could not be checked: two runs of the unchanged script make different calls "
    "before their first element."
)

__all__ = ["TextCheck", "TextVerdict"]
