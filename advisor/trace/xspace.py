"""The messages of a profile file, from our own description of them: no TensorFlow, any protobuf from 4.25 on.

In: bytes of a `.xplane.pb` file.  Out: an `XSpace` message (`xplane.proto` beside this file says what it holds).

The description is loaded at run time into a pool of its own: generated `_pb2` code fits only its own and the next protobuf
major version, and the default pool may already hold TensorFlow's messages.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

PACKAGE = "tfdata_advisor.xplane"


class XSpaceDecodeError(ValueError):
    """The bytes are no XSpace."""


@cache
def message_class(name: str) -> Any:  # noqa: ANN401  protobuf's classes exist at run time only
    """The class of a message of `xplane.proto` (`XSpace`, `XLine`, `XEvents`, ...)."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def parse_xspace(data: bytes) -> Any:  # noqa: ANN401
    """Decode a profile; `XSpaceDecodeError` if the bytes are none."""
    return _parse("XSpace", data)


def parse_events(encoded: list[bytes]) -> Any:  # noqa: ANN401
    """Decode events that stand encoded in an `XLine`; `XSpaceDecodeError` if one is damaged."""
    return _parse("XEvents", message_class("XLine")(events=encoded).SerializeToString()).events


def _parse(name: str, data: bytes) -> Any:  # noqa: ANN401
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise XSpaceDecodeError(str(error)) from error


@cache
def _pool() -> Any:  # noqa: ANN401
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    described = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath("xplane.binpb").read_bytes())
    for file in described.file:
        pool.Add(file)
    return pool
