"""repeated-work: every epoch computes the same elements again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.units import format_bytes, format_range, format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    CachePlace,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rejected,
    Rule,
    best_place,
    cache_edits,
    cache_places,
    cache_safety,
    find_break_even,
    is_editable,
    is_read_again,
    label,
    larger_place,
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
    A pipeline starts again from its files in every epoch. All deterministic work (reading, decoding, resizing, parsing)
    produces the same elements each time.

    ## What the fix does
    It adds `.cache()`, which keeps the elements of the first epoch in memory for later epochs. It is inserted where it
    saves the most; among places that save about as much, the one with the smallest elements is chosen: encoded images
    are smaller than decoded ones, uint8 is smaller than float. The first epoch does not become faster. A `shuffle` or
    `repeat` before this place moves after the cache, where it has the same effect on the same elements. A cache that
    already stores the input of this place moves there, so that no elements are held twice.

    ## When not to
    After a transformation that draws random numbers, because the cache would freeze the augmentation of the first
    epoch. After a `shuffle`, because it would freeze the order. When the elements do not fit in memory, or when epochs
    are not read to the end (an incomplete cache is discarded). All transformations upstream of the cache are checked,
    and a note names the call that prevents a better place. Python functions and generators may draw random numbers that
    TensorFlow cannot see, so they also prevent a cache, unless they were seen to return the same elements again: then the
    cache is tried only with `--only repeated-work`. Also in the way are functions that write, print or read the clock, and state
    that changed while the script ran (a variable, a table, a file). If a function reads a variable or a table that did
    not change, the fix is tried only with `--only repeated-work`, and the report states the assumption.

    ## What tf.data already does
    Nothing: it never adds a cache.
    """

    max_memory_share: float = 0.5
    """Share of the free memory that the cache may take. The other half is left to the model, to other buffers, and as a
    margin for an estimate that is too low."""
    main_cause: float = 0.5
    """Share of the wait from which repeated work after an existing cache is the main cause of a long wait; it is then reported
    although the lower bound of the prediction is no gain."""
    equal_gain: float = 0.9
    """Places whose predicted speedup is at least this fraction of the best one's are considered equal, and the smallest
    is chosen."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield the best valid place for a cache, and notes on why better places are not valid."""
        pipeline = analysis.main
        if pipeline is None:
            return
        all_places = cache_places(analysis, pipeline)
        places = [candidate for candidate in all_places if self._is_worth_it(analysis, candidate)]
        if not places:
            yield from self._saves_little(all_places)
        fitting = [candidate for candidate in places if self._fits(analysis, candidate)]
        chosen: CachePlace | None = None
        for is_assumed in (False, True):  # places that depend on an assumption come last
            some = [candidate for candidate in fitting if bool(candidate.assumptions) is is_assumed]
            for candidates in (
                [candidate for candidate in some if not candidate.obstacles],
                [candidate for candidate in some if candidate.movable],
            ):
                best = best_place(analysis, candidates, self.equal_gain)
                if best and (chosen is None or chosen.prediction.value < self.equal_gain * best.prediction.value):
                    chosen = best
            if chosen is not None:
                break
        yield from forbidden(places, chosen, self.equal_gain)
        yield from self._unproved(analysis, fitting, chosen)
        if chosen is None:
            yield from self._too_large(analysis, places)
        elif chosen.is_repeated_below or is_read_again(analysis, pipeline, chosen.call):
            yield self._advice(analysis, chosen, larger_place(places, chosen, self.equal_gain))
        else:
            yield Note(
                "The window covered one pass over the data. If the script makes more passes, .cache() after "
                f"{label(chosen.call)} at {place(chosen.call)} would save the work of all but the "
                f"first{'.' if chosen.bytes is not None else ', if its elements fit in memory.'}"
            )

    def _saves_little(self, places: Sequence[CachePlace]) -> Iter[Rejected]:
        """Yield the place that would save most, if it is not enough."""
        most = max(places, key=lambda candidate: candidate.prediction.value, default=None)
        if most is not None and most.saved_share >= NEAR_SHARE:
            gain = most.prediction
            yield self.rejected(
                f"Cache after {label(most.call)}",
                f"the predicted gain is too small to be proved, {format_range(gain.value, gain.low, gain.high)}; it saves work "
                f"that causes {format_share(most.saved_share)} of the wait",
                call=most.call,
                evidence=(
                    Evidence("saved_blame_share", most.saved_share, "share"),
                    Evidence("predicted_speedup", gain.value, "ratio"),
                ),
            )

    def _unproved(self, analysis: Analysis, fitting: Sequence[CachePlace], chosen: CachePlace | None) -> Iter[Note]:
        """Yield the place that would save clearly more than the chosen one if its assumptions held."""
        assumed = [candidate for candidate in fitting if candidate.assumptions and not candidate.obstacles]
        better = best_place(analysis, assumed, self.equal_gain)
        if chosen is None or better is None or chosen.assumptions:
            return
        if better.prediction.value * self.equal_gain > chosen.prediction.value:
            yield Note(
                f"A cache after {label(better.call)} at {place(better.call)} would save more, but only if "
                f"{', and if '.join(better.assumptions)}"
            )

    def _is_worth_it(self, analysis: Analysis, candidate: CachePlace) -> bool:
        """Whether a cache saves enough.

        After another cache, the lower bound of the prediction must suffice, unless the work that is repeated after that cache
        is the main cause of a long wait. A library may have added the first one: tfds caches small datasets before they are
        decoded.
        """
        has_cache = any(upstream_call.method == "cache" for upstream_call in upstream_calls(analysis, candidate.call))
        is_main_cause = analysis.verdict.level == "high" and candidate.saved_share >= self.main_cause
        gain = candidate.prediction.low if has_cache and not is_main_cause else candidate.prediction.value
        return gain >= self.min_speedup

    def _fits(self, analysis: Analysis, candidate: CachePlace) -> bool:
        """Whether the cache fits in memory. Unknown sizes are accepted, but such a fix is not applied automatically."""
        if analysis.host is None or candidate.added_bytes is None:
            return True
        return candidate.added_bytes <= self.max_memory_share * analysis.host.memory_free_bytes

    def _advice(self, analysis: Analysis, chosen: CachePlace, larger: CachePlace | None) -> Finding:
        call, host = chosen.call, analysis.host
        break_even = find_break_even(analysis, analysis.main, chosen) if analysis.main is not None else None
        is_known = chosen.bytes is not None and host is not None
        if chosen.bytes is not None and host is not None:
            free = format_bytes(host.memory_free_bytes)
            size = f"The elements of an epoch take {format_bytes(chosen.bytes)}; {free} are free."
        elif chosen.element_bytes is not None:
            size = (
                f"One element takes {format_bytes(chosen.element_bytes)}; the number of elements per epoch is unknown, "
                "so check that they fit in memory."
            )
        else:
            size = "The size of an epoch is unknown, so check that it fits in memory."
        trade = instead_of(larger)
        size = f"{size} {trade}".rstrip()
        stored = f" although the cache at {place(chosen.replaced)} stores their input" if chosen.replaced else ""
        because = (
            f"Every epoch computes the same elements again up to {label(call)} at {place(call)}{stored}, which causes "
            f"{format_share(chosen.saved_share)} of the wait for input. {size}{order_of(chosen)}{relying_on(chosen)}"
        )
        is_written = (
            all(is_editable(edited) for edited in (call, *chosen.movable))
            if chosen.movable
            else takes_link(analysis, call)
        )
        return self.finding(
            f"{'Move the cache' if chosen.replaced else 'Cache'} after {label(call)}",
            because,
            call=call,
            prediction=chosen.prediction,
            memory_bytes=chosen.added_bytes,
            fix=Fix(
                cache_edits(chosen),
                cache_safety(chosen),
                is_auto=is_known and not chosen.assumptions,
                assumptions=chosen.assumptions,
            )
            if is_written
            else None,
            evidence=(
                Evidence("saved_blame_share", chosen.saved_share, "share"),
                *((Evidence("cache_bytes", chosen.bytes, "bytes"),) if chosen.bytes is not None else ()),
                *((Evidence("larger_cache_bytes", larger.bytes, "bytes"),) if larger and larger.bytes else ()),
                *((Evidence("free_memory", host.memory_free_bytes, "bytes"),) if host is not None else ()),
                *(break_even.evidence if break_even is not None else ()),
            ),
            trade=trade,
        )

    def _too_large(self, analysis: Analysis, places: Sequence[CachePlace]) -> Iter[Note]:
        smallest = min(
            (candidate for candidate in places if not candidate.obstacles and candidate.bytes is not None),
            key=lambda candidate: candidate.bytes or 0,
            default=None,
        )
        if smallest is not None and analysis.host is not None and smallest.bytes is not None:
            yield Note(
                f"A cache after {label(smallest.call)} at {place(smallest.call)} would save the work of later epochs, "
                f"but its {format_bytes(smallest.bytes)} exceed {format_share(self.max_memory_share)} of the "
                f"{format_bytes(analysis.host.memory_free_bytes)} of free memory."
            )


