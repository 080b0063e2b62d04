"""Events of real captures belong together as `EventKind` and `docs/profile-format.md` say.

Runs the installed TensorFlow once, on one small pipeline of each sort.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from advisor.model.trace import EventKind
from advisor.profile import marked_steps, read_trace
from advisor.profile.long_names import parse_long_name

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

SCRIPT = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
D = tf.data.Dataset
trace = tf.profiler.experimental.Trace

def work(x):
    m = tf.ones((64, 64)) * tf.cast(x, tf.float32)
    return tf.reduce_sum(tf.matmul(m, m))

def profile(name, body):
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0)
    tf.profiler.experimental.start(os.path.join(sys.argv[1], name), options)
    body()
    tf.profiler.experimental.stop()

def loop(name, dataset, steps=60):
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    def body():
        for step in range(steps):
            with trace("train", step_num=step, _r=1):
                next(iterator)
    profile(name, body)

loop("map_and_batch", D.range(10**6).map(work, num_parallel_calls=2, name="tfadv_1")
    .batch(8, name="tfadv_2").prefetch(2, name="tfadv_3"))
loop("interleave", D.range(10**6).interleave(
    lambda i: D.range(20, name="tfadv_1").map(lambda x: work(x + i), name="tfadv_2"),
    cycle_length=4, num_parallel_calls=4, name="tfadv_3").batch(4, name="tfadv_4"))
loop("py_function", D.range(10**6).map(lambda x: tf.numpy_function(lambda y: y + 1, [x], tf.int64), num_parallel_calls=3,
                                       name="tfadv_1").batch(4, num_parallel_calls=2, name="tfadv_2"))
loop("repeat", D.range(9).map(work, num_parallel_calls=2, name="tfadv_1").repeat(name="tfadv_2"))

@tf.function
def total(dataset):
    sum = tf.constant(0.0)
    for batch in dataset:
        sum += tf.reduce_sum(batch)
    return sum

dataset = D.range(200).map(work, name="tfadv_1").batch(4, name="tfadv_2")
total(dataset)
profile("tf_function", lambda: total(dataset))
profile("traced", lambda: tf.function(lambda x: x + 1)(tf.constant(1)))
"""
LOOPS = ("map_and_batch", "interleave", "py_function", "repeat", "tf_function")


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    script = tmp_path_factory.mktemp("script") / "pipelines.py"  # a file: AutoGraph needs a function's source
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script, folder], check=True, capture_output=True, timeout=120)
    return {run.name: read_trace(run).hosts[0] for run in folder.iterdir()}


def column(host, kind: EventKind, name: str, label: str | None = None) -> np.ndarray:
    """`key`, `link` or `label` of all events of a kind (and label)."""
    parts = []
    for thread in host.threads:
        wanted = thread.kind == kind
        if label is not None:
            wanted &= thread.label == host.labels.index(label)
        parts.append(getattr(thread, name)[wanted])
    return np.concatenate(parts)


def share_in(these: np.ndarray, those: np.ndarray) -> float:
    return float(np.isin(these, those).mean())


@pytest.mark.parametrize("loop", LOOPS)
def test_parent_ids_resolve(captures, loop):
    iterators = captures[loop].iterators
    assert sum(facts.parent_id == 0 for facts in iterators.values()) == 1
    links = column(captures[loop], EventKind.ITERATOR, "link")
    known = np.array([0, *iterators], np.uint64)
    assert share_in(links, known) > 0.95, "the window can cut off a parent's only call"


@pytest.mark.parametrize("loop", LOOPS)
def test_tags_reach_the_profile(captures, loop):
    names = " ".join(facts.dataset_name for facts in captures[loop].iterators.values())
    assert "tfadv_1" in names
    assert "tfadv_2" in names


@pytest.mark.parametrize("loop", LOOPS)
def test_consumed_elements_were_produced(captures, loop):
    host = captures[loop]
    types = {host.labels[label] for label in column(host, EventKind.CONSUME, "label")}
    assert types
    for name in types:
        produced = column(host, EventKind.PRODUCE, "key", name)
        consumed = column(host, EventKind.CONSUME, "key", name)
        if name == "ParallelInterleave":
            consumed = consumed[consumed != 2**64 - 1]  # opened ahead of its turn
        late = np.sort(consumed)[len(consumed) // 2 :]  # early ones come from buffers filled before the window
        assert share_in(late, produced) > 0.9, name


@pytest.mark.parametrize("loop", LOOPS)
def test_functions_meet_their_executors(captures, loop):
    """By step id always; by context for those that run asynchronously."""
    host = captures[loop]
    assert share_in(column(host, EventKind.FUNCTION, "link"), column(host, EventKind.EXECUTOR, "link")) > 0.9
    contexts = column(host, EventKind.FUNCTION, "key")
    contexts = contexts[contexts != 0]
    if len(contexts):
        assert share_in(contexts, column(host, EventKind.EXECUTOR, "key")) > 0.9


def test_the_parent_has_the_index_of_the_interleave_slot(captures):
    names = [parse_long_name(facts.long_name) for facts in captures["interleave"].iterators.values()]
    maps = [name for name in names if name.type == "Map"]
    assert len({name.nodes[-2].index for name in maps}) > 1
    assert all(name.nodes[-1].index is None for name in names)


def test_python_ops_are_labelled(captures):
    labels = captures["py_function"].labels
    assert "PyFunc" in labels


def test_marked_steps_have_their_numbers(captures):
    assert [step.number for step in marked_steps(captures["map_and_batch"])] == list(range(60))


def test_every_get_next_is_an_event(captures):
    assert len(column(captures["map_and_batch"], EventKind.GET_NEXT, "key")) == 60


def test_a_loop_inside_a_function_is_a_reduction(captures):
    names = {parse_long_name(facts.long_name).prefix for facts in captures["tf_function"].iterators.values()}
    assert names == {"ReduceIterator"}


def test_tracing_is_seen_where_it_happens(captures):
    assert len(column(captures["traced"], EventKind.TRACING, "key")) > 0
    assert len(column(captures["tf_function"], EventKind.TRACING, "key")) == 0


def test_events_begin_with_the_profile(captures):
    host = captures["map_and_batch"]
    assert host.start_unix_ns > 1.6e18
    assert min(int(thread.start_ns[0]) for thread in host.threads if len(thread)) < 1e9
