"""rebuilt-every-epoch: the script makes the same dataset again for every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from advisor.model.units import format_bytes, format_count, format_ns, format_share
from advisor.rule import (
    Analysis,
    BuildOnce,
    BuiltOnce,
    CachePlace,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Pipeline,
    Prediction,
    Rejected,
    Remade,
    Rule,
    Safety,
    are_in_one_statement,
    best_place,
    built_once,
    cache_edits,
    cache_places,
    cache_safety,
    is_editable,
    is_repeated_downstream,
    label,
    place,
    predict_speedup,
    remade,
    saved_work,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class RebuiltEveryEpoch(Rule):
    """The script makes the same dataset again for every epoch, inside its loop or in a function that the loop calls.

    ## Why it is slow
    Making a dataset traces the function of each `map` and `filter`, lists files and copies arrays into tensors: tenths of
    a second for large functions. A new dataset also starts with nothing: a `cache()` in it is empty and is filled again in
    every epoch, without ever being read.

    ## What the fix does
    It moves what makes the dataset before the loop, so that every epoch iterates over the same one. A `shuffle` still draws
    a new order in each epoch, because `reshuffle_each_iteration` is the default, but other ones than before: with a seed each
    new dataset began with the same order. A script with a fixed seed is therefore changed only with `--allow rerandomized`. A
    cache in memory keeps its elements from the first epoch on. If there is none, one is added where `repeated-work` would
    add it, provided that its elements are known to be the same in every epoch and to fit in memory. Part of the gain is
    between the epochs, so it is proved on the whole script, over whole epochs.

    The text must show that every epoch makes the same dataset: assignments directly in the body of the loop, or an
    expression in the line that reads the dataset; functions of the same file, or of a module beside it, that do nothing
    but make it; and only names whose values cannot change during the loop (of a module, only functions, imports and
    numbers or strings that are assigned once). Otherwise it stays advice, and `advisor fix` names what is in the way.

    ## When not to
    When the datasets differ on purpose: another file list, another augmentation or another batch size per epoch. They are
    compared by their arguments (code and constants of functions, and the beginning of large arrays), the ops of their functions
    and the kind of their elements. Random ops, Python code, `reshuffle_each_iteration=False` without a seed, and a shuffle before
    a cache prevent it as well, because one dataset would keep what several drew anew.

    ## What tf.data already does
    Nothing: each dataset is a new object to it.
    """

    needs_input_bound: ClassVar[bool] = False

    min_datasets: int = 3
    """Datasets made at the place. With two, the second may be for another purpose."""
    max_memory_share: float = 0.5
    """Share of the free memory that caches may take which are kept from then on, as in `repeated-work`."""
    equal_gain: float = 0.9
    """Places for a cache whose predicted speedup is at least this fraction of the best one's are considered equal, as there."""
    min_time_share: float = 0.05
    """Share of the time of an epoch in which the dataset is made again. Below that, the gain is less than a factor of 1.05."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding if the dataset of the training is made again, with equal arguments, and that costs time."""
        pipeline = analysis.main
        again = remade(analysis, pipeline) if pipeline is not None else None
        if pipeline is None or again is None or again.count < self.min_datasets or not again.epoch_ns:
            return
        pause_ns = _mean_pause_ns(pipeline)
        now = again.made_ns + again.epoch_ns + pause_ns
        share = again.made_ns / now
        unread = [call for call in again.caches if not is_repeated_downstream(analysis, pipeline, call)]
        lost = self._lost(analysis, pipeline, unread)
        once = self._judged(analysis, pipeline, again)
        added = None if again.caches or not again.is_equal else self._added(analysis, pipeline, again, once)
        if share < self.min_time_share and lost is None and added is None:
            return
        ends = f"The dataset that ends with {label(again.calls[0])} at {place(again.calls[0])}"
        if not again.is_equal:
            yield self.rejected(
                "Make the dataset once, before the loop",
                f"{ends} was made {again.count} times, with arguments that differ or could not be compared; making it takes "
                f"{format_ns(round(again.made_ns))}, {format_share(share)} of an epoch",
                call=again.calls[0],
                evidence=(Evidence("made_time_share", share, "share"),),
            )
            return
        epoch_ns = again.epoch_ns
        kept = added.prediction if added is not None else lost
        gains = (1.0, 1.0, 1.0) if kept is None else (kept.value, kept.low, kept.high)
        made = (again.made_ns, *again.made_range_ns)
        # A pause lasts at most as long as the epoch before it, so that of a shorter epoch is probably shorter.
        pauses_ns = (pause_ns / gains[0], pause_ns, 0.0)
        value, low, high = (
            max(1.0, (made_ns + epoch_ns + pause_ns) / (epoch_ns / gain + later_ns))
            for made_ns, gain, later_ns in zip(made, gains, pauses_ns, strict=True)
        )
        caches = " and ".join(place(call) for call in unread)
        empty = (
            f" The cache at {caches} is empty in every new dataset, so that it is filled again and never read."
            if caches
            else ""
        )
        against = f" No change is proposed: {once.reason}." if once.reason else ""
        relying = f" It assumes that {', and that '.join(once.assumptions)}." if once.assumptions else ""
        takes = f"{format_ns(round(again.made_ns))}, {format_share(share)} of an epoch of {format_ns(round(now))}"
        title, more = "Make the dataset once, before the loop", ""
        if added is not None:
            title += f", and cache it after {label(added.call)}"
            more = (
                f" A cache after {label(added.call)} at {place(added.call)} then keeps {format_bytes(added.bytes or 0)} from the "
                f"first epoch on, and saves work that causes {format_share(added.saved_share)} of the wait for input."
            )
        yield self.finding(
            title,
            f"{ends} was made {format_count(again.count)} times with equal arguments, once per epoch. Making it again takes "
            f"{takes}.{empty}{more}{against}{relying}",
            call=again.calls[0],
            prediction=Prediction(value, low, high, first_pass=1.0, makes_once=True),
            memory_bytes=0 if once.reason else added.bytes if added is not None else once.bytes,
            fix=_fix(pipeline, again, once, added),
            code=_code(analysis, pipeline, again),
            evidence=(
                Evidence("datasets_made", again.count),
                Evidence("time_to_make", round(again.made_ns), "ns"),
                Evidence("epoch", round(now), "ns"),
                Evidence("made_time_share", share, "share"),
            ),
        )

    def _judged(self, analysis: Analysis, pipeline: Pipeline, again: Remade) -> BuiltOnce:
        """What making the dataset once does to the data; caches that do not fit in memory are a reason against it."""
        once = built_once(analysis, pipeline, again)
        free = analysis.host.memory_free_bytes if analysis.host is not None else None
        if once.bytes and free is not None and once.bytes > self.max_memory_share * free:
            return BuiltOnce(
                f"the cache would keep {format_bytes(once.bytes)}, more than {format_share(self.max_memory_share)} of the "
                f"{format_bytes(free)} of free memory"
            )
        return once

    def _added(self, analysis: Analysis, pipeline: Pipeline, again: Remade, once: BuiltOnce) -> CachePlace | None:
        """The best cache that the dataset could have if it were made once; None if none is known to be the same and to fit."""
        free = analysis.host.memory_free_bytes if analysis.host is not None else 0
        ids = {call.id for call in again.calls}
        places = [
            candidate
            for candidate in cache_places(analysis, pipeline, is_made_once=True)
            if candidate.bytes is not None
            and candidate.bytes <= self.max_memory_share * free
            and not candidate.assumptions
            and (candidate.movable or not candidate.obstacles)
            and all(call.id in ids and is_editable(call) for call in (candidate.call, *candidate.movable))
            and (not candidate.movable or are_in_one_statement(analysis, (candidate.call, *candidate.movable)))
        ]
        best = best_place(analysis, places, self.equal_gain) if not once.reason else None
        return best if best is not None and best.prediction.value >= self.min_speedup else None

    def _lost(self, analysis: Analysis, pipeline: Pipeline, caches: Sequence[Call]) -> Prediction | None:
        """What these caches would save if they were kept; None if that is too little, or if there is none."""
        work: dict[str, float] = {}
        for call in caches:
            work |= saved_work(analysis, pipeline, call)
        left = {iterator_id: 1 - share for iterator_id, share in work.items()}
        gain = predict_speedup(analysis, pipeline, left, left) if left else None
        return gain if gain is not None and gain.value >= self.min_speedup else None


