"""repeated-work: every epoch computes the same elements again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    Analysis,
    CachePlace,
    Edit,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    Iter,
    MoveAfter,
    Note,
    Rule,
    Safety,
    SetArgument,
    cache_places,
    is_editable,
    is_read_again,
    label,
    payoff,
    place,
    takes_link,
    upstream_calls,
)
from advisor.testing import (
    batch,
    cache,
    fires,
    map_,
    pipeline,
    prefetch,
    repeat,
    shuffle,
    silent,
    source,
    take,
    unknown_size,
)


@dataclass(frozen=True)
class RepeatedWork(Rule):
    """Every epoch reads and computes the same elements again, and they would fit in memory.

    ## Why it is slow
    A pipeline starts from its files again in every epoch. Whatever does not depend on chance (reading, decoding, resizing,
    parsing) gives the same elements each time.

    ## What the fix does
    `.cache()` keeps the elements of the first epoch in memory; later epochs start from there. The place is the one that saves
    most, and of those that save about as much, the one that holds the fewest bytes: encoded images are smaller than decoded ones,
    uint8 smaller than float. The first epoch becomes no faster. A `shuffle` or `repeat` before the place moves behind the
    cache, where it does the same to the same elements.

    ## When not to
    Behind anything that draws random numbers: the cache would freeze the augmentation of the first epoch. Behind a `shuffle`: it
    would freeze the order. Where the elements do not fit in memory, or where epochs are not read to their end (an unfinished
    cache is thrown away). The rule looks at everything upstream of the place, not at one call alone, and says which call
    forbids a better one. Python functions and generators may draw random numbers that TensorFlow does not know of, so they
    forbid it too, as do functions that write, print or read the clock, and state that was seen to change while the script ran
    (a variable, a table, a file). Where a function reads a variable or a table that was not seen to change, the fix is tried only
    with `--only repeated-work`, and the report says what it assumes.

    ## What tf.data already does
    Nothing here: it never caches by itself.
    """

    max_memory_share: float = 0.5
    """Share of the free memory that the cache may take. The other half is left to the model, to other buffers and to an estimate
    that is too low."""
    equal_gain: float = 0.9
    """Places whose predicted speedup is at least this part of the best one's are taken for equal: the smallest is chosen."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """The best legal place for a cache, and why better ones are not legal."""
        pipeline = analysis.main
        if pipeline is None:
            return
        places = [each for each in cache_places(analysis, pipeline) if self._is_worth_it(analysis, each)]
        fitting = [each for each in places if self._fits(analysis, each)]
        chosen: CachePlace | None = None
        for is_assumed in (False, True):  # a place that rests on an assumption is the last resort
            some = [each for each in fitting if bool(each.assumptions) is is_assumed]
            for candidates in (
                [each for each in some if not each.obstacles],
                [each for each in some if each.movable],
            ):
                best = self._best(analysis, candidates)
                if best and (chosen is None or chosen.prediction.value < self.equal_gain * best.prediction.value):
                    chosen = best
            if chosen is not None:
                break
        yield from forbidden(places, chosen, self.equal_gain)
        yield from self._unproved(analysis, fitting, chosen)
        if chosen is None:
            yield from self._too_large(analysis, places)
        elif chosen.is_repeated_below or is_read_again(analysis, pipeline):
            yield self._advice(analysis, chosen)
        else:
            yield Note(
                "The window saw one pass over the data. If the script makes more of them, .cache() behind "
                f"{label(chosen.call)} at {place(chosen.call)} would save the work of all but the "
                f"first{'.' if chosen.bytes is not None else ', if its elements fit in memory.'}"
            )

    def _unproved(self, analysis: Analysis, fitting: Sequence[CachePlace], chosen: CachePlace | None) -> Iter[Note]:
        """The place that would save clearly more than the chosen one if its assumptions held."""
        better = self._best(analysis, [each for each in fitting if each.assumptions and not each.obstacles])
        if chosen is None or better is None or chosen.assumptions:
            return
        if better.prediction.value * self.equal_gain > chosen.prediction.value:
            yield Note(
                f"A cache behind {label(better.call)} at {place(better.call)} would save more, but only if "
                f"{', and if '.join(better.assumptions)}"
            )

    def _is_worth_it(self, analysis: Analysis, candidate: CachePlace) -> bool:
        """Whether it saves enough; where a cache upstream has saved the most already, a second one must be certain to."""
        has_cache = any(each.method == "cache" for each in upstream_calls(analysis, candidate.call))
        gain = candidate.prediction.low if has_cache else candidate.prediction.value
        return gain >= self.min_speedup

    def _fits(self, analysis: Analysis, candidate: CachePlace) -> bool:
        """Whether the cache fits; what cannot be known is allowed, and not applied unasked."""
        if analysis.host is None or candidate.bytes is None:
            return True
        return candidate.bytes <= self.max_memory_share * analysis.host.memory_free_bytes

    def _best(self, analysis: Analysis, candidates: Sequence[CachePlace]) -> CachePlace | None:
        """Of the places that save about as much as the best one, the smallest; one that can be edited before others.

        `candidates` begin at the consumer, so of places equal in all of it, the one that leaves least to do behind it is taken:
        a difference within the noise must not decide which advice a user reads.
        """
        if not candidates:
            return None
        most = max(each.prediction.value for each in candidates)
        equal = [each for each in candidates if each.prediction.value >= self.equal_gain * most]
        equal = [each for each in equal if takes_link(analysis, each.call)] or equal
        shuffles = min(len(each.obstacles) for each in equal)  # what is shuffled behind the cache stays shuffled
        equal = [each for each in equal if len(each.obstacles) == shuffles]
        fewest = min((each.bytes for each in equal if each.bytes is not None), default=None)
        small = [each for each in equal if fewest is None or (each.bytes or math.inf) * self.equal_gain <= fewest]
        return (small or equal)[0]

    def _advice(self, analysis: Analysis, chosen: CachePlace) -> Finding:
        call, host = chosen.call, analysis.host
        is_known = chosen.bytes is not None and host is not None
        if chosen.bytes is not None and host is not None:
            free = format_bytes(host.memory_free_bytes)
            size = f"The elements of an epoch take {format_bytes(chosen.bytes)}, {free} are free."
        elif chosen.element_bytes is not None:
            size = (
                f"One element takes {format_bytes(chosen.element_bytes)}; how many an epoch has is not known, so check "
                "that they fit in memory."
            )
        else:
            size = "How many bytes an epoch takes is not known: check that it fits in memory."
        because = (
            f"Every epoch computes the same elements again up to {label(call)} at {place(call)}, which causes "
            f"{format_share(chosen.saved_share)} of the wait for input. {size}{order_of(chosen)}{relying_on(chosen)}"
        )
        is_written = (
            all(is_editable(edited) for edited in (call, *chosen.movable))
            if chosen.movable
            else takes_link(analysis, call)
        )
        return self.finding(
            f"Cache behind {label(call)}",
            because,
            call=call,
            prediction=chosen.prediction,
            memory_bytes=chosen.bytes,
            fix=Fix(
                edits_of(chosen),
                safety_of(chosen),
                is_auto=is_known and not chosen.assumptions,
                assumptions=chosen.assumptions,
            )
            if is_written
            else None,
            evidence=(
                Evidence("saved_blame_share", chosen.saved_share, "share"),
                *((Evidence("cache_bytes", chosen.bytes, "bytes"),) if chosen.bytes is not None else ()),
                *((Evidence("free_memory", host.memory_free_bytes, "bytes"),) if host is not None else ()),
                *pays(analysis, chosen),
            ),
        )

    def _too_large(self, analysis: Analysis, places: Sequence[CachePlace]) -> Iter[Note]:
        smallest = min(
            (each for each in places if not each.obstacles and each.bytes is not None),
            key=lambda each: each.bytes or 0,
            default=None,
        )
        if smallest is not None and analysis.host is not None and smallest.bytes is not None:
            yield Note(
                f"A cache behind {label(smallest.call)} at {place(smallest.call)} would save the work of later epochs, "
                f"but its {format_bytes(smallest.bytes)} are more than {format_share(self.max_memory_share)} of the "
                f"{format_bytes(analysis.host.memory_free_bytes)} of free memory."
            )


