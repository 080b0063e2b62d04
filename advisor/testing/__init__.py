"""Simulated pipelines for the examples in rule files: the names that a rule file imports."""

from advisor.model.calls import AUTOTUNE
from advisor.testing.expectations import Example, fires, silent
from advisor.testing.function_texts import definition, line
from advisor.testing.pipelines import cpu, gpu, op, pipeline, waiting_hosts
from advisor.testing.simulated_run import SimulatedPipeline
from advisor.testing.stages import (
    autoshard,
    batch,
    cache,
    filter_,
    flat_map,
    interleave,
    map_,
    options,
    padded_batch,
    prefetch,
    repeat,
    shard,
    shuffle,
    source,
    take,
    unbatch,
    unknown_size,
    window,
)

__all__ = [
    "AUTOTUNE",
    "Example",
    "SimulatedPipeline",
    "autoshard",
    "batch",
    "cache",
    "cpu",
    "definition",
    "filter_",
    "fires",
    "flat_map",
    "gpu",
    "interleave",
    "line",
    "map_",
    "op",
    "options",
    "padded_batch",
    "pipeline",
    "prefetch",
    "repeat",
    "shard",
    "shuffle",
    "silent",
    "source",
    "take",
    "unbatch",
    "unknown_size",
    "waiting_hosts",
    "window",
]
