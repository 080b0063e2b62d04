"""What `advisor prove` is asked, and what it announces before the first run.

In: the options of the command.  Out: `ProveRequest`; a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.capture.request import files_sentence
from advisor.gate.changed_texts import ChangedTexts
from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
from advisor.workflows.analyze import Request


@dataclass(frozen=True, slots=True)
class ProveRequest:
    """A script, a change of it, and the limits."""

    script: Request
    texts: ChangedTexts
    budget_s: float = 600.0
    """Wall time of the whole command in seconds; whatever still runs at its end is stopped."""
    is_pipeline_only: bool = False
    """Measure the input pipeline alone, without running the training."""

    @property
    def target(self) -> str:
        """The script with its arguments, for people."""
        script = self.script
        return " ".join((*(("-m", script.module) if script.module else (str(script.path),)), *script.args))

    @property
    def files(self) -> tuple[str, ...]:
        """The changed files, relative to the current folder where they are inside it."""
        return tuple(sorted(_shown(path) for path in self.texts.files))


def announcement(request: ProveRequest) -> str:
    """Say how often the script will run and what happens to its files, to be shown before the first run."""
    files = files_sentence(request.script.in_place)
    if request.is_pipeline_only:
        return (
            "The script will be run twice, without and with the change, up to its first element; it will not train. If elements "
            f"differ, it is run to the same point once more without the change. {files}"
        )
    return (
        "The script will be run once without and once with the change, once each up to its first element to compare the "
        f"elements, and {2 * MIN_PAIRS} to {2 * MAX_PAIRS} times alternating. Each run is stopped after its window. If elements "
        f"differ, it is run up to its first element once more. {files}"
    )


def _shown(path: Path) -> str:
    here = Path.cwd().resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)
