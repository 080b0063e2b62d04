"""What differs between hosts: their pipelines, parallelism, buffers, batch sizes and budgets.

In: the slowest pipeline of each host.  Out: `Differences`, which can be merged, and sentences.

Hosts are counted by value and only a few of them are named, so that equal hosts take as much memory as one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from advisor.model.pipeline import Iterator, Pipeline
from advisor.profile.profile_files import MOST_NAMED

MAX_LINKS = 12
"""Maximum number of iterators of a chain in a sentence."""
_ARROW = " -> "
_Read = Callable[[Iterator], str]


def from_sources(pipeline: Pipeline) -> tuple[Iterator, ...]:
    """Return the iterators, inputs before their consumers, in an order that is the same on all hosts.

    The order in a profile depends on which input of an `interleave` or a `zip` ran first in the window.
    """
    branches: dict[str | None, list[list[Iterator]]] = {}
    for it in reversed(pipeline.iterators):
        inputs = sorted(branches.pop(it.id, []), key=lambda branch: [other.name for other in reversed(branch)])
        whole = inputs[0] if inputs else []
        for branch in inputs[1:]:
            whole.extend(branch)
        whole.append(it)
        branches.setdefault(it.parent_id, []).append(whole)
    return tuple(it for wholes in branches.values() for whole in wholes for it in whole)


def chain_of(pipeline: Pipeline) -> str:
    """Return the iterators from the sources to the root; repeated neighbours as `Range (50 times)`."""
    names = (it.name for it in from_sources(pipeline))
    groups = [(name, sum(1 for _ in group)) for name, group in itertools.groupby(names)]
    return _ARROW.join(name if count == 1 else f"{name} ({count} times)" for name, count in groups)


def short_chain(chain: str) -> str:
    """Return a chain as text; only the two ends of a long one."""
    links = chain.split(_ARROW)
    if len(links) <= MAX_LINKS:
        return chain
    half = MAX_LINKS // 2
    return _ARROW.join([*links[:half], f"... {len(links) - 2 * half} more ...", *links[-half:]])


def _of_root(name: str) -> _Read:
    return lambda it: _text(it.parameters.get(name)) if it.parent_id is None else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)


_COMPARED: tuple[tuple[str, _Read], ...] = (
    ("parallelism", lambda it: _text(it.parallelism)),
    ("buffer size", lambda it: _text(it.buffer_size)),
    ("batch size", lambda it: _text(it.parameters.get("batch_size"))),
    ("CPU budget", _of_root("cpu_budget")),
    ("thread pool size", _of_root("threadpool_size")),
)


@dataclass(frozen=True, slots=True)
class Having:
    """The hosts that have something in common."""

    count: int = 0
    first: tuple[int, ...] = ()
    """The places of the first `MOST_NAMED` of them."""

    def plus(self, later: Having) -> Having:
        """Return these hosts and later ones."""
        return Having(self.count + later.count, (*self.first, *later.first)[:MOST_NAMED])

    def text(self, names: Mapping[int, str]) -> str:
        """Return the hosts for a sentence; only the first ones of many."""
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return ", ".join(names[place] for place in self.first) + more


Table = dict[str, Having]
"""Value -> the hosts that have it, in the order of the first host of each value."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The hosts whose slowest pipelines consist of the same iterators."""

    hosts: Having
    iterators: tuple[str, ...]
    """Their types, the root first."""
    values: tuple[Table, ...]
    """One table per iterator and compared property, in this order; a value that an iterator lacks is absent."""


@dataclass(frozen=True, slots=True)
class Differences:
    """Everything that the hosts are compared by."""

    without: Having = Having()
    """Hosts on which no pipeline was consumed."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    """Chain of iterators -> its hosts."""

    def plus(self, later: Differences) -> Differences:
        """Return the differences of these hosts and later ones."""
        shapes = dict(self.shapes)
        for chain, shape in later.shapes.items():
            own = shapes.get(chain)
            shapes[chain] = shape if own is None else _joined(own, shape)
        return Differences(self.without.plus(later.without), shapes)


def differences_of(place: int, slowest: Pipeline | None) -> Differences:
    """Return what one host is compared by.

    Args:
        place: The host.
        slowest: Its slowest pipeline; None if none was consumed.
    """
    only = Having(1, (place,))
    if slowest is None:
        return Differences(without=only)
    if slowest.serves_elements:  # a tf.data service worker runs another pipeline than a trainer
        return Differences()
    iterators = from_sources(slowest)[::-1]
    values = tuple({value: only} if (value := read(it)) else {} for it in iterators for _, read in _COMPARED)
    shape = Shape(only, tuple(it.name for it in iterators), values)
    return Differences(shapes={chain_of(slowest): shape})


def difference_sentences(differences: Differences, names: Mapping[int, str]) -> list[str]:
    """Return one sentence per difference.

    Args:
        differences: The differences of all hosts.
        names: Place -> name of the host.
    """
    shapes, without = differences.shapes, differences.without
    sentences = [f"No pipeline was consumed on {without.text(names)}."] if without.count and shapes else []
    chains = {chain: shape.hosts for chain, shape in shapes.items()}
    sentences += _odd_ones("the slowest pipeline is", chains, names, short_chain)
    common = max(shapes.values(), key=lambda shape: shape.hosts.count, default=None)  # the first of several
    if common is None or common.hosts.count < 2:
        return sentences
    compared = itertools.product(common.iterators, _COMPARED)
    for (iterator, (what, _)), table in zip(compared, common.values, strict=True):
        sentences += _odd_ones(f"the {what} of {iterator} is", table, names)
    return sentences


def _joined(shape: Shape, later: Shape) -> Shape:
    values = tuple(_with(table, more) for table, more in zip(shape.values, later.values, strict=False))
    return Shape(shape.hosts.plus(later.hosts), shape.iterators[: len(values) // len(_COMPARED)], values)


def _with(table: Table, later: Table) -> Table:
    result = dict(table)
    for value, hosts in later.items():
        own = result.get(value)
        result[value] = hosts if own is None else own.plus(hosts)
    return result


def _odd_ones(what: str, values: Table, names: Mapping[int, str], show: Callable[[str], str] = str) -> list[str]:
    """A sentence for each value that differs from the usual one; several values of similar frequency are listed together."""
    counts = sorted(values.items(), key=lambda entry: -entry[1].count)
    if len(counts) < 2:
        return []
    usual, number = counts[0][0], counts[0][1].count
    if number * 2 <= sum(hosts.count for hosts in values.values()) or len(counts) > 4:
        listed = ", ".join(f"{show(value)} on {hosts.count}" for value, hosts in counts[:6])
        return [f"Between hosts {what} not the same: {listed} hosts."]
    return [
        f"On {hosts.text(names)} {what} {show(value)}, on {number} others {show(usual)}." for value, hosts in counts[1:]
    ]
