"""unbatch-rebatch: blocks are split into single elements and batched again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    Call,
    Code,
    Edit,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    Iter,
    Note,
    Remove,
    Rule,
    Safety,
    is_editable,
    iterators_of_call,
    linear_chain,
    nested_calls,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, shuffle, silent, source, unbatch


@dataclass(frozen=True)
class UnbatchRebatch(Rule):
    """`unbatch` is followed by `batch`, so every row is processed individually between two blocks.

    ## Why it is slow
    Each row becomes a separate tensor, passes through an iterator, and is copied into the next batch. For small rows
    this costs far more than moving the bytes.

    ## What the fix does
    It replaces both calls with `.rebatch(n)`, which splits and concatenates whole blocks. Elements and order stay the
    same. It is applied only on request: `rebatch` requires that all blocks have the same structure, which is verified
    on real elements.

    ## When not to
    When a transformation between the two works on single rows (a `map`, a `filter`, a `shuffle`); nothing is reported
    in this case.

    ## What tf.data already does
    Nothing.
    """

    left_share: float = 0.1
    """Assumed cost of `rebatch`, which copies the same bytes in blocks, relative to the two calls. In the example, with
    rows of 32 bytes, it was about a tenth."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each `unbatch`, or `flat_map` of slices, directly followed by a `batch`."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for batched in analysis.calls:
            chain = linear_chain(analysis, batched)
            size = batched.arguments.get("batch_size")
            if batched.method != "batch" or not isinstance(size, int) or len(chain) < 3:
                continue
            apart = chain[1]
            is_apart = apart.method == "unbatch" or is_slices(analysis, apart)
            costs = [*iterators_of_call(pipeline, batched), *iterators_of_call(pipeline, apart)]
            if not is_apart or len(costs) < 2:
                continue
            share = sum(it.blame_share for it in costs)
            rows = max((it.elements or 0 for it in costs), default=0)
            none, left = ({it.id: part for it in costs} for part in (0.0, self.left_share))
            limit, likely = (
                predict_speedup(analysis, pipeline, none, none),
                predict_speedup(analysis, pipeline, left, left),
            )
            if not rows or limit is None or likely is None:
                continue
            yield self.finding(
                f"Replace {apart.method} and batch with rebatch({size})",
                f"{apart.method} at {place(apart)} splits blocks into rows and batch at {place(batched)} combines "
                f"them again. This takes {format_ns(sum(it.busy_ns for it in costs) / rows)} per row and causes "
                f"{format_share(share)} of the wait for input.",
                call=apart,
                iterator=costs[-1],
                # The cost of rebatch is unknown: it copies the same bytes in blocks.
                prediction=replace(limit, low=1.0),
                fix=self._fix(chain[2], apart, batched),
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("rows", rows, "rows"),
                ),
            )

    def _fix(self, before: Call, apart: Call, batched: Call) -> Fix | None:
        if not all(is_editable(edited) for edited in (before, apart, batched)) or batched.arguments.get(
            "num_parallel_calls"
        ):
            return None
        arguments: tuple[tuple[str, int | Code], ...] = (("", int(str(batched.arguments["batch_size"]))),)
        if batched.arguments.get("drop_remainder") is True:
            arguments += (("drop_remainder", Code("True")),)
        edits: tuple[Edit, ...] = (InsertAfter(before.id, "rebatch", arguments), Remove(apart.id), Remove(batched.id))
        return Fix(edits, Safety.EXACT, is_auto=False)


def is_slices(analysis: Analysis, call: Call) -> bool:
    """Whether a `flat_map` only splits its element into rows."""
    inner = nested_calls(analysis, call)
    ops = set(call.function.ops) if call.function else set()
    return (
        call.method == "flat_map"
        and [inner_call.method for inner_call in inner] == ["from_tensor_slices"]
        and ops <= {"TensorSliceDataset"}
    )


EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("read_block", ms=0.1),
            unbatch(500, ms=0.002),
            batch(1024, ms=2),
            prefetch(),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.map(read_block).rebatch(1024)\nds = ds.prefetch(tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), unbatch(64, ms=0.01), batch(256, ms=1), consumer_ms=1, cores=2),
        fixed="ds = tf.data.TFRecordDataset(files).rebatch(256)\nfor batch in ds",
    ),
    silent(
        pipeline(source(), unbatch(500, ms=0.002), shuffle(), batch(1024, ms=2), prefetch(), consumer_ms=1, cores=2),
        because="the rows are shuffled in between",
    ),
    silent(
        pipeline(
            source(),
            unbatch(500, ms=0.002),
            map_("scale", ms=0.01),
            batch(1024, ms=2),
            prefetch(),
            consumer_ms=1,
            cores=2,
        ),
        because="a map processes the rows in between",
    ),
    silent(
        pipeline(source(), unbatch(500, ms=0.0002), batch(1024, ms=0.1), prefetch(), consumer_ms=5, cores=2),
        because="the consumer does not wait",
    ),
)
