"""What to do about several passes over finite data: through the service, each of them is a job, and its length is unknown.

In: an `Analysis` and the place of `distribute`.  Out: `Repair`s.

TensorFlow 2.21 with Keras 3.15 and two worker processes: after `distribute`, the cardinality of finite data is unknown. `fit`
shows no total, and 100 rows in batches of 8 made epochs of 13, 13 and 14 steps, because each worker ends a pass with an
incomplete batch of its own. With `steps_per_epoch=13` alone they were 13, 1 and 13 steps, as `fit` reads one iterator over all
epochs: the data must be endless as well. With both they were 13, 13 and 13, and the later epochs took 0.1 s instead of 1.0 and
0.5 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.model.calls import Call
from advisor.model.edits import InsertAfter, SetArgument, SetFitArgument
from advisor.model.offload_result import FIT, Repair
from advisor.model.pipeline import Analysis
from advisor.model.shared_text import siblings_of
from advisor.model.units import format_count
from advisor.offload.repeats import RepeatedBatches, drops_nothing, is_read_by
from advisor.offload.transformations import BATCHES, is_endless
from advisor.predict.call_index import graph_of

ENDED = "`take`, which moves after the workers, ends each pass there."
"""Why passes stay passes where another repair moves a `take`."""
_END = "the end of each pass takes about a second"
_ONE_TO_ONE = frozenset({"map", "prefetch", "with_options"})
"""Calls after the batch that do the same with a stream as with each pass, and emit as many elements as they read."""


def repairs_of_passes(analysis: Analysis, place: Call, consumed: Call, by_hand: Mapping[str, str]) -> Iterator[Repair]:
    """Yield what to do about several passes over a finite dataset, and about its unknown length.

    Args:
        analysis: The analysis.
        place: The call after which the elements leave the workers.
        consumed: The dataset that the training reads.
        by_hand: Kinds of repairs that are left to the user, each with the reason.
    """
    main, upstream = analysis.main, graph_of(analysis).upstream(place)
    consumer = main.consumer if main is not None else None
    after = graph_of(analysis).path(place, consumed) or ()
    if consumer is None or any(map(is_endless, (*upstream, *after))) or any(call.method == "repeat" for call in after):
        return
    if consumer.kind.startswith("keras"):
        if analysis.keras.get("steps_per_epoch") is None and _epochs(analysis) != 1:
            yield _for_keras(analysis, place, consumed, after, by_hand)
        return
    if consumer.iterators > 1 or any(loop.count != 1 for loop in consumer.loops or ()):
        steps = _steps(analysis, consumed)
        yield Repair(
            f"Each pass is a job of its own on the workers, and {_END}: repeat the data before `distribute`, and read all passes "
            "through one iterator.",
            code=f".repeat()  # before `distribute`{_without_take(after, by_hand)}; batches = iter(dataset) before the loop; "
            f"{steps or 'N'} x next(batches) in a pass",
        )


def batches_of_fit(
    analysis: Analysis, places: Sequence[Call], consumed: Call, by_hand: Mapping[str, str]
) -> RepeatedBatches | None:
    """Return the batches with `drop_remainder=True` that workers may make because `fit` reads endless data then.

    The rows of a pass must be whole batches. Otherwise each pass drops rows that would come with the repair.

    Args:
        analysis: The analysis.
        places: Calls of the chain, nearest to the consumer first.
        consumed: The dataset that the training reads.
        by_hand: Kinds of repairs that are left to the user.
    """
    graph = graph_of(analysis)
    for batch in places:
        first = graph.by_id.get(batch.inputs[0]) if len(batch.inputs) == 1 else None
        if first is None or not drops_nothing(batch, first):
            continue
        after = graph.path(batch, consumed) or ()
        if any(repair.kind == FIT for repair in repairs_of_passes(analysis, batch, consumed, by_hand)):
            return RepeatedBatches(
                frozenset({batch.id, *(call.id for call in after)}), tuple(places[: places.index(batch) + 1])
            )
    return None


def _for_keras(
    analysis: Analysis, place: Call, consumed: Call, after: Sequence[Call], by_hand: Mapping[str, str]
) -> Repair:
    """The repair for `fit`: `repeat` before the batches, and `steps_per_epoch` in the call."""
    steps = _steps(analysis, consumed)
    why = f"The number of elements after `distribute` is unknown to Keras, and {_END}"
    code = (
        f".repeat()  # before `distribute`{_without_take(after, by_hand)}; and: "
        f"model.fit(..., steps_per_epoch={steps or 'N'})"
    )
    anchor = _before_batches(analysis, place)
    obstacle = by_hand.get(FIT, "") or _obstacle(analysis, anchor, consumed, after, steps)
    main = analysis.main
    site = main.consumer.site if main is not None and main.consumer is not None else None
    if obstacle or steps is None or site is None or anchor.site is None:
        return Repair(
            f"{why}: repeat the data before `distribute` and say how many steps an epoch has. This is not written: {obstacle}",
            code=code,
        )
    return Repair(
        f"{why}: the data are repeated before `distribute`, and an epoch has steps_per_epoch={format_count(steps)}, which is the "
        "number recorded: change it with the data.",
        before=(InsertAfter(anchor.id, "repeat"),),
        one_pass=tuple(
            SetArgument(call.id, "drop_remainder", False)
            for call in graph_of(analysis).path(anchor, place) or ()
            if call.arguments.get("drop_remainder") is True
        ),
        step_edits=(SetFitArgument(site, "steps_per_epoch", steps, anchor.site, anchor.method),),
        kind=FIT,
    )


def _obstacle(analysis: Analysis, anchor: Call, consumed: Call, after: Sequence[Call], steps: int | None) -> str:
    """Why the script is not changed, as a sentence; empty if it may be."""
    main, recording = analysis.main, analysis.recording
    consumer = main.consumer if main is not None else None
    if consumer is None or consumer.kind != "keras.fit":
        return "the main loop is not a call of fit."
    if consumer.site is None:
        return "the line that calls fit is unknown."
    if steps is None:
        return "the number of steps of an epoch is unknown, as no epoch ended in the recording."
    if _epochs(analysis) is None:
        return "the number of epochs is unknown."
    if analysis.keras.get("fits") != 1:
        return "fit is called more than once."
    if recording is not None and recording.other_runs:
        return "other processes run this script, whose numbers of steps may be others."
    other = next((call for call in after if call.method not in _ONE_TO_ONE), None)
    if other is not None:
        return f"{other.method} after the workers does not do the same with repeated data as with each pass."
    if siblings_of(anchor, graph_of(analysis).by_id):
        return "the same text makes other datasets, which would no longer end."
    others = recording.consumers if recording is not None else ()
    is_read = any(other.id != consumer.id and other.call_id == consumed.id for other in others)
    if is_read or not is_read_by(analysis, anchor, consumed):
        return "other datasets, or other code, read the same data, and would no longer end."
    return ""


def _without_take(after: Sequence[Call], by_hand: Mapping[str, str]) -> str:
    """What to say of a `take` after the workers, which would end the stream after one pass."""
    has_take = by_hand.get(FIT) == ENDED or any(call.method in ("take", "take_while") for call in after)
    return ", without the `take` after it" if has_take else ""


def _before_batches(analysis: Analysis, place: Call) -> Call:
    """The call after which the data are repeated: that before the last batch, whose batches are whole then; else the place."""
    for call in graph_of(analysis).upstream(place):
        if call.method in BATCHES and len(call.inputs) == 1:
            first = graph_of(analysis).by_id.get(call.inputs[0])
            is_written = first is not None and first.site is not None and first.library is None and not first.made_by
            return first if first is not None and is_written and first.nested_in is None else place
        if call.method not in _ONE_TO_ONE:
            break
    return place


def _steps(analysis: Analysis, consumed: Call) -> int | None:
    """Steps of an epoch: the length of the dataset, or what the finished epochs of `fit` had; None if unknown."""
    if consumed.cardinality is not None and consumed.cardinality > 0:
        return consumed.cardinality
    consumer = analysis.main.consumer if analysis.main is not None else None
    if consumer is None or not consumer.finished_epochs or analysis.keras.get("steps_per_execution") != 1:
        return None
    steps, rest = divmod(consumer.finished_steps, consumer.finished_epochs)
    return steps if steps > 0 and rest == 0 else None


def _epochs(analysis: Analysis) -> int | None:
    """The argument `epochs` of `fit`; None if it is unknown. Keras' default is 1."""
    if "epochs" not in analysis.keras:
        return None
    epochs = analysis.keras["epochs"]
    return 1 if epochs is None else epochs if type(epochs) is int else None
