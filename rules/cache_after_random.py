"""cache-after-random: a cache keeps the random numbers of the first epoch."""

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
    is_repeated_behind,
    label,
    linear_chain,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class CacheAfterRandom(Rule):
    """A cache stands behind a function that draws random numbers: every epoch sees the augmentation of the first.

    ## Why it is slow
    It is not slow, it is not what was meant: an augmentation is there to show the model something new in every epoch, and the
    cache shows it the same again. Nobody notices, since the loss falls faster.

    ## What the fix does
    The rule advises, it changes nothing, because the elements become different ones: put the cache before the first function
    that draws random numbers. The work of that function is then done in every epoch again, so the step may become longer.

    ## When not to
    When the random numbers are meant to be drawn once for all epochs (a fixed noisy data set, a validation set).

    ## What tf.data already does
    It warns of nothing here: a cache may stand anywhere.
    """

    needs_input_bound: ClassVar[bool] = False

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each cache that is read in several epochs and holds random elements."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            if call.method != "cache":
                continue
            random = [o for o in cache_obstacles(analysis, call) if o.reason == "draws random numbers"]
            is_again = is_read_again(analysis, pipeline) or is_repeated_behind(analysis, pipeline, call)
            if not random or not is_again or is_earlier_cached(analysis, random[-1].call.id, call.id):
                continue
            first = random[-1].call  # obstacles come nearest first
            yield self.finding(
                f"Put the cache before {label(first)}",
                f"The cache at {place(call)} keeps what {label(first)} at {place(first)} made of random numbers in the first "
                "epoch: every later epoch gets the same. Before it, the cache would keep only what is the same anyway.",
                call=call,
                evidence=(Evidence("random_calls", len(random), "calls"),),
            )


def is_earlier_cached(analysis: Analysis, random_id: str, cache_id: str) -> bool:
    """Whether another cache, between the random call and this one, has frozen it already: then that one is the cause."""
    by_id = {each.id: each for each in analysis.calls}
    below = linear_chain(analysis, by_id[cache_id])[1:]
    stored = [each for each in below if each.method == "cache"]
    return any(random_id in {up.id for up in upstream_calls(analysis, each)} for each in stored)


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
        because="the cache stands before the random function",
    ),
    silent(
        pipeline(source(), map_("augment", ms=0.1, random=True), cache(), batch(32), consumer_ms=5, epochs=1),
        because="the data is read once",
    ),
    silent(
        pipeline(source(), map_("tokenize", ms=0.1, python=True), cache(), batch(32), consumer_ms=5, epochs=3),
        because="nobody knows whether its Python code draws random numbers",
    ),
)
