"""Joins executed nodes to recorded calls and lists the optimizations that tf.data applied by itself.

In: nodes with their dataset names, and the recording's calls.  Out: for each node the calls it represents (none if TensorFlow
injected it, several if they were fused), and sentences for the "already done" list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from advisor.graph.nodes import Forest, Node
from advisor.model.calls import Call
from advisor.model.catalog import base_type
from advisor.model.pipeline import Iterator
from advisor.model.units import format_many

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_INJECTED = re.compile(r"^inject/|^device_prefetch$")


def index_calls(calls: Sequence[Call]) -> dict[str, Call]:
    """Index calls by dataset name: by id, and by the user's own `name=` where it is unique."""
    index = {call.id: call for call in calls}
    own = [call for call in calls if call.user_name]
    names = [call.user_name for call in own]
    index.update({call.user_name: call for call in own if call.user_name and names.count(call.user_name) == 1})
    return index


def is_injected(forest: Forest, node: Node, is_recorded: bool = True) -> bool:
    """Return whether TensorFlow injected the node. The root represents no dataset and counts as injected.

    Args:
        forest: The executed graph.
        node: One of its nodes.
        is_recorded: Whether the run was recorded. In a recorded run the user's calls carry names that the recorder assigned;
            otherwise `PrefetchDataset:4` is TensorFlow's default name for a prefetch in the user's code.
    """
    if not is_recorded and node.base == "Prefetch":
        return bool(_INJECTED.match(node.dataset_name)) or _is_of_strategy(forest, node)
    if not is_recorded and node.base == "Generator" and _is_from_generator(forest, node):
        return bool(_INJECTED.match(node.dataset_name))
    return bool(_INJECTED.match(node.dataset_name)) or (
        forest.consumer(node) is not None
        and node.base in ("Prefetch", "Rebatch", "Options", "Generator", "MaxIntraOpParallelism", "PrivateThreadPool")
        and re.fullmatch(r"\w+Dataset\w*:\d+", node.dataset_name) is not None
    )


def _is_of_strategy(forest: Forest, prefetch: Node) -> bool:
    """Whether a distribution strategy added the buffer: on a device, or after the per-replica batches."""
    below = forest.inputs(prefetch)[:1]
    while below and below[0].base == "Shard":
        below = forest.inputs(below[0])[:1]
    return bool(below) and below[0].base in ("Rebatch", "Generator")  # `from_generator` has a FlatMap in between


def _is_from_generator(forest: Forest, generator: Node) -> bool:
    """Whether it is the user's `from_generator`, which has a FlatMap above it. Those of a strategy have a Prefetch."""
    consumer = forest.consumer(generator)
    return consumer is not None and consumer.base == "FlatMap"


def calls_of(forest: Forest, node: Node, index: Mapping[str, Call]) -> tuple[Call, ...]:
    """Return the recorded calls of one node, source first.

    Roots carry the name of their input and represent no call.

    Args:
        forest: The executed graph.
        node: One of its nodes.
        index: Dataset name -> call, from `index_calls`.

    Returns:
        The calls; several if the node fuses them, none if TensorFlow injected it.
    """
    if node.base in ("Root", "Model") or is_injected(forest, node):
        return ()
    calls = {index[name].id: index[name] for name in _NAME.findall(node.dataset_name) if name in index}
    return tuple(calls.values())


def already_done(iterators: Sequence[Iterator]) -> tuple[str, ...]:
    """Describe what tf.data changed or chose by itself, as sentences without a subject."""
    sentences = []
    for it in iterators:
        base = base_type(it.name)
        where = _where(it)
        chosen = _chosen(it, iterators)
        methods = [call.method for call in it.calls]
        if it.injected_by_tensorflow:
            if base == "Prefetch":
                limit = f" of up to {format_many(it.buffer_size, 'element')}" if it.buffer_size else ""
                sentences.append(f"put a prefetch buffer{limit} at the end of the pipeline")
        elif base == "MapAndBatch" and len(methods) > 1:
            sentences.append(
                f"fused {where} into one MapAndBatch (parallelism {it.parallelism}{', tuned' if chosen else ''})"
            )
        elif base == "ShuffleAndRepeat" and len(methods) > 1:
            sentences.append(f"fused {where} into one ShuffleAndRepeat")
        elif len(methods) > 1 and "fused" in it.dataset_name:
            sentences.append(f"fused {where} into one {it.name}")
        elif base in ("ParallelMap", "ParallelInterleave", "ParallelFilter") and methods:
            if it.calls[-1].arguments.get("num_parallel_calls") is None:
                sentences.append(f"runs {where} in parallel ({it.name}{chosen})")
            elif chosen:
                sentences.append(f"tunes the parallelism of {where}{chosen}")
        elif base == "ParallelBatch" and methods and it.calls[-1].arguments.get("num_parallel_calls") is None:
            sentences.append(f"runs {where} in parallel ({it.name}{chosen})")
        elif base == "Prefetch" and it.is_autotuned and it.buffer_size:
            sentences.append(f"tunes the buffer of {where}, now up to {format_many(it.buffer_size, 'element')}")
    return tuple(dict.fromkeys(sentences))  # two branches of a pipeline may have the same calls


def _chosen(it: Iterator, iterators: Sequence[Iterator]) -> str:
    """The parallelism that AUTOTUNE chose for a call; its copies in several branches of a pipeline may have different ones."""
    if not it.is_autotuned or not it.parallelism:
        return ""
    numbers = {
        other.parallelism
        for other in iterators
        if other.is_autotuned and other.parallelism and (other.name, _where(other)) == (it.name, _where(it))
    }
    return f", AUTOTUNE chose {' and '.join(map(str, sorted(numbers)))}"


def _where(it: Iterator) -> str:
    parts = []
    for call in it.calls:
        line = f" ({PurePath(call.site.file).name}:{call.site.line})" if call.site else ""
        parts.append(f"{call.method}{line}")
    return " and ".join(parts)
