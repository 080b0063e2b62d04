"""host-saturated: the verdict that all cores are busy; what is left to do, never a finding."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.rule import Analysis, Finding, Iter, Note, Rule, cache_places, core_use
from advisor.testing import AUTOTUNE, batch, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class HostSaturated(Rule):
    """The consumer waits for its input, all cores are busy, and nothing that is computed again could be kept.

    ## Why it is slow
    There is more work than this machine does in the time of a step. More parallel calls would only take turns.

    ## What the fix does
    There is no edit of the pipeline. What helps is less work (smaller images, cheaper ops, work done once and stored: larger
    files read faster than images are decoded) or more machines (`tf.data.experimental.service`). The rule only says so.

    ## When not to
    When the cores are busy with something else: the note says how many cores the process itself uses.

    ## What tf.data already does
    It shares the cores among its transformations and the training step, as far as they are tuned.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition. With as much or more, rules about parallelism have their say."""
    min_own_share: float = 0.8
    """Share of the usable cores that the process itself takes. Below that, others keep them busy, and it may be different
    tomorrow."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """One note, where no core is free and no cache is legal."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if (
            pipeline is None
            or use is None
            or not use.is_measured
            or use.free >= self.min_free_cores
            or use.own < self.min_own_share * use.usable
        ):
            return
        places = cache_places(analysis, pipeline)
        if any(not each.obstacles and each.prediction.value >= self.min_speedup for each in places):
            return
        yield Note(
            f"All cores are busy: {use.sentence}, so more parallel calls cannot help, and nothing that is computed in "
            "every epoch "
            "could be kept. What is left is less work (cheaper ops, smaller elements, work stored in files) or more machines "
            "(tf.data service)."
        )


EXAMPLES = (
    silent(
        pipeline(
            source(), map_("augment", ms=5, random=True, calls=AUTOTUNE), batch(32), consumer_ms=5, cores=4, epochs=3
        ),
        because="a verdict is no finding",
        note="All cores are busy",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True, calls=2), batch(32), consumer_ms=5, cores=8),
        because="cores are free",
    ),
    silent(
        pipeline(source(), map_("decode", ms=1), batch(32), prefetch(), consumer_ms=100, cores=8),
        because="the consumer does not wait",
    ),
)
