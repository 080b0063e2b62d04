"""Catalog of tf.data's iterator types (by base name), calls and ops. Unknown types are not an error.

In: a type as TensorFlow writes it (`ParallelMapV2`).  Out: its base name and traits. Source: the kernels in
`tensorflow/core/kernels/data/**` of TF 2.3 to 2.21, and recorded profiles.
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
"""Types whose elements are produced on threads other than the caller's."""

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
"""Types that need no input. (`Snapshot` has an input only while it writes.)"""

FILE_SOURCES = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "CSV", "ArrayRecord", "Snapshot", "Load"})

MAPS = frozenset({"Map", "ParallelMap", "MapAndBatch"})

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

BOOKKEEPING = frozenset({"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool"})
"""Types that tf.data puts around a pipeline. They transform nothing, so they cannot be made faster."""

PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
"""Ops that run Python code in this process and therefore hold the GIL."""

TRANSFORMATIONS: tuple[str, ...] = (
    "apply",
    "batch",
    "bucket_by_sequence_length",
    "cache",
    "concatenate",
    "enumerate",
    "filter",
    "filter_with_legacy_function",
    "flat_map",
    "group_by_window",
    "ignore_errors",
    "interleave",
    "map",
    "map_with_legacy_function",
    "padded_batch",
    "prefetch",
    "ragged_batch",
    "rebatch",
    "rejection_resample",
    "repeat",
    "scan",
    "shard",
    "shuffle",
    "skip",
    "snapshot",
    "sparse_batch",
    "take",
    "take_while",
    "unbatch",
    "unique",
    "window",
    "with_options",
)
"""Methods of a dataset that return another dataset."""

SOURCE_METHODS = (
    "choose_from_datasets",
    "counter",
    "from_generator",
    "from_sparse_tensor_slices",
    "from_tensor_slices",
    "from_tensors",
    "list_files",
    "load",
    "random",
    "range",
    "sample_from_datasets",
    "zip",
)
"""Static methods that create a dataset from other data or from several datasets."""

READERS = ("TextLineDataset", "TFRecordDataset", "FixedLengthRecordDataset")
EXPERIMENTAL_READERS = ("CsvDataset", "SqlDataset", "RandomDataset")
EXPERIMENTAL_FUNCTIONS = (
    "Counter",
    "choose_from_datasets",
    "from_list",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "pad_to_cardinality",
    "sample_from_datasets",
    "table_from_dataset",
    "index_table_from_dataset",
)
SERVICE_FUNCTIONS = ("from_dataset_id",)

ELEMENTWISE_OPS = frozenset({
    "Abs", "Add", "AddV2", "AsString", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Bucketize", "Cast", "Ceil", "ClipByValue", "Cos",
    "DecodeBase64", "Div", "DivNoNan", "Elu", "EncodeBase64", "Equal", "Erf", "Exp", "Expm1", "Floor", "FloorDiv",
    "FloorMod", "Greater", "GreaterEqual", "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Less", "LessEqual", "Log",
    "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "LookupTableFind", "LookupTableFindV2", "Maximum", "Minimum", "Mod",
    "Mul", "MulNoNan", "Neg", "NotEqual", "OnesLike", "Pow", "RealDiv", "Reciprocal",
    "Relu", "Relu6", "Rint", "Round", "Rsqrt", "SelectV2", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt",
    "Square", "SquaredDifference", "StaticRegexFullMatch", "StaticRegexReplace", "StringJoin", "StringLength",
    "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong",
    "StringToNumber", "StringUpper", "Sub", "Tan", "Tanh", "TruncateDiv", "TruncateMod", "UnicodeTranscode", "Xdivy",
    "Xlogy", "ZerosLike",
})  # fmt: skip
"""Ops that compute the same values for a batch as for each of its elements, one value from one value of each operand."""

ELEMENT_SPLITTING_OPS = frozenset({"DecodeRaw"})
"""Ops that turn each value into a row of values, in a new last dimension, and so do the same for a batch."""

TABLE_SIZE_OPS = frozenset({"LookupTableSize", "LookupTableSizeV2"})
"""Ops that read a table, but nothing of the element: a look-up in a `StaticVocabularyTable` adds the size of its vocabulary."""

BATCH_FORM_OPS = TABLE_SIZE_OPS | frozenset({
    "DecodeCSV", "ExpandDims", "GatherV2", "OneHot", "RegexFullMatch", "RegexReplace", "ResizeArea", "ResizeBicubic",
    "ResizeBilinear", "ResizeNearestNeighbor", "ScaleAndTranslate", "Squeeze", "Substr",
})  # fmt: skip
"""Ops that compute the same values for a batch if they are used in certain ways: see `capture/instrument/batch_forms.py`."""

_VERSION = re.compile(r"V\d+$")
_REPLACING = re.compile(r"_(Mkl|Native|Fused)+")
"""Prefixes of op types that oneDNN and Grappler put in place of another one."""


def base_type(name: str) -> str:
    """Return the base name of a type: `ParallelMapV2` -> `ParallelMap`, `FiniteRepeat` -> `Repeat`."""
    base = _VERSION.sub("", name)
    for prefix in ("Finite", "Forever", "Empty"):
        if base in (prefix + "Repeat", prefix + "Take", prefix + "Skip"):
            return base.removeprefix(prefix)
    return base


def written_op(op: str) -> str:
    """Return the op as the user knows it: `_MklNativeFusedMatMul` -> `MatMul`."""
    return _REPLACING.sub("", op)


def is_async(name: str) -> bool:
    """Return whether iterators of this type produce elements on other threads than the caller's."""
    return base_type(name) in ASYNC


def is_source(name: str) -> bool:
    """Return whether iterators of this type need no input."""
    return base_type(name) in SOURCES


def is_cache(name: str) -> bool:
    """Return whether this type is part of a cache."""
    return base_type(name) in CACHES