def edits_of(chosen: CachePlace) -> tuple[Edit, ...]:
    """The cache, directly behind the call, and behind it the shuffles that were before it."""
    moves: list[Edit] = []
    for call in chosen.movable:  # nearest first: what is put directly behind the call later stands before it
        if call.method != "list_files":
            moves.append(MoveAfter(call.id, chosen.call.id))
        else:
            moves.append(SetArgument(call.id, "shuffle", False))
            moves.append(InsertAfter(chosen.call.id, "shuffle", (("", call.cardinality),)))
    return (*moves, InsertAfter(chosen.call.id, "cache"))


def pays(analysis: Analysis, chosen: CachePlace) -> Iter[Evidence]:
    """What the first epoch takes, and after how many epochs the cache has paid, where an epoch's length is known."""
    found = payoff(analysis, analysis.main, chosen) if analysis.main is not None else None
    if found is not None:
        yield Evidence("first_epoch", found.first_epoch_ns, "ns")
        yield Evidence("later_epochs", found.later_epoch_ns, "ns")
        yield Evidence("break_even_epoch", found.break_even_epoch)


def safety_of(chosen: CachePlace) -> Safety:
    """A shuffle draws the same order behind maps and a cache as before them (`tests/rules/test_claims.py`); that of `list_files`
    is replaced by another one.
    """
    is_redrawn = any(call.method == "list_files" for call in chosen.movable)
    return Safety.RERANDOMIZED if is_redrawn else Safety.EXACT


