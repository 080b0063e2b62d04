"""vectorizable-map: a costly function is called once per element although all its ops accept a whole batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rejected,
    Rule,
    batch_after,
    batch_parser,
    catalog,
    is_cached_downstream,
    is_editable,
    iterators_of_call,
    label,
    mixed_function,
    parallel_calls,
    place,
    predict_speedup,
    ragged_text,
    record_parser,
    rows_of_lengths,
    vectorized_bytes,
    vectorizing_fix,
    vectorizing_obstacle,
    wait_share_of,
    with_parallel_end,
)
from advisor.testing import (
    batch,
    definition,
    fires,
    interleave,
    line,
    map_,
    padded_batch,
    pipeline,
    prefetch,
    shuffle,
    silent,
    source,
)

BATCHES = frozenset({"batch", "padded_batch"})


@dataclass(frozen=True)
class VectorizableMap(Rule):
    """A `map` before the `batch` is called once per element, although its ops can process a whole batch.

    ## Why it is slow
    Each call of the function runs its ops one by one on a small tensor. Starting an op costs about a microsecond, and
    calling the function tens of microseconds, so a function of many small ops spends most of its time on overhead.

    ## What the fix does
    It moves the `map` after the `batch`, out of the function of an `interleave` or `flat_map` if it comes last there
    (but for a `prefetch`), and calls the function through `tf.vectorized_map`, which replaces each op by
    one that processes the whole batch. With the example `examples/vectorizable_map.py`, the pipeline alone measured
    52 times as fast (42 to 64, on 2 cores that were also used by other processes). The loop that `tf.vectorized_map`
    falls back to for other ops is disabled, because it can be slower than the `map`; without it TensorFlow raises an
    error while tracing, and the fix is dropped before anything is measured. `advisor fix` keeps the change only if it
    sees the same bits in real elements. If only the last digits of floating-point numbers differ, it reports by how
    many units in the last place, and applies the change with `--allow numerics`. A function that draws random numbers
    draws others from the same distribution, and numbers of its own for each row of a batch; in a script with a fixed
    seed that requires `--allow rerandomized`. A function with branches or loops that depend on the element is tried
    only on request: what a branch does in a batch without a single row for it may not show in the compared elements.

    A function with a look-up, `decode_raw`, `tf.image.resize`, functions of `tf.strings` or a `tf.numpy_function` has no
    vectorised form as a whole. If such lines take a batch as they are, and all others can be vectorised, a new function is
    written beside the old one: it keeps the former and calls the latter through `tf.vectorized_map`, in the same order. For
    one element its graph must equal that of the old function, op by op, before anything is measured. The function must be a
    `def` in the file of the `map`, or in a file of the project that it is imported from, or a method of a class, without
    decorators, inner functions or more than one `return`. A lambda that only calls it, or a `functools.partial`, stays
    around the new function. A `tf.numpy_function` takes a batch if its function is straight code that calls only NumPy's
    element-wise functions, and others along an axis counted from the end (`np.fft.rfft`, `np.mean(x, axis=-1)`).

    A function that splits texts (`tf.strings.split`), looks up the words or applies element-wise ops to them, and is
    followed by a `padded_batch`, is called with a batch of texts as it is: its results are then ragged tensors, which
    `to_tensor()` pads to the longest row with the same value. A `padded_batch` to a fixed length stays, because it
    refuses longer rows where `to_tensor` would cut them.

    A function that parses features of varying length and is followed by a `padded_batch` is called with a batch of
    records. A new function is written beside it, with `parse_example` in place of `parse_single_example`: it pads a
    `FixedLenSequenceFeature`, and `tf.sparse.to_dense` a `VarLenFeature`, to the longest row of the batch. Only ops that
    keep zeros and empty texts may follow.
    A `padded_batch` with `padding_values`, to a fixed length or with `drop_remainder` stays.

    A function that makes a row as long as a number of its element says (`tf.range(length)`, `tf.random.normal([length])`),
    computes each value of it in the same way, and is followed by a `padded_batch`, is called with a batch of lengths. In
    a copy that is written beside it, the rows follow each other in one vector: `tf.ragged.range` numbers their values,
    and random numbers are drawn for the sum of the lengths. `tf.RaggedTensor.from_row_lengths` cuts the vector into
    rows, and `to_tensor()` pads them.

    The map then runs in parallel, and at the end of a pipeline `.prefetch(tf.data.AUTOTUNE)` follows it: tf.data adds no
    prefetch after a parallel map. Neither is written if the function runs Python code, or if it draws random numbers in a
    script that fixes a seed, because parallel calls draw them in no fixed order.

    ## When not to
    When the function reads a variable, a mutable table or a `tf.random.Generator`, or runs Python code, when its elements have
    different shapes, or when a `padded_batch` pads its results; nothing is reported in these cases. A vectorised
    function holds the intermediate results of a whole batch, so large images may take more memory than the caches of
    the cores.

    ## What tf.data already does
    It runs such maps in parallel and fuses them with the `batch` (`MapAndBatch`). This distributes the calls over
    threads but does not reduce their number. Its option `map_vectorization` existed up to TensorFlow 2.5.
    """

    min_batch_size: int = 8
    """Elements per batch. With fewer, few calls are saved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each map whose function can be called once per batch."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            batched = batch_after(pipeline, iterator, BATCHES) if call is not None else None
            size = batched.arguments.get("batch_size") if batched is not None else None
            if call is None or batched is None or not isinstance(size, int):
                continue
            if not iterator.elements or is_covered(call, batched) or is_cached_downstream(analysis, pipeline, call):
                continue
            if size < self.min_batch_size:
                share = wait_share_of(pipeline, call)
                if share >= NEAR_SHARE and vectorizing_fix(analysis, call, batched) is not None:
                    yield self.rejected(
                        _title(call, size),
                        f"with batches of {size}, few calls are saved",
                        call=call,
                        evidence=(Evidence("blame_share", share, "share"),),
                    )
                continue
            yield from self._advice(analysis, pipeline, iterator, call, batched, size)

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, batched: Call, size: int
    ) -> Iter[Finding | Rejected]:
        fix = vectorizing_fix(analysis, call, batched)
        mixed, ragged = mixed_function(analysis, call, batched), ragged_text(analysis, call, batched)
        parser, rows = batch_parser(analysis, call, batched), rows_of_lengths(analysis, call, batched)
        means = all_at_once(size)
        if fix is None and mixed.fix is not None:
            fix, means = mixed.fix, in_parts(mixed.where, size)
        elif fix is None and ragged.fix is not None:
            fix, means = ragged.fix, of_ragged_texts(size)
        elif fix is None and parser.fix is not None:
            fix, means = parser.fix, of_padded_records(size)
        elif fix is None and rows.fix is not None:
            fix, means = rows.fix, of_joined_rows(size)
        if fix is None:
            obstacle = vectorizing_obstacle(analysis, call, batched)
            reasons = (
                ("in parts", mixed.reason),
                ("on a batch of texts", ragged.reason),
                ("with tf.io.parse_example", parser.reason),
                ("with the rows of a batch in one vector", rows.reason),
            )
            more = "".join(f"; {way}: {reason}" for way, reason in reasons if reason)
            obstacle = f"{obstacle}{more}" if obstacle is not None else None
            if obstacle is not None and wait_share_of(pipeline, call) >= NEAR_SHARE:
                yield self.rejected(
                    _title(call, size),
                    obstacle,
                    call=call,
                    evidence=(Evidence("blame_share", wait_share_of(pipeline, call), "share"),),
                )
            return
        fix = with_parallel_end(analysis, pipeline, call, batched, fix)
        is_fused = any(fused.id == batched.id for fused in iterator.calls)
        calls = (iterator.elements or 0) * (size if is_fused else 1)
        ops = min(1.0, sum(op.total_ns for op in iterator.ops) / iterator.busy_ns) if iterator.busy_ns else 1.0
        left = ops + (1 - ops) / size
        share, copies = wait_share_of(pipeline, call), iterators_of_call(pipeline, call)
        likely, most = (
            predict_speedup(analysis, pipeline, factors, factors)
            for factors in ({copy.id: factor for copy in copies} for factor in (left, 1 / size))
        )
        if likely is None or most is None:
            return
        yield self.finding(
            _title(call, size),
            f"{label(call)} at {place(call)} is called once per element, {format_ns(iterator.busy_ns / calls)} per "
            f"call, of which its ops take {format_share(ops)}, and causes {format_share(share)} of the "
            f"wait for input. {means}",
            call=call,
            iterator=iterator,
            # How much cheaper the ops become is unknown: from hardly at all to one op in place of a batch of them.
            prediction=replace(
                likely,
                value=max(likely.value, (1 + most.value) / 2),
                low=1.0,
                high=most.high,
                best_effects=most.effects,
            ),
            memory_bytes=vectorized_bytes(
                analysis, pipeline, iterator, call, batched, size, parallel_calls(analysis, pipeline, call, fix)
            ),
            fix=fix if is_editable(call) and is_editable(batched) else None,
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("time_per_call", iterator.busy_ns / calls, "ns"),
                Evidence("op_share", ops, "share"),
                Evidence("batch_size", size, "elements"),
            ),
        )


