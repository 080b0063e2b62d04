"""Profiles an edited pipeline in isolation, into an ordinary run folder.

In: a finished `Replay` and the folder.  Out: `plugins/profile/...`, `recording.json`, `host.json`. The consumer takes elements
without using them, so that the whole step is waiting and the profile shows the pipeline's own limit; or it waits after each
element, without using a core, as long as an imagined training step takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.stop_script import StopScript
from advisor.capture.window.measurement import Capture
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.schedule import Limits
from advisor.host.machine import describe_host
from advisor.model.calls import Site
from advisor.model.codec import encode
from advisor.model.recording import Recording, ScriptExit
from advisor.model.run_folder import write_whole
from advisor.model.window_readings import Usage
from advisor.prove.trial.ab_side import CannotMeasure
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import Replay


def profile_pipeline(
    recorder: Recorder,
    work: Replay,
    call_id: str,
    out: Path,
    facts: dict[str, Any],
    report: Callable[[str, int, int | None], None],
    as_if_step_ns: int = 0,
    consumed_at: Site | None = None,
) -> None:
    """Iterate over the dataset until the rules of `advisor.capture.window.schedule` close the profiled window.

    Args:
        recorder: The closed recorder of the script's calls.
        work: The replay with the edits.
        call_id: The call whose dataset is iterated over.
        out: The run folder; created if needed.
        facts: Further fields of the `Recording`: target, argv, cwd, is_seeded.
        report: Called with (phase, steps so far, expected number of steps).
        as_if_step_ns: Length of the wait after each element; 0 for none.
        consumed_at: Where the script reads the dataset; None: where it was made.

    Raises:
        CannotMeasure: The pipeline produces no elements, or ends before a window could be profiled.
    """
    import tensorflow as tf

    out.mkdir(parents=True, exist_ok=True)
    warnings: list[str] = []
    consumers = Consumers()
    monitor = Monitor(
        out,
        Limits(None, None, None),
        consumers,
        is_to_end=False,
        is_profiling=True,
        report=report,
        warn=warnings.append,
        on_measured=lambda: None,
        on_stuck=_give_up,
    )
    monitor.profiler = Profiler(tf)
    call = recorder.call(call_id)
    consumer = consumers.at("for", consumed_at or (call.site if call is not None else None), None)
    consumer.call_id = work.output_id(call_id)
    consumer.saw_tape = True  # marks it as the training loop, so that the window does not wait for another one
    _consume(work.dataset(call_id), consumer, monitor, as_if_step_ns / 1e9)
    monitor.script_ended("finished")
    capture = monitor.capture
    if capture is None:
        raise CannotMeasure("the edited pipeline ended before a window could be profiled")
    monitor.settle()
    host = describe_host()
    write_whole(out / "host.json", encode(host))
    recording = Recording(
        host=host,
        script_exit=ScriptExit("stopped"),
        calls=edited_calls(recorder, work),
        consumers=tuple(consumer.recorded(True) for consumer in consumers.all()),
        steps=tuple(consumer.series() for consumer in consumers.all()),
        window=capture.window,
        usage=_over_steps(capture, consumer),
        models=capture.models,
        plain_models=capture.unprofiled_models,
        is_pipeline_alone=not as_if_step_ns,
        as_if_step_ns=as_if_step_ns or None,
        warnings=tuple(warnings),
        **facts,
    )
    write_whole(out / "recording.json", encode(recording))


def _consume(dataset: Any, consumer: Any, monitor: Monitor, step_s: float) -> None:  # noqa: ANN401
    """Take elements, epoch after epoch, until the monitor stops the loop; wait for so many seconds after each."""
    import weakref

    try:
        while True:
            iterator: Any = iter(dataset)
            consumer.iterators += 1
            consumer.iterator = weakref.ref(iterator)
            count = 0
            while True:
                start = monitor.boundary(consumer)
                try:
                    next(iterator)
                except StopIteration:
                    consumer.forget()
                    iterator = (
                        None  # destroyed before the next one starts; next to an active one that can take an epoch
                    )
                    break
                count += 1
                consumer.fetch_ns += time.time_ns() - start
                if step_s:
                    time.sleep(step_s)
            if not count:
                raise CannotMeasure("the edited pipeline produces no elements")
    except StopScript:
        return


def _over_steps(capture: Capture, consumer: ConsumerSteps) -> Usage:
    """Return the usage with the total time of the steps as its wall time, without TensorFlow's pauses between epochs."""
    window = capture.window
    steps = sum(
        end - start
        for start, end in zip(consumer.starts, consumer.ends, strict=True)
        if window.plain_start_ns <= start and end <= window.plain_end_ns
    )
    return replace(capture.usage, wall_ns=steps) if 0 < steps < capture.usage.wall_ns else capture.usage


def _give_up(why: str) -> Any:  # noqa: ANN401
    raise CannotMeasure(why.rstrip("."))
