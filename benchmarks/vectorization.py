"""Which functions of a `map` can be called once per batch, and what the advisor decides about them.

    python benchmarks/vectorization.py [--write-docs]

In: `FUNCTIONS`, as scripts have them.  Out: a table: whether `tf.vectorized_map` converts the function without a loop, what the
comparison of elements says of it, how much faster it is, and what the advisor decides. Functions that accept a batch as it is are
compared and timed that way. The timings are short: other processes change them by tens of percent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
from published import tensorflow_version, write_section

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.capture.instrument.straight_code import is_straight_code
from advisor.model.calls import Call
from advisor.model.catalog import BATCH_FORM_OPS, ELEMENT_SPLITTING_OPS, ELEMENTWISE_OPS
from advisor.model.edits import MoveAfter, Vectorize
from advisor.model.finding import Safety
from advisor.model.vectorizable_ops import DRAWING_OPS, LOOP_INVARIANT_OPS, VECTORIZABLE_OPS
from advisor.predict import vectorizing_fix
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.replay.batch_function import batch_function
from advisor.replay.replay import CannotReplay
from advisor.testing import batch, map_, pipeline, source

DOCS = Path(__file__).parents[1] / "docs" / "vectorization.md"
ROWS, BATCH, TIMED_BATCH = 70, 16, 128
TURNS, TURN_S = 3, 0.25
PROPOSED = "vectorised, if equal"
AS_IT_IS = "moved after the batch as it is"
DATA = tf.data.Dataset


@dataclass(frozen=True)
class Row:
    """What was seen of one function."""

    kind: str
    name: str
    is_converted: bool
    seen: str
    """The safety level seen with the change, with the deviation if there is one; empty if the function is not converted."""
    speedup: float | None
    """Elements per second after over before the change; None if the pipeline with the change fails."""
    decision: str


def rows_of(*shape: int) -> Any:
    """Rows of numbers that look random."""
    return DATA.from_tensor_slices(tf.random.stateless_normal([ROWS, *shape], [1, 2]))


def images(dtype: tf.DType = tf.uint8) -> Any:
    """Small images."""
    values = tf.random.stateless_uniform([ROWS, 12, 10, 3], [1, 2], 0, 256, tf.int32)
    return DATA.from_tensor_slices(tf.cast(values, dtype))


def texts() -> Any:
    """Short lines."""
    return DATA.from_tensor_slices([f"Line {number}, of {number * number}" for number in range(ROWS)])


def examples() -> Any:
    """Serialised tf.Examples."""

    def example(number: int) -> bytes:
        feature = {
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[number, number / 3])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        }
        return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())

    return DATA.from_tensor_slices([example(number) for number in range(ROWS)])


FEATURES = {"x": tf.io.FixedLenFeature([2], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
GENERATOR = tf.random.Generator.from_seed(3)
MATRIX = tf.random.stateless_normal([16, 16], [3, 4])
TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
VARIABLE = tf.Variable(2.0)


def collatz(number: Any) -> Any:
    """A loop whose length depends on the element."""
    steps = 0
    while number > 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


def halves_if_large(row: Any) -> Any:
    """A branch that depends on the element."""
    if tf.reduce_sum(row) > 0:
        row = row / 2
    return row


FUNCTIONS: tuple[tuple[str, str, Any, Callable[..., Any]], ...] = (
    ("numeric", "scale and shift", rows_of(16), lambda x: x * 2 - 1),
    ("numeric", "standardise a row", rows_of(16), lambda x: (x - tf.reduce_mean(x)) / tf.math.reduce_std(x)),
    ("numeric", "softmax", rows_of(16), tf.nn.softmax),
    ("numeric", "`tf.linalg.matvec`", rows_of(16), lambda x: tf.linalg.matvec(MATRIX, x)),
    ("numeric", "`tf.math.l2_normalize`", rows_of(16), lambda x: tf.math.l2_normalize(x, 0)),
    ("numeric", "`tf.cumsum`, `tf.exp`", rows_of(7), lambda x: tf.exp(tf.cumsum(x))),
    ("numeric", "`tf.one_hot` of a class", DATA.range(ROWS), lambda x: tf.one_hot(x % 10, 10)),
    ("numeric", "spectrum (`tf.signal.rfft`)", rows_of(32), lambda x: tf.abs(tf.signal.rfft(x))),
    ("numeric", "a branch (AutoGraph)", rows_of(16), halves_if_large),
    ("numeric", "a loop of varying length (AutoGraph)", DATA.range(1, ROWS + 1), collatz),
    ("numeric", "several features stacked", rows_of(4), lambda x: tf.stack([x[0] * x[1], tf.sin(x[2]), tf.cos(x[3])])),
    ("numeric", "a window of a series, differences", rows_of(32), lambda x: x[1:] - x[:-1]),
    ("numeric", "largest three (`tf.math.top_k`)", rows_of(16), lambda x: tf.math.top_k(x, 3)),
    ("numeric", "`tf.sort`", rows_of(16), tf.sort),
    ("parsing", "`tf.io.parse_single_example`", examples(), lambda r: tf.io.parse_single_example(r, FEATURES)),
    ("parsing", "`tf.io.decode_raw`, `tf.reshape`",
     DATA.from_tensor_slices([bytes(range(n, n + 12)) for n in range(ROWS)]),
     lambda r: tf.reshape(tf.io.decode_raw(r, tf.uint8), [3, 4])),
    ("parsing", "`tf.io.parse_tensor`", rows_of(4).map(tf.io.serialize_tensor),
     lambda r: tf.io.parse_tensor(r, tf.float32)),
    ("CSV", "`tf.io.decode_csv`, stacked", DATA.from_tensor_slices([f"{n},{n / 7},{n * n}" for n in range(ROWS)]),
     lambda line: tf.stack(tf.io.decode_csv(line, [0.0, 0.0, 0.0]))),
    ("text", "`tf.strings.lower`", texts(), tf.strings.lower),
    ("text", "`tf.strings.regex_replace`", texts(), lambda t: tf.strings.regex_replace(t, "[0-9]+", "#")),
    ("text", "`tf.strings.substr`, `to_number`",
     DATA.from_tensor_slices([f"{n:04d}x" for n in range(ROWS)]),
     lambda t: tf.strings.to_number(tf.strings.substr(t, 0, 4))),
    ("text", "hash buckets, `one_hot`", texts(), lambda t: tf.one_hot(tf.strings.to_hash_bucket_fast(t, 8), 8)),
    ("text", "`tf.strings.split` (ragged)", texts(), tf.strings.split),
    ("look-ups", "static table", DATA.from_tensor_slices(["a", "b", "c"] * 20), lambda k: TABLE.lookup(k)),
    ("look-ups", "static table, `one_hot`", DATA.from_tensor_slices(["a", "b", "c"] * 20),
     lambda k: tf.one_hot(TABLE.lookup(k), 3)),
    ("look-ups", "static table, two results stacked", DATA.from_tensor_slices(["a", "b", "c"] * 20),
     lambda k: tf.stack([TABLE.lookup(k), TABLE.lookup(tf.strings.upper(k))])),
    ("look-ups", "embedding of a word (static table, `tf.gather`)", DATA.from_tensor_slices(["a", "b", "c"] * 20),
     lambda k: tf.gather(MATRIX, TABLE.lookup(k) + 1)),
    ("look-ups", "`tf.gather` from a constant", DATA.range(ROWS), lambda x: tf.gather(MATRIX, x % 16)),
    ("images", "`convert_image_dtype`", images(), lambda i: tf.image.convert_image_dtype(i, tf.float32)),
    ("images", "`flip_left_right`, crop, transpose", images(),
     lambda i: tf.transpose(tf.image.flip_left_right(i)[2:10, 1:9], [2, 0, 1])),
    ("images", "`per_image_standardization`", images(tf.float32), tf.image.per_image_standardization),
    ("images", "`adjust_contrast`", images(tf.float32), lambda i: tf.image.adjust_contrast(i, 1.5)),
    ("images", "`rgb_to_grayscale`", images(tf.float32), tf.image.rgb_to_grayscale),
    ("images", "`tf.image.resize`", images(), lambda i: tf.image.resize(i, [6, 6])),
    ("images", "`tf.image.resize`, scaled", images(), lambda i: tf.image.resize(i, [6, 6], "bicubic") / 255.0 - 0.5),
    ("images", "`tf.image.resize`, flipped", images(),
     lambda i: tf.image.flip_left_right(tf.image.resize(i, [6, 6]))),
    ("images", "`tf.image.pad_to_bounding_box`", images(), lambda i: tf.image.pad_to_bounding_box(i, 2, 2, 20, 20)),
    ("images", "`tf.io.decode_png`", images().map(tf.io.encode_png), lambda d: tf.io.decode_png(d, 3)),
    ("random", "`random_brightness`, no seed", images(tf.float32), lambda i: tf.image.random_brightness(i, 9.0)),
    ("random", "`tf.random.uniform`, no seed", rows_of(4), lambda x: x + tf.random.uniform([4])),
    ("random", "a row standardised, noise added", rows_of(16),
     lambda x: x / tf.math.reduce_std(x) + tf.random.normal([16], stddev=0.1)),
    ("random", "words masked at random (two draws, `tf.where`)", rows_of(16),
     lambda x: tf.where(tf.random.uniform([16]) < 0.15, tf.where(tf.random.uniform([16]) < 0.8, 99.0, x), x)),
    ("random", "`random_flip_left_right` (a branch)", images(tf.float32), tf.image.random_flip_left_right),
    ("random", "`tf.random.shuffle` of a row", rows_of(16), tf.random.shuffle),
    ("random", "`tf.random.Generator`", rows_of(16), lambda x: x + GENERATOR.normal([16])),
    ("random", "`tf.random.stateless_uniform`", DATA.range(ROWS), lambda x: tf.random.stateless_uniform([3], [x, 1])),
    ("ragged", "`tf.boolean_mask`, summed", rows_of(8), lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0))),
    ("ragged", "rows of several lengths, summed", DATA.range(ROWS).map(lambda n: tf.range(n % 3 + 1)), tf.reduce_sum),
    ("dictionary", "features and label in, features out",
     DATA.from_tensor_slices(({"a": tf.ones([ROWS, 3]), "b": MATRIX[:1, :4] + tf.ones([ROWS, 4])}, tf.range(ROWS))),
     lambda f, y: ({"all": tf.concat([f["a"], f["b"]], 0), "peak": tf.reduce_max(f["b"])}, y)),
    ("dictionary", "features scaled, label passed on",
     DATA.from_tensor_slices(({"a": tf.ones([ROWS, 3]), "b": tf.range(ROWS)}, tf.range(ROWS))),
     lambda f, y: ({"a": f["a"] / 2.0, "b": f["b"] + 1}, y)),
    ("dictionary", "nested tuples", DATA.from_tensor_slices(((tf.ones([ROWS, 3]), tf.ones([ROWS, 3, 2])), tf.range(ROWS))),
     lambda pair, y: ((tf.linalg.matvec(pair[1], pair[0], transpose_a=True), y), tf.reduce_sum(pair[0]))),
    ("state", "a variable", rows_of(4), lambda x: tf.reduce_sum(x) * VARIABLE),
    ("Python", "`tf.numpy_function`", rows_of(4),
     lambda x: tf.ensure_shape(tf.numpy_function(lambda v: v + 1, [x], tf.float32), [4])),
)  # fmt: skip


def main() -> None:
    """Look at every function, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-docs", action="store_true", help="write the table to docs/vectorization.md")
    options = parser.parse_args()
    recorder = Recorder(SiteFinder(), lambda text: None)
    record_dataset_api(tf, recorder, lambda text: None)
    with tempfile.TemporaryDirectory() as folder:
        rows = [seen(recorder, Path(folder), *case) for case in FUNCTIONS]
    lines = table(rows)
    print("\n".join(lines))
    if options.write_docs:
        write_section("vectorization", lines, DOCS)