def _title(call: Call, size: int) -> str:
    return f"Vectorise {label(call)}: one call per batch of {size}"


def all_at_once(size: int) -> str:
    """What a function becomes that is vectorised as a whole."""
    return f"All its ops can process the {size} elements of a batch at once."


def in_parts(where: str, size: int) -> str:
    """What a function becomes that is cut at these lines."""
    return (
        f"Some of its lines take the {size} elements of a batch as they are, and the ops of the others have vectorised "
        f"forms: it is cut at {where}."
    )


def of_ragged_texts(size: int) -> str:
    """What a function becomes that splits texts."""
    return f"It can split the {size} texts of a batch at once, into a ragged tensor that to_tensor() pads like padded_batch."


def of_padded_records(size: int) -> str:
    """What a function becomes that parses features of varying length."""
    return (
        f"tf.io.parse_example can parse the {size} records of a batch at once, and pads features of varying length like "
        "padded_batch."
    )


def of_joined_rows(size: int) -> str:
    """What a function becomes that makes rows of given lengths."""
    return (
        f"It can compute the rows of all {size} elements of a batch in one vector, which is then cut into rows and padded "
        "like by padded_batch."
    )


def is_covered(call: Call, batched: Call) -> bool:
    """Whether `scalar-map` (element-wise functions) or `parse-per-record` reports this map, or says why not."""
    function = call.function
    if function is None or (batched.method == "batch" and record_parser(call) is not None):
        return True
    known = catalog.ELEMENTWISE_OPS | catalog.ELEMENT_SPLITTING_OPS | catalog.BATCH_FORM_OPS
    known |= frozenset(function.ops) if function.batch_layers else frozenset()
    known |= frozenset(function.python_ops) if function.is_python_row_wise else frozenset()
    is_plain = function.is_elementwise is True and bool(function.ops) and known.issuperset(function.ops)
    return is_plain and not function.random_ops  # drawn as it is, a batch would share its numbers


