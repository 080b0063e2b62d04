"""Random pipelines and edits of them whose effect on the data is known beforehand.

In: hypothesis' choices.  Out: a `Script` (how to build the dataset) and, once it is built and recorded, `legal` edits with the
level that they may claim, and `illegal` ones that no level allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from advisor.model.calls import Call
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, Vectorize
from advisor.model.finding import Safety
from advisor.predict import hoist
from advisor.testing import pipeline, source

AUTOTUNE = Code("tf.data.AUTOTUNE")
MADE = pipeline(source(), consumer_ms=1).analysis
SOURCES = ("range", "slices", "generator", "zip", "concatenate", "interleave", "sample")
BLIND = ("shuffle", "prefetch", "repeat")
LINKS = ("affine", "affine", "noise", "filter", "shuffle", "enumerate", "prefetch", "cache", "repeat")


@dataclass(frozen=True)
class Script:
    source: str
    size: int
    links: tuple[str, ...]
    batch: int
    """0: none."""
    is_endless: bool
    seed: int | None
    inside: tuple[str, ...] = ("affine",)
    """Links inside the function of an interleave."""


scripts = st.builds(
    Script,
    source=st.sampled_from(SOURCES),
    size=st.integers(3, 10),
    links=st.lists(st.sampled_from(LINKS), min_size=1, max_size=4).map(tuple),
    batch=st.integers(0, 4),
    is_endless=st.booleans(),
    seed=st.none() | st.integers(1, 5),
)


vectorizable_scripts = st.builds(
    Script,
    source=st.sampled_from(SOURCES),
    size=st.integers(3, 10),
    links=st.tuples(
        st.sampled_from(["affine", "noise", "shuffle", "filter"]), st.just("affine"), st.sampled_from(BLIND)
    ),
    batch=st.integers(1, 4),
    is_endless=st.booleans(),
    seed=st.none() | st.integers(1, 5),
)
"""Scripts with a function that can be called once per batch."""


nested_scripts = st.builds(
    Script,
    source=st.just("interleave"),
    size=st.integers(3, 10),
    links=st.lists(st.sampled_from(["affine", "shuffle", "prefetch", "enumerate"]), max_size=2).map(tuple),
    batch=st.integers(0, 4),
    is_endless=st.booleans(),
    seed=st.none() | st.integers(1, 5),
    inside=st.lists(st.sampled_from(["affine", "noise", "prefetch", "enumerate", "filter"]), max_size=3).map(
        lambda links: (*links, "affine")
    ),
)
"""Scripts with a map that may leave the function of an interleave, or may not."""


def as_it_is(function: Any) -> Any:
    """Traced without AutoGraph's conversion, which takes most of the time and has nothing to do with what is tested."""
    import tensorflow as tf

    return tf.autograph.experimental.do_not_convert(function)


def affine(*row: Any) -> Any:
    return (row[0] * 3 + 1, *row[1:]) if len(row) > 1 else row[0] * 3 + 1


def is_wanted(*row: Any) -> Any:
    return row[0] % 5 != 0


def noise(*row: Any) -> Any:
    import tensorflow as tf

    drawn = row[0] * 1000 + tf.random.uniform([], 0, 1000, tf.int64)
    return (drawn, *row[1:]) if len(row) > 1 else drawn


def first_and_number(number: Any, *row: Any) -> Any:
    import tensorflow as tf

    return tf.cast(row[0][0] if isinstance(row[0], tuple) else row[0], tf.int64), number


def build(script: Script) -> Any:
    """The dataset, as a script would make it."""
    import tensorflow as tf

    tf.random.set_seed(script.seed)
    dataset = _source(script.source, script.size, script.inside)
    is_random = script.source == "sample"
    for link in script.links:
        match link:
            case "affine":
                dataset = dataset.map(as_it_is(affine))
            case "noise":
                dataset, is_random = dataset.map(as_it_is(noise)), True
            case "filter":
                dataset = dataset.filter(as_it_is(is_wanted))
            case "shuffle":
                dataset, is_random = dataset.shuffle(4), True
            case "enumerate":
                dataset = dataset.enumerate().map(as_it_is(first_and_number))
            case "prefetch":
                dataset = dataset.prefetch(2)
            case "cache" if not is_random:
                dataset = dataset.cache()
            case "repeat":
                dataset = dataset.repeat(2)
    if script.batch:
        dataset = dataset.batch(script.batch)
    return dataset.repeat() if script.is_endless else dataset


