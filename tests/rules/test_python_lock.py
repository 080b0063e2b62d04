"""`python-lock`: short calls of `tf.numpy_function` are to be made for the rows of a batch."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.finding import Finding
from advisor.model.pipeline import OpCost
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

RULE = next(loaded for loaded in load_rules([], Settings()) if loaded.id == "python-lock")
CALLS = 20_000


def found(call_us: int, *stages, op: str = "PyFunc") -> Finding:
    """The finding for calls that take so long."""
    made = pipeline(source(), map_("tokenize", ms=0.5, python=True), *stages, consumer_ms=0.1, cores=8).analysis
    assert made.main is not None
    spent_ns = CALLS * call_us * 1000
    iterators = tuple(
        dataclasses.replace(it, python_ns=spent_ns, ops=(OpCost(op, CALLS, spent_ns),))
        if any(call.function for call in it.calls)
        else it
        for it in made.main.iterators
    )
    main = dataclasses.replace(made.main, iterators=iterators)
    (finding,) = run_rules(dataclasses.replace(made, pipelines=(main,)), [RULE], Settings()).findings
    return finding


def test_short_calls_are_to_be_made_for_the_rows_of_a_batch() -> None:
    finding = found(50, batch(32))
    assert "A call takes only 50 us" in finding.because and "np.stack" in finding.code
    assert finding.fix is None
    (seen,) = [each for each in finding.evidence if each.name == "time_per_call"]
    assert (seen.value, seen.unit) == (50_000, "ns")


@pytest.mark.parametrize(
    ("call_us", "stages", "op"),
    [
        (160, (batch(32),), "PyFunc"),  # most of a call is the function itself
        (50, (), "PyFunc"),  # no batch follows
        (50, (batch(32),), "EagerPyFunc"),
    ],
)
def test_otherwise_nothing_is_said_of_calls(call_us: int, stages: tuple, op: str) -> None:
    finding = found(call_us, *stages, op=op)
    assert "A call takes" not in finding.because and not finding.code


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["rows", "scalars", "texts", "two arguments"])
def test_the_code_computes_the_same_elements(kind: str) -> None:
    import numpy as np
    import tensorflow as tf

    functions = {
        "rows": lambda row: np.log1p(np.abs(np.fft.rfft(row))).astype(np.float32),
        "scalars": lambda number: np.float32(number * 0.3),
        "texts": lambda text: np.float32(len(text.decode().split())),
        "two arguments": lambda row, number: (row * number).astype(np.float32),
    }
    rows, numbers = np.random.default_rng(1).random((10, 6), np.float32), np.arange(10.0, dtype=np.float32)
    columns = {
        "rows": (rows,),
        "scalars": (numbers,),
        "texts": ([f"a{' b' * number}" for number in range(10)],),
        "two arguments": (rows, numbers),
    }[kind]
    names = {"np": np, "function": functions[kind]}
    exec(found(50, batch(32)).code, names)
    data = tf.data.Dataset.from_tensor_slices(columns)
    one = data.map(lambda *element: tf.numpy_function(functions[kind], element, tf.float32)).batch(4)
    all_at_once = data.batch(4).map(lambda *element: tf.numpy_function(names["of_rows"], element, tf.float32))
    for before, after in zip(one, all_at_once, strict=True):
        assert before.dtype == after.dtype and before.numpy().tobytes() == after.numpy().tobytes()
