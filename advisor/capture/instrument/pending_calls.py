"""The recorded calls that have not returned yet, and which of them a new call was made in."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FrameType
from typing import Any

from advisor.capture.instrument.call_sites import Place
from advisor.capture.instrument.replay_log import NO_SEEDS, Seeds
from advisor.host.disk_speed import FileNames

_TRACING_FILE = "structured_function.py"
"""A frame of this file between two calls means that the user function of the outer call made the inner one."""


@dataclass(slots=True)
class PendingCall:
    """A call that has not returned yet."""

    id: str
    method: str
    place: Place
    kwargs: dict[str, Any]
    bound: dict[str, Any]
    explicit: tuple[str, ...]
    inputs: tuple[str, ...]
    unrecorded: tuple[str, ...]
    user_name: str | None
    made_by: str | None
    nested_in: str | None
    frame: FrameType | None
    made_ns: int = 0
    seeds: Seeds = NO_SEEDS
    files: FileNames | None = None


def enclosing_calls(stack: list[PendingCall], frame: FrameType | None) -> tuple[str | None, str | None]:
    """Return the enclosing calls of a call.

    Args:
        stack: The calls of this thread that have not returned, outermost first.
        frame: The frame that makes the call.

    Returns:
        (id of the call whose implementation makes this one, id of the call whose user function makes this one).
    """
    if not stack:
        return None, None
    outer = stack[-1]
    while frame is not None and frame is not outer.frame:
        if frame.f_code.co_filename.endswith(_TRACING_FILE):
            return None, outer.id
        frame = frame.f_back
    return outer.id, outer.nested_in


def is_positional(signature: inspect.Signature, args: tuple[Any, ...], name: str) -> bool:
    """Return whether the caller passed a parameter by position.

    Args:
        signature: The signature of the called function.
        args: The positional arguments.
        name: The parameter.
    """
    positional = [
        p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return name in positional[: len(args)]
