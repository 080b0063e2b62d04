"""epoch-pauses: the script waits between its epochs until TensorFlow has let go of the iterator."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Prediction, Rule, step_site
from advisor.testing import batch, cache, fires, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class EpochPauses(Rule):
    """Each epoch makes an iterator of its own, and the script waits until TensorFlow has let go of the last one.

    ## Why it is slow
    AUTOTUNE looks at a pipeline in a thread of its own: 10 ms after the iterator was made, then after 20 more, 40, 80 and so
    on. An iterator that goes away tells that thread and waits until it has ended. TensorFlow wakes the thread before it sets
    the mark that the thread looks for, so the thread may go back to sleep until its next look: the pause can be as long as
    the epoch was. On two cores that was seen about every other time with a parallel map in the pipeline, once in ten times
    without one (`docs/measuring.md`), at the end of a loop `for batch in dataset` or at the beginning of Keras' next epoch.
    No step shows it.

    ## What the fix does
    One iterator over all epochs. Keras: `fit(dataset.repeat(), steps_per_epoch=...)` with the batches of an epoch. A loop:
    `dataset.repeat(epochs)`, and the step number says where an epoch ends. A `shuffle` in front shuffles anew each time as
    before, and the next epoch's first elements are made while the last one's steps run. It is advice only: it changes the
    loop.

    ## When not to
    When epochs are so long that nobody notices the pause. `repeat` belongs behind `batch`, or the last elements of an epoch
    share a batch with the first ones of the next.

    ## What tf.data already does
    Nothing here. Without AUTOTUNE (`options.autotune.enabled = False`) there is no such pause, and no tuning either.
    """

    needs_input_bound: ClassVar[bool] = False

    min_epochs: int = 3
    """Pauses that were seen, the first one left out: whether there is a pause is chance each time."""
    min_time_share: float = 0.05
    """Share of the training's time that the pauses take. Below that, going without them makes it less than 1.05 times
    faster."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where the pauses between the epochs that were seen cost."""
        consumer = analysis.main.consumer if analysis.main is not None else None
        if consumer is None or len(consumer.releases) <= self.min_epochs:
            return
        if analysis.recording is not None and analysis.recording.is_pipeline_alone:
            return
        (first_ns, _), *rest = consumer.releases  # the first epoch is not measured: it traces and compiles
        pauses = [pause_ns for _, pause_ns in rest]
        epoch_ns = (rest[-1][0] - first_ns) / len(rest)
        mean_ns = statistics.fmean(pauses)
        if epoch_ns <= 0 or not self.min_time_share <= mean_ns / epoch_ns < 1:
            return
        reach_ns = 2 * statistics.stdev(pauses) / math.sqrt(len(pauses))
        low, high = (min(0.95, max(0.0, (mean_ns + by) / epoch_ns)) for by in (-reach_ns, reach_ns))
        share = min(mean_ns / epoch_ns, high)
        yield self.finding(
            "Take all epochs out of one iterator",
            "Between two epochs the script waits until TensorFlow has let go of the iterator: "
            f"{format_ns(round(mean_ns))} on average and {format_ns(max(pauses))} at most, {format_share(share)} of the time "
            f"over {len(pauses)} epochs.",
            site=step_site(analysis),
            prediction=Prediction(1 / (1 - share), 1 / (1 - low), 1 / (1 - high)),
            evidence=(
                Evidence("epochs_seen", len(pauses), "epochs"),
                Evidence("mean_pause", round(mean_ns), "ns"),
                Evidence("longest_pause", max(pauses), "ns"),
                Evidence("epoch", round(epoch_ns), "ns"),
                Evidence("pause_time_share", share, "share"),
            ),
        )


_STAGES = (source(), cache(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(1, 570, 1, 580, 575))),
    fires(pipeline(*_STAGES, consumer_ms=5, epoch_ms=3700, pauses_ms=(1340, 1, 1400, 1360))),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(1, 1, 2, 1, 1)),
        because="nothing was waited for",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(600, 580, 1)),
        because="two pauses after the first are chance",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=60_000, pauses_ms=(1, 1500, 1, 1500, 1)),
        because="the epochs are long",
    ),
)
