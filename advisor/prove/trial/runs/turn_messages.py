"""The messages between a live process and its parent, one per line (`advisor.model.codec.encode_message`).

In: what one half asks or answers.  Out: a `TurnRequest` from the parent; a `TurnReply` from the child.
"""

from __future__ import annotations

import msgspec

from advisor.capture.request import Progress


class TakeTurn(msgspec.Struct, frozen=True, tag=True):
    """Go on, time steps, and stop again; answered with `TurnTaken`."""

    seconds: float
    """Length of the part in which steps are timed."""
    steps: int | None
    """It ends after so many steps if that is earlier; None: only after `seconds`."""
    epoch_steps: int | None = None
    """As in `CaptureRequest`."""


class EndTurns(msgspec.Struct, frozen=True, tag=True):
    """End the script; not answered."""


TurnRequest = TakeTurn | EndTurns


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """The window of the run is measured, its run folder is written, and the process is about to stop itself."""

    problem: str = ""
    """Why it cannot, as the end of a sentence; it then waits for the end."""


class TurnBufferLevels(msgspec.Struct, frozen=True):
    """How many elements the last buffer of the pipeline held at step boundaries."""

    stopped: float | None
    """Before the turn, when the process stopped; None: there was no buffer."""
    resumed: float
    """When the turn began; it differs if the pipeline worked while the process was stopped."""
    low: float
    """The fewest while steps were timed ..."""
    high: float
    """... and the most."""
    capacity: float
    """At the end of the turn."""


class TurnTaken(msgspec.Struct, frozen=True, tag=True):
    """The steps of one turn; the process is about to stop itself."""

    steps: int
    """Number of steps that were timed."""
    total_ns: int
    """Sum of their durations."""
    wait_ns: int
    """Time in them that Python saw in `next`."""
    halves_ns: tuple[float, float]
    """Mean durations of the first half of these steps, and of the rest."""
    dropped_steps: int = 0
    """Steps at the beginning of the turn that were not timed."""
    dropped_ns: int = 0
    """Time until the first timed step."""
    buffer: TurnBufferLevels | None = None
    """None: the pipeline has no buffer at its end, or tf.data does not tell."""


TurnReply = Progress | Stopping | TurnTaken
