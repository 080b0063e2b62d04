"""Common parts of the JSON outputs (reports, comparisons, checks): base class, dictionaries, bytes and schemas.

The `Object`s in the `*_format.py` files, together with the dataclasses of the model that they hold, are version 1 of these
formats. `schema.py` generates the JSON Schemas from them.
"""

from __future__ import annotations

import json
import math
import re
from importlib import resources
from typing import Self, cast

import msgspec

SCHEMA_VERSION = 1
_NS_PER_MS = 1_000_000
_NUMBERS = re.compile(r"\[\n\s+([-\d][-\d.eE,\s]*)\n\s+\]")
"""An array of numbers over several lines; no JSON string can match, as its line breaks are escaped."""

Json = dict[str, object]


class Object(msgspec.Struct, frozen=True):
    """An object of such an output. Its fields are the keys, in this order; all of them are always present."""

    @classmethod
    def of(cls, source: object, **derived: object) -> Self:
        """Make the object from one of the model: fields of the same name are copied, all others must be in `derived`."""
        copied = {name: getattr(source, name) for name in cls.__struct_fields__ if name not in derived}
        return cls(**copied, **derived)

    @classmethod
    def maybe(cls, source: object | None) -> Self | None:
        """Like `of`; None for None."""
        return None if source is None else cls.of(source)


def to_dict(document: object, max_text: int | None = None) -> Json:
    """Convert an object with all that it holds to dictionaries and lists; numbers that are not finite become null.

    Args:
        document: An `Object`, a dataclass of the model or a dictionary.
        max_text: Longer texts are cut at this number of characters; None keeps them.
    """
    return cast(Json, _plain(msgspec.to_builtins(document), max_text))


def to_bytes(document: Json) -> bytes:
    """Return UTF-8 JSON with a final newline; undecodable file names are written as escapes, lists of numbers on one line."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    text = _NUMBERS.sub(lambda match: "[" + " ".join(match[1].split()) + "]", text)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def read_schema(name: str) -> Json:
    """Return the JSON Schema `name` of this folder."""
    return cast(Json, json.loads(resources.files("advisor.report").joinpath(name).read_text("utf-8")))


def milliseconds(ns: float) -> float:
    """Convert nanoseconds to milliseconds."""
    return ns / _NS_PER_MS


def nanoseconds(ms: float) -> float:
    """Convert milliseconds to nanoseconds."""
    return ms * _NS_PER_MS


def _plain(value: object, max_text: int | None) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if max_text is None or len(value) <= max_text else value[: max_text - 1] + "…"
    if isinstance(value, dict):
        return {_plain(key, max_text): _plain(inner, max_text) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, max_text) for inner in value]
    return value
