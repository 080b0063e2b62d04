"""A proof session: the user's script, held at the moment when it asks for its first element, tries edits on its dataset.

In: how to run the script, and the call whose dataset its training consumes.  Out: a `Trial` per fix; run folders of edited
pipelines that can be analysed again. This half never imports TensorFlow; the other one lives in `verify/child.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from advisor.capture.request import CaptureRequest, Progress
from advisor.model.finding import Edit, Safety
from advisor.model.recording import Call
from advisor.verify.trial import Trial


class ProofSession:
    """Use as a context manager: entering runs the script up to its first element, leaving stops it.

    Raises AdvisorError when the script does not come to that point, ScriptFailed when it fails on its way there.
    """

    def __init__(
        self,
        request: CaptureRequest,
        consumer_call: Call,
        budget_s: float,
        on_progress: Callable[[Progress], None],
        calls: tuple[Call, ...] = (),
    ) -> None:
        """`request.out` is where the run folders of `profile` go (and the script's output); `budget_s` bounds everything.

        `calls`: those of the first run; with them the calls of this run are told apart even if they are numbered otherwise.
        """
        self._request, self._consumer_call, self._budget_s = request, consumer_call, budget_s
        self._on_progress, self._calls = on_progress, calls
        self.written_files: tuple[str, ...] = ()
        """Files that the script itself opened for writing on its way to the first element."""
        self.runs = 0
        """How often the script was run: once, and once more after each pipeline that hung."""

    def __enter__(self) -> ProofSession:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
    ) -> Trial:
        """Measure `current` against `current + candidate`; compare the elements of the original with those of the latter."""
        raise NotImplementedError

    def profile(self, edits: tuple[Edit, ...]) -> Path:
        """A run folder with a profile and a recording of the edited pipeline alone, its call ids those of the first run."""
        raise NotImplementedError

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original against all edits that are kept."""
        raise NotImplementedError
