"""`advisor prove --journal`: notes what is tried and what comes of it, and answers from the journal what was tried before.

In: a `ProveRequest` and the journal.  Out: `ChangeProof`, of this run or of an earlier one.

    begin (a line) -> prove -> judged, failed or stopped (a line)
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from advisor.gate.attempts import Journal, Trial, append_entry, read_journal
from advisor.gate.change_identity import identify
from advisor.model.change_proof import ChangeProof
from advisor.model.errors import AdvisorError, ChangeFailed
from advisor.model.termination import Terminated
from advisor.model.text import message_of
from advisor.model.version import __version__
from advisor.report.change_json import change_of, document_of
from advisor.report.journal_format import BEGAN, FAILED, JUDGED, STOPPED, JournalEntry, TrialOptions
from advisor.workflows.prove import OnProgress, prove
from advisor.workflows.prove_request import ProveRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.settings import Settings

MAX_HYPOTHESIS = 2_000
"""Longest hypothesis, in characters."""
_EXIT_FAILED, _EXIT_INTERRUPTED, _EXIT_SIGNALLED = 2, 130, 128
"""As in `advisor.cli`."""


@dataclass(frozen=True, slots=True)
class TrialJournal:
    """A journal, and the trial that is to be noted in it."""

    path: Path
    journal: Journal
    request: ProveRequest
    settings: Settings
    trial: Trial
    hypothesis: str = ""

    @classmethod
    def open(cls, path: Path, request: ProveRequest, settings: Settings, hypothesis: str = "") -> TrialJournal:
        """Read the journal; nothing is written.

        Args:
            path: The journal; it need not exist.
            request: The change to judge, and the script.
            settings: The settings of its runs, which are part of the identity of the trial.
            hypothesis: What the user expects of the change; line breaks become spaces.

        Raises:
            AdvisorError: The file is no journal, or the hypothesis is too long.
        """
        if len(hypothesis) > MAX_HYPOTHESIS:
            raise AdvisorError(f"--hypothesis is longer than {MAX_HYPOTHESIS} characters; shorten it to one sentence.")
        script = request.script
        identity = identify(script.path, script.module, script.args, request.texts)
        options = TrialOptions(
            pipeline_only=request.is_pipeline_only,
            allow=sorted(set(settings.allow)),
            steps=settings.steps,
            warmup=settings.warmup,
            seconds=settings.seconds,
            budget_s=request.budget_s,
        )
        trial = Trial(identity.base, identity.diff, options)
        return cls(path, read_journal(path), request, settings, trial, " ".join(hypothesis.split()))

    def earlier_result(self) -> ChangeProof | None:
        """Return the verdict that the journal holds for this change; None if the change has to be judged.

        Raises:
            ChangeFailed: The journal says that the script fails with it.
        """
        entry = self.journal.result_of(self.trial)
        if entry is None:
            return None
        if entry.proof is None:
            raise ChangeFailed(f"{entry.error.rstrip('.')} (found at {entry.time}; nothing was run now).")
        return replace(change_of(entry.proof), judged_before=entry.time)

    def prove(
        self, on_progress: OnProgress, exit_code_of: Callable[[ChangeProof], int]
    ) -> tuple[ChangeProof, AdvisorError | None]:
        """Judge the change, and note the beginning and the end.

        Args:
            on_progress: Called with progress messages.
            exit_code_of: Returns the exit code of the command for a verdict.

        Returns:
            The verdict, and the error if it could not be noted.

        Raises:
            AdvisorError: As for `prove`, or the beginning could not be noted.
        """
        unfinished = self.journal.unfinished(self.trial)
        name, began = secrets.token_hex(6), time.monotonic()
        append_entry(self.path, self._entry(name, BEGAN))
        try:
            change = prove(self.request, self.settings, on_progress)
        except BaseException as error:
            with suppress(AdvisorError):  # the reason why there is no verdict is more important
                append_entry(self.path, self._without_verdict(name, error, time.monotonic() - began))
            raise
        if change.is_interrupted:  # no result: it is tried again
            with suppress(AdvisorError):
                append_entry(self.path, self._without_verdict(name, KeyboardInterrupt(), time.monotonic() - began))
            return change, None
        notes = list(self.journal.notes)
        if unfinished is not None:
            notes.append(f"An earlier trial of this change, begun at {unfinished.time}, has no end in the journal.")
        change = replace(change, notes=(*change.notes, *notes))
        proof = document_of(change)
        entry = msgspec.structs.replace(
            self._entry(name, JUDGED),
            verdict=proof.verdict,
            speedup=proof.speedup,
            seconds=proof.seconds,
            exit_code=exit_code_of(change),
            proof=proof,
        )
        try:
            append_entry(self.path, entry)
        except AdvisorError as problem:
            return change, problem
        return change, None

    def _entry(self, name: str, event: str) -> JournalEntry:
        trial = self.trial
        return JournalEntry(
            schema_version=1,
            event=event,
            trial=name,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            advisor_version=__version__,
            target=self.request.target,
            change=self.request.texts.label,
            files=list(self.request.files),
            base=trial.base,
            diff=trial.diff,
            options=trial.options,
            hypothesis=self.hypothesis,
            verdict=None,
            speedup=None,
            seconds=None,
            exit_code=None,
            error="",
            proof=None,
        )

    def _without_verdict(self, name: str, error: BaseException, seconds: float) -> JournalEntry:
        return msgspec.structs.replace(
            self._entry(name, FAILED if isinstance(error, ChangeFailed) else STOPPED),
            seconds=seconds,
            exit_code=_exit_code_of(error),
            error=_sentence_of(error),
        )


def _exit_code_of(error: BaseException) -> int:
    if isinstance(error, AdvisorError):
        return error.exit_code
    if isinstance(error, Terminated):
        return _EXIT_SIGNALLED + error.number
    return _EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else _EXIT_FAILED


def _sentence_of(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "Terminated." if isinstance(error, Terminated) else "Interrupted."
    return f"{message_of(error)[:MAX_HYPOTHESIS]}." if isinstance(error, AdvisorError) else type(error).__name__