_NORMALIZE = ("Mean", "SquaredDifference", "Sqrt", "Sub", "RealDiv")
_RECORD = "TensorSpec(shape=(), dtype=tf.string, name=None)"
_ROW = "TensorSpec(shape=(32,), dtype=tf.float32, name=None)"
_BATCH = "TensorSpec(shape=(None, 32), dtype=tf.float32, name=None)"
_PAIR = f"({_ROW}, TensorSpec(shape=(), dtype=tf.int64, name=None))"
_ANY = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
_WORDS = "TensorSpec(shape=(None,), dtype=tf.int64, name=None)"
_TEXTS = "TensorSpec(shape=(None, None), dtype=tf.int64, name=None)"
_LABELLED = f"({_WORDS}, TensorSpec(shape=(), dtype=tf.int64, name=None))"
_LOOKUP = line("code = table.lookup(word)", "lookup", ("LookupTableFindV2",), takes_batches=True)
_SUMS = line("return tf.cumsum(code * weights)", "cumsum", ("Mul", "Cumsum"))
_SPLIT = {"StringSplitV2": 0.2, "LookupTableFindV2": 0.1}
_PARSE = {"ParseExampleV2": 0.4, "SparseToDense": 0.05}
_TO_DENSE = (
    line("fields = tf.io.parse_single_example(record, FEATURES)", "parse_single_example", ("ParseExampleV2",)),
    line('return tf.sparse.to_dense(fields["ids"])', "to_dense", ("SparseToDense",)),
)
_LENGTH = "TensorSpec(shape=(), dtype=tf.int32, name=None)"
_RANGE = (
    line("steps = tf.cast(tf.range(length), tf.float32)", "range", ("Range", "Cast")),
    line("return tf.sin(steps / 5.0) + tf.random.normal([length])", "normal", ("Sin", "RealDiv", "AddV2", "Pack")),
)
_on_two_cores = partial(pipeline, consumer_ms=1, cores=2)
_map = partial(map_, ms=0.1)

