"""late-shrink: images are decoded whole, and a part of them is used."""

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
    is_cached_behind,
    label,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source

CROPS = frozenset({"Slice", "StridedSlice"})
"""Ops that cut a part out of an image (`tf.slice`, `tf.image.random_crop`, `image[...]`)."""

_SHAPES = frozenset({"Shape", "ShapeN", "Rank", "Size"})


@dataclass(frozen=True)
class LateShrink(Rule):
    """A JPEG is decoded whole, and the next thing that happens is that a part is cut out of it.

    ## Why it is slow
    Decoding is the costliest thing that is done with a JPEG, and its cost grows with the number of pixels. What lies outside of
    the part that is cut out is decoded for nothing.

    ## What the fix does
    The rule advises, it changes nothing: `tf.image.decode_and_crop_jpeg(contents, crop_window)` decodes only what is needed;
    `tf.io.extract_jpeg_shape` says beforehand how large the image is. The pixels at the edge of the part may differ by a little,
    since JPEG is decoded in blocks. The rule reads the graph of the function: the op that takes the decoded image cuts a part out
    of it.

    ## When not to
    When most of the image is kept. When the whole image is needed as well.

    ## What tf.data already does
    Nothing here: it never changes a function.
    """

    min_decode_share: float = 0.3
    """Share of the function's time in decoding. Below that, something else in it costs more."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each map that cuts a part out of the JPEG that it decodes, and for nothing else."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((each for each in iterator.calls if each.method == "map"), None)
            if catalog.base_type(iterator.name) not in catalog.MAPS or call is None or not is_cropped(call):
                continue
            share = decode_share(iterator)
            if share < self.min_decode_share or is_cached_behind(analysis, pipeline, call):
                continue
            limit = predict_speedup(analysis, pipeline, {iterator.id: 1 - share}, {iterator.id: 1 - share})
            yield self.finding(
                f"Decode only what is used in {label(call)}",
                f"{label(call)} at {place(call)} decodes whole JPEGs, {format_share(share)} of its time, and then cuts "
                "a part out of "
                f"each; it causes {format_share(iterator.blame_share)} of the wait for input. decode_and_crop_jpeg "
                "decodes that part only; how much of the image it is, is not known.",
                call=call,
                iterator=iterator,
                # How large the part is was not measured: the gain lies between nothing and all of the decoding.
                prediction=replace(limit, value=(1 + limit.value) / 2, low=1.0) if limit else None,
                evidence=(
                    Evidence("blame_share", iterator.blame_share, "share"),
                    Evidence("decode_share", share, "share"),
                ),
            )


def is_cropped(call: Call) -> bool:
    """Whether all that takes the decoded image is a crop (asking for its shape does not count)."""
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
        because="the whole image is resized before it is cut",
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
        because="decoding is not what costs",
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
