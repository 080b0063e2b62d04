"""late-shrink: images are decoded completely although only a part of them is used."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Rule,
    catalog,
    is_cached_downstream,
    iterators_of_call,
    label,
    place,
    predict_speedup,
    wait_share_of,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source

CROPS = frozenset({"Slice", "StridedSlice"})
"""Ops that crop an image (`tf.slice`, `tf.image.random_crop`, `image[...]`)."""

_SHAPES = frozenset({"Shape", "ShapeN", "Rank", "Size"})


@dataclass(frozen=True)
class LateShrink(Rule):
    """A JPEG is decoded completely and then immediately cropped.

    ## Why it is slow
    Decoding is usually the most expensive operation on a JPEG, and its cost grows with the number of pixels. Decoding
    the pixels outside the crop is wasted work.

    ## What the fix does
    Use `tf.image.decode_and_crop_jpeg(contents, crop_window)`, which decodes only the required part;
    `tf.io.extract_jpeg_shape` returns the image size beforehand. Pixels at the edge of the crop may differ slightly,
    because JPEG is decoded in blocks. This is advice only. The pattern is detected in the graph of the function: the op
    that consumes the decoded image is a crop.

    ## When not to
    When most of the image is kept, or when the whole image is needed as well.

    ## What tf.data already does
    Nothing: it never changes a function.
    """

    min_decode_share: float = 0.3
    """Share of the function's time spent decoding. Below that, other work in the function costs more."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each map that decodes a JPEG only to crop it."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            if catalog.base_type(iterator.name) not in catalog.MAPS or call is None or not is_cropped(call):
                continue
            share = decode_share(iterator)
            if share < self.min_decode_share or is_cached_downstream(analysis, pipeline, call):
                continue
            copies = {copy.id: 1 - share for copy in iterators_of_call(pipeline, call)}
            limit = predict_speedup(analysis, pipeline, copies, copies)
            yield self.finding(
                f"Decode only the cropped part in {label(call)}",
                f"{label(call)} at {place(call)} decodes complete JPEGs, {format_share(share)} of its time, and then "
                f"crops them. This causes {format_share(wait_share_of(pipeline, call))} of the wait for input. "
                "decode_and_crop_jpeg decodes only the crop; the size of the crop is unknown.",
                call=call,
                iterator=iterator,
                # The size of the crop is not measured: the gain lies between zero and the whole decoding time.
                prediction=replace(limit, value=(1 + limit.value) / 2, low=1.0) if limit else None,
                evidence=(
                    Evidence("blame_share", wait_share_of(pipeline, call), "share"),
                    Evidence("decode_share", share, "share"),
                ),
            )


def is_cropped(call: Call) -> bool:
    """Whether the decoded image is consumed only by crops, not counting ops that read its shape."""
    flow = call.function.flow if call.function else ()
    takers = {taker for maker, taker in flow if maker == "DecodeJpeg"} - _SHAPES
    return bool(takers) and takers <= CROPS


def decode_share(iterator: Iterator) -> float:
    """Share of the iterator's work that is decoding."""
    decoding = sum(op.total_ns for op in iterator.ops if op.op == "DecodeJpeg")
    return min(1.0, decoding / iterator.busy_ns) if iterator.busy_ns else 0.0


_CROP = {"DecodeJpeg": 0.8, "Slice": 0.05}

EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("load", ms=5, op_shares=_CROP, flow=[("ReadFile", "DecodeJpeg"), ("DecodeJpeg", "Slice")]),
            batch(16),
            prefetch(),
            consumer_ms=5,
            cores=4,
        )
    ),
    fires(
        pipeline(
            source(),
            map_(
                "load",
                ms=5,
                random=True,
                op_shares=_CROP,
                flow=[("DecodeJpeg", "Shape"), ("DecodeJpeg", "Slice"), ("Slice", "Cast")],
            ),
            batch(16),
            consumer_ms=5,
            cores=4,
        )
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=5, op_shares=_CROP, flow=[("DecodeJpeg", "ResizeBilinear"), ("ResizeBilinear", "Slice")]),
            batch(16),
            prefetch(),
            consumer_ms=5,
            cores=4,
        ),
        because="the whole image is resized before it is cropped",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=5, op_shares={"DecodeJpeg": 0.1, "Slice": 0.8}, flow=[("DecodeJpeg", "Slice")]),
            batch(16),
            prefetch(),
            consumer_ms=5,
            cores=4,
        ),
        because="decoding is a small part of the cost",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=0.1, op_shares=_CROP, flow=[("DecodeJpeg", "Slice")]),
            batch(16),
            prefetch(),
            consumer_ms=5,
            cores=4,
        ),
        because="the consumer does not wait",
    ),
)
