"""serial-interleave: a single thread reads all inputs of an interleave."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    NEAR_SHARE,
    Analysis,
    Call,
    Edit,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rejected,
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
    Without `num_parallel_calls`, an `interleave` only alternates between its inputs. The thread that requests an
    element reads, decompresses and transforms it.

    ## What the fix does
    It sets `num_parallel_calls=tf.data.AUTOTUNE`, which processes several inputs at once and buffers a few elements of
    each. The order of the elements stays the same as long as cycle and block length do. If the call leaves
    `cycle_length` to tf.data, which would choose a different value for the parallel form, the fix also sets the
    measured value.

    ## When not to
    When all inputs are on a slow disk where parallel reads cause seeks, or when the cores are already busy.

    ## What tf.data already does
    Nothing: it never parallelises an `interleave`, or a `map` inside its function, automatically.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further parallel calls have no core to run on. The prediction decides whether they are
    worthwhile."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each sequential interleave of at least two inputs that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None:
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
            if use.free < self.min_free_cores:
                if share >= NEAR_SHARE:
                    yield self.rejected(
                        f"Read the inputs of {label(call)} in parallel",
                        f"no core is free: {use.sentence}",
                        call=call,
                        evidence=(Evidence("free_cores", use.free, "cores"),),
                    )
                continue
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
        return Fix(
            edits, max((parallel_safety(inner_call) for inner_call in inner), key=list(Safety).index), is_auto=True
        )


def inputs_are_one(analysis: Analysis, call: Call) -> bool:
    """Whether there is only one input to read."""
    return any(source_call.id in call.inputs and source_call.cardinality == 1 for source_call in analysis.calls)


EXAMPLES = (
    fires(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1), cycle_length=4),
            batch(32),
            consumer_ms=5,
            cores=8,
        ),
        fixed="    cycle_length=4,\n    num_parallel_calls=tf.data.AUTOTUNE,\n)",
    ),
    fires(
        pipeline(
            source("TensorSlice", elements=16),
            interleave(source(ms=0.1), map_("decode", ms=1)),
            prefetch(),
            consumer_ms=0.2,
            cores=4,
        ),
        fixed="    num_parallel_calls=tf.data.AUTOTUNE,\n    cycle_length=4,\n)",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=16), interleave(source(ms=1), calls=TUNED), batch(32), consumer_ms=2, cores=8
        ),
        because="the interleave is already parallel",
    ),
    silent(
        pipeline(source("ListFiles", elements=1), interleave(source(ms=1)), batch(32), consumer_ms=5, cores=8),
        because="there is only one file",
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
        because="the consumer waits for the map after it",
    ),
)
