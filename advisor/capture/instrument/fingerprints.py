"""Computes digests of the state that a pipeline reads, to detect changes of it.

In: a variable, a table, a Python object or a file.  Out: bytes, or None if it cannot be compared. There are no side effects:
gradient tapes do not record that a variable is read, and no methods of the script's own objects are called.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from typing import Any

from advisor.model import state

MAX_BYTES = 16 << 20
"""Larger variables and tables are not compared, because that would take more than a few milliseconds."""
MAX_ENTRIES = 100_000
_MAX_ITEMS = 20_000
_SAMPLED_BYTES = 1 << 20


def fingerprint(owner: Any, kind: str) -> bytes | None:  # noqa: ANN401
    """Return a digest of the current content of a resource; None if it cannot be read or is too large.

    Args:
        owner: The Python object that owns the resource.
        kind: Its kind, one of the constants of `advisor.model.state`.
    """
    try:
        if kind == state.VARIABLE:
            return _of_variable(owner)
        if kind == state.MUTABLE_TABLE:
            return _of_table(owner)
    except Exception:  # objects that cannot be read are not compared
        return None
    return None


def python_fingerprint(value: object) -> bytes | None:
    """Return a digest of the content of a list, dict, set, array or scalar; None for other types and for large objects."""
    digest = hashlib.blake2b(digest_size=16)
    remaining_items = _MAX_ITEMS

    def visit(item: object, depth: int) -> bool:
        nonlocal remaining_items
        remaining_items -= 1
        if remaining_items < 0 or depth > 6:
            return False
        kind = type(item)
        if item is None or kind in (bool, int, float, complex, str, bytes, bytearray):
            digest.update(f"{kind.__name__}:".encode())
            digest.update(item if kind in (bytes, bytearray) else repr(item).encode())  # type: ignore[arg-type]
            return True
        if kind in (list, tuple, deque):
            digest.update(f"{kind.__name__}[{len(item)}".encode())  # type: ignore[arg-type]
            return all(visit(inner, depth + 1) for inner in list(item))  # type: ignore[call-overload]
        if kind in (set, frozenset):
            digest.update(f"set{sorted(map(repr, list(item)))}".encode())  # type: ignore[call-overload]
            return True
        if kind is dict:
            digest.update(b"{")
            return all(visit(part, depth + 1) for pair in list(item.items()) for part in pair)  # type: ignore[attr-defined]
        if kind.__module__ == "numpy" and hasattr(item, "dtype"):
            return _visit_array(item, digest)
        if depth:  # an object of the script: compared by its identity, not by its content
            digest.update(f"{kind.__name__}@{id(item)}".encode())
            return True
        return False

    try:
        return digest.digest() if visit(value, 0) else None
    except Exception:  # another thread changed the object while it was read
        return None


def file_fingerprint(path: str) -> tuple[int, int, int] | None:
    """Return (modification time in ns, size in bytes, inode) of a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _of_variable(variable: Any) -> bytes | None:  # noqa: ANN401
    import tensorflow as tf

    count = variable.shape.num_elements()
    if count is None or count * (variable.dtype.size or 1) > MAX_BYTES:
        return None
    # `raw_ops` on the handle, because gradient tapes would watch a variable that is read in the usual way
    return _digest([tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)])


def _of_table(table: Any) -> bytes | None:  # noqa: ANN401
    if int(table.size()) > MAX_ENTRIES:
        return None
    keys, values = (tensor.numpy() for tensor in table.export())
    if keys.nbytes + values.nbytes > MAX_BYTES:
        return None
    rows = sorted((repr(key), repr(value)) for key, value in zip(keys.tolist(), values.tolist(), strict=True))
    return hashlib.blake2b(repr(rows).encode(), digest_size=16).digest()  # sorted, because tables have no order


def _digest(tensors: list[Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        array = tensor.numpy()
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return digest.digest()


def _visit_array(array: Any, digest: Any) -> bool:  # noqa: ANN401
    digest.update(f"{array.dtype}{array.shape}".encode())
    if array.dtype == object:
        return False
    if array.nbytes <= MAX_BYTES:
        digest.update(array.tobytes())
    else:  # too large to read at the start of each epoch: only every n-th element is compared
        step = max(1, array.nbytes // _SAMPLED_BYTES)
        digest.update(array.reshape(-1)[::step].tobytes() if array.flags.c_contiguous else repr(array.sum()).encode())
    return True
