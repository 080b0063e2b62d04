"""Hooks the functions that take elements from a dataset.

In: the imported `tensorflow` module.  Out: step boundaries for the `Monitor`, consumers in `Consumers`.

The overhead must stay at a few microseconds per element: an attribute lookup, two clock readings and some integer arithmetic.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from advisor.capture.instrument.call_sites import LOOP_OPCODES, SiteFinder
from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.enclosing_loops import enclosing_loops
from advisor.capture.instrument.function_steps import CONSUMER, FunctionSteps, StepFollower
from advisor.capture.instrument.iterator_model import note_end
from advisor.capture.instrument.iterator_teardown import watch_release
from advisor.capture.instrument.loop_losses import LoopLosses
from advisor.capture.instrument.patches import Patches
from advisor.model.calls import Site


class _Context:
    """A library call of one thread. Its consumer is looked up once, because Keras asks for it twice per step."""

    __slots__ = ("_consumer", "_consumers", "_key")

    def __init__(self, consumers: Consumers, kind: str, site: Site | None, library: str | None) -> None:
        self._consumers, self._key = consumers, (kind, site, library)
        self._consumer: ConsumerSteps | None = None

    def consumer(self) -> ConsumerSteps:
        """Return the consumer; create it if necessary."""
        if self._consumer is None:
            self._consumer = self._consumers.at(*self._key)
        return self._consumer


class Consumption:
    """The hooks on consumers and their shared state."""

    def __init__(
        self,
        finder: SiteFinder,
        consumers: Consumers,
        monitor: StepFollower,
        warn: Callable[[str], None],
        substitute: Callable[[Any], Any] | None = None,
    ) -> None:
        """Create the hooks without installing them.

        Args:
            finder: Finds the source location of each consumer.
            consumers: Receives the consumers.
            monitor: Receives the step boundaries.
            warn: Called with the text of each warning.
            substitute: Returns a replacement for a dataset that is about to be consumed (the ceiling run); None: no
                replacement.
        """
        self.finder, self._consumers, self._monitor, self._warn = finder, consumers, monitor, warn
        self._substitute = substitute
        self._local = threading.local()
        self._executing_eagerly: Callable[[], bool] = lambda: True
        self.on_epoch: Callable[[str | None], None] = lambda call_id: None
        """Called with the id of the call that made the dataset whenever an iteration over it begins."""
        self._steps = FunctionSteps(
            self._local,
            finder,
            monitor,
            lambda: self._executing_eagerly(),
            lambda call_id: self.on_epoch(call_id),
        )

    @property
    def losses(self) -> LoopLosses:
        """The losses of the first loop outside Keras that trains."""
        return self._steps.losses

    def install(self, tensorflow: ModuleType, patches: Patches | None = None) -> None:
        """Install the hooks in the imported TensorFlow.

        Args:
            tensorflow: The module.
            patches: Records the replaced attributes, so that they can be restored.
        """
        patches = Patches() if patches is None else patches
        from tensorflow.python.data.ops import iterator_ops

        self._executing_eagerly = tensorflow.executing_eagerly
        dataset = tensorflow.data.Dataset
        iterator = iterator_ops.OwnedIterator
        for cls in (
            base
            for base in [*tensorflow.compat.v1.data.Dataset.__subclasses__(), dataset]
            if "__iter__" in base.__dict__
        ):
            patches.set(cls, "__iter__", self._iter_hook(cls.__iter__))
        patches.set(iterator, "__next__", self._next_hook(iterator.__next__))
        patches.set(iterator, "get_next", self._next_hook(iterator.get_next))
        numpy_hook = self._context_hook(dataset.as_numpy_iterator, "as_numpy_iterator")
        patches.set(dataset, "as_numpy_iterator", numpy_hook)
        patches.set(dataset, "reduce", self._reduce_hook(dataset.reduce))
        tape = tensorflow.GradientTape
        patches.set(tape, "__enter__", self._steps.tape_hook(tape.__enter__))
        patches.set(tape, "gradient", self._steps.gradient_hook(tape.gradient))
        try:
            from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

            patches.set(Function, "__call__", self._steps.function_hook(Function.__call__))
        except (ImportError, AttributeError) as error:
            self._warn(f"Steps inside a tf.function cannot be recorded ({error}).")
        try:
            self._install_distributed(patches)
        except (ImportError, AttributeError) as error:
            self._warn(f"Steps of distributed datasets cannot be recorded ({error}).")

    def _install_distributed(self, patches: Patches) -> None:
        from tensorflow.python.distribute import input_lib

        if self._substitute is not None:
            for distributed in (input_lib.DistributedDataset, input_lib.DistributedDatasetsFromFunction):
                patches.set(distributed, "__init__", self._distribution_hook(distributed.__init__))

        for cls in (input_lib.DistributedDataset, input_lib.DistributedDatasetsFromFunction):
            patches.set(cls, "__iter__", self._iter_hook(cls.__iter__, "distributed"))
        base = input_lib.DistributedIteratorBase
        patches.set(base, "__next__", self._next_hook(base.__next__))
        patches.set(base, "get_next", self._next_hook(base.get_next))
        patches.set(base, "get_next_as_optional", self._optional_hook(base.get_next_as_optional))

    def _distribution_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replace the dataset before it is distributed, because distributed iterators are made from clones of it."""
        substitute = self._substitute or (lambda dataset: dataset)
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(distributed: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            bound = signature.bind(distributed, *args, **kwargs)
            if bound.arguments.get("dataset") is not None:
                bound.arguments["dataset"] = substitute(bound.arguments["dataset"])
            make_dataset = bound.arguments.get("dataset_fn")
            if make_dataset is not None:
                bound.arguments["dataset_fn"] = lambda context: substitute(make_dataset(context))
            original(*bound.args, **bound.kwargs)

        return __init__

    @contextlib.contextmanager
    def unwatched(self) -> Iterator[None]:
        """Do not record what this thread consumes inside the block, because the advisor consumes it and not the script."""
        before, self._local.depth = self._local.__dict__.get("depth", 0), 1
        try:
            yield
        finally:
            self._local.depth = before

    # -- contexts: library calls, to which the iterators made inside them are attributed

    def enter(self, kind: str, frame: FrameType | None) -> None:
        """Enter a context: iterators made in this thread are attributed to one consumer until `leave`.

        Args:
            kind: Kind of the consumer, e.g. `keras.fit`.
            frame: Frame whose source location the consumer has.
        """
        place = self.finder.place(frame, kind.rsplit(".", 1)[-1])
        self._contexts().append(_Context(self._consumers, kind, place.site, place.library))

    def leave(self) -> None:
        """Leave the innermost context."""
        self._contexts().pop()

    def current_consumer(self) -> ConsumerSteps | None:
        """Return the consumer of the innermost context; None outside of contexts."""
        contexts = self._local.__dict__.get("contexts")
        return contexts[-1].consumer() if contexts else None

    def _contexts(self) -> list[_Context]:
        contexts: list[_Context] = self._local.__dict__.setdefault("contexts", [])
        return contexts

    def _context_hook(self, original: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if self._contexts():
                return original(*args, **kwargs)
            self.enter(kind, sys._getframe(1))
            try:
                return original(*args, **kwargs)
            finally:
                self.leave()

        return hooked

    # -- iterators

    def _iter_hook(self, original: Callable[..., Any], kind: str | None = None) -> Callable[..., Any]:
        @functools.wraps(original)
        def __iter__(dataset: Any) -> Any:  # noqa: ANN401
            if self._local.__dict__.get("depth"):
                return original(dataset)
            source = dataset if self._substitute is None else self._substitute(dataset)
            self._local.depth = 1
            try:
                iterator = original(source) if source is dataset else iter(source)
            finally:
                self._local.depth = 0
            try:
                self._made(iterator, dataset, kind, sys._getframe(1))
            except Exception as error:
                self._warn(f"A consumer could not be recorded ({type(error).__name__}: {error}).")
            return iterator

        return __iter__

    def _made(self, iterator: Any, dataset: Any, kind: str | None, frame: FrameType | None) -> None:  # noqa: ANN401
        contexts = self._contexts()
        if contexts:
            consumer = contexts[-1].consumer()
        else:
            place = self.finder.place(frame)
            if kind is None:
                kind = "for" if place.opcode in LOOP_OPCODES else "next"
            if not self._executing_eagerly():
                kind = "tf.function"
            consumer = self._consumers.at(kind, place.site, place.library)
        consumer.reads(call_id_of(_undistributed(dataset)))
        self._note_loops(consumer, frame)
        consumer.iterator = weakref.ref(iterator)
        iterator.__dict__[CONSUMER] = consumer
        watch_release(iterator, consumer.released)
        self.on_epoch(consumer.call_id)

    def _note_loops(self, consumer: ConsumerSteps, frame: FrameType | None) -> None:
        """Record the loops around the first iteration of a consumer. They are looked for once, because files are parsed."""
        if consumer.loops is None:
            consumer.loops = enclosing_loops(frame, self.finder.owner_of)

    def _next_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        local, monitor, now = self._local, self._monitor, time.time_ns
        is_eager = self._executing_eagerly

        @functools.wraps(original)
        def fetch(iterator: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            consumer, mine = iterator.__dict__.get(CONSUMER), local.__dict__
            if mine.get("depth"):
                return original(iterator, *args, **kwargs)
            if not is_eager():
                self._steps.traced(consumer)
                return original(iterator, *args, **kwargs)
            if consumer is None:
                return original(iterator, *args, **kwargs)
            is_keras = consumer.kind.startswith("keras.")
            start = now() if is_keras else monitor.boundary(consumer)
            if repeated := consumer.repeated:  # the watchdog may take it away meanwhile
                return repeated[0]
            mine["last"], mine["depth"] = consumer, 1
            try:
                element = original(iterator, *args, **kwargs)
            except BaseException as error:
                if not is_keras:
                    consumer.forget()
                    if isinstance(error, StopIteration):
                        note_end(consumer, iterator, now())
                        mine["depth"] = 0
                        monitor.data_ended(consumer)
                raise
            finally:
                mine["depth"] = 0
            consumer.fetch_ns += now() - start
            if (repeated := consumer.repeated) is not None:
                repeated.append(element)
            return element

        return fetch

    def _optional_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Note a `for` over a distributed dataset inside a tf.function, which AutoGraph turns into a loop over optionals."""
        local, is_eager = self._local, self._executing_eagerly

        @functools.wraps(original)
        def get_next_as_optional(iterator: Any) -> Any:  # noqa: ANN401
            if not is_eager() and not local.__dict__.get("depth"):
                self._steps.traced(iterator.__dict__.get(CONSUMER))
            return original(iterator)

        return get_next_as_optional

    def _reduce_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def reduce(dataset: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            consumer, is_eager = None, False
            try:
                if not self._contexts():
                    place = self.finder.place(sys._getframe(1), "reduce")
                    is_eager = self._executing_eagerly()
                    consumer = self._consumers.at("reduce" if is_eager else "tf.function", place.site, place.library)
                    consumer.reads(call_id_of(dataset) or self._steps.argument_call_id(dataset))
                    self._note_loops(consumer, sys._getframe(1))
                    consumer.is_loop = True
                    self.on_epoch(consumer.call_id)
                    if not is_eager:
                        self._steps.traced(consumer)
                if self._substitute is not None:
                    dataset = self._substitute(dataset)
            except Exception as error:
                self._warn(f"A consumer could not be recorded ({type(error).__name__}: {error}).")
            if consumer is None or not is_eager:
                return original(dataset, *args, **kwargs)
            with self._steps.inside(consumer):
                return original(dataset, *args, **kwargs)

        return reduce


def _undistributed(dataset: Any) -> Any:  # noqa: ANN401
    """Return the dataset that was distributed. For a dataset made from a function it is that of the first worker."""
    worker_datasets = getattr(dataset, "_datasets", None)
    return getattr(dataset, "_original_dataset", worker_datasets[0] if worker_datasets else dataset)
