"""Saves the state of the program that trials of a dataset could change, and restores it afterwards.

In: a `tf.data.Dataset`.  Out: a context manager that restores the variables, `tf.random.Generator`s and mutable tables that the
dataset's functions write, and the random state. `Trace.notes` describes what cannot be restored.

All stateful ops of the functions must be known either to have no side effects or to have effects that are restored. A dataset
with any other op (e.g. one that writes files or fills a queue) is refused before anything runs.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from advisor.capture.instrument.traced_functions import RANDOM_OPS
from advisor.model.catalog import PYTHON_OPS
from advisor.model.errors import AdvisorError
from advisor.replay.dataset_objects import upstream_of
from advisor.replay.random_state import random_state_kept

_READS = frozenset(
    {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp", "LookupTableFind",
     "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2", "LookupTableExport", "LookupTableExportV2"}
)  # fmt: skip
"""Ops that read a variable or a table."""
_TABLE_WRITES = frozenset({"LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableImportV2"})
_VARIABLE_WRITES = ("Assign", "ResourceScatter", "ResourceStridedSlice", "Rng", "Stateful")
"""Prefixes of ops that write a variable. `Stateful...` ops draw random numbers from a `tf.random.Generator`."""
_LEAVE_NOTHING = frozenset(
    {"Assert", "StatefulPartitionedCall", "If", "While", "Case", "RemoteCall", "XlaLaunch", "_Arg", "_Retval", "Timestamp",
     "OptionalGetValue",
     "OptionalFromValue", "OptionalNone", "DummyMemoryCache", "DummySeedGenerator", "ReduceDataset"}
)  # fmt: skip
_LEAVE_NOTHING_PREFIXES = ("Anonymous", "TensorArray", "Delete", "MakeIterator", "Ensure", "Stack")
"""`Anonymous...` ops make tables, caches and iterators that only the function itself uses."""
_PRINTS = frozenset({"Print", "PrintV2"})
_KEEPS_STATE = {
    "_ShuffleDataset": "the order of a shuffle",
    "_RandomDataset": "the numbers of Dataset.random",
    "CacheDataset": "the contents of a cache",
    "_SnapshotDataset": "a snapshot",
}
"""Classes of datasets with state that changes when they are read, which matters if they are used without being rebuilt."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The side effects of trials."""

    notes: tuple[str, ...] = ()
    """One sentence for each side effect that cannot be undone."""


@contextlib.contextmanager
def program_state_kept(dataset: Any) -> Iterator[Trace]:  # noqa: ANN401
    """Restore the program's state at the end of the block, in which trials of the dataset run, even after an exception.

    Args:
        dataset: The dataset.

    Raises:
        AdvisorError: A function of the dataset has a side effect that cannot be undone. The block has not been entered.
    """
    functions = list(_functions_of(dataset))
    ops = {op for function in functions for op in function.ops}
    _refuse_effects(functions)
    user_functions = [function.python for function in functions]
    restores = [restore for function in functions for restore in _resources_of(function)]
    with random_state_kept(user_functions), _unwatched(), contextlib.ExitStack() as at_the_end:
        for restore in restores:
            at_the_end.callback(restore)
        at_the_end.callback(gc.collect)  # runs first and destroys iterators that are still running
        yield Trace(tuple(_notes(ops)))


def state_above(dataset: Any) -> list[str]:  # noqa: ANN401
    """Return descriptions of the state that changes when this dataset object is read, including upstream datasets."""
    return list(
        dict.fromkeys(
            _KEEPS_STATE[kind] for node in upstream_of(dataset) if (kind := type(node).__name__) in _KEEPS_STATE
        )
    )


# -- the functions of a dataset


@dataclass(frozen=True, slots=True)
class _Function:
    """A traced function of a transformation."""

    name: str
    python: object
    graph: Any
    ops: frozenset[str]
    """Op types, including those of nested functions."""
    key_types: frozenset[tuple[int, int]]
    """(key, value) types of the tables that it uses, as numbers of TensorFlow's `DataType` enum."""
    resources: tuple[Any, ...]
    """Captured resource handles."""


