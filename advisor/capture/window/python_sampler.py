"""Samples which lines of Python functions the threads of tf.data execute, without tracing.

In: the threads of the process while it runs.  Out: `PythonSamples`.

A thread wakes up at random instants and looks at the stacks of the others. A stack counts if it passes through TensorFlow's
`script_ops.py`, which calls all Python functions of pipelines; the sample belongs to the innermost line in a file of the user.

The sampler can look only while it holds the GIL. It gets the GIL at once if the sampled thread is in compiled code that released
it, but up to `sys.getswitchinterval()` (5 ms) late if a thread computes in Python. By then that thread may have reached a line
that releases the GIL, which would be blamed for the lines before. Therefore the interval is shortened while the sampler runs.
"""

from __future__ import annotations

import ast
import builtins
import dis
import itertools
import linecache
import math
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType, FrameType, ModuleType

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.op_lines import code_line
from advisor.host.calibration.window import (
    SAMPLE_CPU_SHARE,
    SAMPLE_MAX_PAUSE_S,
    SAMPLE_PAUSE_S,
    SAMPLE_SWITCH_S,
)
from advisor.model.calls import Call, Site
from advisor.model.recording import PythonSamples, SampledLine

MAX_SAMPLED_LINES = 500
_MAX_FRAMES = 200
_DEFAULT_SWITCH_S = 0.005
"""CPython's default; a program that chose another one keeps it."""
_WORKING = ("CALL", "PRECALL", "BINARY_", "COMPARE_OP", "STORE_SUBSCR", "UNARY_", "CONTAINS_OP")
"""Prefixes of instructions that may run compiled code for long. A thread that is interrupted while it executes Python is at
another instruction: a jump or the start of a function."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """What one instruction of a code object does."""

    line: int
    is_working: bool
    """Whether it may be inside compiled code."""
    callee: str
    """The called expression as written; empty if it is no call."""


_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Code objects that belong to the function around them; up to Python 3.11 they have frames of their own."""
_Key = tuple[CodeType, CodeType, int, int, bool, str, str]
"""Function called by TensorFlow, function of the line, line, line that led there, is native, library, callee."""


class PythonSampler:
    """A thread that samples until it is stopped.

    Args:
        finder: Tells the user's files from those of libraries.
        entry: End of the name of the file that calls the sampled functions.
    """

    def __init__(self, finder: SiteFinder, entry: str = "script_ops.py") -> None:
        self._finder, self._entry = finder, entry
        self._counts: Counter[_Key] = Counter()
        self._spots: dict[tuple[CodeType, int], _Spot] = {}
        self._ticks = self._samples = 0
        self.cpu_ns = 0
        """CPU time that the looks have taken."""
        self.has_reached_limit = False
        """Whether it has stopped by itself."""
        self._limit_s = math.inf
        self._start_ns = self._end_ns = 0
        self._stop = threading.Event()
        self._switch_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="advisor-python-sampler", daemon=True)

    @property
    def samples(self) -> int:
        """Number of stacks inside Python functions that were seen so far."""
        return self._samples

    def start(self, may_switch_faster: bool, limit_s: float = math.inf) -> None:
        """Start sampling.

        Args:
            may_switch_faster: Shorten the switch interval, unless the program set one itself.
            limit_s: The sampler stops by itself after so many seconds.
        """
        self._limit_s = limit_s
        if may_switch_faster and sys.getswitchinterval() == _DEFAULT_SWITCH_S:
            sys.setswitchinterval(SAMPLE_SWITCH_S.value)
            self._switch_s = sys.getswitchinterval()
        self._start_ns = time.monotonic_ns()
        self._thread.start()

    def stop(self) -> PythonSamples:
        """Stop sampling and return what was seen."""
        self._stop.set()
        self._end()
        self._thread.join(1.0)
        return PythonSamples(self._end_ns - self._start_ns, self._ticks, self._lines())

    def _end(self) -> None:
        """Note the end and restore the switch interval. The sampling thread and the one that stops it may do so at once."""
        self._end_ns = self._end_ns or time.monotonic_ns()
        if self._switch_s is not None and sys.getswitchinterval() == self._switch_s:
            sys.setswitchinterval(_DEFAULT_SWITCH_S)

    def _run(self) -> None:
        pause_s = SAMPLE_PAUSE_S.value
        while not self._stop.wait(pause_s * random.uniform(0.5, 1.5)):
            before_ns = time.thread_time_ns()
            self._look()
            cost_ns = time.thread_time_ns() - before_ns
            self.cpu_ns += cost_ns
            cost_s = cost_ns / 1e9
            pause_s = min(SAMPLE_MAX_PAUSE_S.value, max(SAMPLE_PAUSE_S.value, cost_s / SAMPLE_CPU_SHARE.value))
            if time.monotonic_ns() - self._start_ns >= self._limit_s * 1e9:
                self.has_reached_limit = True
                self._end()
                return

    def _look(self) -> None:
        self._ticks += 1
        own = threading.get_ident()
        for thread_id, frame in sys._current_frames().items():
            if thread_id != own:
                self._note(frame)

    def _note(self, top: FrameType) -> None:
        """Count the stack of one thread, if it is inside a Python function of a pipeline."""
        stack: list[FrameType] = []
        frame: FrameType | None = top
        while frame is not None and len(stack) < _MAX_FRAMES:
            if frame.f_code.co_filename.endswith(self._entry):
                break
            stack.append(frame)
            frame = frame.f_back
        else:
            return
        mine = [frame for frame in stack if self._finder.is_user_file(frame.f_code.co_filename)]
        if not mine:  # TensorFlow converts arguments and results
            return
        inner, outer = mine[0], mine[-1]
        named = next((frame for frame in mine if frame.f_code.co_name not in _COMPREHENSIONS), inner)
        spot = self._spot(inner.f_code, inner.f_lasti)
        library = self._library(top, inner, spot)
        is_native = library != "" and self._spot(top.f_code, top.f_lasti).is_working
        via = 0 if named is outer else outer.f_lineno or 0
        callee = spot.callee if spot.is_working else ""
        self._counts[outer.f_code, named.f_code, spot.line, via, is_native, library, callee] += 1
        self._samples += 1

    def _library(self, top: FrameType, inner: FrameType, spot: _Spot) -> str:
        """Return the package whose code runs; empty: the user's own, `builtins`, or none that is known."""
        if top is not inner:
            file = top.f_code.co_filename
            return self._finder.package_of(file) or PurePath(file).stem
        if not spot.is_working:
            return ""
        return _package(spot.callee, inner.f_globals)

    def _spot(self, code: CodeType, lasti: int) -> _Spot:
        spot = self._spots.get((code, lasti))
        if spot is None:
            spot = self._spots[code, lasti] = _describe(code, lasti)
        return spot

    def _lines(self) -> tuple[SampledLine, ...]:
        """Return the lines with their samples, most frequent first."""
        groups: dict[tuple[CodeType, CodeType, int, int], Counter[tuple[bool, str, str]]] = {}
        for (outer, inner, line, via, *what), count in self._counts.copy().items():
            groups.setdefault((outer, inner, line, via), Counter())[tuple(what)] += count  # type: ignore[index]
        sampled = []
        for (outer, inner, line, via), kinds in groups.items():
            (_, library, callee), _ = max(kinds.items(), key=lambda item: (item[1], item[0][0]))
            origin = self._finder.origin(inner.co_filename, line)
            caller = self._finder.origin(outer.co_filename, via)
            if origin is None:
                continue
            sampled.append(
                SampledLine(
                    function=_site(outer),
                    at=code_line(*origin, inner.co_name, 0 if caller is None else caller[1]),
                    samples=kinds.total(),
                    native_samples=sum(count for (is_native, *_), count in kinds.items() if is_native),
                    library="" if library == UNKNOWN else library,
                    callee=callee,
                )
            )
        sampled.sort(key=lambda line: (-line.samples, line.at.file, line.at.line))
        return tuple(sampled[:MAX_SAMPLED_LINES])


