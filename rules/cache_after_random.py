"""cache-after-random: a cache stores the random numbers of the first epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    cache_obstacles,
    consumed_call,
    is_read_again,
    is_repeated_downstream,
    label,
    linear_chain,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class CacheAfterRandom(Rule):
    """A cache follows a function that draws random numbers, so every epoch repeats the augmentation of the first.

    ## Why it is slow
    This is a correctness problem rather than a performance problem. Augmentation is meant to show the model different
    data in every epoch, but the cache replays the first one. It is easy to miss because the training loss falls faster.

    ## What the fix does
    Put the cache before the first function that draws random numbers. Because this changes the elements, it is advice
    only. The function then runs in every epoch, so steps may take longer.

    ## When not to
    When the random numbers are meant to be drawn once for all epochs, for example for a fixed noisy dataset or a
    validation set.

    ## What tf.data already does
    It does not warn: a cache is allowed anywhere.
    """

    needs_input_bound: ClassVar[bool] = False

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each cache that holds random elements and is read in several epochs."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            if call.method != "cache":
                continue
            random = [o for o in cache_obstacles(analysis, call) if o.reason == "draws random numbers"]
            is_again = is_read_again(analysis, pipeline, call) or is_repeated_downstream(analysis, pipeline, call)
            if not random or not is_again or is_earlier_cached(analysis, random[-1].call.id, call.id):
                continue
            first = random[-1].call  # obstacles are sorted nearest first
            yield self.finding(
                f"Put the cache before {label(first)}",
                f"The cache at {place(call)} stores the random output of {label(first)} at {place(first)} from the "
                "first epoch, and every later epoch repeats it. Before the random function, the cache stores only "
                "deterministic elements.",
                call=call,
                evidence=(Evidence("random_calls", len(random), "calls"),),
            )


def is_earlier_cached(analysis: Analysis, random_id: str, cache_id: str) -> bool:
    """Whether another cache between the random call and this one already stores the random elements.

    Args:
        analysis: The run.
        random_id: Id of the call whose function draws random numbers.
        cache_id: Id of a cache downstream of it.
    """
    by_id = {call.id: call for call in analysis.calls}
    below = linear_chain(analysis, by_id[cache_id])[1:]
    earlier_caches = [call for call in below if call.method == "cache"]
    return any(random_id in {up.id for up in upstream_calls(analysis, call)} for call in earlier_caches)


EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("decode", ms=1),
            map_("augment", ms=0.1, random=True),
            cache(),
            batch(32),
            consumer_ms=5,
            epochs=3,
        )
    ),
    fires(pipeline(source(), map_("augment", ms=0.1, random=True), cache(), repeat(), batch(32), consumer_ms=50)),
    silent(
        pipeline(
            source(),
            map_("decode", ms=1),
            cache(),
            map_("augment", ms=0.1, random=True),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="the cache precedes the random function",
    ),
    silent(
        pipeline(source(), map_("augment", ms=0.1, random=True), cache(), batch(32), consumer_ms=5, epochs=1),
        because="the data is read once",
    ),
    silent(
        pipeline(source(), map_("tokenize", ms=0.1, python=True), cache(), batch(32), consumer_ms=5, epochs=3),
        because="it is unknown whether the Python code draws random numbers",
    ),
)