def order_of(chosen: CachePlace) -> str:
    """What becomes of the order, in a sentence."""
    if not chosen.movable:
        return ""
    names = " and ".join(f"{call.method} ({place(call)})" for call in reversed(chosen.movable))
    return f" What {names} does moves behind the cache."


def relying_on(chosen: CachePlace) -> str:
    """What the cache assumes, in a sentence."""
    return f" The cache assumes that {', and that '.join(chosen.assumptions)}." if chosen.assumptions else ""


def forbidden(places: Sequence[CachePlace], chosen: CachePlace | None, equal_gain: float) -> Iter[Note]:
    """Why a cache does not stand where it would save clearly more."""
    gain = chosen.prediction.value if chosen else 1.0
    tempting = [each for each in places if not each.keeps_elements and each.prediction.value * equal_gain > gain]
    for obstacle in {o.call.id: o for each in tempting for o in each.obstacles if o.kind == "content"}.values():
        function = obstacle.call.function
        name = function.name if function and function.name else obstacle.call.method
        pronoun = "it " if function else "which "
        where = f", {place(obstacle.call)}" if obstacle.call.site else ""
        yield Note(f"cache is not legal above `{name}`, {pronoun}{obstacle.reason}{where}")


EXAMPLES = (
    fires(
        pipeline(
            source(bytes=20_000),
            map_("decode", ms=5, bytes=12_000),
            shuffle(),
            map_("augment", ms=0.1, random=True),
            batch(32),
            consumer_ms=5,
            cores=8,
            epochs=3,
        ),
        fixed="ds.map(decode).cache()",
    ),
    fires(
        pipeline(
            source(bytes=2_000, ms=2),
            map_("decode", ms=0.1, bytes=600_000),
            batch(32),
            repeat(),
            consumer_ms=5,
            cores=8,
        ),
        fixed="tf.data.TFRecordDataset(files).cache()",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=1_000), map_("load", ms=5, bytes=150_000), batch(32), consumer_ms=5, epochs=2
        ),
        fixed='list_files("images/*.jpg", shuffle=False)\nds = ds.map(load).cache().shuffle(1000)\n',
    ),
    fires(
        pipeline(source(), shuffle(500), map_("decode", ms=5, bytes=9_000), batch(32), consumer_ms=5, epochs=2),
        fixed="ds = ds.map(decode).cache()\nds = ds.shuffle(500)\nds = ds.batch(32)",
    ),
    fires(
        pipeline(source(), repeat(), map_("decode", ms=5, bytes=9_000), shuffle(), batch(32), consumer_ms=5),
        fixed="ds = ds.map(decode).cache()\nds = ds.repeat()\nds = ds.shuffle(1000)",
    ),
    fires(
        pipeline(unknown_size(source()), map_("decode", ms=5, bytes=10_000), batch(32), consumer_ms=5, epochs=2),
        fixed="ds.batch(32).cache()",
    ),
    silent(
        pipeline(
            unknown_size(source(bytes=1_000), file_bytes=200 << 30),
            map_("decode", ms=5, bytes=10_000),
            batch(32),
            consumer_ms=5,
            epochs=2,
        ),
        because="files of 200 GiB hold more elements than fit in memory",
        note="of free memory",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, epochs=1),
        because="the data is read once",
        note="If the script makes more of them, .cache() behind",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=5, epochs=3),
        because="a cache would freeze the random numbers",
        note="cache is not legal above `augment`, it draws random numbers, train.py:4",
    ),
    silent(
        pipeline(source("Generator", ms=2), map_("decode", ms=1), batch(32), consumer_ms=5, epochs=3),
        because="a generator may yield other elements in every epoch",
        note="runs a Python generator",
    ),
    silent(
        pipeline(source(), repeat(), batch(32), map_("decode", ms=50), consumer_ms=5),
        because="batches over the end of an epoch differ from epoch to epoch",
    ),
    silent(
        pipeline(source("Random", ms=0.1), map_("decode", ms=5), batch(32), consumer_ms=5, epochs=3),
        because="the source draws random numbers, though the map does not",
        note="draws random numbers",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), batch(32), consumer_ms=5, epochs=3),
        because="there is a cache",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), take(100), consumer_ms=5, epochs=3),
        because="take leaves the epoch early, and an unfinished cache is thrown away",
    ),
    silent(
        pipeline(
            source(elements=1_000_000, bytes=100_000),
            map_("decode", ms=5, bytes=600_000),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="the elements do not fit in memory",
        note="of free memory",
    ),
    silent(
        pipeline(source(), map_("decode", ms=0.5), batch(32), prefetch(), consumer_ms=50, cores=8, epochs=3),
        because="the consumer does not wait",
    ),
)
