"""The graph phase: the executed input pipelines, their costs and the verdict.

In: a `Trace` and, where the advisor captured the run, its `Recording`.  Out: `Analysis`.

The names are loaded on first use, so that importing one module of this package does not import all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.graph.analysis import HostPart, analyse, analyse_host, combine

__all__ = ["HostPart", "analyse", "analyse_host", "combine"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("advisor.graph.analysis"), name)
