"""A proof session on a dataset object, in the program's own process.

In: a dataset, rebuilt under a recorder.  Out: the same as from `ProofSession`, which are trials and run folders of the edited
pipeline; also the dataset with the kept edits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.capture.request import Progress
from advisor.capture.session import is_seeded
from advisor.host.calibration.proof import PROMPT_TRIAL_S
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError
from advisor.model.finding import Safety
from advisor.prove.trial.ab_side import CannotMeasure
from advisor.prove.trial.trial_result import Trial
from advisor.prove.trial.trial_runner import TrialRunner
from advisor.replay.rebuild import Rebuilt
from advisor.replay.replay import Replay


class InProcessSession:
    """The session that `advisor.prove.search.greedy_loop` uses for one rebuilt dataset."""

    def __init__(
        self, rebuilt: Rebuilt, target: str, folder: Path, deadline: float, on_progress: Callable[[Progress], None]
    ) -> None:
        """Create a session.

        Args:
            rebuilt: The recorded and rebuilt dataset; its `call_id` must not be None.
            target: The name of the target for run folders.
            folder: An empty folder for run folders and the file caches of trials; not used after the session.
            deadline: End of the time for trials, by `time.monotonic()`.
            on_progress: Called now and then.
        """
        assert rebuilt.call_id is not None
        self._rebuilt, self._call_id, self._target, self._folder = rebuilt, rebuilt.call_id, target, folder
        self._deadline, self._on_progress = deadline, on_progress
        self._profiles = 0
        files = folder / "files"
        files.mkdir()
        self._runner = TrialRunner(rebuilt.recorder, self._call_id, files, self._report, is_text_edited=False)

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
        is_first_pass: bool = False,
    ) -> Trial:
        """See `ProofSession.try_fix`.

        Args:
            current: Edits already kept.
            candidate: Edits to try, applied after the current ones.
            claimed: The claimed effect of all these edits on the data.
            predicted_memory_bytes: Additional memory predicted for the candidate; None if unknown.
            is_first_pass: Time both without their caches in memory, as in the pass that fills these.
        """
        seconds = max(10.0, min(PROMPT_TRIAL_S.value, self._deadline - time.monotonic()))
        return self._runner.try_fix(current, candidate, claimed, predicted_memory_bytes, seconds, is_first_pass)

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """See `ProofSession.total`."""
        return self.try_fix((), edits, claimed)

    def profile(self, edits: tuple[Edit, ...], is_first_pass: bool = False) -> Path:
        """See `ProofSession.profile`.

        Args:
            edits: The edits.
            is_first_pass: Without its caches in memory, as in the pass that fills them.
        """
        self._profiles += 1
        out = self._folder / f"run-{self._profiles}"
        try:
            self._runner.profile(edits, out, self._facts, is_first_pass=is_first_pass)
        except CannotMeasure as error:
            text = str(error)
            raise AdvisorError(f"{text[:1].upper()}{text[1:].rstrip('.')}.") from None
        return out

    def dataset(self, edits: tuple[Edit, ...]) -> Any:  # noqa: ANN401
        """Return the dataset with the edits.

        Raises:
            CannotReplay: It cannot be rebuilt with them.
        """
        return Replay(self._rebuilt.recorder, edits).dataset(self._call_id)

    def _facts(self) -> dict[str, Any]:
        return {"target": self._target, "argv": (), "cwd": str(Path.cwd()), "is_seeded": is_seeded()}

    def _report(self, phase: str, done: int, total: int | None) -> None:
        self._on_progress(Progress(phase, done, total))