def _mean_pause_ns(pipeline: Pipeline) -> float:
    """Time between two epochs in which the script waits for TensorFlow to destroy an iterator (`epoch-pauses`)."""
    pauses = [pause_ns for _, pause_ns in pipeline.consumer.releases[1:]] if pipeline.consumer is not None else []
    return fmean(pauses) if pauses else 0.0


def _fix(pipeline: Pipeline, again: Remade, once: BuiltOnce, added: CachePlace | None) -> Fix | None:
    """The fix; None if something is in the way, or if the dataset is not made in the user's own code."""
    reader = pipeline.consumer.site if pipeline.consumer is not None else None
    if once.reason or reader is None or not is_editable(again.calls[0]):
        return None
    is_known = once.bytes is not None and not once.assumptions
    edits = (BuildOnce(again.calls[0].id, reader), *(cache_edits(added) if added is not None else ()))
    levels = (once.safety, *((cache_safety(added),) if added is not None else ()))
    safety = max(levels, key=list(Safety).index)
    return Fix(edits, safety, is_auto=is_known, assumptions=once.assumptions)


def _code(analysis: Analysis, pipeline: Pipeline, again: Remade) -> str:
    """The loop with the dataset before it."""
    lines = sorted({call.site.line for call in again.calls if call.site is not None})
    if not lines:
        return ""
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    if pipeline.consumer is not None and pipeline.consumer.kind.startswith("keras"):
        use = "    model.fit(dataset, ...)"
    else:
        use = "    for batch in dataset:\n        ..."
    return f"dataset = ...  # as in {where}\nfor epoch in range(epochs):\n{use}"


