"""rebuilt-every-epoch: the script makes the same dataset again for every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from advisor.model.units import format_count, format_ns, format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Note,
    Pipeline,
    Prediction,
    Rejected,
    Remade,
    Rule,
    is_repeated_behind,
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
    Make the dataset once, before the loop, and iterate over it in every epoch. A `shuffle` then still draws a new order in
    each epoch, because `reshuffle_each_iteration` is the default; with a seed, the order of the later epochs becomes another
    one, where each new dataset began with the same. This is advice only, because it moves statements of the script.

    ## When not to
    When the datasets differ on purpose: another file list, another augmentation or another batch size per epoch. They are
    compared by their arguments (code and constants of functions, and the beginning of large arrays), so a difference in what a
    Python object holds may be missed.

    ## What tf.data already does
    Nothing: each dataset is a new object to it.
    """

    needs_input_bound: ClassVar[bool] = False

    min_datasets: int = 3
    """Datasets made at the place. With two, the second may be for another purpose."""
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
        unread = [call for call in again.caches if not is_repeated_behind(analysis, pipeline, call)]
        lost = self._lost(analysis, pipeline, unread)
        if share < self.min_time_share and lost is None:
            return
        ends = f"The dataset that ends with {label(again.calls[0])} at {place(again.calls[0])}"
        if not again.is_equal:
            yield self.rejected(
                "Make the dataset once, before the loop",
                f"{ends} was made {again.count} times, with arguments that differ or could not be compared; making it takes "
                f"{format_ns(round(again.made_ns))}, {format_share(share)} of an epoch",
                evidence=(Evidence("made_time_share", share, "share"),),
            )
            return
        epoch_ns = again.epoch_ns
        gains = (1.0, 1.0, 1.0) if lost is None else (lost.value, lost.low, lost.high)
        value, low, high = (max(1.0, now / (epoch_ns / gain + pause_ns)) for gain in gains)
        caches = " and ".join(place(call) for call in unread)
        empty = (
            f" The cache at {caches} is empty in every new dataset, so that it is filled again and never read."
            if caches
            else ""
        )
        yield self.finding(
            "Make the dataset once, before the loop",
            f"{ends} was made {format_count(again.count)} times with equal arguments, once per epoch. Making it again takes "
            f"{format_ns(round(again.made_ns))}, {format_share(share)} of an epoch of {format_ns(round(now))}.{empty}",
            call=again.calls[0],
            prediction=Prediction(value, low, high, first_pass=1.0),
            code=_code(analysis, pipeline, again),
            evidence=(
                Evidence("datasets_made", again.count),
                Evidence("time_to_make", round(again.made_ns), "ns"),
                Evidence("epoch", round(now), "ns"),
                Evidence("made_time_share", share, "share"),
            ),
        )

    def _lost(self, analysis: Analysis, pipeline: Pipeline, caches: Sequence[Call]) -> Prediction | None:
        """What these caches would save if they were kept; None if that is too little, or if there is none."""
        work: dict[str, float] = {}
        for call in caches:
            work |= saved_work(analysis, pipeline, call)
        left = {iterator_id: 1 - share for iterator_id, share in work.items()}
        gain = predict_speedup(analysis, pipeline, left, left) if left else None
        return gain if gain is not None and gain.value >= self.min_speedup else None


def _mean_pause_ns(pipeline: Pipeline) -> float:
    """Time between two epochs in which the script waits for TensorFlow to destroy an iterator; it remains (`epoch-pauses`)."""
    pauses = [pause_ns for _, pause_ns in pipeline.consumer.releases[1:]] if pipeline.consumer is not None else []
    return fmean(pauses) if pauses else 0.0


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
    fires(pipeline(*_STAGES, consumer_ms=10, epochs=4, making_ms=400)),
    fires(pipeline(*_STAGES[:2], cache(), batch(32), consumer_ms=1, cores=2, epochs=4, making_ms=10)),
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
)
