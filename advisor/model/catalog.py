"""What is known of tf.data's iterator types, by the base of their names; unknown types are ordinary, never an error.

In: a type as TensorFlow writes it (`ParallelMapV2`).  Out: its base name and traits. Source: the kernels in
`tensorflow/core/kernels/data/**` of TF 2.3 to 2.21 and the profiles seen.
"""

from __future__ import annotations

import re

ASYNC = frozenset(
    {
        "Prefetch",
        "ParallelMap",
        "MapAndBatch",
        "ParallelInterleave",
        "LegacyParallelInterleave",
        "ParallelBatch",
        "ParallelFilter",
        "DataService",
        "Generator+Prefetch",
        "MultiDeviceIterator",
    }
)
"""Types whose elements are produced on other threads than their caller's."""

SOURCES = frozenset(
    {
        "Range",
        "TensorSlice",
        "FromTensor",
        "Tensor",
        "SparseTensorSlice",
        "Generator",
        "TFRecord",
        "TextLine",
        "FixedLengthRecord",
        "CSV",
        "SSTable",
        "Random",
        "DataService",
        "ArrayRecord",
        "Sql",
        "List",
        "Load",
        "LMDB",
        "GlobalShuffle",
        "Snapshot",
    }
)
"""Types that can stand at the bottom. (`Snapshot` has an input only while it writes.)"""

FILE_SOURCES = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "CSV", "ArrayRecord", "Snapshot", "Load"})

MAPS = frozenset({"Map", "ParallelMap", "MapAndBatch"})

INTERLEAVES = frozenset({"Interleave", "ParallelInterleave", "LegacyParallelInterleave", "FlatMap"})

BATCHES = frozenset({"Batch", "ParallelBatch", "MapAndBatch", "PaddedBatch"})

SHUFFLES = frozenset({"Shuffle", "ShuffleAndRepeat"})

CACHES = frozenset(
    {
        "MemoryCache",
        "MemoryCacheImpl",
        "FileCache",
        "FileCacheImpl",
        "MemoryReader",
        "MemoryWriter",
        "FileReader",
        "FileWriter",
        "Cache",
    }
)

PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
"""Ops that run Python code in this process and so hold the interpreter's lock."""

OPTION_NODES = frozenset(
    {
        "Options",
        "MaxIntraOpParallelism",
        "PrivateThreadPool",
        "Model",
        "Root",
        "AssertCardinality",
        "FiniteTake",
        "NonSerializable",
        "Assert",
        "SetStatsAggregator",
    }
)
"""Nodes that pass elements on and do no work of their own; roots among them."""

_VERSION = re.compile(r"V\d+$")


def base_type(name: str) -> str:
    """`ParallelMapV2` -> `ParallelMap`, `FiniteRepeat` -> `Repeat`; other names lose only a version suffix."""
    base = _VERSION.sub("", name)
    for prefix in ("Finite", "Forever", "Empty"):
        if base in (prefix + "Repeat", prefix + "Take", prefix + "Skip"):
            return base.removeprefix(prefix)
    return base


def is_async(name: str) -> bool:
    return base_type(name) in ASYNC


def is_source(name: str) -> bool:
    return base_type(name) in SOURCES


def is_cache(name: str) -> bool:
    return base_type(name) in CACHES
