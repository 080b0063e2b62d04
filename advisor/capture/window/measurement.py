"""Measures one window: first steps without the profiler, then steps with it, and the resource usage of the same time.

In: calls that open the window, start the profiler and close the window.  Out: a `Capture`: a profile on disk, resource usage
and tf.data's models.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.instrument.iterator_model import model_deltas, model_nodes, model_now
from advisor.capture.window.gap_times import MOST_KEPT, StepWait, gaps_of, latest_waits
from advisor.capture.window.process_memory import peak_rss_bytes
from advisor.capture.window.profiler import Profiler, profile_bytes
from advisor.capture.window.python_sampler import PythonSampler
from advisor.capture.window.usage import LockProbe, Snapshot, usage_between
from advisor.host.calibration.window import BYTES_PER_EVENT, UNPROFILED_MIN_STEPS
from advisor.model.recording import PythonSamples, Window
from advisor.model.text import one_line
from advisor.model.window_readings import GapWaits, IteratorModel, Usage


@dataclass(frozen=True, slots=True)
class Capture:
    """A measured window."""

    folder: Path
    """Folder that contains the profile."""
    window: Window
    usage: Usage
    models: tuple[IteratorModel, ...]
    """tf.data's models of the whole window."""
    unprofiled_models: tuple[IteratorModel, ...]
    """tf.data's models of the stretch without the profiler."""
    consumer: ConsumerSteps | None
    """The consumer whose steps were measured."""
    profile_bytes: int
    """Size of the profile; 0 if there is none."""
    python_samples: PythonSamples | None = None
    """None if no Python function was sampled."""
    gap_waits: tuple[GapWaits, ...] = ()
    """Waits of the consumer that Python does not see; empty if it sees them, or tf.data does not tell."""

    @property
    def events_per_step(self) -> float | None:
        """Number of profiler events per step, estimated from the size of the profile; None without steps or profile."""
        if not self.window.steps or not self.profile_bytes:
            return None
        return self.profile_bytes / BYTES_PER_EVENT.value / self.window.steps

    def has_steps_of(self, consumer: ConsumerSteps | None) -> bool:
        """Whether the profile holds at least one step of this consumer."""
        return self.consumer is consumer and self.window.steps > 0 and self.profile_bytes > 0


