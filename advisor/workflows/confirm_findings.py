"""Measures again before new findings fail a check: once with the working tree, and once with the text of the base revision.

In: how to run the script, and the texts that differ.  Out: both reports. A finding near a threshold comes and goes from run
to run. One that the base has as well does not come from the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import labelled
from advisor.model.errors import AdvisorError
from advisor.model.text import message_of
from advisor.prove.measure.source_overlays import overlays
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import Capture, Request, analyze

if TYPE_CHECKING:
    from advisor.capture.request import CaptureRequest, Progress
    from advisor.engine import LoadedRule
    from advisor.gate.base_revision import BaseTexts
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings

OnProgress = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class SecondLook:
    """The reports of the repeated runs."""

    head: Report | None = None
    """The working tree again; None if the run failed."""
    base: Report | None = None
    """The base revision; None if it has no such script, or the run failed."""
    notes: tuple[str, ...] = ()
    """Why a run is missing."""


def look_again(
    request: Request, texts: BaseTexts, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
) -> SecondLook:
    """Analyse the working tree and the base revision once each. Their run folders are temporary.

    Args:
        request: How to run the script.
        texts: The files that differ.
        rules: The rules to ask.
        settings: The settings of the script.
        on_progress: Called with progress messages.
    """
    once = replace(request, with_ceiling=False, with_headroom=False, to_end=False)
    reports: dict[str, Report] = {}
    notes: list[str] = []
    with overlays(texts.files, {}) as (base, same):
        mine = tuple(pair for pair in same if pair[0] not in texts.only_in_base)
        sides = {"the working tree": mine, texts.revision: base} if texts.has_script else {"the working tree": mine}
        for side, overlay in sides.items():
            with temporary_folder("confirm") as folder:
                try:
                    reports[side] = analyze(
                        replace(once, out=folder / "run"),
                        rules,
                        settings,
                        labelled(on_progress, f"confirming new findings, {side}"),
                        _with_text(overlay),
                    )
                except AdvisorError as error:
                    notes.append(f"New findings could not be confirmed with {side}: {message_of(error)}.")
    return SecondLook(reports.get("the working tree"), reports.get(texts.revision), tuple(notes))


def _with_text(overlay: tuple[tuple[Path, Path], ...]) -> Capture:
    def capture(request: CaptureRequest, on_progress: OnProgress) -> Path:
        from advisor.capture import launch

        return launch.capture(replace(request, overlay=overlay), on_progress)

    return capture
