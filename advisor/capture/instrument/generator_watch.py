"""Compares the elements of Python generators in the passes that the script itself makes over them.

In: the generators of `from_generator` calls.  Out: `GeneratorPasses` for the recording.

A generator is never run more often than by the script: running it may have effects. Digests are taken of elements as they are
emitted: the first ones of a pass, then a sample, each up to a number of bytes. That keeps the average cost of an element below
1 us, where its call from TensorFlow costs 50 us and more.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from advisor.capture.instrument.patches import Patches
from advisor.model.recording import GeneratorPasses

FIRST_ELEMENTS = 64
"""Elements at the beginning of a pass of which each is compared."""
STRIDE = 97
"""After them, one of this many is compared; a prime, so that no period of the data is missed."""
MAX_COMPARED = 4096
MAX_FOLLOWED = 200
"""Generators, or Python functions, that are followed; scripts that make more of them make a new one for every epoch or file."""
MAX_BYTES = 1 << 14
"""Bytes that are read of one array, spread evenly over it. Their digest takes 6 us (10 numbers) to 48 us (4 million), measured on
two cores that were busy otherwise."""
_MAX_PARTS = 1000
"""Maximum number of parts of a value that are compared."""
_PLAIN = (bool, int, float, complex, str, bytes)


class GeneratorWatch:
    """The passes over the generators of a run. Thread-safe: tf.data runs generators in threads of its own."""

    def __init__(self, is_open: Callable[[], bool]) -> None:
        """Create a watch without generators.

        Args:
            is_open: Whether passes are still to be followed.
        """
        self._is_open = is_open
        self._generators: dict[str, _Generator] = {}
        self._lock = threading.Lock()

    def install(self, current_call: Callable[[], str | None], warn: Callable[[str], None], patches: Patches) -> None:
        """Follow the generators of all `from_generator` calls that are recorded from now on.

        Args:
            current_call: Returns the id of the `from_generator` call that this thread is making; None if there is none.
            warn: Called with the text of each warning.
            patches: Records the replaced attribute, so that it can be restored.
        """
        try:
            from tensorflow.python.data.ops.dataset_ops import DatasetV2

            state: Any = DatasetV2._GeneratorState
            original = state.__init__
        except (ImportError, AttributeError) as error:
            warn(f"The elements of Python generators cannot be compared ({error}).")
            return

        def __init__(self: Any, generator: Callable[..., Any]) -> None:  # noqa: ANN401
            call_id = current_call()
            original(self, generator if call_id is None else self_watch.followed(call_id, generator))

        self_watch = self
        patches.set(state, "__init__", __init__)

    def followed(self, call_id: str, generator: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable that yields the same elements as the generator, and compares them with those of the pass before."""
        with self._lock:
            if len(self._generators) >= MAX_FOLLOWED and call_id not in self._generators:
                return generator
            record = self._generators.setdefault(call_id, _Generator())

        def generate(*args: Any) -> Any:  # noqa: ANN401
            elements = generator(*args)
            if args or not self._is_open():  # with arguments, every pass is one over different data
                return elements
            return _Followed(iter(elements), record)

        return generate

    def observed(self) -> tuple[GeneratorPasses, ...]:
        """Return what was seen of each generator that was passed over at least once."""
        with self._lock:
            records = list(self._generators.items())
        return tuple(
            GeneratorPasses(call_id, record.passes, record.length, record.compared, record.is_same)
            for call_id, record in records
            if record.passes
        )


class _Generator:
    """The finished passes over one generator."""

    __slots__ = ("_first", "is_same", "length", "lock", "passes")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passes = 0
        self.length = 0
        self.is_same = True
        """Whether everything that was compared was the same."""
        self._first: dict[int, bytes | None] | None = None

    @property
    def compared(self) -> int:
        return len(self._first or ())

    def differs(self, index: int, digest: bytes | None) -> bool:
        """Whether an element differs from that of the first finished pass; one that cannot be compared does."""
        return digest is None or (self._first is not None and self._first.get(index, digest) != digest)

    def finish(self, length: int, digests: dict[int, bytes | None]) -> None:
        with self.lock:
            if self._first is None:
                self._first, self.length = digests, length
            elif length != self.length or digests != self._first:
                self.is_same = False
            self.passes += 1


class _Followed:
    """An iterator over a generator's elements that takes digests of some of them."""

    __slots__ = ("_digests", "_elements", "_index", "_record")

    def __init__(self, elements: Iterator[Any], record: _Generator) -> None:
        self._elements, self._record = elements, record
        self._digests: dict[int, bytes | None] = {}
        self._index = 0

    def __iter__(self) -> _Followed:
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        index = self._index
        try:
            element = next(self._elements)
        except StopIteration:
            self._record.finish(index, self._digests)
            raise
        self._index = index + 1
        if (index < FIRST_ELEMENTS or not index % STRIDE) and len(self._digests) < MAX_COMPARED:
            digest = self._digests[index] = element_digest(element)
            if self._record.differs(index, digest):
                self._record.is_same = False
        return element


def element_digest(element: object) -> bytes | None:
    """Return a digest of an element made of tensors, arrays, numbers, strings, tuples, lists and dicts; None for others.

    No method of an object of the script is called.
    """
    digest = hashlib.blake2b(digest_size=16)
    parts = _MAX_PARTS

    def visit(value: Any) -> bool:  # noqa: ANN401
        nonlocal parts
        parts -= 1
        kind = type(value)
        if parts < 0:
            return False
        if value is None or kind in _PLAIN:
            digest.update(f"{kind.__name__}:{value!r};".encode())
            return True
        if kind in (tuple, list):
            digest.update(f"{kind.__name__}[{len(value)}".encode())
            if kind is list and len(value) > _MAX_PARTS and all(type(inner) in _PLAIN for inner in value):
                digest.update(repr(value).encode())
                return True
            return all(visit(inner) for inner in value)
        if kind is dict:
            digest.update(f"dict[{len(value)}".encode())
            return all(visit(part) for pair in value.items() for part in pair)
        module = kind.__module__
        if module.startswith("tensorflow") and hasattr(value, "numpy"):
            value = value.numpy()
            return _visit_array(value, digest) if hasattr(value, "tobytes") else visit(value)
        return module == "numpy" and _visit_array(value, digest)

    try:
        return digest.digest() if visit(element) else None
    except Exception:  # an element that cannot be read is not compared
        return None


def _visit_array(array: Any, digest: Any) -> bool:  # noqa: ANN401
    digest.update(f"{array.dtype}{array.shape}".encode())
    if array.dtype == object:
        items = array.reshape(-1)[:_MAX_PARTS].tolist()
        digest.update(repr(items).encode())
        return all(type(item) in _PLAIN for item in items)
    if array.nbytes <= MAX_BYTES:
        digest.update(array.tobytes())
        return True
    flat = array.reshape(-1)  # a copy if the array is not contiguous
    part = max(1, MAX_BYTES // 64 // max(1, array.itemsize))
    step = max(part, len(flat) // 64)
    for start in range(0, len(flat), step):
        digest.update(flat[start : start + part].tobytes())
    return True
