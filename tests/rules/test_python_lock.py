"""`python-lock`: what a call of a Python function costs outside of it, where the samples show it."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.calls import CodeLine, Site
from advisor.model.finding import Finding
from advisor.model.pipeline import OpCost
from advisor.model.recording import PythonSamples, Recording, SampledLine, ScriptExit
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

RULE = next(loaded for loaded in load_rules([], Settings()) if loaded.id == "python-lock")
CALLS, CALL_NS = 20_000, 50_000
FUNCTION = Site("train.py", 5, 1, 8, 1)


def found(samples: int, *stages, op: str = "PyFunc", looks: int = 200, via: int = 0, seen: Site = FUNCTION) -> Finding:
    """The finding for calls that take 1 s of 2 s, in which the function was seen so many times."""
    made = pipeline(source(), map_("tokenize", ms=0.5, python=True), *stages, consumer_ms=0.1, cores=8).analysis
    assert made.main is not None and made.host is not None
    iterators, calls = [], made.calls
    for it in made.main.iterators:
        if any(call.function for call in it.calls):
            own = tuple(
                dataclasses.replace(call, function=dataclasses.replace(call.function, python_functions=(FUNCTION,)))
                if call.function
                else call
                for call in it.calls
            )
            it = dataclasses.replace(
                it, calls=own, python_ns=CALLS * CALL_NS, ops=(OpCost(op, CALLS, CALLS * CALL_NS),)
            )
        iterators.append(it)
    line = SampledLine(seen, CodeLine("train.py", 7, "tokenize", via=via), samples)
    recording = Recording(
        "train.py",
        made.host,
        ScriptExit("stopped"),
        calls=calls,
        python_samples=PythonSamples(2_000_000_000, looks, (line,)),
    )
    main = dataclasses.replace(made.main, iterators=tuple(iterators))
    (finding,) = run_rules(
        dataclasses.replace(made, pipelines=(main,), recording=recording), [RULE], Settings()
    ).findings
    return finding


def test_a_short_function_is_to_be_called_for_the_rows_of_a_batch() -> None:
    finding = found(16, batch(32))
    # 16 samples of 10 ms, at most 24 of them: 762 of 1,000 ms are outside, of 20,000 calls
    assert "Of each call, about 38.1 us are spent outside of the function" in finding.because
    assert finding.code.splitlines() == [
        "def tokenize_of_rows(*columns):  # for tf.numpy_function in a map behind the batch",
        "    return np.stack([tokenize(*row) for row in zip(*columns)])",
    ]
    assert finding.fix is None
    (outside,) = [each for each in finding.evidence if each.name == "time_outside_the_function"]
    assert (outside.value, outside.unit) == (pytest.approx(38_080), "ns")


def test_the_code_calculates_what_the_function_does() -> None:
    import numpy as np

    names: dict[str, object] = {"np": np, "tokenize": lambda value, scale: value * scale}
    exec(found(16, batch(32)).code, names)
    rows = names["tokenize_of_rows"](np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0]))  # type: ignore[operator]
    assert rows.tolist() == [[0, 1], [4, 6], [12, 15]]


@pytest.mark.parametrize(
    ("samples", "stages", "changed"),
    [
        (60, (batch(32),), {}),  # most of a call is the function itself
        (16, (), {}),  # no batch follows
        (8, (batch(32),), {"looks": 99}),
        (16, (batch(32),), {"op": "EagerPyFunc"}),
        (16, (batch(32),), {"seen": Site("other.py", 1, 1, 2, 1)}),  # another function was seen, not this one
    ],
)
def test_otherwise_nothing_is_said_of_calls(samples: int, stages: tuple, changed: dict) -> None:
    finding = found(samples, *stages, **changed)
    assert "outside" not in finding.because and not finding.code


def test_a_line_of_another_function_does_not_name_the_one_to_call() -> None:
    assert "def function_of_rows(" in found(16, batch(32), via=3).code