_STAGES = (source(elements=3_200), map_("decode", ms=0.1), batch(32))

EXAMPLES = (
    fires(
        pipeline(source("Range", elements=3_200), batch(32), consumer_ms=10, epochs=4, making_ms=400),
        fixed="\nds = tf.data.Dataset.range(3200)\nds = ds.batch(32)\nfor epoch in range(4):\n    for batch in ds:\n",
    ),
    fires(pipeline(*_STAGES, consumer_ms=10, epochs=4, making_ms=400)),
    fires(pipeline(*_STAGES[:2], cache(), batch(32), consumer_ms=1, cores=2, epochs=4, making_ms=10)),
    fires(
        pipeline(
            source("Range", elements=3_200),
            map_("decode", ms=1, bytes=10_000),
            batch(32),
            consumer_ms=5,
            cores=2,
            epochs=4,
            making_ms=10,
        ),
    ),
    silent(pipeline(*_STAGES, consumer_ms=10, epochs=4, making_ms=20), because="making it takes 2 % of an epoch"),
    silent(pipeline(*_STAGES, consumer_ms=10, epochs=2, making_ms=400), because="two datasets may have two purposes"),
    silent(pipeline(*_STAGES, consumer_ms=10, epochs=4), because="all epochs read one dataset"),
    silent(
        pipeline(*_STAGES, consumer_ms=10, epochs=4, making_ms=400, makes_equal=False),
        because="the datasets differ",
    ),
    silent(
        pipeline(*_STAGES[:2], cache(), batch(32), repeat(3), consumer_ms=1, cores=2, epochs=4, making_ms=2),
        because="the repeat inside each dataset reads the cache, and making one takes little",
    ),
    silent(
        pipeline(
            source("Range", elements=3_200),
            map_("augment", ms=1, bytes=10_000, random=True),
            batch(32),
            consumer_ms=5,
            cores=2,
            epochs=4,
            making_ms=10,
        ),
        because="a cache would freeze the augmentation, and making the dataset takes little",
    ),
    silent(
        pipeline(
            source("Range", elements=3_200),
            map_("decode", ms=1, bytes=100 << 20),
            batch(32),
            consumer_ms=5,
            cores=2,
            epochs=4,
            making_ms=10,
        ),
        because="the elements of an epoch do not fit in memory, and making the dataset takes little",
    ),
)
