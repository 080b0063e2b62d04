"""serial-interleave: inputs are interleaved, but one thread reads them all."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    Analysis,
    Call,
    Edit,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    Safety,
    SetArgument,
    catalog,
    core_use,
    is_editable,
    iterators_inside,
    label,
    nested_calls,
    parallel_safety,
    place,
    predict_parallel,
    python_share,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, interleave, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class SerialInterleave(Rule):
    """An `interleave` reads its inputs one at a time while cores are idle.

    ## Why it is slow
    Without `num_parallel_calls` an `interleave` only alternates between its inputs: each element is read, inflated and
    transformed when its turn comes, by the thread that asks for it.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` works on several inputs at once and keeps a few elements of each ready. The elements
    come in the same order as before as long as cycle and block length stay the same. Where the call leaves `cycle_length` to
    tf.data, which would choose another one for the parallel form, the fix writes down the one that was measured.

    ## When not to
    When all inputs are on one slow disk that loses time by jumping between files, or when the cores are busy already.

    ## What tf.data already does
    Nothing here: it never parallelises an `interleave` by itself, nor a `map` inside its function.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more calls have nowhere to run; how much more is worth is for the prediction to say."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each sequential interleave of two inputs or more that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None or use.free < self.min_free_cores:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "interleave"), None)
            cycle = iterator.parameters.get("cycle_length")
            if (
                catalog.base_type(iterator.name) != "Interleave"
                or call is None
                or not isinstance(cycle, int)
                or cycle < 2
            ):
                continue
            inside = iterators_inside(analysis, pipeline, iterator, call)
            python = sum(it.python_ns for it in inside)
            if inputs_are_one(analysis, call) or (python and python_share(analysis, pipeline)):
                continue
            share = sum(it.blame_share for it in inside)
            because = (
                f"The {cycle} inputs of {label(call)} at {place(call)} are read one at a time, which causes "
                f"{format_share(share)} of the wait for input, while {use.sentence}."
            )
            width = max(1.0, min(cycle, use.usable))
            yield self.finding(
                f"Read the inputs of {label(call)} in parallel",
                because,
                call=call,
                iterator=iterator,
                prediction=predict_parallel(analysis, pipeline, inside, 1, width),
                memory_bytes=None if iterator.element_bytes is None else 2 * cycle * iterator.element_bytes,
                fix=self._fix(analysis, call, cycle) if is_editable(call) else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("cycle_length", cycle, "inputs"),
                    Evidence("free_cores", use.free, "cores"),
                ),
            )

    def _fix(self, analysis: Analysis, call: Call, cycle: int) -> Fix:
        edits: tuple[Edit, ...] = (SetArgument(call.id, "num_parallel_calls", AUTOTUNE),)
        if call.arguments.get("cycle_length") in (None, TUNED):
            edits += (SetArgument(call.id, "cycle_length", cycle),)
        inner = (call, *nested_calls(analysis, call))
        return Fix(edits, max((parallel_safety(each) for each in inner), key=list(Safety).index), is_auto=True)


def inputs_are_one(analysis: Analysis, call: Call) -> bool:
    """Whether there is only one input to read."""
    return any(each.id in call.inputs and each.cardinality == 1 for each in analysis.calls)


EXAMPLES = (
    fires(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1), cycle_length=4),
            batch(32),
            consumer_ms=5,
            cores=8,
        ),
        fixed="cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(
            source("TensorSlice", elements=16),
            interleave(source(ms=0.1), map_("decode", ms=1)),
            prefetch(),
            consumer_ms=0.2,
            cores=4,
        ),
        fixed="num_parallel_calls=tf.data.AUTOTUNE, cycle_length=4)",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=16), interleave(source(ms=1), calls=TUNED), batch(32), consumer_ms=2, cores=8
        ),
        because="it is parallel",
    ),
    silent(
        pipeline(source("ListFiles", elements=1), interleave(source(ms=1)), batch(32), consumer_ms=5, cores=8),
        because="there is one file only",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=0.1)),
            map_("decode", ms=2, random=True),
            batch(32),
            consumer_ms=5,
            cores=8,
        ),
        because="the consumer waits for the map behind it",
    ),
)
