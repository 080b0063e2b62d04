"""Changes of the script that a move to workers requires, or profits from.

In: an `Analysis` and the place of `distribute`.  Out: `Repair`s: edits of calls, or code to write by hand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.model.calls import Call, line_note
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument
from advisor.model.offload_result import BATCH, DYNAMIC, FIT, PROCESSING_MODES, REPEAT, Movability, Repair
from advisor.model.pipeline import Analysis
from advisor.model.units import format_count
from advisor.offload import data_files
from advisor.offload.passes import ENDED, repairs_of_passes
from advisor.offload.repeats import repeat_before_distribute
from advisor.offload.transformations import BATCHES
from advisor.predict.call_index import graph_of
from advisor.predict.structure import consumed_call

NAME, DISPATCHER_PORT = "tfdata", 5000
SERVICE_ADDRESS = f"grpc://{NAME}-dispatcher:{DISPATCHER_PORT}"
"""Where the generated files make the dispatcher reachable."""


@dataclass(frozen=True, slots=True)
class BatchBeforeTake:
    """A `take` directly before a `batch`, which may as well follow it and then count batches."""

    batch: Call
    taken: Call
    repair: Repair


def batch_before_take(places: Sequence[Call]) -> BatchBeforeTake | None:
    """Return the `take` that stands between the work and the `batch`, if moving it after the `batch` keeps the elements.

    Args:
        places: Calls of the chain, nearest to the consumer first.
    """
    for batch, taken in itertools.pairwise(places):
        if batch.method != "batch" or taken.method != "take" or batch.inputs != (taken.id,):
            continue
        size, count = _count(batch.arguments.get("batch_size")), _count(taken.arguments.get("count"))
        if not size or not count or count % size:
            continue
        batches = count // size
        text = (
            f"`take` moves after `batch` and counts {format_count(batches)} batches instead of {format_count(count)} elements, "
            "so that the workers send batches and no worker counts separately."
        )
        edits = (MoveAfter(taken.id, batch.id), SetArgument(taken.id, "count", batches))
        return BatchBeforeTake(batch, taken, Repair(text, edits))
    return None


def _count(value: object) -> int:
    """The value if it is a number of things, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def repairs_of(analysis: Analysis, movability: Movability, policy: str, by_hand: Mapping[str, str]) -> Iterator[Repair]:
    """Yield what else should change for a pipeline that moves at that place.

    Args:
        analysis: The analysis.
        movability: The place, with the repairs that it requires.
        policy: The sharding policy.
        by_hand: Kinds of repairs that cannot be written into this script, each with the reason.
    """
    main = analysis.main
    consumed = consumed_call(analysis, main) if main is not None else None
    graph = graph_of(analysis)
    place = graph.by_id.get(movability.after_id)
    if consumed is None or place is None:
        return
    after = (*(graph.path(place, consumed) or ()),)
    if not any(call.method == "prefetch" for call in after):
        edit = InsertAfter(place.id, "prefetch", (("", Code("tf.data.AUTOTUNE")),))
        yield Repair(
            "`prefetch` follows `distribute`, so that the next elements travel while the model computes.", (edit,)
        )
    upstream = graph.upstream(place)
    if policy == DYNAMIC:
        yield from parallel_interleaves(upstream)
    if not any(call.method in BATCHES for call in upstream):
        yield _sent_in_batches(place, after, by_hand)
    yield from data_files.repairs_of(analysis, upstream)
    if any(
        isinstance(edit, MoveAfter) for edit in movability.edits
    ):  # a `take`: the recorded order is no longer that of the text
        by_hand = {**by_hand, **dict.fromkeys((REPEAT, FIT), ENDED)}
    if not movability.before:  # otherwise it has moved
        yield from repeat_before_distribute(analysis, place, consumed, by_hand)
    yield from repairs_of_passes(analysis, place, consumed, by_hand)
    yield from _replicas(analysis, upstream)
    yield from _trainers(analysis)


def _sent_in_batches(place: Call, after: Sequence[Call], by_hand: Mapping[str, str]) -> Repair:
    """The repair of elements that leave the workers one by one: they make batches, which the training takes apart."""
    why = "Elements are sent one by one: with `batch` before `distribute`, there are fewer and larger calls to the workers"
    batch = next((call for call in after if call.method in BATCHES), None)
    size = _count(batch.arguments.get("batch_size")) if batch is not None else 0
    if not size or not has_fixed_shapes(place.element_spec) or BATCH in by_hand:
        why += f". {by_hand[BATCH]}" if BATCH in by_hand else "."
        return Repair(why, code=".batch(...)  # before .apply(tf.data.experimental.service.distribute(...))")
    batches = (InsertAfter(place.id, "batch", (("", size),)),)
    text = f"{why}. `unbatch` after it takes them apart, because `{batch.method if batch is not None else ''}` has to stay."
    return Repair(
        text,
        edits=(InsertAfter(place.id, "unbatch"),),
        before=batches,
        one_pass=batches,
        kind=BATCH,
    )


def has_fixed_shapes(element_spec: str) -> bool:
    """Whether elements of a dataset, given by their spec as text, always form a batch that `unbatch` takes apart again."""
    shapes = re.findall(r"shape=(\([^)]*\)|[^,)]*)", element_spec)
    kinds = set(re.findall(r"(\w+)\(", element_spec))
    return kinds == {"TensorSpec"} and all(shape.startswith("(") and "None" not in shape for shape in shapes)


