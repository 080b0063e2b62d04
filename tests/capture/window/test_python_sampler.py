"""The sampler finds the lines of Python functions, and tells compiled code from Python."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.window.python_sampler import PythonSampler, sampler_for
from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.recording import PythonSamples
from tests.capture.window.calls_functions import call_for

_VALUES = np.random.default_rng(0).random(200_000)
_DATA = _VALUES.tobytes()[:200_000]


def sample(function: Callable[[], object], entry: str = "calls_functions.py") -> PythonSamples:
    sampler = PythonSampler(SiteFinder(), entry)
    sampler.start(may_switch_faster=True)
    call_for(0.6, function)
    return sampler.stop()


def sort() -> None:
    values = _VALUES * 2.0
    np.sort(values)  # hot


def compute() -> int:
    total = 0
    for number in range(30_000):
        total += number % 7  # hot
    return total


def compress() -> bytes:
    return zlib.compress(_DATA, 6)  # hot


def short_python_then_sort() -> None:
    total = 0
    for number in range(40_000):
        total += number % 7  # hot
    np.sort(_VALUES[:2_000])


def through_helper() -> None:
    compute()


def hot_line(function: Callable[[], object]) -> int:
    with open(__file__) as file:
        lines = file.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines)) if lines[number - 1].endswith("# hot"))


@pytest.mark.parametrize("function", [sort, compute, compress])
def test_the_costly_line_has_most_samples(function: Callable[[], object]) -> None:
    samples = sample(function)
    line = samples.lines[0]
    assert (line.at.line, line.at.function) == (hot_line(function), function.__name__)
    assert "# hot" in line.at.text
    assert line.samples > 0.5 * samples.ticks


@pytest.mark.parametrize(
    ("function", "library", "callee"), [(sort, "numpy", "np.sort"), (compress, "zlib", "zlib.compress")]
)
def test_compiled_code_is_told_apart(function: Callable[[], object], library: str, callee: str) -> None:
    line = sample(function).lines[0]
    assert (line.library, line.callee) == (library, callee)
    assert line.native_samples > 0.8 * line.samples


def test_python_code_is_not_compiled_code() -> None:
    line = sample(compute).lines[0]
    assert line.native_samples < 0.2 * line.samples
    assert line.library == ""


@pytest.mark.timed
def test_a_short_stretch_of_python_is_not_blamed_on_the_call_that_releases_the_lock() -> None:
    # the loop takes less than the default switch interval, so a sampler that waits as long sees only the sort
    loop = (hot_line(short_python_then_sort) - 1, hot_line(short_python_then_sort))
    # such a sampler never sees the loop; ours may miss it if other programs keep the cores from it
    assert any(sample(short_python_then_sort).lines[0].at.line in loop for _ in range(3))


def test_a_line_of_another_function_names_the_line_that_led_there() -> None:
    line = sample(through_helper).lines[0]
    assert (line.at.function, line.at.via) == ("compute", through_helper.__code__.co_firstlineno + 1)
    assert line.function.line == through_helper.__code__.co_firstlineno


def in_comprehension() -> int:
    return sum([number % 7 for number in range(30_000)])  # hot


def test_a_comprehension_belongs_to_its_function() -> None:
    lines = sample(in_comprehension).lines
    assert (lines[0].at.line, lines[0].at.via) == (hot_line(in_comprehension), 0)
    assert {line.at.function for line in lines} == {"in_comprehension"}  # its `def` may be seen, too


def test_other_code_of_the_program_is_not_sampled() -> None:
    assert sample(compute, entry="/other_file.py").lines == ()


def test_the_switch_interval_is_restored() -> None:
    before = sys.getswitchinterval()
    sample(sort)
    assert sys.getswitchinterval() == before


def test_a_switch_interval_of_the_program_is_kept() -> None:
    sys.setswitchinterval(0.002)
    try:
        sampler = PythonSampler(SiteFinder())
        sampler.start(may_switch_faster=True)
        during = sys.getswitchinterval()
        sampler.stop()
        assert during == sys.getswitchinterval() == 0.002
    finally:
        sys.setswitchinterval(0.005)


def test_a_program_without_python_functions_is_not_sampled() -> None:
    site = Site("/train.py", 3, 1, 5, 1)
    plain = Call("c1", "map", None, function=FunctionFacts("f", site, False))
    python = Call("c2", "map", None, function=FunctionFacts("f", site, True, python_functions=(site,)))
    assert sampler_for([plain], SiteFinder()) is None
    assert sampler_for([plain, python], SiteFinder()) is not None


@pytest.mark.timed
def test_it_stops_by_itself_after_its_limit():
    before = sys.getswitchinterval()
    sampler = PythonSampler(SiteFinder(), "calls_functions.py")
    sampler.start(may_switch_faster=True, limit_s=0.3)
    assert sys.getswitchinterval() < before
    assert not sampler.has_reached_limit
    call_for(0.6, compute)
    assert sampler.has_reached_limit
    assert sys.getswitchinterval() == before
    seen = sampler.samples
    call_for(0.2, compute)
    samples = sampler.stop()
    assert sum(line.samples for line in samples.lines) == sampler.samples == seen > 3
    assert 0.3e9 <= samples.duration_ns < 0.6e9