EXAMPLES = (
    fires(
        _on_two_cores(
            source("TensorSlice", spec=_ROW), _map("normalize", ops=_NORMALIZE, op_share=0.3), batch(128), prefetch()
        ),
        fixed="ds = ds.batch(128)\nds = ds.map(\n    lambda rows: tf.vectorized_map(\n        "
        "tf.function(normalize), rows, fallback_to_while_loop=False\n    ),\n    num_parallel_calls=tf.data.AUTOTUNE,\n)\n",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_PAIR),
            _map("normalize", ops=_NORMALIZE, op_share=0.3, calls=4),
            shuffle(),
            batch(128),
            consumer_ms=1,
            cores=4,
        ),
        fixed="    ds.batch(128)\n    .map(\n        lambda *rows: tf.vectorized_map(\n            "
        "lambda row: tf.function(normalize)(*row), rows, fallback_to_while_loop=False\n        ),\n        "
        "num_parallel_calls=4,\n    )\n    .prefetch(tf.data.AUTOTUNE)\n",
    ),
    fires(
        _on_two_cores(
            source("ListFiles", elements=8),
            interleave(source(spec=_ROW), _map("normalize", ops=_NORMALIZE, op_share=0.3), prefetch(1), cycle_length=4),
            shuffle(),
            batch(128),
        ),
        fixed="(files).prefetch(1), cycle_length=4)\n",
    ),
    fires(
        _on_two_cores(
            source("ListFiles", elements=8),
            interleave(source(spec=_ROW), _map("normalize", ops=_NORMALIZE, op_share=0.3), cycle_length=4),
            shuffle(),
            batch(128),
        ),
        fixed="ds = (\n    ds.batch(128)\n    .map(\n        lambda rows: tf.vectorized_map(\n            "
        "tf.function(normalize), rows, fallback_to_while_loop=False\n        )\n    )\n)\n",
    ),
    silent(
        _on_two_cores(
            source("ListFiles", elements=8),
            interleave(source(spec=_ROW), _map("normalize", ops=_NORMALIZE, op_share=0.3), shuffle(), cycle_length=4),
            batch(128),
        ),
        because="each file is shuffled on its own after the map",
    ),
    silent(
        _on_two_cores(source("TensorSlice", spec=_ANY), _map("normalize", ops=_NORMALIZE, op_share=0.3), batch(128)),
        because="the elements may have different shapes, so they cannot be batched before the map",
    ),
    fires(
        _on_two_cores(
            source("TensorSlice", spec=_ROW), _map("augment", ops=_NORMALIZE, op_share=0.3, random=True), batch(128)
        ),
        fixed="ds = ds.batch(128)\nds = ds.map(\n    lambda rows: tf.vectorized_map(\n        "
        "tf.function(augment), rows, fallback_to_while_loop=False\n    )\n)\n",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            _map("augment", ops=("StatelessRandomUniformV2", *_NORMALIZE), op_share=0.3),
            batch(128),
        ),
        because="random numbers that follow from a seed argument have no vectorised form with the same numbers",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            _map("lookup", ops=_NORMALIZE, op_share=0.3, captured=("HashTableV2",)),
            batch(128),
        ),
        because="a look-up has no vectorised form; scalar-map reports functions that accept a batch as it is",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            _map("crop", ops=("ResizeBilinear", *_NORMALIZE), op_share=0.3),
            batch(128),
        ),
        because="resizing has no vectorised form",
    ),
    fires(
        _on_two_cores(
            source("TensorSlice", spec=_RECORD),
            _map(
                "encode",
                captured=("HashTableV2",),
                effects=("LookupTableSizeV2",),
                op_share=0.3,
                definition=definition("word", _LOOKUP, _SUMS),
            ),
            batch(128),
        ),
        fixed="def encode_batch(word):\n    code = table.lookup(word)\n\n    def encode_rows(code):\n        return "
        "tf.cumsum(code * weights)\n\n    return tf.vectorized_map(encode_rows, code, fallback_to_while_loop=False)\n\n\n"
        "ds = tf.data.Dataset.from_tensor_slices(arrays)\nds = (\n    ds.batch(128)\n    .map(encode_batch, "
        "num_parallel_calls=tf.data.AUTOTUNE)\n    .prefetch(tf.data.AUTOTUNE)\n)\n",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_RECORD),
            _map(
                "encode", captured=("MutableHashTableV2",), op_share=0.3, definition=definition("word", _LOOKUP, _SUMS)
            ),
            batch(128),
        ),
        because="the table is mutable: with a batch, all its rows are looked up at one time",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_RECORD),
            _map(
                "encode",
                captured=("HashTableV2",),
                op_share=0.3,
                definition=definition("word", line("if is_empty: return empty"), _LOOKUP, _SUMS),
            ),
            batch(128),
        ),
        because="the function may return before its end, so it is not cut",
    ),
    fires(
        _on_two_cores(
            source("TextLine", spec=_RECORD),
            _map("encode", op_shares=_SPLIT, captured=("HashTableV2",), ragged=(0,), spec=_WORDS),
            padded_batch(128, bytes=64_000, spec=_TEXTS),
        ),
        fixed="    ds.padded_batch(128)\n    .map(lambda *rows: (encode)(*rows).to_tensor(), "
        "num_parallel_calls=tf.data.AUTOTUNE)\n"
        "    .prefetch(tf.data.AUTOTUNE)\n",
    ),
    fires(
        _on_two_cores(
            source("TextLine", spec=f"({_RECORD}, TensorSpec(shape=(), dtype=tf.int64, name=None))"),
            _map(
                "encode",
                captured=("HashTableV2",),
                op_share=0.3,
                ragged=(0,),
                spec=_LABELLED,
                definition=definition(
                    "text, label",
                    line("return table.lookup(tf.strings.split(text)), label", "split", ("StringSplitV2",)),
                ),
            ),
            padded_batch(128, bytes=64_000, spec=f"({_TEXTS}, TensorSpec(shape=(None,), dtype=tf.int64, name=None))"),
        ),
        fixed="def encode_batch(*rows):\n    results = encode(*rows)\n    return results[0].to_tensor(), results[1]\n",
    ),
    fires(
        _on_two_cores(
            source("TFRecord", spec=_RECORD),
            _map(
                "parse", op_shares=_PARSE, parses_batches=True, spec=_WORDS, definition=definition("record", *_TO_DENSE)
            ),
            padded_batch(128, bytes=64_000, spec=_TEXTS),
        ),
        fixed='    fields = tf.io.parse_example(record, FEATURES)\n    return tf.sparse.to_dense(fields["ids"])\n',
    ),
    silent(
        _on_two_cores(
            source("TFRecord", spec=_RECORD),
            _map(
                "parse", op_shares=_PARSE, parses_batches=True, spec=_WORDS, definition=definition("record", *_TO_DENSE)
            ),
            padded_batch(128, bytes=64_000, spec=_TEXTS, padding_values=7),
        ),
        because="tf.sparse.to_dense pads with zeros",
    ),
    silent(
        _on_two_cores(
            source("TextLine", spec=_RECORD),
            _map("encode", op_shares=_SPLIT, captured=("HashTableV2",), spec=_WORDS),
            padded_batch(128, bytes=64_000, spec=_TEXTS),
        ),
        because="what the function does with the words is not known to be the same for those of a batch",
    ),
    silent(
        _on_two_cores(
            source("TextLine", spec=_RECORD),
            _map("encode", op_shares=_SPLIT, captured=("HashTableV2",), ragged=(0,), spec=_WORDS),
            padded_batch(128, bytes=64_000, spec=_TEXTS.replace("None, None", "None, 64"), padded_shapes="<list of 1>"),
        ),
        because="padded_batch pads to a fixed length and refuses longer rows, which to_tensor would cut",
    ),
    fires(
        _on_two_cores(
            source("TensorSlice", spec=_LENGTH),
            _map("wave", random=True, row_length=0, op_share=0.3, spec=_ANY, definition=definition("length", *_RANGE)),
            padded_batch(128, bytes=64_000, spec=_BATCH.replace("32", "None")),
        ),
        fixed="def wave_batch(length):\n    steps = tf.cast(tf.ragged.range(length).flat_values, tf.float32)\n    return (\n"
        "        tf.RaggedTensor.from_row_lengths(\n            tf.sin(steps / 5.0) + "
        "tf.random.normal([tf.reduce_sum(length)]), length\n        )\n        .to_tensor()\n    )\n",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_LENGTH),
            _map("wave", random=True, row_length=0, op_share=0.3, spec=_ANY, definition=definition("length", *_RANGE)),
            padded_batch(128, bytes=64_000, spec=_BATCH.replace("32", "None"), padding_values=7),
        ),
        because="to_tensor pads with zeros, and padded_batch with sevens",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_LENGTH),
            _map("wave", random=True, op_share=0.3, spec=_ANY, definition=definition("length", *_RANGE)),
            padded_batch(128, bytes=64_000, spec=_BATCH.replace("32", "None")),
        ),
        because="the values of a row are not known to be computed one like the other",
    ),
    fires(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            _map("normalize", ops=_NORMALIZE, op_share=0.3, spec=_ROW),
            padded_batch(128, bytes=16_384, spec=_BATCH, padded_shapes="<list of 1>"),
        ),
        fixed="(arrays).batch(128)\nds = (\n    ds.map(\n        lambda rows: tf.vectorized_map(\n            "
        "tf.function(normalize), rows, fallback_to_while_loop=False\n        ),\n        "
        "num_parallel_calls=tf.data.AUTOTUNE,\n    )\n    .prefetch(tf.data.AUTOTUNE)\n)\n",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            _map("trim", ops=_NORMALIZE, op_share=0.3, spec=_ANY),
            padded_batch(128, bytes=128_000, spec=_BATCH.replace("32", "None")),
        ),
        because="the function returns rows of several lengths, which are padded",
    ),
    fires(
        _on_two_cores(
            source(spec=_RECORD), _map("parse", op_shares={"ParseExampleV2": 0.3, "Mul": 0.05}, random=True), batch(128)
        ),
        fixed="ds = ds.batch(128)\nds = ds.map(\n    lambda rows: tf.vectorized_map(\n        "
        "tf.function(parse), rows, fallback_to_while_loop=False\n    )\n)\n",
    ),
    fires(
        _on_two_cores(
            source(spec=_RECORD),
            _map("parse", op_shares={"ParseExampleV2": 0.3, "Mul": 0.05}, spec=_ROW),
            padded_batch(128, bytes=16_384, spec=_BATCH),
        ),
        fixed="    ds.padded_batch(128)\n    .map(\n        lambda rows: tf.vectorized_map(\n            "
        "tf.function(parse), rows, fallback_to_while_loop=False\n        ),\n        num_parallel_calls=tf.data.AUTOTUNE,\n"
        "    )\n    .prefetch(tf.data.AUTOTUNE)\n",
    ),
    silent(
        _on_two_cores(source(spec=_RECORD), _map("parse", op_shares={"ParseExampleV2": 0.3, "Mul": 0.05}), batch(128)),
        because="parse-per-record reports functions that parse and draw no random numbers",
    ),
    silent(
        _on_two_cores(
            source(spec=_RECORD),
            map_("parse", ms=0.3, op_shares={"ParseExampleV2": 0.1, "DecodeJpeg": 0.6}, random=True),
            batch(128),
        ),
        because="decoding an image has no vectorised form",
    ),
    silent(
        _on_two_cores(
            source("TensorSlice", spec=_ROW),
            map_("scale", ms=0.02, ops=("Mul", "Sub"), op_share=0.1, elementwise=True),
            batch(1024),
        ),
        because="scalar-map reports element-wise functions, which need no conversion",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_ROW),
            _map("normalize", ops=_NORMALIZE, op_share=0.3),
            batch(4),
            consumer_ms=0.01,
            cores=2,
        ),
        because="with a batch of four, few calls are saved",
    ),
)
