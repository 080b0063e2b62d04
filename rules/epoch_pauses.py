"""epoch-pauses: the script waits between epochs until TensorFlow has destroyed the iterator."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Prediction, Rule, step_site, without_autotune
from advisor.testing import AUTOTUNE, batch, cache, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class EpochPauses(Rule):
    """Each epoch creates its own iterator, and the script waits until TensorFlow has destroyed the previous one.

    ## Why it is slow
    AUTOTUNE optimises a pipeline in a background thread: 10 ms after the iterator is created, then after another 20 ms,
    40 ms, 80 ms and so on. When the iterator is destroyed, it notifies this thread and waits for it to exit. TensorFlow
    wakes the thread before it sets the flag that the thread checks, so the thread may go back to sleep until its next
    period: the pause can be as long as the epoch. On two cores this happened about every second time with a parallel
    map in the pipeline, and one time in ten without (`docs/measuring.md`). The pause occurs at the end of a `for batch
    in dataset` loop or at the start of Keras' next epoch, and is not part of any step.

    ## What the fix does
    It sets `options.autotune.enabled = False`, so that there is no such thread. Calls with `tf.data.AUTOTUNE` then
    keep the parallelism with which they start anyway, one call per core and 16 at most. Because tf.data without
    AUTOTUNE makes no `map` parallel and adds no `prefetch`, the fix writes both where tf.data had added them. Elements
    and order stay the same. Only the whole script shows the gain, so `advisor fix` compares runs over whole epochs. If it
    keeps other changes, which make epochs shorter and their pauses a larger part of them, it tries this one on top, once
    the runs with these changes have shown pauses. The fix is not offered where AUTOTUNE runs more than 16 calls in
    parallel.

    By hand, you can use one iterator for all epochs instead and keep AUTOTUNE. In Keras, call
    `fit(dataset.repeat(), steps_per_epoch=...)` with the number of batches per epoch. In a custom loop, iterate over
    `dataset.repeat(epochs)` and derive the epoch from the step number. A `shuffle` before the `repeat` still reshuffles
    every epoch, and the first elements of the next epoch are prepared while the last steps of the current one run. Put
    `repeat` after `batch`; otherwise the last elements of an epoch share a batch with the first elements of the next.

    ## When not to
    When epochs are so long that the pause is negligible, or when the script will run on a machine with many more cores,
    on which AUTOTUNE would use more than 16 calls.

    ## What tf.data already does
    Nothing.
    """

    needs_input_bound: ClassVar[bool] = False

    min_epochs: int = 3
    """Pauses observed, not counting the first. Several are needed because each pause occurs at random."""
    min_time_share: float = 0.05
    """Share of the training time spent in the pauses. Below that, removing them gains less than a factor of 1.05."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the observed pauses between epochs take a significant share of the time."""
        consumer = analysis.main.consumer if analysis.main is not None else None
        if consumer is None or len(consumer.releases) <= self.min_epochs:
            return
        recording = analysis.recording
        if recording is not None and (recording.is_pipeline_alone or recording.as_if_step_ns is not None):
            return
        (first_ns, _), *rest = consumer.releases  # the first epoch is excluded because it traces and compiles
        pauses = [pause_ns for _, pause_ns in rest]
        epoch_ns = (rest[-1][0] - first_ns) / len(rest)
        mean_ns = statistics.fmean(pauses)
        if epoch_ns <= 0 or not self.min_time_share <= mean_ns / epoch_ns < 1:
            return
        reach_ns = 2 * statistics.stdev(pauses) / math.sqrt(len(pauses))
        low, high = (min(0.95, max(0.0, (mean_ns + by) / epoch_ns)) for by in (-reach_ns, reach_ns))
        share = min(mean_ns / epoch_ns, high)
        fix = without_autotune(analysis, analysis.main) if analysis.main is not None else None
        yield self.finding(
            "Use one iterator for all epochs" if fix is None else "Turn AUTOTUNE off, so that epochs end at once",
            "Between epochs the script waits until TensorFlow has destroyed the iterator: "
            f"{format_ns(round(mean_ns))} on average and {format_ns(max(pauses))} at most, {format_share(share)} of "
            f"the time over {len(pauses)} epochs.",
            site=step_site(analysis),
            prediction=Prediction(1 / (1 - share), 1 / (1 - low), 1 / (1 - high)),
            memory_bytes=0 if fix is None else None,  # AUTOTUNE limits the memory of what it tunes
            fix=fix,
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
    fires(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(1, 570, 1, 580, 575)),
        fixed="options = tf.data.Options()\noptions.autotune.enabled = False\n"
        "ds = ds.prefetch(tf.data.AUTOTUNE).with_options(options)",
    ),
    fires(
        pipeline(
            source(),
            map_("decode", ms=0.1),
            batch(32),
            consumer_ms=5,
            epoch_ms=700,
            pauses_ms=(1, 570, 1, 580, 575),
        ),
        fixed="ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE)\noptions = tf.data.Options()\n"
        "options.autotune.enabled = False\nds = ds.batch(32).with_options(options)",
    ),
    fires(
        pipeline(
            source(),
            map_("decode", ms=20, calls=AUTOTUNE),
            batch(32),
            prefetch(),
            consumer_ms=30,
            cores=64,
            epoch_ms=700,
            pauses_ms=(1, 570, 1, 580, 575),
        ),
    ),
    fires(pipeline(*_STAGES, consumer_ms=5, epoch_ms=3700, pauses_ms=(1340, 1, 1400, 1360))),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(1, 1, 2, 1, 1)),
        because="there was no pause",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=700, pauses_ms=(600, 580, 1)),
        because="two pauses after the first are too few",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=5, epoch_ms=60_000, pauses_ms=(1, 1500, 1, 1500, 1)),
        because="the epochs are long",
    ),
)
