"""window-datasets: every window of rows is a dataset of its own, which is put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.model.edits import DATA, Number
from advisor.model.op_effects import is_dataset_op
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
    Iterator,
    Note,
    Pipeline,
    Remove,
    Rule,
    Safety,
    SetFunction,
    WrapData,
    is_editable,
    iterators_inside,
    iterators_of_call,
    linear_chain,
    nested_calls,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, flat_map, map_, pipeline, prefetch, shuffle, silent, source, window

SOURCES = frozenset({"from_tensor_slices", "range"})
"""Sources of which all rows may be put together into one tensor: they are in memory already."""

MAX_BLOCK_WINDOWS = 512
"""Windows that one call makes: 4.5 us for each of 128, and 26 us for one per call, with 49 numbers (measured 2026-11-28). With
512 per call, a training was 1.035x (1.026 to 1.048) as fast as with 128; with 1,024, 1.025x (1.013 to 1.045)."""
MAX_BLOCK_BYTES = 1 << 22
"""Bytes of the windows that one call makes, at most: 4 MiB."""
MAX_TENSOR_BYTES = 1 << 28
"""Bytes of a tensor with all windows, at most: 256 MiB."""
INDEX_BYTES = 4
"""Bytes of the index that `tf.signal.frame` computes for each row of a window, while it makes the windows."""
KEEPING_ELEMENTS = frozenset({"cache", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "with_options"})
"""Methods whose results are elements of their input as they are."""
MIN_BLOCK_WINDOWS = 8
"""With fewer windows per call, they are made one by one: they are large, so that copying them is what costs."""


@dataclass(frozen=True)
class WindowDatasets(Rule):
    """`window` makes a dataset of every window, and `flat_map` puts its rows together again.

    ## Why it is slow
    Each window costs a dataset, an iterator, and one step of that iterator per row: with windows of 50 rows that overlap
    by 49, every row is passed on and copied 50 times, one at a time, in a single thread.

    ## What the fix does
    Windows that do not overlap are what `batch` makes, so `.batch(size)` replaces both calls. Windows that overlap are
    cut out of a tensor. Where `from_tensor_slices` is passed the rows, all windows are complete and fit in 256 MiB, it is
    passed all windows instead: `tf.signal.frame(rows, size, shift)`, once, when the script makes the dataset. Their length
    is then known, which `batch` leaves open; so a `map` behind them must make elements of a known shape.

    Otherwise, where the rows come directly from `from_tensor_slices` or `range`, they are put together once per epoch
    (`.batch(tf.int64.max)`), and `flat_map` cuts them out, 512 windows per call where all of them are complete and that
    takes less than 4 MiB. The elements and their order stay the same, bit for bit.

    Anything else is advice with code to start from: windows of several components, with a stride, or of rows that come
    from files or from a map. Where all rows fit in memory, load them into one tensor and slice it; if a `batch`
    follows, one `tf.gather` makes all windows of a batch at once, which is faster still. A window of the last rows that
    is dropped (`drop_remainder`) makes `batch` give its results a known length: a change of the element spec, which is
    left to the author.

    ## When not to
    When the rows do not fit in memory together.

    ## What tf.data already does
    Nothing.
    """

    left_share: float = 0.3
    """Assumed cost of slices relative to windows, 0.28 in the example (windows of 48 rows). It falls with the size of the
    windows; `batch` costs much less."""
    tensor_share: float = 0.03
    """Assumed cost of windows that are slices of one tensor: 0.004 to 0.031 with 8 to 400 rows (measured 2026-11-30)."""
    block_share: float = 0.08
    """Assumed cost of windows that are gathered 128 at a time: 0.03 to 0.07 with 8 to 100 rows (measured 2026-11-28)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each `window` whose datasets are only put together again."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for call in analysis.calls:
            chain = linear_chain(analysis, call)
            if call.method not in ("flat_map", "interleave") or call.nested_in is not None or len(chain) < 3:
                continue
            windows = chain[1]
            inner = nested_calls(analysis, call)
            iterators = iterators_of_call(pipeline, call)
            if (
                windows.method != "window"
                or not iterators
                or not any(inner_call.method == "batch" for inner_call in inner)
            ):
                continue
            yield from self._advice(analysis, pipeline, chain[2], windows, call, iterators)

    def _advice(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        before: Call,
        windows: Call,
        call: Call,
        copies: Sequence[Iterator],
    ) -> Iter[Finding]:
        inside = [it for copy in copies for it in iterators_inside(analysis, pipeline, copy, call)]
        inside += iterators_of_call(pipeline, windows)
        costs = {it.id: it for it in inside}
        share, count = sum(it.blame_share for it in costs.values()), sum(it.elements or 0 for it in copies)
        size = windows.arguments.get("size")
        if not count or not isinstance(size, int):
            return
        shift = windows.arguments.get("shift") or size
        edits, what = self._edits(analysis, before, windows, call)
        texts = [edit.text for edit in edits if isinstance(edit, SetFunction)]
        is_sliced, is_in_blocks = bool(texts), any(".unbatch()" in text for text in texts)
        is_tensor = any(isinstance(edit, WrapData) for edit in edits)
        likely_part = self.tensor_share if is_tensor else self.block_share if is_in_blocks else self.left_share
        none, left = (dict.fromkeys(costs, part) for part in (0.0, likely_part))
        limit, likely = predict_speedup(analysis, pipeline, none, none), predict_speedup(analysis, pipeline, left, left)
        if limit is None or likely is None:
            return
        is_counted = before.element_bytes is not None and before.cardinality is not None and before.cardinality > 0
        copied = (before.element_bytes or 0) * (before.cardinality or 0) if is_counted else None
        yield self.finding(
            what,
            f"window at {place(windows)} makes a dataset of each window of {size} rows, every {shift}, and {call.method} "
            f"at {place(call)} puts it together again. This takes "
            f"{format_ns(sum(it.busy_ns for it in costs.values()) / count)} per window and causes {format_share(share)} "
            "of the wait for input.",
            call=windows,
            iterator=copies[0],
            # What slices cost is unknown: it depends on the size of the windows.
            prediction=replace(limit, value=likely.value, low=1.0, effects=likely.effects, best_effects=limit.effects),
            memory_bytes=(
                bytes_of_windows(before, size, shift)
                if is_tensor and isinstance(shift, int)
                else copied
                if is_sliced or not edits
                else 0
            ),
            fix=Fix(edits, Safety.EXACT, is_auto=True) if edits else None,
            code="" if edits else code_to_start_from(windows, size, shift),
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("window_size", size, "rows"),
                Evidence("windows", count, "windows"),
            ),
        )

    def _edits(self, analysis: Analysis, before: Call, windows: Call, call: Call) -> tuple[tuple[Edit, ...], str]:
        """The edits, and what they do as a title; no edits if not everything is known."""
        advice = (), "Cut windows out of a tensor instead of making a dataset of each"
        size, shift = windows.arguments.get("size"), windows.arguments.get("shift")
        inner, stride = nested_calls(analysis, call), windows.arguments.get("stride")
        shift, stride = size if shift is None else shift, 1 if stride is None else stride
        if not isinstance(size, int) or not isinstance(shift, int) or stride != 1 or not 0 < shift <= size:
            return advice
        if call.method != "flat_map" or not is_batch_of(call, inner, size):
            return advice
        drops, inner_drops = (window_call.arguments.get("drop_remainder", False) for window_call in (windows, inner[0]))
        if not isinstance(drops, bool) or not isinstance(inner_drops, bool):
            return advice
        if not all(map(is_editable, (before, windows, call))):
            return advice
        if shift == size:
            batch_ = batch_edit_of(before, windows, size, drops, inner_drops)
            if batch_ is None:
                return advice
            return (batch_, Remove(windows.id), Remove(call.id)), f"Replace window and {call.method} with batch({size})"
        if before.method not in SOURCES or not is_one_tensor(before.element_spec):
            return advice
        in_all = bytes_of_windows(before, size, shift)
        is_small = in_all is not None and 0 < in_all <= MAX_TENSOR_BYTES
        is_complete = drops or inner_drops
        if before.method == "from_tensor_slices" and is_small and is_complete and can_have_known_length(analysis, call):
            axis = "" if before.element_spec.startswith("TensorSpec(shape=()") else ", axis=0"
            numbers = (Number("size", size), Number("shift", shift))
            wrapped = WrapData(before.id, windows.id, f"tf.signal.frame({DATA}, size, shift{axis})", numbers)
            return (wrapped, Remove(windows.id), Remove(call.id)), "Slice one tensor with all windows"
        edits = (
            InsertAfter(before.id, "batch", (("", Code("tf.int64.max")),), reader_id=windows.id),
            Remove(windows.id),
            SetFunction(call.id, slices_text(size, shift, drops, inner_drops, windows_per_block(before, size))),
        )
        return edits, "Cut windows out of one tensor instead of making a dataset of each"


