"""Parses names of ops in events: `model/conv2d/Conv2D:Conv2D`.

In: an event's name or an annotation.  Out: (name, type).

The grammar is that of TensorFlow's profiler: `<node name>:<op type>`. A type begins with a capital letter or an underscore; types
of JAX are lower case and repeated at the end of the name.
"""

from __future__ import annotations

import re

_NODE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>\-]*")
_TYPE = re.compile(r"[A-Z_][A-Za-z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
_XLA_SUFFIX = re.compile(r"\d+|(remat|clone)\d*")


def is_op_name(name: str) -> bool:
    """Return whether an event with that name is the execution of an op."""
    return parse_op_name(name) is not None


def parse_op_name(name: str) -> tuple[str, str] | None:
    """Return (node name, op type); None if it is not the name of an op."""
    node, colon, kind = name.partition(":")
    if not colon or not node:
        return None
    if _TYPE.fullmatch(kind) and _NODE.fullmatch(node):
        return node, kind
    if _JAX_TYPE.fullmatch(kind) and kind in node.rpartition("/")[2]:
        return node, kind
    return None


def xla_type(name: str) -> str:
    """Return the name without its number: `fusion` for `fusion.12`; it serves as the type of an XLA op."""
    name = name.lstrip("%")
    head, dot, tail = name.rpartition(".")
    while dot and head and _XLA_SUFFIX.fullmatch(tail):
        name = head
        head, dot, tail = name.rpartition(".")
    return name
