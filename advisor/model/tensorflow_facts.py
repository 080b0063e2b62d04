"""Facts about the installed TensorFlow, for `advisor doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.recording import Host


@dataclass(frozen=True, slots=True)
class TensorFlowFacts:
    """What a bug report needs to know about TensorFlow."""

    host: Host
    """The machine, with TensorFlow's version and accelerators."""
    path: str
    is_built_with_cuda: bool
    profiler_problem: str
    """Why its profiler does not work, as the end of a sentence; empty if it does."""
    cupti: str
    """Path or name of the CUPTI library; empty if none was found."""
