"""Converts the model's dataclasses to JSON bytes and back, with readable errors for damaged files and files of other tools.

In: any of the model's dataclasses, or JSON bytes and the expected class.  Out: bytes, or an instance of that class. Messages
between the advisor's own processes have functions of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, overload

import msgspec

from advisor.model.errors import AdvisorError

T = TypeVar("T")


def encode(value: object) -> bytes:
    """Encode a dataclass of the model as JSON: field names become keys, tuples arrays, and enums their values."""
    return msgspec.json.encode(value)


def decode(data: bytes, kind: type[T], where: str = "") -> T:
    """Decode JSON and check every field against its type. Unknown fields are ignored.

    Args:
        data: JSON bytes.
        kind: The expected class.
        where: The name of the file, for the error message.

    Returns:
        An instance of `kind`.

    Raises:
        AdvisorError: The data is not JSON, is nested too deeply, or does not match `kind`.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        place = where or kind.__name__.lower()
        raise AdvisorError(
            f"{place} is damaged or not written by this tool ({error}); capture the script again."
        ) from None


def encode_message(message: object) -> str:
    """Encode a message to another process of the advisor as JSON on one line.

    In contrast to `encode`, it may hold paths and any text that Python can: file names need not be valid Unicode.

    Args:
        message: A dataclass or a `msgspec.Struct`.
    """
    return json.dumps(msgspec.to_builtins(message, enc_hook=_to_builtin))


@overload
def decode_message(text: str | bytes, kind: type[T]) -> T: ...
@overload
def decode_message(text: str | bytes, kind: UnionType) -> Any: ...  # noqa: ANN401
def decode_message(text: str | bytes, kind: type[T] | UnionType) -> T | Any:
    """Decode the output of `encode_message` and check every field against its type.

    Args:
        text: The message.
        kind: The expected class, or a union of classes with tags.

    Raises:
        ValueError: The text is anything else.
    """
    try:
        return msgspec.convert(json.loads(text), kind, dec_hook=_to_path)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"not a message: {error}") from None


def _to_builtin(value: object) -> str | float:
    match value:
        case Path():
            return str(value)
        case float():  # of a subclass
            return float(value)
    raise NotImplementedError(f"{type(value).__name__} in a message")


def _to_path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{kind.__name__} in a message")
