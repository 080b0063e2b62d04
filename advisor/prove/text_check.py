"""Checks whether the patched text makes the proved calls.

In: the calls of the unchanged script (`ProofSession.call_graph`), edits and their patch.  Out: `TextVerdict`. The patched
script is run up to the first element of its training and held there; it does not train. Elements are compared for replayed
edits, so without this check an error in the rewritten text would go unnoticed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.request import CaptureRequest, Progress
from advisor.model.call_graph import CallGraph
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Edit
from advisor.model.recording import Call
from advisor.prove.graph_difference import Field, difference, unstable_fields
from advisor.prove.proof_session import ProofSession
from advisor.prove.source_overlays import Overlay, overlays
from advisor.replay.edited import CannotReplay
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch
from advisor.rewrite.shared_calls import spread

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
    ) -> None:
        """Create a checker.

        Args:
            request: How to run the script.
            calls: Calls of the first run, to whose ids edits refer.
            graph: Calls of the unchanged script; None if unknown.
            deadline: A time of `time.monotonic` by which all runs have ended.
            on_progress: Called with progress messages.
        """
        self._request, self._deadline, self._on_progress = request, deadline, on_progress
        self._calls = {call.id: call for call in calls}
        self._graph = graph
        self._verdicts: dict[tuple[tuple[str, bytes], ...], TextVerdict] = {}
        self._unstable: frozenset[Field] | None = None
        self._has_control = False
        self.runs = 0
        """Number of runs of the script for these checks."""

    def check(self, edits: Sequence[Edit], patch: Patch) -> TextVerdict:
        """Compare the calls of the patched script with the edited recorded calls."""
        key = tuple(sorted(patch.after().items()))
        if key not in self._verdicts:
            self._verdicts[key] = self._check(edits, patch) if patch.files else TextVerdict()
        return self._verdicts[key]

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
                    actual = self._recorded(patched, "the changed text, up to its first element")
                except ScriptFailed as error:
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

    def _has_unstable_fields(self, as_it_is: Overlay) -> bool:
        """Run the unchanged script once more: differences between two runs of one text say nothing about a patch."""
        assert self._graph is not None
        if not self._has_control:
            again = self._recorded(as_it_is, "the unchanged script, up to its first element")
            self._unstable, self._has_control = unstable_fields(self._graph, again), True
        return self._unstable is None or bool(self._unstable)

    def _recorded(self, overlay: Overlay, what: str) -> CallGraph:
        """Run the script with these texts and return its calls.

        Raises:
            AdvisorError: The calls cannot be read.
            ScriptFailed: The script fails.
        """
        assert self._graph is not None
        self.runs += 1
        with tempfile.TemporaryDirectory(prefix="advisor-check-") as folder:
            request = replace(self._request, out=Path(folder) / "run", overlay=overlay)
            budget_s = self._deadline - time.monotonic()
            if budget_s <= 0:
                raise OutOfTime("The budget was used up")
            on_progress = self._labelled(what)
            with ProofSession(request, None, budget_s, on_progress, hold_at=self._graph.consumption) as session:
                return session.call_graph()

    def _labelled(self, text: str) -> OnProgress:
        return lambda progress: self._on_progress(msgspec.structs.replace(progress, text=text))


_UNSTABLE = (
    "Whether the changed text makes the proved calls could not be checked: two runs of the unchanged script make different calls "
    "before their first element."
)

__all__ = ["TextCheck", "TextVerdict"]