def _source(kind: str, size: int, inside: tuple[str, ...]) -> Any:
    import tensorflow as tf

    data = tf.data.Dataset

    def rows() -> Any:
        yield from range(size)

    def inner(i: Any) -> Any:
        dataset = tf.data.Dataset.range(i, i + 1 + len(inside))
        for link in inside:
            match link:
                case "affine":
                    dataset = dataset.map(as_it_is(affine))
                case "noise":
                    dataset = dataset.map(as_it_is(noise))
                case "filter":
                    dataset = dataset.filter(as_it_is(is_wanted))
                case "enumerate":
                    dataset = dataset.enumerate()
                case "prefetch":
                    dataset = dataset.prefetch(2)
        return dataset

    match kind:
        case "slices":
            return data.from_tensor_slices(tf.range(size, dtype=tf.int64) * 2)
        case "generator":
            return data.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
        case "zip":
            return data.zip((data.range(size), data.range(size).map(as_it_is(affine))))
        case "concatenate":
            return data.range(size).concatenate(data.range(50, 52).map(as_it_is(affine)))
        case "interleave":
            return data.range(0, 10 * size, 10).interleave(as_it_is(inner), cycle_length=2)
        case "sample":
            return data.sample_from_datasets([data.range(size), data.range(100, 100 + size)], [0.5, 0.5])
        case _:
            return data.range(size)


@dataclass(frozen=True)
class Claim:
    edits: tuple[Edit, ...]
    safety: Safety


def chain_of(calls: dict[str, Call], call_id: str) -> list[Call]:
    """The calls from the consumed one up to the first that has not exactly one input."""
    chain = []
    while True:
        call = calls[call_id]
        chain.append(call)
        if len(call.inputs) != 1:
            return chain
        call_id = call.inputs[0]


def is_random(call: Call, calls: dict[str, Call]) -> bool:
    """Whether the call or anything that it comes from differs from epoch to epoch."""
    own = call.method in ("shuffle", "sample_from_datasets") or bool(call.function and call.function.random_ops)
    return own or any(is_random(calls[call_id], calls) for call_id in call.inputs if call_id in calls)


def legal(calls: dict[str, Call], chain: list[Call], seed: int | None) -> list[Claim]:
    """Edits that keep what they claim, in a script with that global seed."""
    claims = []
    for call in [*chain, *(c for c in calls.values() if c.nested_in or c.method in ("map", "interleave"))]:
        draws = bool(call.function and call.function.random_ops)
        match call.method:
            case "map":
                claim = Safety.RERANDOMIZED if draws else Safety.EXACT
                claims.append(Claim((SetArgument(call.id, "num_parallel_calls", 4),), claim))
            case "batch":
                claims.append(Claim((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), Safety.EXACT))
            case "interleave":
                claims.append(Claim((SetArgument(call.id, "num_parallel_calls", 2),), Safety.EXACT))
                if not any(c.method in ("shuffle", "filter", "enumerate") for c in chain):
                    claims.append(Claim((SetArgument(call.id, "cycle_length", 3),), Safety.REORDERED))
            case "prefetch":
                claims.append(Claim((Remove(call.id),), Safety.EXACT))
    for call in chain:
        claims.append(Claim((InsertAfter(call.id, "prefetch", (("", AUTOTUNE),)),), Safety.EXACT))
        if not is_random(call, calls) and call.cardinality != -1:
            claims.append(Claim((InsertAfter(call.id, "cache"),), Safety.EXACT))
    for behind, before in itertools.pairwise(chain):
        draws = bool(behind.function and behind.function.random_ops)
        if before.method == "shuffle" and behind.method == "map" and not draws:
            claims.append(Claim((MoveAfter(before.id, behind.id),), Safety.EXACT))
    claims += [Claim(edits, Safety.EXACT) for edits in vectorizing(chain)]
    if seed is None:
        return claims
    return [Claim(claim.edits, Safety.RERANDOMIZED) if fuses_otherwise(claim, chain) else claim for claim in claims]


