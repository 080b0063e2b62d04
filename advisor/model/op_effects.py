"""Reviewed lists of stateful ops: which of them can be cached, and what the others do.

In: an op type as TensorFlow writes it (`LookupTableFindV2`).  Out: whether a function that contains it returns the same element
in every epoch without side effects, or the reason why not.

An op is *stateful* if TensorFlow's registry marks it as stateful or does not contain it. A stateful op that is on no list may do
anything, so a cache must not replace it. Ops that only call other functions (`CALLING_OPS`) are judged by the ops of those
functions. Ops that draw random numbers and ops that run Python code are judged before these lists (`FunctionFacts.random_ops`,
`python_ops`).

`advisor/replay/program_state.py` has lists of its own: which effects of an op it can undo after a trial in the user's program.

Reviewed against the 1908 ops of TensorFlow 2.21 (`REGISTER_OP(...).SetIsStateful()`) and their kernels.
"""

from __future__ import annotations

from types import MappingProxyType

CALLING_OPS = frozenset(
    {
        "If",
        "StatelessIf",
        "While",
        "StatelessWhile",
        "Case",
        "StatelessCase",
        "PartitionedCall",
        "StatefulPartitionedCall",
    }
)
"""Ops that only call functions of the same graph. (`RemoteCall` calls a function on another device and is not included.)"""

REPEATABLE_OPS = MappingProxyType(
    {
        "Assert": "It passes or ends the run; it computes nothing.",
        "CheckNumerics": "It returns its input or ends the run.",
        "CheckNumericsV2": "It returns its input or ends the run.",
        "GuaranteeConst": "It returns its input.",
        "VariableShape": "It reads the shape of a variable; the variable itself is judged as a resource.",
        "StatelessRandomGetAlg": "It selects the algorithm of stateless random ops, always the same one on a device.",
        "TensorArrayV3": "A tensor array exists only within one call of the function.",
        "TensorArrayReadV3": "A tensor array exists only within one call of the function.",
        "TensorArrayWriteV3": "A tensor array exists only within one call of the function.",
        "TensorArrayGatherV3": "A tensor array exists only within one call of the function.",
        "TensorArrayScatterV3": "A tensor array exists only within one call of the function.",
        "TensorArrayConcatV3": "A tensor array exists only within one call of the function.",
        "TensorArraySplitV3": "A tensor array exists only within one call of the function.",
        "TensorArraySizeV3": "A tensor array exists only within one call of the function.",
        "TensorArrayCloseV3": "A tensor array exists only within one call of the function.",
        "AnonymousHashTable": "An unnamed static table, created and filled within one call of the function.",
        "InitializeTableV2": "It fills a static table; repeating it changes nothing.",
        "DummyMemoryCache": "A placeholder: each iterator creates its own cache.",
        "AnonymousMemoryCache": "The cache of a dataset that the function creates; it belongs to that dataset.",
        "DummyIterationCounter": "A placeholder without state.",
        "DatasetToSingleElement": "It reads a dataset that the function creates; the ops of that dataset are judged.",
        "ReduceDataset": "It reads a dataset that the function creates; the ops of that dataset are judged.",
        "_Arg": "An argument of a function.",
        "_Retval": "A result of a function.",
    }
)
"""Stateful op -> why it is repeatable and free of side effects."""

RESOURCE_READERS = MappingProxyType(
    {
        "LookupTableFind": "It reads a table.",
        "LookupTableFindV2": "It reads a table.",
        "LookupTableSize": "It reads a table.",
        "LookupTableSizeV2": "It reads a table.",
        "LookupTableExport": "It reads a table.",
        "LookupTableExportV2": "It reads a table.",
        "ReadVariableOp": "It reads a variable.",
        "ResourceGather": "It reads rows of a variable.",
        "ResourceGatherNd": "It reads slices of a variable.",
        "VarIsInitializedOp": "It checks whether a variable has a value.",
    }
)
"""Stateful ops that only read a resource. They are repeatable if and only if the resource is constant; every captured resource is
judged separately. A resource created inside the function is created by an op that must be listed too."""

REPEATABLE_DATASET_OPS = frozenset({
    "AssertCardinality", "Batch", "Cache", "Concatenate", "FilterByLastComponent", "Filter", "Finalize", "FixedLengthRecord",
    "FlatMap", "GroupByWindow", "IgnoreErrors", "Interleave", "List", "Map", "MapAndBatch", "MaxIntraOpParallelism", "Model",
    "Options", "PaddedBatch", "ParallelBatch", "ParallelFilter", "ParallelInterleave", "ParallelMap", "ParseExample", "Prefetch",
    "PrivateThreadPool", "Range", "Rebatch", "Repeat", "Scan", "Shard", "Skip", "SlidingWindow", "SparseTensorSlice", "TFRecord",
    "Take", "TakeWhile", "Tensor", "TensorSlice", "TextLine", "CSV", "Unbatch", "Unique", "Window", "Zip",
})  # fmt: skip
"""Dataset ops (without `Dataset` and version) whose elements depend only on their inputs, files and functions."""

