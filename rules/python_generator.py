"""python-generator: a Python generator produces the elements one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    catalog,
    copies_of,
    place,
    predict_speedup,
    share_of_wait,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class PythonGenerator(Rule):
    """The consumer waits for a `from_generator` source.

    ## Why it is slow
    Each element requires a call from TensorFlow into Python and back, on one thread, under the interpreter lock. For
    small elements the call costs more than the generator's own work. No later transformation can make the generator
    faster, and `prefetch` hides its cost only if the consumer is slower.

    ## What the fix does
    This is advice only, because tf.data cannot inspect a generator. The options that usually help most come first: let
    TensorFlow read the data directly (`from_tensor_slices` for data that fits in memory, `TFRecordDataset` or
    `TextLineDataset` for files written once); yield whole batches instead of single elements and remove the `batch`; if
    every epoch yields the same elements, add `.cache()` directly after `from_generator`.

    ## When not to
    When the elements can only be produced in Python (a simulator, a database client). Distribute the generator over
    several processes instead. Do not cache if the generator draws random numbers or reads data that changes.

    ## What tf.data already does
    With a prefetch, it runs the generator ahead of the consumer. It cannot run a single generator in parallel.
    """

    min_blame_share: float = 0.1
    """Share of the wait caused by the generator. With less, its apparent cost may be time spent waiting for a core that
    a map occupies [measured: 4.9 % and 368 us per element for a generator of plain numbers next to a costly map on two
    cores]."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each generator that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "from_generator"), None)
            if catalog.base_type(iterator.name) != "Generator" or call is None:
                continue
            share = share_of_wait(pipeline, iterator)
            if share < self.min_blame_share:
                continue
            free = {it.id: 0.0 for it in copies_of(pipeline, iterator)}
            limit = predict_speedup(analysis, pipeline, free, free)
            count = max(1, iterator.elements or iterator.num_calls)
            name = call.function.name if call.function and call.function.name else "the generator"
            because = (
                f"The Python generator {name} at {place(call)} causes {format_share(share)} of the wait "
                f"for input: {format_ns(iterator.busy_ns / count)} per element, one at a time. A source without Python "
                "removes at most this share."
            )
            yield self.finding(
                "Replace the Python generator with a source that TensorFlow reads directly",
                because,
                call=call,
                iterator=iterator,
                # The cost of the replacement is unknown: the gain lies between zero and the whole cost of the generator.
                prediction=replace(limit, low=1.0) if limit else None,
                memory_bytes=None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("time_per_element", iterator.busy_ns / count, "ns"),
                    Evidence("python_time", iterator.python_ns, "ns"),
                ),
            )


EXAMPLES = (
    fires(pipeline(source("Generator", ms=1), batch(32), consumer_ms=5, cores=8)),
    fires(
        pipeline(source("Generator", ms=0.2), map_("normalize", ms=0.1), batch(64), prefetch(), consumer_ms=4, cores=2)
    ),
    silent(
        pipeline(source("Generator", ms=0.1), batch(32), consumer_ms=20, cores=8),
        because="the generator is faster than the consumer",
    ),
    silent(
        pipeline(source("Generator", ms=0.05), map_("augment", ms=2, random=True), batch(32), consumer_ms=20, cores=8),
        because="the consumer waits for the map",
    ),
    silent(
        pipeline(source("Generator", ms=0.05), batch(16, ms=10), consumer_ms=1, cores=2),
        because="the batch causes nearly all of the wait",
    ),
    silent(
        pipeline(source("TensorSlice", ms=1), batch(32), consumer_ms=5, cores=8),
        because="the source does not run Python",
    ),
)
