"""Digests of the elements of a dataset, so that two datasets can be compared without keeping both in memory.

In: a dataset and bounds.  Out: a `Stream`: for each element and each of its components, a digest of the dtype, the shape and
every bit (NaN equals the same NaN, and -0.0 differs from 0.0), and a few figures for statistics.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from advisor.capture.instrument.dataset_ids import is_dataset
from advisor.prove.trial.elements.heartbeat import silent
from advisor.prove.trial.elements.streams import OPAQUE, Row, Stream, tensorflow_message

_DIGEST_BYTES = 16
MAX_TEXT_BYTES = 200
"""Texts are cut there in a file of elements: they are only shown."""
_NESTED_LIMIT = 1000
"""Maximum number of elements taken from a dataset that is itself an element (`window`)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """When to stop taking elements: at the first of these limits."""

    elements: int
    seconds: float
    bytes: int = 2 << 30
    least: int = 0
    """Minimum number of elements for a comparison; to reach it, `_EXTENSION` times `seconds` are allowed."""


class Digest(NamedTuple):
    """What a `Stream` holds of one element."""

    row: Row
    figures: tuple[tuple[float, ...], ...]
    kinds: tuple[str, ...]
    size_bytes: int


_EXTENSION = 4
"""Multiple of the time limit that is allowed to reach the minimum number of elements. Chosen, not measured."""


def collect(
    dataset: Any,  # noqa: ANN401
    bounds: Bounds,
    python_seed: int | None = None,
    on_element: Callable[[], None] = silent,
    digests_of: Callable[[Any], Iterable[Digest]] | None = None,
) -> Stream:
    """Take elements until a bound is reached.

    Args:
        dataset: A `tf.data.Dataset`.
        bounds: The limits.
        python_seed: Temporarily seeds Python's and NumPy's global generators, which generator functions and `py_function`s use.
        on_element: Called after each element.
        digests_of: Digests an element as several ones, such as the rows of a batch; None: as one.

    Returns:
        The elements so far. An exception raised by the dataset ends the stream and is stored in `Stream.error`.
    """
    stream = Stream()
    deadline = time.monotonic() + bounds.seconds
    with seeded(python_seed):
        try:
            for element in dataset:
                for digest in (digest_element(element),) if digests_of is None else digests_of(element):
                    add(stream, digest)
                on_element()
                late_s = time.monotonic() - deadline
                is_enough = len(stream.rows) >= bounds.least or late_s >= (_EXTENSION - 1) * bounds.seconds
                if (
                    len(stream.rows) >= bounds.elements
                    or stream.size_bytes >= bounds.bytes
                    or (late_s >= 0 and is_enough)
                ):
                    return stream
        except Exception as error:
            stream.error = tensorflow_message(error)
            return stream
    stream.is_complete = True
    return stream


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed Python's and NumPy's global generators within the block; None leaves them as they are."""
    if seed is None:
        yield
        return
    import numpy as np

    before, numpy_before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)


def add(stream: Stream, digest: Digest) -> None:
    """Append an element to a stream."""
    stream.kinds = stream.kinds or digest.kinds
    stream.rows.append(digest.row)
    stream.figures.append(digest.figures)
    stream.size_bytes += digest.size_bytes


def digest_element(element: Any) -> Digest:  # noqa: ANN401
    """Return the digest of an element as a whole."""
    import tensorflow as tf

    digests: list[bytes] = []
    figures: list[tuple[float, ...]] = []
    kinds: list[str] = []
    size = 0
    for leaf in tf.nest.flatten(element):
        if is_dataset(leaf):
            inner = collect(leaf, Bounds(_NESTED_LIMIT, 10.0))
            ended = f"{inner.is_complete} {inner.error}".encode()
            digests.append(hash_of(b"dataset", ended, *(digest for row in inner.rows for digest in row)))
            figures.append(())
            kinds.append(OPAQUE if inner.opaque else "dataset")
            size += inner.size_bytes
            continue
        for tensor in tf.nest.flatten(leaf, expand_composites=True):
            digest, numbers, kind, count = _digest_tensor(tensor)
            kinds.append(kind)
            digests.append(digest)
            figures.append(numbers)
            size += count
    return Digest(tuple(digests), tuple(figures), tuple(kinds), size)


def _digest_tensor(tensor: Any) -> tuple[bytes, tuple[float, ...], str, int]:  # noqa: ANN401
    import numpy as np

    if tensor is None:
        return hash_of(b"none"), (), "text", 0
    if getattr(tensor, "dtype", None) is not None and getattr(tensor.dtype, "name", "") in ("variant", "resource"):
        return hash_of(b"opaque"), (), OPAQUE, 0
    value = tensor.numpy() if hasattr(tensor, "numpy") else tensor
    # a scalar text arrives as bytes, of which NumPy would make another kind of array than of several texts
    return digest_array(np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value))


def digest_array(array: Any) -> tuple[bytes, tuple[float, ...], str, int]:  # noqa: ANN401
    """Return the digest of an array, its figures (see `Stream.figures`), its kind, and its size in bytes."""
    import numpy as np

    header = f"{array.dtype}{array.shape}".encode()
    if array.dtype == object:
        texts = [value if isinstance(value, bytes) else str(value).encode() for value in array.reshape(-1)]
        lengths = np.array([len(text) for text in texts], np.int64)
        data = b"".join(texts)
        return hash_of(header, lengths.tobytes(), data), figures_of(lengths), "text", len(data) + lengths.nbytes
    return hash_of(header, np.ascontiguousarray(array).tobytes()), figures_of(array), "numbers", array.nbytes


def figures_of(array: Any) -> tuple[float, ...]:  # noqa: ANN401
    """Return the figures of a numeric component; the last two reveal values that are not finite and empty tensors."""
    import numpy as np

    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        return ()
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return 0.0, 0.0, 0.0, 0.0, 0.0, float(array.size)
    share = finite.size / array.size
    return float(finite.mean()), float(finite.std()), float(finite.min()), float(finite.max()), share, float(array.size)


def hash_of(*parts: bytes) -> bytes:
    """Return the digest of the parts, one after the other."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def arrays_of(element: Any) -> list[Any]:  # noqa: ANN401
    """Return the components of an element as arrays, numbered as in a `Stream`; one without values is an empty array."""
    import numpy as np
    import tensorflow as tf

    arrays: list[Any] = []
    for leaf in tf.nest.flatten(element):
        if is_dataset(leaf):
            arrays.append(np.zeros(0, np.int8))
            continue
        for tensor in tf.nest.flatten(leaf, expand_composites=True):
            if tensor is None or getattr(getattr(tensor, "dtype", None), "name", "") in ("variant", "resource"):
                arrays.append(np.zeros(0, np.int8))
                continue
            array = np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor)
            if array.dtype == object:
                texts = [value if isinstance(value, bytes) else str(value).encode() for value in array.reshape(-1)]
                array = np.array([text[:MAX_TEXT_BYTES] for text in texts], "S").reshape(array.shape)
            arrays.append(array)
    return arrays