def sampler_for(calls: Iterable[Call], finder: SiteFinder) -> PythonSampler | None:
    """Return a sampler if one of the calls runs Python functions; otherwise None, so that other programs pay nothing."""
    return PythonSampler(finder) if calls_python(calls) else None


def calls_python(calls: Iterable[Call]) -> bool:
    """Return whether one of the calls runs Python functions."""
    return any(call.function is not None and call.function.python_functions for call in calls)


UNKNOWN = "?"
"""Compiled code of an unknown package: a method of an object, whose type is not looked up in the running frame."""


_OF_BUILTINS = frozenset(
    name for kind in (str, bytes, list, dict, set) for name in vars(kind) if not name.startswith("_")
) - {"copy", "sort", "fill", "clip", "round", "index", "count"}
"""Methods of Python's own types, without those that arrays and images also have."""


def _site(code: CodeType) -> Site:
    lines = [line for _, _, line in code.co_lines() if line is not None] or [code.co_firstlineno]
    return Site(code.co_filename, code.co_firstlineno, 1, max(lines), 1)


def _describe(code: CodeType, lasti: int) -> _Spot:
    if not 0 <= lasti < len(code.co_code):
        return _Spot(code.co_firstlineno, False, "")
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), lasti // 2, None))
    while dis.opname[code.co_code[lasti]] == "CACHE" and lasti >= 2:
        lasti -= 2  # a call of a Python function is left at the end of its inline cache
    name = dis.opname[code.co_code[lasti]]
    callee = ""
    if name.startswith(("CALL", "PRECALL")) and None not in (line, end_line, column, end_column):
        callee = _callee(code.co_filename, line or 1, end_line or 1, column or 0, end_column or 0)
    return _Spot(line or code.co_firstlineno, name.startswith(_WORKING), callee)


def _callee(file: str, line: int, end_line: int, column: int, end_column: int) -> str:
    """Return the called expression of a call: `np.sort`; `.resize` if it is a method of something other than a name."""
    lines = [linecache.getline(file, number).encode() for number in range(line, min(end_line, line + 20) + 1)]
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    try:
        call = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(call, ast.Call):
        return ""
    function = call.func
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.insert(0, function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        return ".".join([function.id, *names])[:100]
    return "." + names[-1][:100] if names else ""


def _package(callee: str, scope: dict[str, object]) -> str:
    """Return the package of a called function; empty for built-in functions and those of the user; `UNKNOWN` for methods.

    Only dictionaries of modules are read: looking up an attribute of another object could run code.
    """
    root, *names = callee.split(".")
    if names and names[-1] in _OF_BUILTINS and not isinstance(scope.get(root), ModuleType):
        return ""
    value = scope.get(root, vars(builtins).get(root)) if root else None
    if callee and value is None:
        return UNKNOWN
    if value is None:
        return UNKNOWN  # an operator, which runs long only in compiled code
    for name in names:
        if not isinstance(value, ModuleType):
            return UNKNOWN
        value = vars(value).get(name)
    module = value.__name__ if isinstance(value, ModuleType) else getattr(type(value), "__module__", "")
    if type(value).__name__ in ("builtin_function_or_method", "type", "function", "ufunc", "_ArrayFunctionDispatcher"):
        module = getattr(value, "__module__", None) or module
    package = str(module).partition(".")[0]
    return "" if package in ("builtins", "__main__") else package


__all__ = ["MAX_SAMPLED_LINES", "PythonSampler", "calls_python", "sampler_for"]
