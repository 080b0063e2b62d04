"""python-generator: a Python generator makes the elements, one at a time."""

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
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class PythonGenerator(Rule):
    """A `from_generator` source makes the consumer wait.

    ## Why it is slow
    Each element is one call from TensorFlow into Python and back, on one thread, under the interpreter's lock. For small
    elements the call costs more than the generator's own work. Nothing behind the generator can make it faster, and `prefetch`
    only hides it as long as the consumer is slower.

    ## What the fix does
    The rule advises, it changes nothing: tf.data cannot see what a generator does. In order of what usually helps most: let
    TensorFlow read the data itself (`from_tensor_slices` for what fits in memory, `TFRecordDataset` or `TextLineDataset` for
    files, written once); yield whole batches instead of single elements and drop the `batch`; if every epoch yields the same
    elements, put `.cache()` right behind `from_generator`.

    ## When not to
    When the elements really come from Python alone (a simulator, a database client): then let several processes make them.
    A cache is wrong where the generator draws random numbers or reads something that changes.

    ## What tf.data already does
    It runs the generator ahead of the consumer when there is a prefetch. It cannot run one generator in parallel.
    """

    min_blame_share: float = 0.1
    """Share of the wait that the generator causes. With less, what it seems to cost may be waiting for a core that a map holds
    [seen: 4.9 % and 368 us an element, for a generator of bare numbers beside a costly map on two cores]."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each generator that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "from_generator"), None)
            if catalog.base_type(iterator.name) != "Generator" or call is None:
                continue
            if iterator.blame_share < self.min_blame_share:
                continue
            limit = predict_speedup(analysis, pipeline, {iterator.id: 0.0}, {iterator.id: 0.0})
            count = max(1, iterator.elements or iterator.num_calls)
            name = call.function.name if call.function and call.function.name else "the generator"
            because = (
                f"The Python generator {name} at {place(call)} causes {format_share(iterator.blame_share)} of the wait "
                f"for input: {format_ns(iterator.busy_ns / count)} for each of its elements, one at a time. A source "
                "without Python removes at most that."
            )
            yield self.finding(
                "Replace the Python generator by a source that TensorFlow reads itself",
                because,
                call=call,
                iterator=iterator,
                # What replaces it is not known, so its cost is not either: the gain lies between nothing and all of it.
                prediction=replace(limit, low=1.0) if limit else None,
                memory_bytes=None,
                evidence=(
                    Evidence("blame_share", iterator.blame_share, "share"),
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
        because="nearly all of the wait is for the batch",
    ),
    silent(
        pipeline(source("TensorSlice", ms=1), batch(32), consumer_ms=5, cores=8),
        because="the source is TensorFlow's own",
    ),
)