def seen(recorder: Recorder, folder: Path, kind: str, name: str, elements: Any, function: Callable[..., Any]) -> Row:
    """Try one function in `elements.map(function).batch(16)`, whatever the advisor decides about it."""
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    start = elements.take(-1)  # a recorded call whose element spec is known
    dataset = start.map(function).batch(BATCH)
    recorder.is_open = False
    calls = {call.method: call for call in recorder.calls() if call.made_by is None and call.nested_in is None}
    decision = decision_of(recorder.calls(), calls)
    is_plain = is_straight_code(function)
    move, wrap = MoveAfter(calls["map"].id, calls["batch"].id), Vectorize(calls["map"].id, is_plain=is_plain)
    is_as_it_is = decision.startswith(AS_IT_IS)
    is_converted = judged(recorder, dataset, folder, move, wrap) is not None
    level = judged(recorder, dataset, folder, move) if is_as_it_is else judged(recorder, dataset, folder, move, wrap)
    speedup = (
        None
        if level is None
        else speedup_of(elements, function, function if is_as_it_is else batch_function(function, is_plain, tf))
    )
    return Row(kind, name, is_converted, level or "", speedup, decision)


def judged(recorder: Recorder, dataset: Any, folder: Path, *edits: MoveAfter | Vectorize) -> str | None:
    """The safety level seen with these edits; None if the dataset cannot be made with them."""
    try:
        judgement = Equivalence(recorder, str(call_id_of(dataset)), Bounds(ROWS, 10.0), folder).judge(edits)
    except CannotReplay:
        return None
    level = str(judgement.seen)
    if judgement.seen is Safety.NUMERICS:
        level += f": {judgement.note.rstrip('.')[0].lower()}{judgement.note.rstrip('.')[1:]}"
    return level


