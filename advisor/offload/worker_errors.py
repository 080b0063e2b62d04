"""Reads an error of worker processes: its cause, and the call of the script that it is about.

In: the message, the place of `distribute` and the calls upstream of it.  Out: an `Objection`.

The dispatcher and the workers report an error of the whole pipeline. It names a file, a Python function or an op, and so the call
that reads the file, runs the function or contains the op is known from the recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.model.calls import Call
from advisor.model.offload_result import FILES, OP, PYTHON, REFUSED, SERVICE, Objection
from advisor.model.op_effects import FILE_READING_OPS
from advisor.offload.data_files import PATH_ARGUMENTS, READERS

_UNKNOWN_OP = re.compile(r"Op type not registered '(\w+)'")
_CAUSES = (
    (_UNKNOWN_OP, OP),
    (re.compile(r"Could not find callback|pyfunc_"), PYTHON),
    (
        re.compile(
            r"No such file|Permission denied|Is a directory|File system scheme|when reading \w+://"
            r"|\b(?:file|path|object|bucket)\b.{0,80}(?:not found|does not exist)",
            re.IGNORECASE,
        ),
        FILES,
    ),
)
"""What the message of a worker contains -> cause. TensorFlow 2.21; the first that matches counts."""
_READING_METHODS = READERS | {"load"}


def objection_of(error: str, place: Call | None, upstream: Iterable[Call]) -> Objection:
    """Return an error of the workers as an objection to the move.

    Args:
        error: The message in one line.
        place: The call after which the elements leave the workers.
        upstream: The calls that it depends on and itself, including those inside functions.
    """
    cause = next((cause for pattern, cause in _CAUSES if pattern.search(error)), SERVICE)
    calls = list(upstream)
    call = _blamed(cause, error, calls) or place
    site = call.site if call is not None else None
    if (
        site is None and call is not None
    ):  # a call inside a function of a library: the call of the script that has the function
        site = next((outer.site for outer in calls if outer.id == call.nested_in), None)
    reason = f"fails on a worker process: {error.rstrip('.')}"
    return Objection(
        REFUSED, cause, call.method if call is not None else "", reason, site, call.id if call is not None else ""
    )


def _blamed(cause: str, error: str, calls: Sequence[Call]) -> Call | None:
    """The only call that the message may be about; None if there are several, or none."""
    if cause == FILES:
        readers = [call for call in calls if _reads_files(call)]
        named = [call for call in readers if _names_path_of(call, error)]
        return _only(named or readers)
    if cause == PYTHON:
        return _only([call for call in calls if _runs_python(call)])
    unknown = _UNKNOWN_OP.search(error)
    if unknown is not None:
        return _only([call for call in calls if call.function is not None and unknown[1] in call.function.ops])
    return None


def _only(calls: Sequence[Call]) -> Call | None:
    """The call, if the others are those whose functions make it."""
    inner = [call for call in calls if not any(other.nested_in == call.id for other in calls)]
    return inner[0] if len({call.id for call in inner}) == 1 else None


def _reads_files(call: Call) -> bool:
    ops = call.function.ops.keys() if call.function is not None else frozenset[str]()
    return call.method in _READING_METHODS or bool(ops & FILE_READING_OPS)


def _names_path_of(call: Call, error: str) -> bool:
    return any(path in error for name in PATH_ARGUMENTS if isinstance(path := call.arguments.get(name), str) and path)


def _runs_python(call: Call) -> bool:
    return "enerator" in call.method or bool(call.function is not None and call.function.python_ops)
