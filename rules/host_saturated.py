"""host-saturated: all cores are busy; the remaining options are reported as a note, never as a finding."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.rule import Analysis, Finding, Iter, Note, Rule, cache_places, core_use
from advisor.testing import AUTOTUNE, batch, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class HostSaturated(Rule):
    """The consumer waits for its input, all cores are busy, and no repeated work can be cached.

    ## Why it is slow
    Preparing the input takes more computation than the machine can do in the time of a step. More parallel calls would
    only compete for the same cores.

    ## What the fix does
    No edit of the pipeline helps. What helps is less work (smaller images, cheaper ops, results computed once and
    stored) or more machines (`tf.data.experimental.service`). The report contains a note that says so.

    ## When not to
    When the cores are busy with other processes: the note shows how many cores the process itself uses.

    ## What tf.data already does
    Within the limits of autotuning, it divides the cores between its transformations and the training step.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition. With this many or more, the rules on parallelism apply, unless all of
    them together would make it faster by less than `min_speedup`, as on a machine with many cores."""
    min_own_share: float = 0.8
    """Share of the usable cores used by the process itself. Below that, other processes occupy the cores, and the
    result may differ in the next run."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield one note if no core is free and no cache is possible."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if (
            pipeline is None
            or use is None
            or not use.is_full(self.min_free_cores, self.min_own_share, self.min_speedup)
        ):
            return
        places = cache_places(analysis, pipeline)
        if any(not candidate.obstacles and candidate.prediction.value >= self.min_speedup for candidate in places):
            return
        yield Note(
            f"All cores are busy: {use.sentence}, so more parallel calls cannot help, and no work that is repeated in "
            "every epoch can be cached. The remaining options are less work (cheaper ops, smaller elements, results "
            "stored in files) or more machines (tf.data service)."
        )


EXAMPLES = (
    silent(
        pipeline(
            source(), map_("augment", ms=5, random=True, calls=AUTOTUNE), batch(32), consumer_ms=5, cores=4, epochs=3
        ),
        because="the result is a note",
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