def _trainers(analysis: Analysis) -> Iterator[Repair]:
    """Yield how trainers that run side by side can share the work of the workers.

    Tried on TensorFlow 2.21: such a cache works with and without sharding, and refuses datasets that end.
    """
    recording, main = analysis.recording, analysis.main
    if recording is None or not recording.other_runs:
        return
    if main is not None and main.consumer is not None and main.consumer.kind == "distributed":
        return  # they are the replicas of one training, which read different elements
    count = recording.other_runs
    others = "Another process runs" if count == 1 else f"{format_count(count)} other processes run"
    yield Repair(
        f"{others} this script on the same machine: if they train on the same data independently of each other, such as the "
        "trials of a search, the workers can compute each element once for all of them. Each trainer then reads what is in the "
        "workers' cache, and a slow one may miss elements.",
        code='.repeat()  # before `distribute`; distribute(..., job_name="train", '
        "cross_trainer_cache=tf.data.experimental.service.CrossTrainerCache(trainer_id=NAME_OF_TRIAL))",
    )


def _replicas(analysis: Analysis, upstream: Sequence[Call]) -> Iterator[Repair]:
    """Yield what the processes of one training need to read one job together.

    Coordinated reads give consumer i the i-th batch of each round, and refuse data that end (TensorFlow 2.21). Replicas in one
    process read through one iterator, which has no index.
    """
    main = analysis.main
    if main is None or main.consumer is None or main.consumer.kind != "distributed" or not _has_peers(analysis):
        return
    if any(call.method in ("bucket_by_sequence_length", "padded_batch") for call in upstream):
        yield Repair(
            "Replicas whose batches differ in length wait for the longest one: coordinated reads give the processes of the "
            "training batches that one worker made one after the other. The data must be repeated without end, and grouped so "
            "that as many batches of similar length follow each other as there are processes.",
            code=".repeat().group_by_window(LENGTH_GROUP, lambda _, rows: rows.padded_batch(BATCH), "
            "window_size=BATCH * PROCESSES)  # before "
            'distribute(..., job_name="train", consumer_index=PROCESS, num_consumers=PROCESSES)',
        )
    else:
        yield Repair(
            "Trainers that name the same job share its elements; without a name, each of them reads all data. Every pipeline "
            "needs a name of its own: one with the name of another, such as that of the validation, reads nothing (TensorFlow "
            "2.21).",
            code='distribute(..., job_name="train")',
        )


def _has_peers(analysis: Analysis) -> bool:
    """Whether other processes take part: TensorFlow shards the pipeline among them, or they run the script on this machine."""
    recording, main = analysis.recording, analysis.main
    shards = (it.parameters.get("num_shards") for it in (main.iterators if main is not None else ()) if not it.calls)
    return any(isinstance(number, int) and number > 1 for number in shards) or bool(
        recording is not None and recording.other_runs
    )


def distribute_edit(after_id: str, policy: str, address: str, compression: str = "AUTO") -> InsertAfter:
    """Return the edit that adds `.apply(tf.data.experimental.service.distribute(...))` after a call.

    Args:
        after_id: The call whose elements leave the workers.
        policy: `dynamic` or `off`.
        address: The dispatcher (`grpc://host:port`).
        compression: `AUTO`, which is TensorFlow's default and not written, or `none`.
    """
    arguments = [f'"{PROCESSING_MODES[policy]}"', _text(address)]
    if compression != "AUTO":
        arguments.append("compression=None")
    code = f"tf.data.experimental.service.distribute({', '.join(arguments)})"
    return InsertAfter(after_id, "apply", (("", Code(code)),))


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def edits_with_distribute(movability: Movability, distribute: InsertAfter) -> tuple[Edit, ...]:
    """Return the edits of the repairs and of `distribute`, in the order in which they are applied.

    Of two links after the same call, the later one in the list ends up closer to it, so `distribute` comes after what follows it.
    """
    return (*movability.edits, distribute, *movability.before)


def edits_before(movability: Movability) -> tuple[Edit, ...]:
    """Return the edits of the repairs as far as they concern what the workers run.

    What moves after the place is left out, and so is a `repeat` that is added or moved: what is measured is repeated anyway, and
    what is compared is one pass.
    """
    moved = {edit.call_id for edit in movability.edits if isinstance(edit, MoveAfter)}
    kept = (edit for edit in movability.edits if edit.call_id not in moved and not isinstance(edit, InsertAfter))
    of_one_pass = (edit for repair in movability.repairs for edit in repair.one_pass)
    return (*(Remove(call_id) for call_id in moved), *kept, *of_one_pass)


def parallel_interleaves(upstream: Sequence[Call]) -> Iterator[Repair]:
    """Yield the repair of sequential `interleave`s of shuffled parts, of which every worker reads all.

    Tried on TensorFlow 2.21 with two worker processes: `shuffle(...).interleave(f)` produces every element on each worker
    although sharding is dynamic; with `num_parallel_calls`, or without the `shuffle`, each element comes once.
    """
    for place, call in enumerate(upstream):
        is_sequential = call.method == "interleave" and call.arguments.get("num_parallel_calls") in (None, 0)
        if is_sequential and any(map(_shuffles, upstream[place + 1 :])):
            where = line_note(call.site)
            yield Repair(
                f"`interleave`{where} gets num_parallel_calls: a sequential one after a `shuffle` reads all of the data on "
                "every worker.",
                (SetArgument(call.id, "num_parallel_calls", Code("tf.data.AUTOTUNE")),),
            )


def _shuffles(call: Call) -> bool:
    return call.method == "shuffle" or (call.method == "list_files" and call.arguments.get("shuffle") is not False)
