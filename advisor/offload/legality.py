"""Decides whether a pipeline can run on tf.data service workers, and after which call its elements leave them.

In: an `Analysis` with its recording.  Out: `Movability`: the place, what speaks against it with the lines, what has to
hold, and the repairs. Pure functions; what is on no reviewed list is undecided, and only worker processes decide it.

The place is the one nearest to the consumer that nothing refuses: calls after it stay in the trainer's process, which is right
for `take` and for the final `prefetch`. If most of the work would stay after it, the move is refused for the reasons at the
end of the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.host.calibration.offload import LEAST_MOVED_SHARE
from advisor.model.calls import Call, line_note
from advisor.model.edits import InsertAfter
from advisor.model.finding import Safety
from advisor.model.offload_result import (
    COUNTS,
    DYNAMIC,
    FIT,
    MOVABLE,
    OFF,
    REFUSED,
    REPEAT,
    UNDECIDED,
    Movability,
    Objection,
    Repair,
)
from advisor.model.pipeline import Analysis
from advisor.model.shared_text import siblings_of
from advisor.model.units import format_share
from advisor.offload import data_files, functions, transformations
from advisor.offload.passes import batches_of_fit
from advisor.offload.repairs import batch_before_take, repairs_of
from advisor.offload.repeats import repeat_before_batch
from advisor.offload.source_parts import max_workers
from advisor.predict.call_index import graph_of
from advisor.predict.shared_datasets import dataset_name
from advisor.predict.structure import consumed_call, linear_chain

_NOTHING: Mapping[str, str] = {}


def judge(analysis: Analysis, policy: str = DYNAMIC, by_hand: Mapping[str, str] = _NOTHING) -> Movability:
    """Decide whether the main pipeline can move to workers, and where.

    Args:
        analysis: The analysis of a run of the script.
        policy: The sharding policy, `DYNAMIC` or `OFF`.
        by_hand: Kinds of repairs (`REPAIRS`) that cannot be written into this script, each with the reason as a sentence.
    """
    main = analysis.main
    consumed = consumed_call(analysis, main) if main is not None else None
    if main is None or consumed is None:
        return Movability(
            REFUSED, "The call that makes the consumed dataset is unknown, so no place for `distribute` can be named."
        )
    places = _places(analysis, consumed)
    if not places:
        return Movability(REFUSED, f"The dataset comes from {consumed.method}, which no line of the script calls.")
    ends = [_at(analysis, place, policy) for place in places]
    moved = batch_before_take(places)
    if moved is not None:
        end = _at(analysis, moved.batch, policy, moved.taken)
        ends.insert(0, replace(end, repairs=(moved.repair,)))
    repeated = repeat_before_batch(analysis, places, by_hand) or batches_of_fit(analysis, places, consumed, by_hand)
    if repeated is not None and policy == DYNAMIC:
        further = (_at(analysis, place, policy, endless=repeated.endless) for place in repeated.places)
        ends[:0] = [replace(end, repairs=repeated.repairs) for end in further if not _refused(end)]
    chosen = next((end for end in ends if not _refused(end)), None)
    if chosen is None or (chosen.moved_share is not None and chosen.moved_share < LEAST_MOVED_SHARE.value):
        return _refusal(ends[0], chosen)
    staying = _staying(ends[: ends.index(chosen)])
    chosen = replace(chosen, conditions=tuple(dict.fromkeys((*staying, *chosen.conditions))))
    return _concluded(chosen, analysis, policy, by_hand)


def _places(analysis: Analysis, consumed: Call) -> list[Call]:
    """The calls after which `distribute` may be written, nearest to the consumer first.

    A passive call at the end is no place, because a `prefetch` belongs after `distribute`; a source alone does no work.
    """
    chain = [call for call in linear_chain(analysis, consumed) if call.nested_in is None]
    written = [call for call in chain if call.library is None and call.made_by is None and call.site is not None]
    ends = [call for call in written if call.method not in transformations.PASSIVE]
    return [call for call in ends if call.inputs] or ends


def _at(
    analysis: Analysis, place: Call, policy: str, moved: Call | None = None, endless: frozenset[str] = frozenset()
) -> Movability:
    """Judge a place.

    Args:
        analysis: The analysis.
        place: The call after which the elements leave the workers.
        policy: The sharding policy.
        moved: A call before it that a repair moves after it.
        endless: Ids of calls that read endless data because of a repair.
    """
    upstream = [call for call in graph_of(analysis).upstream(place) if moved is None or call.id != moved.id]
    shared = _objection_to_sharing(analysis, place)
    objections = (*([shared] if shared is not None else []), *_objections(analysis, upstream, policy, endless))
    verdict = REFUSED if any(o.verdict == REFUSED for o in objections) else UNDECIDED if objections else MOVABLE
    return Movability(
        verdict,
        "",
        place.id,
        place.method,
        place.site,
        _moved_share(analysis, upstream),
        objections,
        tuple(
            dict.fromkeys(
                (*_conditions(analysis, upstream, policy, endless), *_obstacles_downstream(analysis, place, moved))
            )
        ),
        safety=_safety(upstream),
        max_workers=max_workers(analysis, upstream) if policy == DYNAMIC else None,
    )


def _objections(
    analysis: Analysis, upstream: Iterable[Call], policy: str, endless: frozenset[str]
) -> Iterator[Objection]:
    """The first objection to each call, its function and what that makes included; refusals before doubts."""
    graph, recording = graph_of(analysis), analysis.recording
    for call in upstream:
        objections = [transformations.objection_to(call, _reads_endless(analysis, call, endless), policy)]
        objections += [functions.objection_to(call, recording), data_files.objection_to(analysis, call)]
        for inner in graph.nested(call):
            is_applied = call.method == "apply" and inner.made_by == call.id  # it belongs to the chain
            inside = (
                transformations.objection_to(inner, _reads_endless(analysis, call, endless), policy)
                if is_applied
                else transformations.objection_inside(inner, call)
            ) or functions.objection_to(inner, recording)
            objections.append(inside and replace(inside, site=inside.site or call.site))
        known = [objection for objection in objections if objection is not None]
        if known:
            yield next((objection for objection in known if objection.verdict == REFUSED), known[0])


def _conditions(analysis: Analysis, upstream: Sequence[Call], policy: str, endless: frozenset[str]) -> Iterator[str]:
    graph, recording = graph_of(analysis), analysis.recording
    for call in upstream:
        yield from transformations.conditions_of(call, _reads_endless(analysis, call, endless), policy)
        for part in (call, *graph.nested(call)):
            yield from functions.conditions_of(part, recording)
    yield from data_files.conditions_of(analysis, upstream)


def _objection_to_sharing(analysis: Analysis, place: Call) -> Objection | None:
    """Why the elements after a place must not come in another order: other datasets select from them, too."""
    graph = graph_of(analysis)
    after = [graph.by_id[call_id] for call_id in graph.downstream(place)]
    direct = [call for call in after if place.id in call.inputs]
    selecting = next((call for call in after if call.method in ("skip", "shard")), None)
    if selecting is None and len(direct) > 1:
        selecting = next((call for call in after if call.method in ("take", "take_while")), None)
    if selecting is None:
        return None
    reason = (
        f"precedes {selecting.method}, which selects elements by their number: after `distribute` they come in another order, "
        "so that it would select others in every run (a split into training and validation would leak)"
    )
    return Objection(REFUSED, COUNTS, place.method, reason, place.site, place.id)


def _obstacles_downstream(analysis: Analysis, place: Call, moved: Call | None) -> Iterator[str]:
    """What the move means for the calls after a place, and for other datasets that the same text makes."""
    graph = graph_of(analysis)
    after = {graph.by_id[call_id].method for call_id in graph.downstream(place)} | ({moved.method} if moved else set())
    if "take" in after:
        yield "`take` counts what arrives from the workers, in an order that differs from run to run"
    others = siblings_of(place, graph.by_id)
    if others:
        yield f"the same text makes {dataset_name(analysis, others[0])}, which moves to the workers, too"


def _reads_endless(analysis: Analysis, call: Call, endless: frozenset[str]) -> bool:
    """Whether a dataset upstream of the call never ends, and nothing between them ends it; a repair may make it so."""
    if call.id in endless:
        return True
    upstream = graph_of(analysis).upstream(call)[1:]
    return any(transformations.is_endless(other) for other in upstream) and not any(
        other.method in ("take", "take_while") for other in upstream
    )


def _safety(upstream: Iterable[Call]) -> Safety:
    """Workers take turns, so the order changes; in a script without seeds that shuffles, it is random anyway."""
    is_shuffled = any(call.method == "shuffle" and call.arguments.get("seed") is None for call in upstream)
    return Safety.RERANDOMIZED if is_shuffled else Safety.REORDERED


def _moved_share(analysis: Analysis, upstream: Iterable[Call]) -> float | None:
    """The share of the pipeline's own work before a place; the work of fused calls counts where their function is."""
    main = analysis.main
    if main is None:
        return None
    graph = graph_of(analysis)
    ids = {part.id for call in upstream for part in (call, *graph.nested(call))}
    own = [it for it in main.iterators if it.main_call is not None]
    total = sum(it.busy_ns for it in own)
    if total <= 0:
        return None
    return sum(it.busy_ns for it in own if it.main_call is not None and it.main_call.id in ids) / total


