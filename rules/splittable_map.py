"""splittable-map: one function does costly deterministic work and cheap random work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rejected,
    Rule,
    Split,
    cache_obstacles,
    cache_places,
    copies_of,
    downstream_calls,
    is_read_again,
    is_repeated_downstream,
    label,
    line_in,
    linear_chain,
    newly_saved_work,
    place,
    predict_speedup,
    share_of_wait,
    split_of,
)
from advisor.testing import batch, cache, fires, map_, pipeline, shuffle, silent, source, take


@dataclass(frozen=True)
class SplittableMap(Rule):
    """A single `map` does costly deterministic work followed by random work, so none of it can be cached.

    ## Why it is slow
    A cache after a function that draws random numbers would freeze them: every epoch would repeat the augmentation of
    the first. The whole function therefore runs in every epoch, including decoding and resizing, which always produce
    the same result.

    ## What the fix does
    It cuts the function at the first statement that draws a random number. What precedes it becomes a function of its
    own, followed by a cache, and a second map applies the rest: `.map(load_cached).cache().map(load)`. The first
    function returns the values that the rest uses, and the second one takes them as parameters. A cut inside a
    statement is possible where one call is the argument of another: `augment(decode(x))`. Shuffles before the map move
    after the cache. A cache before the map that feeds nothing else moves there.

    The lines are taken from the traced graph of the function. The fix is kept only if the two halves in one function
    have the same graph as the original, op by op, if the first half contains no op that may compute something else the
    next time, and if real elements confirm it. As all random ops are in the second half, they keep their seeds: a
    script with `tf.random.set_seed` draws the same numbers as before.

    Where the text cannot be cut safely, the finding names the line at which it could be cut by hand, and the reason
    why it is not cut automatically. [docs/splitting.md](splitting.md) lists what is cut and what is not.

    ## When not to
    When the elements between the two maps do not fit in memory (decoded images are larger than the files), or when the
    random numbers determine what is decoded (`decode_and_crop_jpeg` at a random position is cheaper than decoding the
    whole image once).

    ## What tf.data already does
    Nothing: it neither caches nor splits functions.
    """

    min_fixed_share: float = 0.5
    """Share of the function's time in ops that do not depend on random numbers. Below a half, most of the work is
    random and cannot be cached."""

    max_memory_share: float = 0.5
    """Share of the free memory that the cache may take, as in `repeated-work`."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each random map that spends most of its time on deterministic work."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map" and call.nested_in is None), None)
            if call is None or call.function is None or not call.function.random_ops or call.function.python_ops:
                continue
            if not is_cache_missing(analysis, pipeline, call):
                continue
            share = fixed_share(iterator, call)
            obstacle = cache_obstacle(analysis, pipeline, call)
            if obstacle is None and share < self.min_fixed_share:
                obstacle = f"only {format_share(share)} of the time of its ops is spent in deterministic ones"
            if obstacle is None:
                yield self._advice(analysis, pipeline, iterator, call, share)
            elif share_of_wait(pipeline, iterator) >= NEAR_SHARE and share >= NEAR_SHARE:
                drawn = call.function.random_site
                where = f"; it could be cut by hand at {line_in(call, drawn)}" if drawn is not None else ""
                yield self.rejected(
                    f"Split {label(call)} in two and cache between them",
                    f"{obstacle}{where}",
                    call=call,
                    evidence=(
                        Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                        Evidence("fixed_share", share, "share"),
                    ),
                )

    def _advice(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, share: float) -> Finding:
        free = analysis.host.memory_free_bytes if analysis.host is not None else 0
        split = split_of(analysis, pipeline, call, self.max_memory_share * free if free else float("inf"))
        before = share if split.ops is None else share_of(iterator, call, split.ops)
        if split.fix is not None and before < self.min_fixed_share:
            split = replace(split, fix=None, reason="most of the deterministic work follows that line")
        if split.fix is not None:
            share = before
        feeding = linear_chain(analysis, call)[1]
        left = {iterator_id: 1 - part for iterator_id, part in newly_saved_work(analysis, pipeline, feeding).items()}
        now = 1 - share * min(1.0, iterator.function_ns / max(1, iterator.busy_ns))
        left |= {it.id: now for it in copies_of(pipeline, iterator)}
        ops = costly_fixed_ops(iterator, call)
        later = predict_speedup(analysis, pipeline, left, left)
        drawn = call.function.random_site if call.function else None
        where = f" from {line_in(call, drawn)} on" if drawn else ""
        return self.finding(
            f"Split {label(call)} in two and cache between them",
            f"{label(call)} at {place(call)} draws random numbers{where}, so a cache after it would freeze the "
            f"augmentation of the first epoch. However, {format_share(share)} of the time of its ops is spent in "
            f"{ops}, which do not depend on them: in a separate map followed by .cache(), they run only in the first "
            f"epoch. {how(split)}",
            call=call,
            iterator=iterator,
            prediction=replace(later, first_pass=1.0) if later is not None else None,
            memory_bytes=split.added_bytes,
            fix=split.fix,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("fixed_share", share, "share"),
                *((Evidence("cut_line", split.line, "line"),) if split.line is not None else ()),
                *((Evidence("cache_bytes", split.bytes, "bytes"),) if split.bytes is not None else ()),
            ),
        )


