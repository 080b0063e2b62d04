"""Parses long names of iterators: `Iterator::Root::ForeverRepeat[0]::MapAndBatch`.

In: the name of a profile event.  Out: `LongName`, its parts; text again by `str()`.

Grammar: `<prefix>::<node>(::<node>)*` with node = `Type` or `Type[n]`. In a child's name, the *parent* has the index of the child
(cycle slot of an interleave, epoch of a repeat, branch of a zip), so the last node of a name has none. The prefix identifies the
op that made the iterator. Source: calls of `MakeIterator` in `tensorflow/core/kernels/data`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

PREFIXES = ("Iterator", "ReduceIterator", "SingleElementIterator", "ToTFRecordOpIterator")
"""`Iterator`: `iter(dataset)`; `ReduceIterator`: `dataset.reduce` and every loop over a dataset inside a `tf.function`;
`SingleElementIterator`: `dataset.get_single_element`."""

_NODE = re.compile(r"(?P<type>[^\[\]:]+)(\[(?P<index>0|[1-9][0-9]*)\])?")
_STARTS = tuple(f"{prefix}::" for prefix in PREFIXES)


@dataclass(frozen=True, slots=True)
class LongNameNode:
    """One component: an iterator type and, in the name of a child, the index of the parent's input."""

    type: str
    index: int | None = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}[{self.index}]"


@dataclass(frozen=True, slots=True)
class LongName:
    """A parsed long name; `nodes` runs from the root to the iterator itself and is never empty."""

    nodes: tuple[LongNameNode, ...]
    prefix: str = "Iterator"

    @property
    def type(self) -> str:
        """The type of the iterator itself, as TensorFlow writes it (`ParallelMapV2`)."""
        return self.nodes[-1].type

    @property
    def parent(self) -> LongName | None:
        """The name of the parent, without the index of this child; None for a root."""
        if len(self.nodes) == 1:
            return None
        return LongName((*self.nodes[:-2], replace(self.nodes[-2], index=None)), self.prefix)

    def without_indices(self) -> LongName:
        """Return the name without `[n]` indices; it is equal for all slots, epochs and branches of one node."""
        return LongName(tuple(LongNameNode(node.type) for node in self.nodes), self.prefix)

    def __str__(self) -> str:
        return "::".join((self.prefix, *map(str, self.nodes)))


def is_iterator_name(name: str) -> bool:
    """Return whether the event is an iterator's GetNext. Only prefixes count, because kernel names may contain `Iterator` too."""
    return name.startswith(_STARTS)


def parse_long_name(name: str) -> LongName | None:
    """Parse an event name; None if it is not a long name. Unknown types are accepted."""
    prefix, *texts = name.split("::")
    if prefix not in PREFIXES or not texts:
        return None
    nodes = []
    for text in texts:
        match = _NODE.fullmatch(text)
        if match is None:
            return None
        nodes.append(LongNameNode(match["type"], None if match["index"] is None else int(match["index"])))
    return LongName(tuple(nodes), prefix)


def strip_indices(name: str) -> str:
    """Return a long name without `[n]` indices; any other text is unchanged."""
    parsed = parse_long_name(name)
    return name if parsed is None else str(parsed.without_indices())