def instead_of(larger: CachePlace | None) -> str:
    """A sentence on the place that would save about as much and take more memory; empty if there is none."""
    if larger is None or larger.bytes is None:
        return ""
    gain = larger.prediction
    return (
        f"A cache after {label(larger.call)} at {place(larger.call)} would save about as much (predicted: "
        f"{format_range(gain.value, gain.low, gain.high)}) and take {format_bytes(larger.bytes)}."
    )


def order_of(chosen: CachePlace) -> str:
    """A sentence on what happens to the order; empty if no shuffle moves."""
    if not chosen.movable:
        return ""
    names = " and ".join(f"{call.method} ({place(call)})" for call in reversed(chosen.movable))
    return f" The effect of {names} moves after the cache."


def relying_on(chosen: CachePlace) -> str:
    """A sentence with the assumptions of the cache; empty if there are none."""
    return f" The cache assumes that {', and that '.join(chosen.assumptions)}." if chosen.assumptions else ""


def forbidden(places: Sequence[CachePlace], chosen: CachePlace | None, equal_gain: float) -> Iter[Note]:
    """Yield notes on why a cache is not valid where it would save clearly more.

    Args:
        places: All places that are worth a cache.
        chosen: The place that is chosen; None if there is none.
        equal_gain: As in the rule, 0 to 1.
    """
    gain = chosen.prediction.value if chosen else 1.0
    tempting = [
        candidate
        for candidate in places
        if not candidate.keeps_elements and candidate.prediction.value * equal_gain > gain
    ]
    for obstacle in {
        o.call.id: o for candidate in tempting for o in candidate.obstacles if o.kind == "content"
    }.values():
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
        note="If the script makes more passes, .cache() after",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=5, epochs=3),
        because="a cache would freeze the random numbers",
        note="cache is not legal above `augment`, it draws random numbers, train.py:4",
    ),
    silent(
        pipeline(source("Generator", ms=2), map_("decode", ms=1), batch(32), consumer_ms=5, epochs=3),
        because="a generator may yield different elements in every epoch",
        note="runs a Python generator",
    ),
    silent(
        pipeline(source(), repeat(), batch(32), map_("decode", ms=50), consumer_ms=5),
        because="batches that span the end of an epoch differ between epochs",
    ),
    silent(
        pipeline(source("Random", ms=0.1), map_("decode", ms=5), batch(32), consumer_ms=5, epochs=3),
        because="the source draws random numbers, though the map does not",
        note="draws random numbers",
    ),
    fires(
        pipeline(source(), cache(), map_("decode", ms=5, bytes=9_000), batch(32), consumer_ms=5, epochs=3),
        fixed="tf.data.TFRecordDataset(files)\nds = ds.map(decode)\nds = ds.batch(32).cache()",
    ),
    fires(
        pipeline(source(bytes=200_000), cache(), batch(32, ms=20), consumer_ms=2, epochs=3),
        fixed="ds = ds.batch(32).cache()",
    ),
    silent(
        pipeline(source(bytes=200_000), cache(), shuffle(), batch(32, ms=20), consumer_ms=2, epochs=3),
        because="a cache after the batch would freeze the order",
    ),
    silent(
        pipeline(source(), cache(), map_("augment", ms=5, random=True), batch(32), consumer_ms=5, epochs=3),
        because="a cache after the map would freeze the random numbers",
        note="cache is not legal above `augment`",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), batch(32), consumer_ms=5, epochs=3),
        because="the elements are already cached",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), take(100), consumer_ms=5, epochs=3),
        because="take ends the epoch early, and an incomplete cache is discarded",
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