def how(split: Split) -> str:
    """Sentences on where the function is cut and what crosses the cut, or on why it is not cut."""
    if split.fix is None:
        by_hand = f"It could be cut by hand at {split.where}. " if split.where else ""
        size = "is unknown" if split.bytes is None else f"is {format_bytes(split.bytes)} per epoch"
        return f"{by_hand}It is not cut automatically, because {split.reason}. The size of the elements at that point {size}."
    values = " and ".join(
        [", ".join(f"`{name}`" for name in split.names[:-1]), f"`{split.names[-1]}`"][len(split.names) < 2 :]
    )
    if split.element_bytes is None:
        size = ", of unknown size, so check that they fit in memory"
    else:
        size = f", {format_bytes(split.element_bytes)} per element"
        size += f" and {format_bytes(split.bytes)} per epoch" if split.bytes is not None else ""
    if split.replaced is not None:
        size += f". The cache at {place(split.replaced)} moves there"
    relying = f" The change assumes that {', and that '.join(split.fix.assumptions)}." if split.fix.assumptions else ""
    return f"It is cut at {split.where}; the first half passes on {values}{size}.{relying}"


def is_cache_missing(analysis: Analysis, pipeline: Pipeline, call: Call) -> bool:
    """Whether a cache before the random part would be read again, and none after it stores the results already.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: The map with the random function.
    """
    is_stored = any(other.method in ("cache", "snapshot") for other in downstream_calls(analysis, pipeline, call))
    is_again = is_read_again(analysis, pipeline, call) or is_repeated_downstream(analysis, pipeline, call)
    return is_again and not is_stored and len(linear_chain(analysis, call)) > 1


def cache_obstacle(analysis: Analysis, pipeline: Pipeline, call: Call) -> str | None:
    """Why a cache before the random part would be of no use or would change the data, as a clause; None if it would do good.

    A cache before the map is no obstacle: the new one replaces it, or takes what is computed from its elements.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: The map with the random function; it has an input.
    """
    for obstacle in cache_obstacles(analysis, linear_chain(analysis, call)[1]):
        if obstacle.kind != "order":
            return f"{obstacle.call.method} at {place(obstacle.call)} {obstacle.reason}"
    if any(candidate.call.id == call.id for candidate in cache_places(analysis, pipeline)):
        return None
    cut = next((other for other in downstream_calls(analysis, pipeline, call) if other.method.startswith("take")), None)
    where = f", because {cut.method} at {place(cut)} ends the pass early" if cut is not None else ""
    return f"a cache after its first half would not be read to its end in every epoch{where}"


def fixed_share(iterator: Iterator, call: Call) -> float:
    """Share of the measured time of the function's ops that is spent in ops that do not depend on random numbers."""
    return 0.0 if call.function is None else share_of(iterator, call, call.function.fixed_ops)


def share_of(iterator: Iterator, call: Call, ops: Mapping[str, int]) -> float:
    """Share of the measured time of the function's ops that is spent in some of them.

    Args:
        iterator: The iterator that runs the function.
        call: The call with the function.
        ops: Op type -> number of ops that count.
    """
    total = sum(op.total_ns for op in iterator.ops)
    facts = call.function
    if facts is None or total <= 0:
        return 0.0
    part = sum(op.total_ns * min(1.0, ops.get(op.op, 0) / max(1, facts.ops.get(op.op, 0))) for op in iterator.ops)
    return part / total


def costly_fixed_ops(iterator: Iterator, call: Call) -> str:
    """The two most expensive deterministic ops, for example `DecodeJpeg and ResizeBilinear`."""
    fixed = call.function.fixed_ops if call.function else {}
    return " and ".join([op.op for op in iterator.ops if op.op in fixed][:2])


_DECODE = {"DecodeJpeg": 0.8, "RandomUniform": 0.05, "Mul": 0.1}

EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        )
    ),
    fires(
        pipeline(
            source(),
            shuffle(),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=2,
        )
    ),
    silent(
        pipeline(
            source(),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=1,
        ),
        because="the data is read once",
    ),
    silent(
        pipeline(
            source(),
            map_("augment", ms=5, random=True, calls=8, op_shares={"RandomUniform": 0.7, "Mul": 0.2}, fixed=["Cast"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="the random part dominates the cost",
    ),
    fires(
        pipeline(
            source(),
            cache(),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        )
    ),
    fires(
        pipeline(
            source(),
            take(5_000),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        )
    ),
    silent(
        pipeline(
            source(),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            take(100),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="take ends the epoch early, and an incomplete cache is discarded",
    ),
    silent(
        pipeline(
            source(),
            map_("decode", ms=5),
            cache(),
            map_("augment", ms=5, random=True, calls=8, op_shares={"RandomUniform": 0.7, "Mul": 0.2}, fixed=["Cast"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="the costly deterministic work precedes a cache: the work is already split",
    ),
    silent(
        pipeline(
            source("Generator", ms=0.01),
            map_("load_and_augment", ms=5, random=True, calls=8, op_shares=_DECODE, fixed=["DecodeJpeg"]),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="its input may differ from epoch to epoch",
    ),
)
