"""Steps that a library queues: its name, and what the report says about a loop that does so."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from advisor.capture.instrument.queued_steps import queueing_library
from advisor.model.settings import Settings
from advisor.workflows.analyze import analyze_run

BRIDGE = "jax._src.xla_bridge"


@pytest.mark.parametrize(("is_used", "library"), [(True, "JAX"), (False, ""), (None, "JAX")])
def test_jax_queues_steps_once_it_has_a_device(is_used, library, monkeypatch):
    bridge = ModuleType(BRIDGE)
    if is_used is not None:
        bridge.backends_are_initialized = lambda: is_used
    for name in list(sys.modules):
        if name.partition(".")[0] == "jax":
            monkeypatch.delitem(sys.modules, name)
    assert queueing_library() == ""
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    monkeypatch.setitem(sys.modules, BRIDGE, bridge)
    assert queueing_library() == library


QUEUED = """
    import queue, sys, threading, time
    from types import ModuleType
    import tensorflow as tf

    for name in ("jax", "jax._src.xla_bridge"):  # where JAX is installed, a library may have imported it without using it
        sys.modules[name] = ModuleType(name)
    started = queue.Queue(maxsize=3)

    def device():
        while True:
            started.get()
            time.sleep(0.05)

    threading.Thread(target=device, daemon=True).start()
    def slow(x):
        time.sleep(0.02)
        return x
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(100000)
    dataset = dataset.map(lambda x: tf.numpy_function(slow, [x], tf.int64)).with_options(options)
    for x in dataset:
        started.put(x)
    """


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_loop_that_queues_its_steps_is_judged_with_doubt(watch):
    """The device is never idle, although Python waits for input in 40 % of the time."""
    run = watch(QUEUED)
    assert run.recording.steps_queued_by == "JAX"
    verdict = analyze_run(run.folder, [], Settings()).analysis.verdict
    assert verdict.sentence.startswith("Input may be the problem: "), verdict.sentence
    assert "JAX runs steps after they have been started" in verdict.sentence
    assert verdict.steps is not None and verdict.steps.mean_ns == pytest.approx(50e6, rel=0.25)