def _obsolete(analysis: Analysis, movability: Movability, repairs: Iterable[Repair], policy: str) -> set[str]:
    """Conditions that do not hold because a repair repeats the data before the calls that they are about."""
    graph = graph_of(analysis)
    place = graph.by_id[movability.after_id]
    added = (edit for repair in repairs for edit in repair.before if isinstance(edit, InsertAfter))
    anchors = [graph.by_id[edit.call_id] for edit in added if edit.method == "repeat"]
    endless = frozenset(call.id for anchor in anchors for call in graph.path(anchor, place) or ())
    upstream = graph.upstream(place)
    before, after = (set(_conditions(analysis, upstream, policy, ids)) for ids in (frozenset[str](), endless))
    return before - after


def _refused(movability: Movability) -> bool:
    return movability.verdict == REFUSED


def _staying(later: Iterable[Movability]) -> Iterator[str]:
    """Which calls stay in the training, of the places nearer to the consumer that were refused, and why."""
    for place in later:
        for objection in place.objections:
            if objection.verdict == REFUSED and objection.method not in ("take", "take_while"):
                where = line_note(objection.site)
                yield f"{objection.method}{where} stays in the training: it {objection.reason}"


def _refusal(end: Movability, chosen: Movability | None) -> Movability:
    """The refusal, with what speaks against the end of the pipeline."""
    first = next((objection for objection in end.objections if objection.verdict == REFUSED), None)
    share = "" if chosen is None or chosen.moved_share is None else format_share(chosen.moved_share)
    if first is None:
        at = line_note(end.after_site)
        sentence = f"Moving it is not worth it: only {share} of its work is before {end.after_method}{at}."
    else:
        where = line_note(first.site)
        sentence = f"It cannot move: {first.method}{where} {first.reason}."
        sentence += f" Only {share} of the work is before it." if share else ""
    return replace(end, verdict=REFUSED, sentence=sentence, after_id="", after_method="", after_site=None)


