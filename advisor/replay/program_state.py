"""The state of a program that trials of its dataset could change: noted before the trials, put back after them.

In: a `tf.data.Dataset`.  Out: a block after which variables, `tf.random.Generator`s and mutable tables that the dataset's
functions write hold what they held before, and random generators stand where they stood; `Trace.notes` names what cannot be put
back.

Every stateful op of the functions must be on a list of ops that are known to leave nothing behind, or whose effect is put back. A
dataset with any other op (it writes files, fills a queue) is refused before anything runs.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from advisor.capture.instrument.functions import RANDOM_OPS
from advisor.model.catalog import PYTHON_OPS
from advisor.model.errors import AdvisorError
from advisor.replay.random_state import random_state_kept

_READS = frozenset(
    {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp", "LookupTableFind",
     "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2", "LookupTableExport", "LookupTableExportV2"}
)  # fmt: skip
"""Ops that read a variable or a table."""
_TABLE_WRITES = frozenset({"LookupTableInsertV2", "LookupTableRemoveV2", "LookupTableImportV2"})
_VARIABLE_WRITES = ("Assign", "ResourceScatter", "ResourceStridedSlice", "Rng", "Stateful")
"""Beginnings of the names of ops that write a variable. `Stateful...`: random numbers from a `tf.random.Generator`."""
_LEAVE_NOTHING = frozenset(
    {"Assert", "StatefulPartitionedCall", "If", "While", "Case", "RemoteCall", "XlaLaunch", "_Arg", "_Retval", "Timestamp",
     "OptionalGetValue",
     "OptionalFromValue", "OptionalNone", "DummyMemoryCache", "DummySeedGenerator", "ReduceDataset"}
)  # fmt: skip
_LEAVE_NOTHING_PREFIXES = ("Anonymous", "TensorArray", "Delete", "MakeIterator", "Ensure", "Stack")
"""`Anonymous...`: tables, caches and iterators that the function makes for itself."""
_PRINTS = frozenset({"Print", "PrintV2"})
_KEEPS_STATE = {
    "_ShuffleDataset": "the order of a shuffle",
    "_RandomDataset": "the numbers of Dataset.random",
    "CacheDataset": "the contents of a cache",
    "_SnapshotDataset": "a snapshot",
}
"""Datasets whose own state advances when they are read: a problem for those that are not made again but used as they are."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the trials leave behind."""

    notes: tuple[str, ...] = ()
    """One sentence for each thing that could not be put back."""


@contextlib.contextmanager
def program_state_kept(dataset: Any) -> Iterator[Trace]:  # noqa: ANN401
    """Trials of `dataset` run in the block; its end, also by an exception, puts the program's state back.

    Raises AdvisorError, before anything runs, where a function has an effect that cannot be put back.
    """
    functions = list(_functions_of(dataset))
    ops = {op for function in functions for op in function.ops}
    _refuse_effects(functions)
    user_functions = [function.python for function in functions]
    restores = [restore for function in functions for restore in _resources_of(function)]
    with random_state_kept(user_functions), _unwatched(), contextlib.ExitStack() as at_the_end:
        for restore in restores:
            at_the_end.callback(restore)
        at_the_end.callback(gc.collect)  # first of all: it ends the iterators that still run
        yield Trace(tuple(_notes(ops)))


def state_above(dataset: Any) -> list[str]:  # noqa: ANN401
    """What changes when this very object is read: states of the datasets that feed it, and its own."""
    return list(
        dict.fromkeys(
            _KEEPS_STATE[kind] for node in _upstream(dataset) if (kind := type(node).__name__) in _KEEPS_STATE
        )
    )


# -- the functions of a dataset


@dataclass(frozen=True, slots=True)
class _Function:
    """One function of a transformation, as it was traced."""

    name: str
    python: object
    graph: Any
    ops: frozenset[str]
    """Op types, those of nested functions included."""
    key_types: frozenset[tuple[int, int]]
    """(key, value) types of the tables that it uses, as TensorFlow numbers types."""
    resources: tuple[Any, ...]
    """Captured resource handles."""


def _functions_of(dataset: Any) -> Iterator[_Function]:  # noqa: ANN401
    for node in _upstream(dataset):
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


def _upstream(dataset: Any) -> list[Any]:  # noqa: ANN401
    """The dataset and all that feed it, each once."""
    found: dict[int, Any] = {}
    waiting = [dataset]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += node._inputs()
    return list(found.values())


def _refuse_effects(functions: list[_Function]) -> None:
    for function in functions:
        effects = sorted(op for op in function.ops if not _is_known(op))
        if effects:
            raise AdvisorError(
                f"{effects[0]} in the function {function.name} may change something outside of the dataset that could not be put "
                "back, so nothing was tried; give the part of the dataset before it."
            )


def _is_known(op: str) -> bool:
    """Whether it is known what the op leaves behind: nothing, or what is put back or reported."""
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
            "Python code of the pipeline ran during the trials; what it changes outside of the pipeline could not be put back."
        )
    if ops & _PRINTS:
        yield "The pipeline prints, so its messages also appeared during the trials."


# -- variables and tables


def _resources_of(function: _Function) -> Iterator[Callable[[], None]]:
    """Put back each variable and table that the function could write."""
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
    """Contents of a table; of the types that the function uses one is the table's own."""
    import tensorflow as tf

    for key_type, value_type in sorted(function.key_types):
        try:
            keys, values = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=key_type, Tvalues=value_type)
        except tf.errors.OpError:
            continue
        return lambda: tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=keys, values=values)
    raise AdvisorError(
        f"The function {function.name} writes a table whose contents could not be read, so nothing was tried; give the part of "
        "the dataset before it."
    )


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """If `advisor.install()` is in place: the trials of this thread are none of the program's own calls and steps."""
    in_process = sys.modules.get("advisor.capture.in_process")
    if in_process is None:
        yield
        return
    hooks = in_process.hooks()
    with hooks.recorder.paused(), hooks.consumption.unwatched():
        yield
