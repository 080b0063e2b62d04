"""Converts the model's dataclasses to JSON bytes and back, with readable errors for damaged files and files of other tools.

In: any of the model's dataclasses, or JSON bytes and the expected class.  Out: bytes, or an instance of that class.
"""

from __future__ import annotations

from typing import TypeVar

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