def speedup_of(elements: Any, function: Callable[..., Any], on_batch: Callable[..., Any]) -> float | None:
    """Median of the ratios of elements per second of `map(AUTOTUNE).batch(128)` and `batch(128).map(AUTOTUNE)`, in turns."""
    start = elements.repeat()
    try:
        before = iter(start.map(function, num_parallel_calls=tf.data.AUTOTUNE).batch(TIMED_BATCH))
        after = iter(start.batch(TIMED_BATCH).map(on_batch, num_parallel_calls=tf.data.AUTOTUNE))
        for iterator in (before, after):
            batches_per_s(iterator)
        return statistics.median(1 / batches_per_s(before) * batches_per_s(after) for _ in range(TURNS))
    except tf.errors.InvalidArgumentError:
        return None


def batches_per_s(iterator: Any) -> float:
    """Batches per second over a turn."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < TURN_S:
        next(iterator)
        count += 1
    return count / (time.perf_counter() - begin)


def decision_of(calls: Sequence[Call], by_method: dict[str, Call]) -> str:
    """What the rules propose for a map of this function."""
    call = by_method["map"]
    function = call.function
    assert function is not None
    if function.is_elementwise and (ELEMENTWISE_OPS | ELEMENT_SPLITTING_OPS | BATCH_FORM_OPS).issuperset(function.ops):
        return f"{AS_IT_IS} (`scalar-map`)"
    made = pipeline(source(), map_("f", ms=1), batch(BATCH), consumer_ms=1).analysis
    analysis = replace(made, calls=tuple(calls))
    if set(function.ops) <= {"DecodeCSV", *ELEMENTWISE_OPS} and "DecodeCSV" in function.ops:
        return f"{AS_IT_IS}, on request (`parse-per-record`)"
    fix = vectorizing_fix(analysis, call, by_method["batch"])
    if fix is not None:
        return PROPOSED if fix.is_auto else f"{PROPOSED}, on request"
    if function.python_ops:
        return "refused: runs Python code"
    if function.resources:
        return f"refused: reads a {function.resources[0].kind}"
    unknown = sorted(set(function.ops) - VECTORIZABLE_OPS - LOOP_INVARIANT_OPS - DRAWING_OPS)
    if unknown:
        return f"refused: no batch form of `{'`, `'.join(unknown[:3])}`"
    return "refused: elements may differ in shape"


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, with a summary."""
    converted = [row for row in rows if row.is_converted]
    proposed = [row for row in rows if row.decision.startswith(PROPOSED)]
    moved = [row for row in rows if row.decision.startswith(AS_IT_IS)]
    exact = [sum(row.seen == "exact" for row in some) for some in (proposed, moved)]
    return [
        f"TensorFlow {tensorflow_version()}, batches of {BATCH} and a partial one, {ROWS} elements. Of {len(rows)} functions, "
        f"`tf.vectorized_map` converts {len(converted)} without a loop. The advisor proposes to vectorise {len(proposed)}, of "
        f"which {exact[0]} are exact, and to move {len(moved)} as they are, of which {exact[1]} are exact. Speedups are those of "
        f"the pipeline alone with batches of {TIMED_BATCH}, `AUTOTUNE` on both sides, measured in turns of {TURN_S:.2g} s on "
        f"{os.cpu_count()} cores that other processes used as well.",
        "",
        "| kind | function | converted | elements | speedup | decision |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.kind} | {row.name} | {'yes' if row.is_converted else 'no'} | {row.seen} | "
            f"{'' if row.speedup is None else f'{row.speedup:.2g}x'} | {row.decision} |"
            for row in rows
        ),
    ]


if __name__ == "__main__":
    main()
