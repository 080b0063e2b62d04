"""autotune-off: an option forbids tf.data what it would do by itself."""

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
    """An option switches tf.data's autotuning or its default optimizations off, and the consumer waits for it.

    ## Why it is slow
    `options.autotune.enabled = False` leaves parallelism and buffers where they start; it and `apply_default_optimizations =
    False` also keep stateless maps sequential and inject no prefetch. Such lines are often copied from advice about memory, and
    stay.

    ## What the fix does
    It removes the line that sets the option, so that tf.data's default holds again. Elements and order stay the same.

    ## When not to
    When the option is there for a reason that still holds, such as a memory limit or a reproducible trace: then do by hand what
    tf.data would do (`num_parallel_calls`, `prefetch`).

    ## What tf.data already does
    Without the option: parallel calls for stateless maps, a tuned prefetch at the end, tuned parallelism and buffers wherever
    `AUTOTUNE` is given. If the script does these by hand, the option costs nothing and the rule is silent.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for the option that forbids what would make the consumer wait less."""
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
                names.append("puts no prefetch at the end")
            if not names:
                continue
            yield self.finding(
                f"Remove {option} = False",
                f"{option} = False at {place(call)}: tf.data {' and '.join(names)}, so that the consumer waits for it.",
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
        because="no option forbids anything",
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
        because="the script does by hand what tf.data may not",
    ),
    silent(
        pipeline(source(ms=1), shuffle(), batch(8), options(autotune__enabled=True), consumer_ms=4, cores=4),
        because="the option is on",
    ),
)
