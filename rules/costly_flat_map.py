"""costly-flat-map: the function of a flat_map or interleave computes before it makes a dataset, one element at a time."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.op_effects import is_dataset_op
from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    Analysis,
    Call,
    CoreUse,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Prediction,
    Rejected,
    Rule,
    Split,
    copies_of,
    core_use,
    flat_map_split,
    iterators_of_call,
    label,
    linear_chain,
    place,
    predict_part_parallel,
    share_of_wait,
)
from advisor.testing import batch, fires, flat_map, map_, pipeline, silent, source


@dataclass(frozen=True)
class CostlyFlatMap(Rule):
    """The function of a `flat_map` or `interleave` computes before it makes a dataset, while cores are idle.

    ## Why it is slow
    `flat_map` calls its function in the thread that asks for an element, and only when the dataset of the previous call
    has ended. Whatever the function computes for a dataset (decoding a recording, a spectrogram) therefore runs on one
    core, and everything downstream waits. An `interleave` without `num_parallel_calls` does the same.

    ## What the fix does
    It cuts the function before the statement that makes the dataset. What precedes it moves to a map of its own, which
    runs in parallel: `.map(slices_values, num_parallel_calls=tf.data.AUTOTUNE).flat_map(slices)`. The elements and
    their order stay the same. A cut inside a statement is possible where one call is the argument of another:
    `from_tensor_slices(decode(x))`.

    The fix is kept only if the two halves in one function have the same graph as the original, op by op, if the first
    half draws no random numbers and runs no Python code, and if real elements confirm it. Where the text cannot be cut
    safely, the finding names the line at which it could be cut by hand, and the reason why it is not cut
    automatically.
    [docs/splitting.md](splitting.md) lists what is cut and what is not.

    ## When not to
    When what the function computes is large: the parallel map holds the results of several elements in memory at a
    time. With a `take` after it, elements are computed that are never used.

    ## What tf.data already does
    Nothing: it parallelises maps, not the function of a `flat_map`.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, as in `serial-map`."""
    min_share: float = 0.2
    """Share of the time of the `flat_map` that moves to the map. With less, the gain is at most 1.25x of its own time."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each of these calls whose function does more than make a dataset."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if is_sequential(call) and not call.nested_in), None)
            if call is None or call.function is None or call.function.python_ops:
                continue
            share = moved_share(iterator, call, None)
            if share < self.min_share:
                continue
            if use.free < self.min_free_cores:
                yield self.rejected(
                    f"Parallelise what {label(call)} computes",
                    f"no core is free: {use.sentence}",
                    call=call,
                    evidence=(Evidence("free_cores", use.free, "cores"),),
                )
                continue
            yield self._advice(analysis, pipeline, iterator, call, use)

    def _advice(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, use: CoreUse) -> Finding:
        split = flat_map_split(analysis, call)
        share = moved_share(iterator, call, split)
        inputs = sum(it.elements or 0 for it in iterators_of_call(pipeline, linear_chain(analysis, call)[1]))
        wanted = max(1.0, use.usable)
        prediction = predict_part_parallel(analysis, pipeline, copies_of(pipeline, iterator), share, inputs, wanted)
        return self.finding(
            f"Move what {label(call)} computes to a parallel map before it",
            f"{label(call)} at {place(call)} computes before it makes a dataset, for one element at a time: "
            f"{format_share(share)} of its time is spent in {costly_ops(iterator)}, while {use.sentence}. It causes "
            f"{format_share(share_of_wait(pipeline, iterator))} of the wait for input. {how(split)}",
            call=call,
            iterator=iterator,
            prediction=prediction,
            memory_bytes=None if split.element_bytes is None else round(wanted) * split.element_bytes,
            fix=None if split.fix is None or not is_gain(prediction) else split.fix,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("moved_share", share, "share"),
                Evidence("free_cores", use.free, "cores"),
                *((Evidence("cut_line", split.line, "line"),) if split.line is not None else ()),
            ),
        )


def is_sequential(call: Call) -> bool:
    """Whether the call passes on datasets that its function makes one after the other."""
    return call.method in ("flat_map", "interleave") and call.arguments.get("num_parallel_calls") is None


def is_gain(prediction: Prediction | None) -> bool:
    """Whether something was measured, and it promises a gain."""
    return prediction is not None and prediction.value > 1


def moved_share(iterator: Iterator, call: Call, split: Split | None) -> float:
    """Share of the busy time of such a call that would move to a map: that of the ops which make no dataset.

    Args:
        iterator: The iterator of the call.
        call: The `flat_map` or `interleave`.
        split: Where its function is cut; None, or without ops, if that is unknown.
    """
    total = sum(op.total_ns for op in iterator.ops)
    if call.function is None or total <= 0 or iterator.busy_ns <= 0:
        return 0.0
    all_ops = {op: count for op, count in call.function.ops.items() if not is_dataset_op(op)}
    ops = all_ops if split is None or split.ops is None else split.ops
    part = sum(
        op.total_ns * min(1.0, ops.get(op.op, 0) / max(1, call.function.ops.get(op.op, 0))) for op in iterator.ops
    )
    return part / total * min(1.0, iterator.function_ns / iterator.busy_ns)


def costly_ops(iterator: Iterator) -> str:
    """The two most expensive ops of the function: `STFT and Log1p`."""
    return " and ".join([op.op for op in iterator.ops if not is_dataset_op(op.op)][:2])


def how(split: Split) -> str:
    """Sentences on where the function is cut and what crosses the cut, or on why it is not cut."""
    if split.fix is None:
        by_hand = f"It could be cut by hand at {split.where}. " if split.where else ""
        return f"{by_hand}It is not cut automatically, because {split.reason}."
    names = [f"`{name}`" for name in split.names]
    values = " and ".join([", ".join(names[:-1]), names[-1]][len(names) < 2 :])
    size = "of unknown size" if split.element_bytes is None else f"{format_bytes(split.element_bytes)} per element"
    assumed = f" The change assumes that {' and '.join(split.fix.assumptions)}." if split.fix.assumptions else ""
    return f"It is cut at {split.where}; the map passes on {values}, {size}.{assumed}"


_SPECTRUM = {"DecodeRaw": 0.2, "RFFT": 0.6, "Log1p": 0.15}

_SLICES = flat_map(source("TensorSlice"), per_input=200, ms=10, op_shares=_SPECTRUM)

EXAMPLES = (
    fires(pipeline(source(), _SLICES, batch(64), consumer_ms=1, cores=4)),
    silent(pipeline(source(), _SLICES, batch(64), consumer_ms=1, cores=4, busy_cores=4), because="the cores are busy"),
    silent(
        pipeline(
            source(),
            map_("spectrum", ms=10),
            flat_map(source("TensorSlice"), per_input=200, ms=0.2, op_shares={"Shape": 0.1}),
            batch(64),
            consumer_ms=1,
            cores=4,
        ),
        because="the function only makes a dataset",
    ),
    silent(
        pipeline(
            source(),
            flat_map(source("TensorSlice"), per_input=200, ms=10, op_shares=_SPECTRUM, python=True),
            batch(64),
            consumer_ms=1,
            cores=4,
        ),
        because="it runs Python code: see python-lock",
    ),
    silent(
        pipeline(
            source(),
            flat_map(source("TensorSlice"), per_input=200, ms=1, op_shares=_SPECTRUM),
            batch(64),
            consumer_ms=50,
            cores=4,
        ),
        because="the training takes longer than the input",
    ),
)