DATASET_OPS_JUDGED_AS_CALLS = MappingProxyType(
    {
        "Shuffle": frozenset({"shuffle", "list_files"}),
        "ShuffleAndRepeat": frozenset({"shuffle"}),
        "DirectedInterleave": frozenset({"sample_from_datasets", "choose_from_datasets", "rejection_resample"}),
        "LegacyParallelInterleave": frozenset({"interleave"}),
        "Generator": frozenset({"from_generator"}),
        "Sql": frozenset({"SqlDataset"}),
        "Snapshot": frozenset({"snapshot"}),
        "Load": frozenset({"load"}),
    }
)
"""Dataset op -> methods that create it. The op is judged by the recorded call of such a method inside the function; without such
a call it may do anything."""
SEED_OPS = frozenset({"AnonymousSeedGenerator", "DummySeedGenerator"})
"""The seeds of a `shuffle` inside the function; they are judged together with the shuffle."""

FILE_READING_OPS = frozenset({"ReadFile", "MatchingFiles", "InitializeTableFromTextFileV2", "RestoreV2"})
"""Ops that read files by name. They are repeatable while the files do not change, which the recording observes."""

_EFFECTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("WriteFile", "Save", "DistributedSave", "MergeV2Checkpoints", "DatasetToTFRecord", "DumpTensor"), "writes a file"),
    (("Write", "FlushSummary", "CloseSummary", "CreateSummary", "SummaryWriter", "ImportEvent"), "writes a summary"),
    (("Print",), "prints"),
    (
        ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "ResourceCountUpTo", "ResourceStrided"),
        "assigns a variable",
    ),
    (("LookupTableInsert", "LookupTableRemove", "LookupTableImport"), "changes a lookup table"),
    (("Queue", "Barrier", "Stack", "Stage", "Unstage", "MapStage", "MapUnstage", "OrderedMap"), "uses a queue"),
    (("Accumulator", "ResourceAccumulator", "ConditionalAccumulator"), "uses an accumulator"),
    (("IteratorGetNext", "MultiDeviceIteratorGetNext", "OptionalFrom"), "takes elements from an iterator of the script"),
    (("Send", "Recv", "_Send", "_Recv", "Collective", "Rpc"), "communicates with another process or device"),
)  # fmt: skip
"""Prefixes of op types -> their side effect, as a verb in the third person. A cache would suppress the effect."""
_CLOCKS = frozenset({"Timestamp"})
STATE_CHANGES = frozenset({
    "assigns a variable", "changes a lookup table", "uses a queue", "uses an accumulator",
    "takes elements from an iterator of the script",
})  # fmt: skip
"""Effects that are visible to other elements. With parallel calls, the data depends on their order."""


def is_dataset_op(op: str) -> bool:
    """Return whether the op creates a dataset."""
    return dataset_type(op) is not None


def dataset_type(op: str) -> str | None:
    """Return the type of a dataset op (`ShuffleDatasetV3` -> `Shuffle`); None for other ops."""
    base = op.rstrip("0123456789").removesuffix("V") if op[-1:].isdigit() else op
    return base.removesuffix("Dataset").removeprefix("Experimental") if base.endswith("Dataset") else None


def effect_of(op: str) -> str | None:
    """Return the side effect of a stateful op (`writes a file`); None if none is known."""
    return next((effect for beginnings, effect in _EFFECTS if op.startswith(beginnings)), None)


def reason_against(op: str) -> str | None:
    """Return why a function with this stateful op must not be replaced by a cache; None if the op is on a reviewed list."""
    if op in REPEATABLE_OPS or op in RESOURCE_READERS or op in CALLING_OPS or op in FILE_READING_OPS:
        return None
    if op in SEED_OPS or is_dataset_op(op):
        return None  # judged by `reason_against_dataset_op`
    if op in _CLOCKS:
        return f"reads the clock ({op}), which returns a different value in every call"
    effect = effect_of(op)
    if effect is not None:
        return f"{effect} in every call ({op}), which a cache would suppress"
    return f"contains the stateful op {op}, which is not known to return the same value every time"


def reason_against_dataset_op(op: str, methods: frozenset[str]) -> str | None:
    """Return why a function with this dataset op must not be replaced by a cache; None if it may be.

    Args:
        op: The op type.
        methods: Methods of the recorded calls that were made inside the function.
    """
    kind = dataset_type(op)
    if kind is None or kind in REPEATABLE_DATASET_OPS or DATASET_OPS_JUDGED_AS_CALLS.get(kind, frozenset()) & methods:
        return None
    return f"creates a dataset ({op}) that is not known to produce the same elements in every epoch"


def reason_against_seed(op: str) -> str:
    """Return why the seeds of a shuffle inside a function forbid a cache, if no recorded call made that shuffle."""
    return f"draws the seeds of a shuffle ({op})"
