"""Records each public tf.data call that makes a dataset as a `Call`.

In: calls of the wrapped functions.  Out: `Recorder.calls()`. Each dataset has the id of its call as an attribute, and each
transformation has it as its `name=`, so that it appears in the profile.

The recorder must not break the script or change its behaviour: an error inside the recorder becomes a warning.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.captured_state import Captured, constant_texts
from advisor.capture.instrument.code_identity import bound_identity
from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE, ID_PREFIX, origin, origins
from advisor.capture.instrument.generator_watch import GeneratorWatch
from advisor.capture.instrument.op_lines import OpLines
from advisor.capture.instrument.pending_calls import PendingCall, enclosing_calls, is_positional
from advisor.capture.instrument.python_call_watch import PythonCallWatch
from advisor.capture.instrument.replay_log import DATA_SOURCES, NO_SEEDS, LoggedCall, ReplayLog
from advisor.capture.instrument.state_watch import StateWatch
from advisor.capture.instrument.traced_functions import function_facts, function_site
from advisor.capture.instrument.value_summaries import describe_arguments, describe_options, element_facts
from advisor.host.disk_speed import DataFiles, file_names
from advisor.model.calls import Call, FunctionFacts
from advisor.model.op_effects import FILE_READING_OPS
from advisor.model.state import DATASET

MAX_CALLS = 20_000
"""Maximum number of recorded calls (about 10 MB), for scripts that make datasets in a loop; further calls are only counted."""
MAX_IDENTITIES = 2_000
"""Number of calls whose arguments are compared with those of other calls of the same text."""
_FUNCTION_PARAMETERS = (
    "map_func",
    "predicate",
    "scan_func",
    "reduce_func",
    "transformation_func",
    "generator",
    "element_length_func",
    "key_func",
    "class_func",
)
_READERS = ("RecordDataset", "RecordDatasetV2", "LineDataset", "CSVDatasetV2")
"""Suffixes of the types of ops that read files of records."""


Replacing = Callable[[Callable[..., Any], str, tuple[Any, ...], dict[str, Any], bool], Any]
"""(original, method, args, kwargs, is_constructor) -> the result of the call."""


class Recorder:
    """Collects the calls of a run. Thread-safe."""

    def __init__(self, finder: SiteFinder, warn: Callable[[str], None], replay_log: ReplayLog | None = None) -> None:
        """Create an open recorder.

        Args:
            finder: Finds the source location of each call.
            warn: Called with the text of each warning.
            replay_log: Receives what is needed to replay each call; None: no objects of the script are kept alive.
        """
        self.finder = finder
        self.is_open = True
        """False: no calls are recorded in any thread. See `paused` for a single thread."""
        self.replay_log = replay_log
        self.data_files = DataFiles()
        self.state = StateWatch(self.calls, warn)
        self.generators = GeneratorWatch(lambda: self.is_open)
        self.python_calls = PythonCallWatch(lambda: self.is_open)
        self.only_thread: int | None = None
        """Record only the calls of this thread (`threading.get_ident()`); None: of all threads."""
        self.calling: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        """Makes a context in which each recorded call is made."""
        self.dropped = 0
        self._op_lines = OpLines(finder)
        self._warn = warn
        self._calls: dict[str, Call] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._local = threading.local()

    @property
    def replacing(self) -> Replacing | None:
        """Function that is called instead of each wrapped function in the current thread; None: no replacement.

        A replay sets it while it traces the script's functions again. Other threads may make datasets at the same time.
        """
        replacing: Replacing | None = self._local.__dict__.get("replacing")
        return replacing

    @replacing.setter
    def replacing(self, value: Replacing | None) -> None:
        self._local.replacing = value

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pass calls of this thread inside the block to TensorFlow, neither recorded nor replaced."""
        depth = self._local.__dict__.get("paused", 0)
        before = self.replacing
        self._local.paused, self.replacing = depth + 1, None
        try:
            yield
        finally:
            self._local.paused, self.replacing = depth, before

    def _is_recording(self) -> bool:
        if not self.is_open or self._local.__dict__.get("paused"):
            return False
        return self.only_thread is None or self.only_thread == threading.get_ident()

    def calls(self) -> tuple[Call, ...]:
        """Return all calls so far, in the order in which they returned."""
        with self._lock:
            return tuple(self._calls.values())

    def call(self, call_id: str | None) -> Call | None:
        """Return the call with this id, if it was recorded."""
        return None if call_id is None else self._calls.get(call_id)

    def generator_call(self) -> str | None:
        """Return the id of the `from_generator` call that this thread is making; None if there is none."""
        stack: list[PendingCall] = self._local.__dict__.get("stack", [])
        return stack[-1].id if stack and stack[-1].method == "from_generator" else None

    def traced_call(self) -> str | None:
        """Return the id of the call whose function this thread traces; None if there is none.

        The implementation of a public method may make calls of its own, with Python functions that are not the user's.
        """
        stack: list[PendingCall] = self._local.__dict__.get("stack", [])
        return stack[-1].id if stack and stack[-1].made_by is None and stack[-1].method != "from_generator" else None

    def wrap(self, original: Callable[..., Any], method: str, is_constructor: bool = False) -> Callable[..., Any]:
        """Wrap a function so that its calls are recorded, with the same signature, results and errors.

        Args:
            original: A function or method that makes a dataset.
            method: Name under which its calls are recorded.
            is_constructor: The dataset is the first argument and not the result.
        """
        try:
            signature = inspect.signature(original)
        except (TypeError, ValueError):
            signature = None

        @functools.wraps(original)
        def recorded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            replacing = self.replacing
            if replacing is not None:
                return replacing(original, method, args, kwargs, is_constructor)
            pending = self._begin(method, signature, args, kwargs, is_constructor)
            if pending is None:
                return original(*args, **kwargs)
            stack = self._local.stack
            stack.append(pending)
            start_ns = time.perf_counter_ns()
            try:
                with self.calling():
                    result = original(*args, **pending.kwargs)
            finally:
                pending.made_ns = time.perf_counter_ns() - start_ns
                stack.pop()
                pending.frame = None
            self._end(pending, args[0] if is_constructor else result)
            if self.replay_log is not None:
                self._keep_for_replay(pending, original, args, args[0] if is_constructor else result, is_constructor)
            return result

        return recorded

    def _begin(
        self,
        method: str,
        signature: inspect.Signature | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_constructor: bool,
    ) -> PendingCall | None:
        if signature is None or not self._is_recording():
            return None
        try:
            return self._prepare(method, signature, args, kwargs, is_constructor)
        except Exception as error:  # an error of the recorder must not stop the script
            self._warn(f"A call of {method} could not be recorded ({type(error).__name__}: {error}).")
            return None

    def _prepare(
        self,
        method: str,
        signature: inspect.Signature,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_constructor: bool,
    ) -> PendingCall | None:
        stack: list[PendingCall] = self._local.__dict__.setdefault("stack", [])
        if is_constructor and stack and stack[-1].bound.get("self") is args[0]:
            return None  # a subclass constructor calls the base constructor: one dataset, one call
        if len(self._calls) >= MAX_CALLS:
            with self._lock:
                self.dropped += 1
            return None
        try:
            binding = signature.bind(*args, **kwargs)
        except TypeError:
            return None  # wrong arguments in the script: TensorFlow raises the error
        explicit = tuple(name for name in binding.arguments if name != "self")
        binding.apply_defaults()
        bound = dict(binding.arguments)
        files = self.data_files.note(bound)
        frame = sys._getframe(3)
        with self._lock:
            self._number += 1
            call_id = f"{ID_PREFIX}{self._number}"
        name = bound.get("name", bound.get("kwargs", {}).get("name") if isinstance(bound.get("kwargs"), dict) else None)
        kwargs = dict(kwargs)
        takes_name = "name" in signature.parameters or method == "range"
        if name is None and takes_name and not is_positional(signature, args, "name"):
            kwargs["name"] = call_id
        made_by, nested_in = enclosing_calls(stack, frame)
        is_user_name = isinstance(name, str) and not name.startswith(ID_PREFIX)
        inputs, unrecorded = origins(bound)
        seeds = NO_SEEDS if self.replay_log is None else self.replay_log.begin(call_id, method, made_by or nested_in)
        return PendingCall(
            id=call_id,
            method=method,
            place=self.finder.place(frame, method),
            kwargs=kwargs,
            bound=bound,
            explicit=explicit,
            inputs=inputs,
            unrecorded=unrecorded,
            user_name=name if is_user_name else None,
            made_by=made_by,
            nested_in=nested_in,
            frame=frame,
            seeds=seeds,
            files=files,
        )

    def _end(self, pending: PendingCall, dataset: Any) -> None:  # noqa: ANN401
        try:
            self._keep(pending, dataset)
        except Exception as error:
            self._warn(f"The result of {pending.method} could not be recorded ({type(error).__name__}: {error}).")

    def _keep(self, pending: PendingCall, dataset: Any) -> None:  # noqa: ANN401
        if not hasattr(dataset, "element_spec"):
            return
        has_id = getattr(dataset, ID_ATTRIBUTE, None) is not None
        if has_id and any(dataset is value for value in pending.bound.values()):
            return  # the call returned one of its arguments
        if has_id and pending.method == "apply":
            return  # the dataset was made by public calls inside, which are recorded
        # Nothing is known of what else `apply` makes, such as `tf.data.experimental.shuffle_and_repeat`, but its class.
        unrecorded = (*pending.unrecorded, type(dataset).__name__) if pending.method == "apply" else pending.unrecorded
        function = next(
            (pending.bound[name] for name in _FUNCTION_PARAMETERS if callable(pending.bound.get(name))), None
        )
        facts = None
        try:
            site = function_site(function, self.finder.is_user_file)
            facts = function_facts(dataset, function, site, self._resource_id, self.finder.is_user_file)
        except Exception as error:
            self._warn(f"The function of {pending.method} could not be inspected ({type(error).__name__}: {error}).")
        if facts is not None:
            with contextlib.suppress(Exception):  # private attributes of TensorFlow; without them there are no lines
                facts = dataclasses.replace(facts, **self._op_lines.of(dataset, facts))
        spec, element_bytes, cardinality = element_facts(dataset)
        call = Call(
            id=pending.id,
            method=pending.method,
            site=pending.place.site,
            inputs=pending.inputs,
            arguments=describe_arguments(pending.bound),
            explicit=pending.explicit,
            function=facts,
            user_name=pending.user_name,
            library=pending.place.library,
            made_by=pending.made_by,
            nested_in=pending.nested_in,
            cardinality=cardinality,
            element_spec=spec,
            element_bytes=element_bytes,
            file_bytes=pending.files.bytes(cardinality) if pending.files is not None else None,
            options=describe_options(pending.bound.get("options")) if pending.method == "with_options" else {},
            unrecorded=unrecorded,
            text=pending.place.text,
            made_ns=pending.made_ns,
            identity=self._identity(pending),
        )
        object.__setattr__(dataset, ID_ATTRIBUTE, pending.id)
        with self._lock:
            self._calls[pending.id] = call
        try:
            self.state.note_call(call, function, _files_of(pending.bound, dataset, facts))
        except Exception as error:
            self._warn(f"The state that {pending.method} reads could not be tracked ({type(error).__name__}: {error}).")

    def _identity(self, pending: PendingCall) -> str:
        """Return the digest of the arguments of a call that the script itself makes."""
        is_own = pending.place.site is not None and pending.made_by is None and pending.nested_in is None
        if not is_own or len(self._calls) >= MAX_IDENTITIES:
            return ""
        try:
            return bound_identity(pending.bound)
        except Exception:  # values of the script's own classes
            return ""

    def _resource_id(self, captured: Captured) -> str:
        """Return the id of an object that a function captures.

        For a dataset it is the id of its call, or the empty string if calls that were not recorded took part in making it.
        """
        if captured.kind != DATASET:
            return self.state.resource_id(captured)
        call_id, unrecorded = origin(captured.owner)
        return "" if call_id is None or unrecorded else call_id

    def _keep_for_replay(
        self,
        pending: PendingCall,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        dataset: Any,  # noqa: ANN401
        is_constructor: bool,
    ) -> None:
        if self.replay_log is None or pending.id not in self._calls:
            return
        is_data = pending.method in DATA_SOURCES
        self.replay_log.end(
            LoggedCall(
                id=pending.id,
                method=pending.method,
                original=original,
                args=() if is_data else args,
                kwargs={} if is_data else pending.kwargs,
                is_constructor=is_constructor,
                dataset=dataset,
                parent=pending.made_by or pending.nested_in,
                seeds=pending.seeds,
            )
        )


def _files_of(bound: dict[str, Any], dataset: Any, facts: FunctionFacts | None) -> list[str]:  # noqa: ANN401
    """Return the file names in a call's arguments and in the constants of user functions that read files."""
    names = file_names(bound)
    if facts is not None and (FILE_READING_OPS & facts.ops.keys() or any(op.endswith(_READERS) for op in facts.ops)):
        for wrapper in getattr(dataset, "_functions", list)():
            names += constant_texts(wrapper.function.graph)
    return names
