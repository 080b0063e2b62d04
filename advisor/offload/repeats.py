"""Where a `repeat` that follows the place of `distribute` may precede it.

In: an `Analysis`, calls of its chain.  Out: `Repair`s, and the places that become possible with one.

A `repeat` after `distribute` asks the service for a job of its own in each pass, and a pass ends about a second after its last
element. Before it, all passes are one job. What that means for the elements, on TensorFlow 2.21 with two worker processes:

* `repeat(3)` before `distribute` delivers each element exactly three times, as a multiset of the whole stream; it took 1.1 s
  instead of 5.1 s;
* no number of steps is exactly one pass: a worker begins the next one while another still works on the last one. Of 100 elements,
  each had come 19 or 20 times after 1,988 rows of an endless stream;
* `repeat(3).batch(8, drop_remainder=True)` delivers 280 of 288 elements, because each worker drops its last batch of the stream.

So the move is right for whoever reads the dataset as one stream, and a `repeat` is that: after it nothing knows where a pass
ends. It is left alone if a call between them does not do the same with a stream as with each pass, or if other code reads what is
between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.model.calls import Call, line_note
from advisor.model.edits import MoveAfter, SetArgument
from advisor.model.offload_result import REPEAT, Repair
from advisor.model.pipeline import Analysis
from advisor.offload.transformations import BATCHES, is_endless
from advisor.predict.call_index import graph_of

_SAME_IN_A_STREAM = frozenset(
    {"filter", "flat_map", "ignore_errors", "map", "prefetch", "shuffle", "unbatch", "with_options"}
)
"""Transformations for which `repeat` before them or after them makes the same rows, in another order. With `batch` the rows are
the same, and no batch is incomplete. A `cache` would never be complete."""
_READING_ONCE = frozenset({"keras.evaluate", "keras.predict"})
"""Consumers for which each pass has to be exact."""


@dataclass(frozen=True, slots=True)
class RepeatedBatches:
    """A `batch` which drops the last incomplete batch, of which there is none if the data before it are repeated."""

    endless: frozenset[str]
    """Ids of the calls that read endless data then."""
    places: tuple[Call, ...]
    """Calls of the chain from the consumer to the batch, without a `repeat` that moves."""
    repairs: tuple[Repair, ...] = ()
    """What makes the data endless, unless another repair of the place does."""


def repeat_before_batch(
    analysis: Analysis, places: Sequence[Call], by_hand: Mapping[str, str]
) -> RepeatedBatches | None:
    """Return the move that lets workers make batches with `drop_remainder=True`: those of endless data are never incomplete.

    The rows of a pass must be whole batches. Otherwise each pass drops rows that would come with the move.

    Args:
        analysis: The analysis.
        places: Calls of the chain, nearest to the consumer first.
        by_hand: Kinds of repairs that are left to the user.
    """
    if REPEAT in by_hand or _reads_once(analysis):
        return None
    graph = graph_of(analysis)
    for number, repeat in enumerate(places):
        if repeat.method != "repeat" or not is_endless(repeat):
            continue
        for batch in places[number + 1 :]:
            first = graph.by_id.get(batch.inputs[0]) if len(batch.inputs) == 1 else None
            between = graph.path(batch, repeat) if first is not None else None
            if first is None or between is None or not drops_nothing(batch, first) or not _is_written(first):
                continue
            if all(_is_same_in_a_stream(call) for call in between[:-1]) and is_read_by(analysis, first, repeat):
                places = tuple(call for call in places[: places.index(batch) + 1] if call is not repeat)
                text = (
                    f"`repeat`{line_note(repeat.site)} moves before `{batch.method}`{line_note(batch.site)}, so that the workers "
                    "send batches: of repeated data, none is incomplete on any of them."
                )
                repair = Repair(
                    text,
                    before=(MoveAfter(repeat.id, first.id),),
                    one_pass=(SetArgument(batch.id, "drop_remainder", False),),
                    kind=REPEAT,
                )
                return RepeatedBatches(frozenset({*(c.id for c in between), batch.id}), places, (repair,))
    return None


def repeat_before_distribute(
    analysis: Analysis, place: Call, consumed: Call, by_hand: Mapping[str, str]
) -> Iterator[Repair]:
    """Yield the move of a `repeat` that follows the place to the place, or what to do by hand.

    Args:
        analysis: The analysis.
        place: The call after which the elements leave the workers.
        consumed: The last call of the chain.
        by_hand: Kinds of repairs that are left to the user, each with the reason.
    """
    path = graph_of(analysis).path(place, consumed) or ()
    number = next((number for number, call in enumerate(path) if call.method == "repeat"), None)
    if number is None:
        return
    repeat = path[number]
    why = (
        f"`repeat`{line_note(repeat.site)} asks the workers for a job of its own in each pass, whose end takes about a second: "
        "before `distribute`, all passes are one job."
    )
    obstacle = by_hand.get(REPEAT, "") or _obstacle(analysis, place, repeat, path[:number])
    if obstacle:
        yield Repair(f"{why} It stays where it is: {obstacle}", code=".repeat()  # before `distribute`")
    else:
        yield Repair(f"{why} It moves there.", before=(MoveAfter(repeat.id, place.id),), kind=REPEAT)


def _obstacle(analysis: Analysis, place: Call, repeat: Call, between: Sequence[Call]) -> str:
    """Why a `repeat` must not move to the place, as a sentence; empty if it may."""
    other = next((call for call in between if not _is_same_in_a_stream(call)), None)
    if other is not None:
        return f"{other.method}{line_note(other.site)} does not do the same with repeated data as with each pass."
    if not _is_written(repeat):
        return "no line of the script calls it."
    if _reads_once(analysis):
        return "what reads the data takes each pass for whole."
    if not is_read_by(analysis, place, repeat):
        return "other datasets, or other code, read the elements before it, and would never end."
    return ""


def _is_same_in_a_stream(call: Call) -> bool:
    return call.method in _SAME_IN_A_STREAM or (
        call.method in ("batch", "padded_batch") and call.arguments.get("drop_remainder") is not True
    )


def drops_nothing(batch: Call, first: Call) -> bool:
    """Whether a batch with `drop_remainder` gets whole batches in each pass."""
    size, rows = batch.arguments.get("batch_size"), first.cardinality
    if batch.method not in BATCHES or batch.arguments.get("drop_remainder") is not True:
        return False
    return type(size) is int and size > 0 and rows is not None and rows > 0 and rows % size == 0


def _is_written(call: Call) -> bool:
    return call.library is None and call.made_by is None and call.nested_in is None and call.site is not None


def _reads_once(analysis: Analysis) -> bool:
    main = analysis.main
    return main is not None and main.consumer is not None and main.consumer.kind in _READING_ONCE


def is_read_by(analysis: Analysis, first: Call, last: Call) -> bool:
    """Whether only `last` and what follows it read the elements of `first` and of the calls between them, as recorded.

    Args:
        analysis: The run.
        first: The first call of the stretch; all others are downstream of it.
        last: The last call of the stretch; it may be read by anything.
    """
    graph, recording = graph_of(analysis), analysis.recording
    inner = {first.id, *(call.id for call in graph.path(first, last) or ())} - {last.id}
    later = {last.id, *graph.downstream(last)}
    if not graph.downstream(first) <= inner | later:
        return False
    consumers = recording.consumers if recording is not None else ()
    return not any(consumer.call_id in inner for consumer in consumers)
