"""Dataclasses to JSON bytes and back, with the errors that people need when a file is damaged or not ours.

In: any of the model's dataclasses, or JSON bytes and the class they should be.  Out: bytes, or that class.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from advisor.model.errors import AdvisorError

T = TypeVar("T")


def encode(value: object) -> bytes:
    """JSON of a dataclass of the model; field names are the keys, tuples become arrays, enums their values."""
    return msgspec.json.encode(value)


def decode(data: bytes, kind: type[T], where: str = "") -> T:
    """The `kind` that `data` holds, every field checked against its type; unknown fields are ignored.

    `where` names the file in the error. Raises AdvisorError when the data is no JSON, too deeply nested, or of another
    shape.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        place = where or kind.__name__.lower()
        raise AdvisorError(
            f"{place} is damaged or not written by this tool ({error}); capture the script again."
        ) from None