def is_batch_of(call: Call, inner: tuple[Call, ...], size: int) -> bool:
    """Whether the function of a `flat_map` does nothing but batch a whole window.

    Args:
        call: The `flat_map`.
        inner: The calls made inside its function.
        size: Elements of a window.
    """
    function = call.function
    return (
        function is not None
        and function.is_traced
        and all(is_dataset_op(op) for op in function.ops)
        and [inner_call.method for inner_call in inner] == ["batch"]
        and inner[0].arguments.get("batch_size") == size
    )


def bytes_of_windows(before: Call, size: int, shift: int) -> int | None:
    """Size of a tensor with all complete windows, or of their indices if that is larger, in bytes; None if unknown.

    Args:
        before: The call that makes the rows.
        size: Rows of a window.
        shift: Rows from the start of one window to the next.
    """
    if not before.element_bytes or before.cardinality is None or before.cardinality < 0:
        return None
    return max(0, (before.cardinality - size) // shift + 1) * size * max(before.element_bytes, INDEX_BYTES)


def can_have_known_length(analysis: Analysis, call: Call) -> bool:
    """Whether elements may get a known length because that changes no element spec at the end of the pipeline.

    Args:
        analysis: The run.
        call: The call that makes the elements, or one that passes them on.
    """
    if has_known_shape(call):
        return True
    readers = [other for other in analysis.calls if call.id in other.inputs]
    return bool(readers) and all(
        (reader.method == "map" and has_known_shape(reader))
        or (reader.method in KEEPING_ELEMENTS and can_have_known_length(analysis, reader))
        for reader in readers
    )


def has_known_shape(call: Call) -> bool:
    """Whether the shapes of the elements that a call makes are known in full."""
    is_whole = bool(call.element_spec) and not call.element_spec.endswith("…")  # a long one is cut off
    return is_whole and "None" not in call.element_spec.replace("name=None", "")


def is_one_tensor(spec: str) -> bool:
    """Whether elements are single tensors of one known shape."""
    return spec.startswith("TensorSpec(shape=(") and "None" not in spec.replace("name=None", "")


def batch_edit_of(before: Call, windows: Call, size: int, windows_drop: bool, inner_drops: bool) -> InsertAfter | None:
    """The `batch` that makes the same elements as windows that do not overlap, with the same spec; None if none does.

    Args:
        before: The call before the `window`.
        windows: The `window`.
        size: Elements of a window.
        windows_drop: Whether `window` drops an incomplete window.
        inner_drops: Whether the `batch` inside the `flat_map` drops an incomplete batch.
    """
    if inner_drops:
        return InsertAfter(before.id, "batch", (("", size), ("drop_remainder", Code("True"))), reader_id=windows.id)
    count = before.cardinality
    if windows_drop and (count is None or count <= 0 or count % size):
        return None  # without the last window, `batch` would give the others a known length
    return InsertAfter(before.id, "batch", (("", size),), reader_id=windows.id)


def windows_per_block(before: Call, size: int) -> int:
    """How many windows one call of the function makes; 1 if their size in memory is unknown.

    Args:
        before: The call that makes the rows.
        size: Rows of a window.
    """
    if not before.element_bytes:
        return 1
    return max(1, min(MAX_BLOCK_WINDOWS, MAX_BLOCK_BYTES // (size * before.element_bytes)))


def slices_text(size: int, shift: int, windows_drop: bool, inner_drops: bool, block: int = 1) -> str:
    """The function that makes the windows of a tensor with all rows.

    Slices have no known length, like the results of a `batch` that keeps a remainder; rows that are gathered have one. Windows
    are gathered in blocks, and thus have no known length either if the number of their rows depends on that of all rows.

    Args:
        size: Rows of a window.
        shift: Rows from the start of one window to the next, at most `size`.
        windows_drop: Whether `window` drops an incomplete window.
        inner_drops: Whether the `batch` inside the `flat_map` drops an incomplete batch.
        block: How many windows one call makes. Only windows of equal length can be made together.
    """
    count = "tf.shape(rows, tf.int64)[0]"
    last = count if not windows_drop and not inner_drops else f"count - {size - 1}"
    starts = f"starts = tf.data.Dataset.range({last if shift == 1 else f'0, {last}, {shift}'})"
    slices = f"return starts.map(lambda first: rows[first : first + {size}])"
    if last == count:
        return _function(starts, slices)
    lines = [f"count = {count}"]
    if block < MIN_BLOCK_WINDOWS and not inner_drops:
        return _function(*lines, starts, slices)
    lines += [
        f"offsets = {f'tf.range({size}, dtype=tf.int64)' if inner_drops else f'tf.range(tf.minimum(count, {size}))'}"
    ]
    if block < MIN_BLOCK_WINDOWS:
        return _function(*lines, starts, "return starts.map(lambda first: tf.gather(rows, first + offsets))")
    blocks = "blocks = starts.map(lambda first: tf.gather(rows, first[:, tf.newaxis] + offsets))"
    return _function(*lines, f"{starts}.batch({block})", blocks, "return blocks.unbatch()")


def _function(*lines: str) -> str:
    return "\n".join(["def cut_windows(rows):", *(f"    {line}" for line in lines), ""])


def code_to_start_from(windows: Call, size: int, shift: object) -> str:
    """Windows of a tensor, a batch of them at a time; a batch where windows follow each other.

    Args:
        windows: The `window`, whose `stride` counts.
        size: Rows of a window.
        shift: Rows from the start of one window to the next, or an expression for them.

    Returns:
        Lines of Python code for the user to adapt.
    """
    if shift == size and windows.arguments.get("stride") in (None, 1):
        return f"windows = rows_dataset.batch({size}, drop_remainder=True)"
    stride = windows.arguments.get("stride")
    step = f" * {stride}" if isinstance(stride, int) and stride > 1 else ""
    last = f"({size} - 1){step}"
    return (
        f"starts = tf.data.Dataset.range(0, len(rows) - {last}, {shift})  # rows: all rows as one tensor\n"
        "windows = starts.batch(256).map(\n"
        f"    lambda first: tf.gather(rows, first[:, tf.newaxis] + tf.range({size}, dtype=tf.int64){step})\n"
        ")"
    )


_ROW = "TensorSpec(shape=(8,), dtype=tf.float32, name=None)"
_PUT_TOGETHER = flat_map(batch(20, ms=0.05), per_input=1, ms=0.02, op_shares={"BatchDatasetV2": 0.2})

EXAMPLES = (
    fires(
        pipeline(
            source("TensorSlice", spec=_ROW, bytes=32),
            window(20, shift=1, ms=0.05, drop_remainder=True),
            _PUT_TOGETHER,
            shuffle(),
            batch(64),
            consumer_ms=1,
            cores=2,
        ),
        fixed="def cut_windows(rows):\n    count = tf.shape(rows, tf.int64)[0]\n    offsets = tf.range(tf.minimum(count, 20))\n"
        "    starts = tf.data.Dataset.range(count - 19).batch(512)\n    blocks = starts.map(lambda first: tf.gather(rows, "
        "first[:, tf.newaxis] + offsets))\n    return blocks.unbatch()\n\n\nds = ds.flat_map(cut_windows)\n",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_ROW, bytes=32, elements=1_000),
            window(20, shift=1, ms=0.05, drop_remainder=True),
            _PUT_TOGETHER,
            map_("scale", ms=0.001, spec="TensorSpec(shape=(20, 8), dtype=tf.float32, name=None)"),
            batch(64),
            consumer_ms=1,
            cores=2,
        ),
        fixed="from_tensor_slices(tf.signal.frame(arrays, 20, 1, axis=0))",
    ),
    fires(
        pipeline(
            source("TFRecord", spec=_ROW),
            window(20, ms=0.05),
            _PUT_TOGETHER,
            prefetch(),
            consumer_ms=0.05,
            cores=2,
        ),
        fixed="(files).batch(20)\nds = ds.prefetch(tf.data.AUTOTUNE)\n",
    ),
    fires(
        pipeline(
            source("TFRecord", spec=_ROW),
            window(20, shift=1, ms=0.05, drop_remainder=True),
            _PUT_TOGETHER,
            batch(64),
            consumer_ms=1,
            cores=2,
        ),
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_ROW),
            window(20, shift=1, ms=0.005, drop_remainder=True),
            _PUT_TOGETHER,
            batch(64),
            consumer_ms=50,
            cores=2,
        ),
        because="the consumer does not wait",
    ),
    silent(
        pipeline(source("TensorSlice", spec=_ROW), batch(20), map_("spectrum", ms=2), consumer_ms=1, cores=2),
        because="the rows are batched, and no window is a dataset",
    ),
)