def _concluded(movability: Movability, analysis: Analysis, policy: str, by_hand: Mapping[str, str]) -> Movability:
    """Add the repairs and the sentence."""
    repairs = (*movability.repairs, *repairs_of(analysis, movability, policy, by_hand))
    kinds = {repair.kind for repair in repairs}
    obsolete = _obsolete(analysis, movability, repairs, policy)
    conditions = [condition for condition in movability.conditions if condition not in obsolete]
    conditions += [transformations.OVERLAP] if kinds & {REPEAT, FIT} and policy == DYNAMIC else []
    if FIT in kinds:  # an epoch ends after a number of steps, not with a pass
        conditions.append("an epoch of `fit` is a number of steps of one stream instead of a pass over the data")
        movability = replace(movability, safety=Safety.NUMERICS)
    where = line_note(movability.after_site)
    share = "" if movability.moved_share is None else f", with {format_share(movability.moved_share)} of its work"
    place = f"up to {movability.after_method}{where}{share}"
    if movability.verdict == MOVABLE:
        sentence = f"It can move {place}."
    else:
        first = movability.objections[0]
        at = line_note(first.site)
        sentence = f"It may move {place}, but that is undecided: {first.method}{at} {first.reason}."
    if policy == OFF:
        sentence += " Every worker produces all of the elements (--sharding off)."
    return replace(movability, sentence=sentence, repairs=repairs, conditions=tuple(dict.fromkeys(conditions)))
