"""The messages between the two halves of a proof, one per line (`advisor.model.codec.encode_message`).

In: what one half asks or answers.  Out: a `ProofRequest`, which starts the child; a `Request` from the parent; a `Reply` from
the child.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from advisor.capture.request import Progress, SessionRequest
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.recording import ScriptExit
from advisor.prove.trial.service.service_messages import ServiceMeasured, ServiceRequest, ServiceTried
from advisor.prove.trial.text_messages import TextReply, TextRequest
from advisor.prove.trial.trial_result import Trial


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """The message that starts the child's half of a proof."""

    session: SessionRequest
    request_fd: int
    """File descriptor of the inherited pipe from which the child reads its requests."""
    files: Path
    """Folder for the files of trials (file caches)."""
    consumer: Call | None
    """The call whose dataset the training consumes, as the first run recorded it; None: unknown."""
    calls: tuple[Call, ...]
    """The calls of the first run; empty: the ids are the same in both runs."""
    hold_at: int | None
    """Hold the script at the consumption of this number, whatever the dataset."""
    lost: tuple[str, ...] = ()
    """Calls of the first run after which a cache is lost in every epoch, see `TrialRunner`."""
    is_analysed: bool = False
    """This is the first run: it is profiled, and held after its window (`advisor.prove.trial.runs.analysed_run`)."""


class TryFix(msgspec.Struct, frozen=True, tag=True):
    """Measure `current` against `current + candidate`; answered with `Tried`."""

    current: list[dict[str, Any]]
    """Edits, see `edits_to_json`."""
    candidate: list[dict[str, Any]]
    claimed: Safety
    predicted_memory_bytes: int | None
    seconds: float
    """Time for the trial."""
    is_first_pass: bool = False
    """Time both without their caches in memory, as in the pass that fills these."""


class Profile(msgspec.Struct, frozen=True, tag=True):
    """Profile the edited pipeline in isolation; answered with `Profiled`."""

    edits: list[dict[str, Any]]
    out: Path
    """The run folder."""
    as_if_step_ns: int = 0
    """Length of a wait after each element, in place of a training step; 0: the elements are taken as fast as possible."""
    is_first_pass: bool = False
    """Without caches in memory, as in the pass that fills them."""


class CompareNumbers(msgspec.Struct, frozen=True, tag=True):
    """Compare AUTOTUNE with fixed numbers (`TrialRunner.compare_numbers`); answered with `NumbersCompared`."""

    edits: list[dict[str, Any]]
    numbered: list[dict[str, Any]]
    step_ns: int
    """Length of the imagined steps."""
    seconds: float


class ReadCalls(msgspec.Struct, frozen=True, tag=True):
    """Return the calls that the script has made so far; answered with `Calls`."""

    edits: list[dict[str, Any]]
    """The kept edits, for the graphs of the functions that they wrap."""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Serve requests on the dataset of this call, in the process that was analysed; answered with `Ready`."""

    consumer: str
    lost: tuple[str, ...]
    """See `ProofRequest`."""


class Quit(msgspec.Struct, frozen=True, tag=True):
    """End the script; not answered."""


Request = TryFix | Profile | CompareNumbers | ReadCalls | Begin | Quit | ServiceRequest | TextRequest


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The script is held at its first element and requests are answered."""

    written: tuple[str, ...]
    """Absolute paths of files that the script's Python code opened for writing until then."""


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The run folder of the analysed run is complete, and the script is held."""


class Tried(msgspec.Struct, frozen=True, tag=True):
    """The answer to `TryFix`."""

    trial: Trial


class NumbersCompared(msgspec.Struct, frozen=True, tag=True):
    """The answer to `CompareNumbers`."""

    autotune_bytes: int
    """Increase of the memory in use by the pipeline with AUTOTUNE."""
    fixed_bytes: int
    peak_bytes: int
    """Peak memory of the process with AUTOTUNE, without the other pipeline."""
    is_material: bool
    """So much memory is saved that the speed was to be measured."""
    speed: Interval | None
    """Ratio of the rates, numbers to AUTOTUNE; None: not measured."""


class Profiled(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Profile`: its run folder is complete."""


class Calls(msgspec.Struct, frozen=True, tag=True):
    """The answer to `ReadCalls`."""

    graph: CallGraph


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The answer to any request that could not be fulfilled; the child continues to serve."""

    text: str
    """One sentence."""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The last message: the script has ended."""

    script_exit: ScriptExit


Reply = (
    Progress
    | Ready
    | Measured
    | Tried
    | Profiled
    | NumbersCompared
    | Calls
    | Failed
    | Ended
    | ServiceMeasured
    | ServiceTried
    | TextReply
)

_KINDS: dict[str, type[Edit]] = {kind.__name__: kind for kind in get_args(Edit)}


def edits_to_json(edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    """Serialise edits as objects with the name of their class, because msgspec cannot tag the dataclasses of the model."""
    return [{"edit": type(edit).__name__, **msgspec.to_builtins(edit)} for edit in edits]


def edits_from_json(data: list[dict[str, Any]]) -> tuple[Edit, ...]:
    """Parse the output of `edits_to_json`.

    Raises:
        KeyError: The kind of an edit is missing or unknown.
        msgspec.ValidationError: A field of an edit is missing or has an unsupported type.
    """
    return tuple(msgspec.convert(edit, _KINDS[edit["edit"]]) for edit in data)
