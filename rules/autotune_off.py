"""autotune-off: an option disables tf.data's autotuning or its default optimizations."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    Safety,
    SetOption,
    core_use,
    forbidding_options,
    is_editable,
    is_sequential_stateless_map,
    overlap_factors,
    place,
    predict_speedup,
    top_iterator,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, options, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class AutotuneOff(Rule):
    """An option disables tf.data's autotuning or its default optimizations, and the consumer waits as a result.

    ## Why it is slow
    `options.autotune.enabled = False` leaves parallelism and buffer sizes at their initial values. Both this option and
    `apply_default_optimizations = False` keep stateless maps sequential and suppress the automatic prefetch. Such lines
    are often copied from advice on saving memory and then left in place.

    ## What the fix does
    It removes the line that sets the option, which restores tf.data's default. Elements and order stay the same.

    ## When not to
    When the option is set for a reason that still applies, such as a memory limit or a reproducible trace. In that case
    set `num_parallel_calls` and `prefetch` manually.

    ## What tf.data already does
    Without the option it parallelises stateless maps, adds a tuned prefetch at the end, and tunes parallelism and
    buffer sizes wherever `AUTOTUNE` is given. If the script already does this manually, the option costs nothing and is
    not reported.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each option that disables an optimization the consumer would benefit from."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for call, option in forbidding_options(analysis, pipeline):
            use = core_use(analysis, pipeline)
            width = max(1.0, use.usable) if use else 1.0
            factors = {it.id: 1 / width for it in pipeline.iterators if is_sequential_stateless_map(it)}
            names = [f"keeps {', '.join(pipeline.iterator(i).name for i in factors)} sequential"] if factors else []
            top = top_iterator(pipeline)
            if top is not None and not top.is_async:
                names.append("adds no prefetch at the end")
            if not names:
                continue
            yield self.finding(
                f"Remove {option} = False",
                f"{option} = False at {place(call)}: tf.data {' and '.join(names)}, so the consumer waits.",
                call=call,
                prediction=predict_speedup(analysis, pipeline, overlap_factors(pipeline, factors)),
                memory_bytes=None,
                fix=Fix((SetOption(call.id, option, None),), Safety.EXACT, is_auto=True) if is_editable(call) else None,
                evidence=(Evidence("sequential_maps", len(factors), "maps"),),
            )


EXAMPLES = (
    fires(
        pipeline(source(ms=1), shuffle(), batch(8), options(autotune__enabled=False), consumer_ms=10, cores=4),
        fixed="options = tf.data.Options()\nds = ds.with_options(options)",
    ),
    fires(
        pipeline(
            source(),
            map_("decode", ms=1),
            batch(8),
            options(experimental_optimization__apply_default_optimizations=False),
            prefetch(),
            consumer_ms=2,
            cores=4,
        ),
        fixed="options = tf.data.Options()\nds = ds.with_options(options)",
    ),
    silent(
        pipeline(source(ms=1), shuffle(), batch(8), consumer_ms=4, cores=4),
        because="no option disables an optimization",
    ),
    silent(
        pipeline(
            source(),
            map_("decode", ms=1, calls=AUTOTUNE),
            batch(8),
            options(experimental_optimization__apply_default_optimizations=False),
            prefetch(),
            consumer_ms=1,
            cores=4,
        ),
        because="the script sets parallelism and prefetch manually",
    ),
    silent(
        pipeline(source(ms=1), shuffle(), batch(8), options(autotune__enabled=True), consumer_ms=4, cores=4),
        because="the option is enabled",
    ),
)
