"""Compares what Python functions of pipelines (`py_function`, `numpy_function`) return when they are called for an element again.

In: the functions that recorded calls register with TensorFlow.  Out: `RepeatedCalls` for the recording.

A function is never called more often than by the pipeline: calling it may have effects. The elements of the first calls are
followed, then a sample that is chosen by the elements themselves, so that the same ones are followed in every epoch. An element
that is not followed costs 1.2 us, one that is costs two digests (`generator_watch.MAX_BYTES`): 4 us on average, measured on two
cores that were busy otherwise.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.generator_watch import MAX_FOLLOWED, element_digest
from advisor.capture.instrument.patches import Patches
from advisor.model.recording import RepeatedCalls

FIRST_CALLS = 64
"""Calls at the beginning whose elements are followed."""
STRIDE = 31
"""After them, about one of this many elements is followed."""
MAX_ELEMENTS = 2048
"""Elements of one function whose results are kept."""
_KEY_BYTES = 256
"""Bytes at the beginning of each argument that decide whether an element is followed."""


class PythonCallWatch:
    """The calls of the Python functions of a run. Thread-safe: tf.data calls them in threads of its own."""

    def __init__(self, is_open: Callable[[], bool]) -> None:
        """Create a watch without functions.

        Args:
            is_open: Whether calls are still to be followed.
        """
        self._is_open = is_open
        self._functions: dict[str, tuple[str, _Function]] = {}
        """TensorFlow's token -> (the recorded call, its calls)."""
        self._incomplete: set[str] = set()
        """Calls with a function that is not followed."""
        self._lock = threading.Lock()

    def install(self, current_call: Callable[[], str | None], warn: Callable[[str], None], patches: Patches) -> None:
        """Follow the functions that are registered while a call is recorded.

        Args:
            current_call: Returns the id of the call whose function this thread traces; None if there is none.
            warn: Called with the text of each warning.
            patches: Records the replaced attributes, so that they can be restored.
        """
        try:
            from tensorflow.python.ops.script_ops import FuncRegistry

            registry: Any = FuncRegistry
            original_insert, original_call = registry.insert, registry.__call__
        except (ImportError, AttributeError) as error:
            warn(f"The results of Python functions cannot be compared ({error}).")
            return
        watch = self

        def insert(self: Any, func: Any) -> Any:  # noqa: ANN401
            token = original_insert(self, func)
            call_id = current_call()
            if call_id is not None:
                watch.follow(token, call_id)
            return token

        def __call__(self: Any, token: Any, *rest: Any) -> Any:  # noqa: ANN401
            function = watch.function(token)
            element = function.element_of(rest[-1]) if function is not None and rest else None
            result = original_call(self, token, *rest)
            if function is not None and element is not None:
                function.returned(element, element_digest(result))
            return result

        patches.set(registry, "insert", insert)
        patches.set(registry, "__call__", __call__)

    def follow(self, token: str, call_id: str) -> None:
        """Follow the function that TensorFlow knows by this token, unless too many are followed."""
        with self._lock:
            if len(self._functions) < MAX_FOLLOWED:
                self._functions[token] = call_id, _Function()
            else:
                self._incomplete.add(call_id)

    def function(self, token: object) -> _Function | None:
        """Return the calls of a function; None if it is not followed."""
        known = self._functions.get(token) if isinstance(token, str) else None
        return known[1] if known is not None and self._is_open() else None

    def observed(self) -> tuple[RepeatedCalls, ...]:
        """Return what was seen of each recorded call of which all functions were called."""
        by_call: dict[str, list[_Function]] = {}
        with self._lock:
            for call_id, function in self._functions.values():
                if call_id not in self._incomplete:
                    by_call.setdefault(call_id, []).append(function)
        return tuple(
            RepeatedCalls(
                call_id,
                calls=min(watched.calls for watched in functions),
                repeats=min(watched.repeats for watched in functions),
                is_same=all(watched.is_same for watched in functions),
            )
            for call_id, functions in by_call.items()
            if all(watched.calls for watched in functions)
        )


class _Function:
    """The calls of one Python function."""

    __slots__ = ("_keys", "_lock", "_results", "calls", "is_same", "repeats")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[int] = set()
        """Keys of the elements of the first calls."""
        self._results: dict[bytes, bytes | None] = {}
        """Digest of an element -> digest of what the function returned for it first."""
        self.calls = self.repeats = 0
        self.is_same = True

    def element_of(self, arguments: Any) -> bytes | None:  # noqa: ANN401
        """Return the digest of the arguments if they are to be followed.

        Args:
            arguments: What TensorFlow passes to the function: a list of arrays or eager tensors.
        """
        self.calls += 1
        if not self.is_same:
            return None
        try:
            key = _key(arguments)
        except Exception:  # values that cannot be read are not compared
            self.is_same = False
            return None
        if len(self._keys) < FIRST_CALLS:
            self._keys.add(key)
        elif key % STRIDE and key not in self._keys:
            return None
        return element_digest(list(arguments))

    def returned(self, element: bytes, result: bytes | None) -> None:
        """Compare a result with that of an earlier call for the same element."""
        with self._lock:
            if element not in self._results:
                if len(self._results) < MAX_ELEMENTS:
                    self._results[element] = result
                return
            self.repeats += 1
            if result is None or self._results[element] != result:
                self.is_same = False


def _key(arguments: Any) -> int:  # noqa: ANN401
    key = 0
    for value in arguments:
        key = zlib.crc32(_beginning(value), key)
    return key


def _beginning(value: Any) -> bytes:  # noqa: ANN401
    """The first bytes of an array or a tensor."""
    try:
        view = memoryview(value)
        if view.c_contiguous and view.ndim:
            return view.cast("B")[:_KEY_BYTES].tobytes()
    except (TypeError, ValueError, BufferError):  # strings, bfloat16, other devices
        pass
    plain = value.numpy() if hasattr(value, "numpy") else value
    if hasattr(plain, "reshape"):
        plain = plain.reshape(-1)[:_KEY_BYTES].tolist()
    return repr(plain)[:_KEY_BYTES].encode("utf-8", "surrogatepass")