def _functions_of(dataset: Any) -> Iterator[_Function]:  # noqa: ANN401
    for node in upstream_of(dataset):
        for wrapper in node._functions():
            graph = wrapper.function.graph.as_graph_def()
            nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
            yield _Function(
                name=str(getattr(wrapper._func, "__qualname__", type(wrapper._func).__name__)).rpartition(".")[2],
                python=wrapper._func,
                graph=graph,
                ops=frozenset(node.op for node in nodes),
                key_types=frozenset(
                    (node.attr["Tin"].type, node.attr["Tout"].type)
                    for node in nodes
                    if node.op.startswith("LookupTable")
                ),
                resources=tuple(c for c in wrapper.function.captured_inputs if c.dtype.name == "resource"),
            )


def _refuse_effects(functions: list[_Function]) -> None:
    for function in functions:
        effects = sorted(op for op in function.ops if not _is_known(op))
        if effects:
            raise AdvisorError(
                f"{effects[0]} in the function {function.name} may have a side effect that cannot be undone, so no trial was "
                "run; pass the part of the dataset before it."
            )


def _is_known(op: str) -> bool:
    """Return whether the op has no side effects, or known ones that are undone or reported."""
    if (
        op in _READS
        or op in _TABLE_WRITES
        or op in _LEAVE_NOTHING
        or op in _PRINTS
        or op in PYTHON_OPS
        or op in RANDOM_OPS
    ):
        return True
    if op.startswith((*_VARIABLE_WRITES, *_LEAVE_NOTHING_PREFIXES)) or op.rstrip("V0123456789").endswith("Dataset"):
        return True
    if op.startswith("IteratorGetNext"):
        return False
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    return definition is None or not definition.is_stateful  # None: the name of a nested function


def _notes(ops: set[str]) -> Iterator[str]:
    if ops & set(PYTHON_OPS):
        yield (
            "Python code of the pipeline ran during the trials; changes that it made outside of the pipeline could not be undone."
        )
    if ops & _PRINTS:
        yield "The pipeline prints messages, which also appeared during the trials."


# -- variables and tables


def _resources_of(function: _Function) -> Iterator[Callable[[], None]]:
    """Yield functions that restore the variables and tables that the function could write."""
    writes_tables = bool(function.ops & _TABLE_WRITES)
    writes_variables = any(op.startswith(_VARIABLE_WRITES) for op in function.ops - _LEAVE_NOTHING)
    for handle in function.resources:
        data = getattr(handle, "_handle_data", None)
        if data is not None and data.is_set and len(data.shape_and_type) == 1:
            restore = _variable(handle, data.shape_and_type[0].dtype) if writes_variables else None
        else:
            restore = _table(handle, function) if writes_tables else None
        if restore is not None:
            yield restore


def _variable(handle: Any, dtype: int) -> Callable[[], None] | None:  # noqa: ANN401
    import tensorflow as tf

    if not bool(tf.raw_ops.VarIsInitializedOp(resource=handle)):
        return None
    value = tf.identity(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
    return lambda: tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _table(handle: Any, function: _Function) -> Callable[[], None] | None:  # noqa: ANN401
    """Return a function that restores a table. Its types are found by trying those of all tables that the function uses."""
    import tensorflow as tf

    for key_type, value_type in sorted(function.key_types):
        try:
            keys, values = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=key_type, Tvalues=value_type)
        except tf.errors.OpError:
            continue
        return lambda: tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=keys, values=values)
    raise AdvisorError(
        f"The function {function.name} writes a table whose contents cannot be read, so no trial was run; pass the part of the "
        "dataset before it."
    )


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """Do not record the calls and steps of the trials, if hooks were installed by `advisor.install()`."""
    in_process = sys.modules.get("advisor.capture.in_process")
    if in_process is None:
        yield
        return
    hooks = in_process.hooks()
    with hooks.recorder.paused(), hooks.consumption.unwatched():
        yield