def vectorizing(chain: list[Call]) -> Iterator[tuple[Edit, ...]]:
    """The edits that call a function without random numbers once per batch."""
    for place, call in enumerate(chain):
        between = list(itertools.takewhile(lambda earlier: earlier.method in BLIND, reversed(chain[:place])))
        following = chain[place - len(between) - 1] if place > len(between) else None
        is_affine = call.function is not None and call.function.name == "affine"
        if is_affine and following is not None and following.method == "batch":
            yield MoveAfter(call.id, following.id), Vectorize(call.id)


def hoisting(calls: dict[str, Call]) -> list[Claim]:
    """The edits that move maps out of the function of an interleave, with the level that the advisor claims for them."""
    analysis = replace(MADE, calls=tuple(calls.values()))
    hoists = [hoist(analysis, call) for call in calls.values() if call.method == "map" and call.nested_in is not None]
    return [Claim(hoist.edits, hoist.safety) for hoist in hoists if hoist.edits]


def fuses_otherwise(claim: Claim, chain: list[Call]) -> bool:
    """Whether the edit parts a shuffle from its repeat, or brings them together.

    TensorFlow fuses them if nothing stands between, and the fused one draws fewer seeds in all: a script that fixes its seed then
    has another order from the second pass on.
    """

    def fused(methods: list[str]) -> int:
        return sum(pair == ("repeat", "shuffle") for pair in itertools.pairwise(methods))

    return fused([call.method for call in chain]) != fused(edited_methods(claim.edits[0], chain))


def illegal(calls: dict[str, Call], chain: list[Call], counts: dict[str, int], compared: int) -> list[Claim]:
    """Edits that no level allows; `counts`: elements of an epoch behind each call of the chain.

    `compared`: elements that are looked at. What is cut off behind them nobody can see, where TensorFlow does not know how many
    there are; a judgement says so (`is_complete`).
    """
    claims = []
    for place, call in enumerate(chain):
        draws = any(bool(c.function and c.function.random_ops) for c in chain[place:])
        frozen = any(c.method == "cache" for c in chain[:place])
        if draws and any(c.method == "filter" for c in chain):
            continue  # then the number of elements is random
        if call.cardinality == -1 or counts[call.id] < 2 or frozen:
            continue
        if draws or (call.method == "shuffle" and counts[call.id] > 2):
            claims.append(Claim((InsertAfter(call.id, "cache"),), Safety.EXACT))
        if not any(c.method in ("filter", "shuffle", "repeat") for c in chain[:place]):
            claims.append(
                Claim((InsertAfter(call.id, "take", (("", min(counts[call.id], compared) - 1),)),), Safety.EXACT)
            )
            claims.append(Claim((InsertAfter(call.id, "skip", (("", 1),)),), Safety.EXACT))
        if (
            call.method == "map"
            and not (call.function and call.function.random_ops)
            and call.function
            and call.function.name == "affine"
        ):
            claims.append(Claim((Remove(call.id),), Safety.EXACT))
    return claims


def edited_methods(edit: Edit, chain: list[Call]) -> list[str]:
    """The methods of the chain with the edit, the consumed call first."""
    ids = [call.id for call in chain]
    methods = [call.method for call in chain]
    if edit.call_id not in ids:
        return methods
    place = ids.index(edit.call_id)
    match edit:
        case InsertAfter(method=method):
            methods.insert(place, method)
        case Remove():
            del methods[place]
        case MoveAfter(after_id=target):
            methods.insert(ids.index(target), methods.pop(place))
    return methods
