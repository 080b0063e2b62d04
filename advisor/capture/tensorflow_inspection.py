"""Describes the installed TensorFlow: its version, whether its profiler records tf.data, and whether CUPTI is found.

In: TensorFlow.  Out: `TensorFlowFacts`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import tempfile
from pathlib import Path
from typing import Any

from advisor.capture.window.profiler import Profiler, profile_bytes
from advisor.host.machine import describe_host
from advisor.model.tensorflow_facts import TensorFlowFacts

_ITERATOR = b"Iterator::"
_ELEMENTS = 50
"""Number of elements that are profiled. Chosen, not measured."""


def tensorflow_facts(tf: Any) -> TensorFlowFacts:  # noqa: ANN401
    """Describe the imported TensorFlow.

    Args:
        tf: The module.
    """
    problem = _profiler_problem(tf)  # first, because it makes TensorFlow load CUPTI
    return TensorFlowFacts(
        host=describe_host(),
        path=str(Path(tf.__file__).parent),
        is_built_with_cuda=bool(tf.test.is_built_with_cuda()),
        profiler_problem=problem,
        cupti=_cupti(),
    )


def _profiler_problem(tf: Any) -> str:  # noqa: ANN401
    """Profile a small pipeline and look for its iterators."""
    try:
        with tempfile.TemporaryDirectory() as name:
            folder, profiler = Path(name), Profiler(tf)
            profiler.start(folder)
            for _ in tf.data.Dataset.range(_ELEMENTS):
                pass
            profiler.stop()
            if not profile_bytes(folder):
                return "it wrote no profile"
            has_iterators = any(_ITERATOR in path.read_bytes() for path in folder.glob("plugins/profile/*/*.xplane.pb"))
            return "" if has_iterators else "its profile shows no tf.data iterators"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _cupti() -> str:
    """Return the CUPTI library that this process has loaded, or else the one that the loader finds."""
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        maps = ""
    loaded = next((line.split()[-1] for line in maps.splitlines() if "libcupti" in line), "")
    return loaded or ctypes.util.find_library("cupti") or ""