class Measurement:
    """An open window. Opening it takes a millisecond, closing it as long as it takes to write the profile.

    Args:
        folder: Folder for the profile.
        consumer: The consumer whose steps are measured; None: none.
        consumers: All consumers, for tf.data's models of their iterators.
        profiler: The profiler; None: there will be no profile.
        sampler: Samples Python functions while the profiler runs; None: there are none.
    """

    def __init__(
        self,
        folder: Path,
        consumer: ConsumerSteps | None,
        consumers: Consumers,
        profiler: Profiler | None,
        sampler: PythonSampler | None = None,
    ) -> None:
        self.first_step = consumer.count if consumer is not None else 0
        """Index among the consumer's steps of the first step of the current stretch."""
        self._warmup_steps = self.first_step
        self._unprofiled_part: tuple[Snapshot, float | None, int] | None = None
        """End of the stretch without the profiler: counters, share of time spent waiting for the GIL, number of steps."""
        self._unprofiled_models: tuple[IteratorModel, ...] = ()
        self._waits: dict[int, StepWait] = {}
        """Number of a step -> its wait, where Python does not see it."""
        self.unprofiled = ""
        """Why there is no profile, in one sentence; empty if there is one."""
        self.consumer = consumer
        self._folder, self._consumers = folder, consumers
        self._profiler, self._sampler = profiler, sampler
        self._is_sampling = False
        self._models: dict[str, Any] = model_nodes(consumers)
        self._probe = LockProbe()
        self._probe.start()
        self._start = self._profiled = Snapshot.take()

    @property
    def has_unprofiled(self) -> bool:
        """Whether a stretch without the profiler has ended."""
        return self._unprofiled_part is not None

    @property
    def stretch_steps(self) -> int:
        """Number of steps in the current stretch so far."""
        return self.consumer.count - self.first_step if self.consumer is not None else 0

    @property
    def start_ns(self) -> int:
        """Unix time of the start of the current stretch."""
        return self._profiled.time_ns

    def end_unprofiled(self) -> None:
        """End the stretch without the profiler. Call `start_profiler` next."""
        if self.consumer is not None:
            end = Snapshot.take(self._start)
            self._unprofiled_part = end, self._probe.stop(), self.consumer.count - self._warmup_steps
            self.first_step = self.consumer.count
            self._unprofiled_models = model_deltas(self._consumers, self._models, self._start.time_ns)
            self._note_waits()

    def start_profiler(self) -> None:
        """Begin the profiled stretch."""
        if self._profiler is not None:
            try:
                self._profiler.start(self._folder)
            except Exception as error:
                self.unprofiled = _not_started(error)
            if self._sampler is not None:
                # without an unprofiled stretch, the lock probe still runs, whose result depends on the switch interval
                self._sampler.start(may_switch_faster=self._unprofiled_part is not None)
                self._is_sampling = True
        self._profiled = Snapshot.take()

    def add_unprofiled_to(self, capture: Capture, closed_by: str | None = None) -> Capture:
        """Add the steps without the profiler to an earlier capture, for a run that ends before the profiler is started again.

        Args:
            capture: The earlier one, with its profile.
            closed_by: Reason recorded in the `Window`; None: that of the earlier capture.

        Returns:
            The completed capture, or `capture` itself if too few steps were measured or they belong to another consumer.
        """
        if self._unprofiled_part is None:
            self.end_unprofiled()
        if (
            self._unprofiled_part is None
            or self._unprofiled_part[2] < UNPROFILED_MIN_STEPS.value
            or capture.consumer is not self.consumer
        ):
            return capture
        end, gil_wait_share, steps = self._unprofiled_part
        window = replace(
            capture.window,
            warmup_steps=self._warmup_steps,
            closed_by=closed_by or capture.window.closed_by,
            plain_start_ns=self._start.time_ns,
            plain_end_ns=end.time_ns,
            plain_steps=steps,
        )
        usage = usage_between(self._start, end, gil_wait_share, self._peak_bytes())
        return replace(
            capture, window=window, usage=usage, unprofiled_models=self._unprofiled_models, gap_waits=self._gap_waits()
        )

    def abandon(self) -> None:
        """Discard the window, and the profile if the profiler is running."""
        self._probe.stop()
        if self._sampler is not None and self._is_sampling:
            self._sampler.stop()
        if self._profiler is not None:
            with contextlib.suppress(Exception):
                self._profiler.stop(save=False)

    def close(self, closed_by: str, on_saving: Callable[[int], None]) -> Capture:
        """Close the window and write the profile.

        Args:
            closed_by: Reason recorded in the `Window`.
            on_saving: Called with the number of profiled steps before the profile is written.
        """
        end = Snapshot.take(self._start)
        samples = self._sampler.stop() if self._sampler is not None and self._is_sampling else None
        gil_wait_share = self._probe.stop()
        usage_end, unprofiled_steps = end, 0
        if self._unprofiled_part is not None:
            usage_end, gil_wait_share, unprofiled_steps = self._unprofiled_part
        consumer = self.consumer
        steps = 0 if consumer is None or consumer.is_loop else max(0, consumer.count - self.first_step)
        on_saving(steps)
        models = model_deltas(self._consumers, self._models, self._start.time_ns)
        self._note_waits()
        if self._profiler is not None:
            try:
                self._profiler.stop()
            except Exception as error:
                self.unprofiled = f"The profile could not be saved ({type(error).__name__}: {error})."
        window = Window(
            self.start_ns,
            end.time_ns,
            self._warmup_steps,
            steps,
            closed_by,
            plain_start_ns=self._start.time_ns if self._unprofiled_part else 0,
            plain_end_ns=usage_end.time_ns if self._unprofiled_part else 0,
            plain_steps=unprofiled_steps,
        )
        usage = usage_between(self._start, usage_end, gil_wait_share, self._peak_bytes())
        return Capture(
            self._folder,
            window,
            usage,
            models,
            self._unprofiled_models,
            consumer,
            profile_bytes(self._folder),
            samples,
            self._gap_waits(),
        )

    def _peak_bytes(self) -> int:
        return peak_rss_bytes() if self._profiler is None else self._profiler.memory.peak_bytes

    def _note_waits(self) -> None:
        """Note how long the latest steps waited, if Python does not see it."""
        consumer = self.consumer
        if consumer is None or consumer.is_loop or any(consumer.waits[-MOST_KEPT:]):
            return
        try:
            model = model_now(consumer)
            waits = latest_waits(consumer, gaps_of(model), len(consumer.ends), MOST_KEPT) if model is not None else []
        except Exception:  # the model is private, and an error here must not stop the script
            return
        self._waits |= {wait.number: wait for wait in waits}

    def _gap_waits(self) -> tuple[GapWaits, ...]:
        waits = [self._waits[number] for number in sorted(self._waits)]
        if self.consumer is None or not waits:
            return ()
        rows = [(wait.start_ns, wait.end_ns, wait.wait_ns) for wait in waits]
        return (GapWaits(self.consumer.id, *map(tuple, zip(*rows, strict=True))),)


def _not_started(error: Exception) -> str:
    if "nother profil" in str(error):
        return (
            "The process was being profiled already (by `advisor capture` or TensorBoard's capture button), and TensorFlow "
            "supports only one profiler session; repeat the run without the other session."
        )
    return f"TensorFlow's profiler could not be started ({type(error).__name__}: {one_line(str(error))})."
