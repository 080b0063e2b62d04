"""The best set of changes: which of them together, under the cores and the memory that there are, and what limits then.

In: an `Analysis`, one of its pipelines, and findings whose fixes are allowed and go together in any combination.
Out: `Outlook` with its `CombinedPlan`.

Gains do not add, so sets are predicted as a whole, from the effects that each prediction carries. With a handful of findings all
sets are tried; no solver is needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.model.finding import Effect, Finding, Prediction
from advisor.model.outlook import CombinedPlan, Limit, Outlook
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import format_bytes, format_many, format_range, format_ratio
from advisor.predict.cache_size import MEMORY_SHARE
from advisor.predict.demand import Demands, demands
from advisor.predict.operational import combined_factors, predict_from
from advisor.predict.unprofiled_costs import unprofiled

MAX_FINDINGS = 8
"""All sets of so many, the best predicted ones, are tried (256)."""
WORTH_MORE = 1.02
"""Of sets whose predictions are no further apart than that, the one with the fewest changes is the plan; every change of a
script costs its reader."""
_STILL_WAITING = 1.05
"""The consumer waits on, if without this limit a step were so much faster: the rules call no less worth having."""

_NAMES = {
    "consumer": "the consumer itself is",
    "cpu": "the cores are",
    "gil": "Python's lock (the GIL) is",
    "disk": "the disk is",
}


def outlook(
    analysis: Analysis, pipeline: Pipeline, findings: Sequence[Finding], allowed: Sequence[Finding]
) -> Outlook | None:
    """The outlook of `pipeline`; None where no steps were measured.

    `findings`: those of the report. `allowed`: those of them whose fixes are legal, allowed and compatible with each other.
    """
    pipeline = unprofiled(pipeline)
    found = demands(analysis, pipeline)
    if found is None:
        return None
    host = analysis.host
    room = None if host is None else int(MEMORY_SHARE * host.memory_free_bytes)
    return Outlook(
        step_ns=found.step_ns,
        consumer_ns=found.consumer_ns,
        demands=found.nodes,
        limits=found.limits(),
        memory_room_bytes=room,
        plan=_best(analysis, pipeline, found, findings, allowed, room),
    )


def service_workers(found: Demands, work: dict[str, float] | None = None) -> int | None:
    """Machines like this one that would have to do all input work, so that the consumer need not wait; None: unknown.

    `work`: iterator id -> share of its work that is left. A worker has as many cores as this host, and each its own Python.
    """
    left = work or {}
    if found.cores is None or found.consumer_ns <= 0:
        return None
    cpu_ns = sum(node.cpu_ns * left.get(node.iterator_id, 1.0) for node in found.nodes)
    python_ns = found.python_share * sum(node.python_ns * left.get(node.iterator_id, 1.0) for node in found.nodes)
    needed = max(cpu_ns / found.cores.usable, python_ns) / found.consumer_ns
    return math.ceil(needed - 1e-6) if math.isfinite(needed) and needed <= _MOST_WORKERS else None


_MOST_WORKERS = 10_000
"""More than that says that the consumer's own time was too short to be measured."""


def _best(
    analysis: Analysis,
    pipeline: Pipeline,
    found: Demands,
    findings: Sequence[Finding],
    allowed: Sequence[Finding],
    room: int | None,
) -> CombinedPlan | None:
    known = [
        _Known.of(each, found, analysis, pipeline) for each in allowed if each.prediction and each.prediction.effects
    ]
    known = sorted(known, key=lambda each: -each.own.value)[:MAX_FINDINGS]
    predicted: list[tuple[tuple[_Known, ...], Prediction]] = []
    for together in _sets(known):
        if not _fits([each.finding for each in together], room):
            continue
        factors = combined_factors(effect for each in together for effect in each.effects)
        prediction = predict_from(found, analysis, pipeline, *factors)
        if prediction is not None and prediction.value >= WORTH_MORE:
            predicted.append((together, _as_sure(prediction, together)))
    if not predicted:
        return None
    most = max(prediction.value for _, prediction in predicted)
    known_best, prediction = next(each for each in predicted if WORTH_MORE * each[1].value >= most)
    chosen = [each.finding for each in known_best]
    cost, work = combined_factors(effect for each in known_best for effect in each.own.effects)
    limit = found.limits(cost, work)[0]
    is_training = analysis.recording is None or not analysis.recording.is_pipeline_alone
    is_host = is_training and limit.resource in ("cpu", "gil") and limit.step_ns > _STILL_WAITING * found.consumer_ns
    workers = service_workers(found, work) if is_host else None
    places = tuple(sorted(findings.index(each) for each in chosen))
    memory = sum(each.memory_bytes or 0 for each in chosen)
    bound = max(prediction.value, found.step_ns / limit.step_ns) if limit.step_ns > 0 else math.inf
    sentence = _sentence(pipeline, places, prediction, memory, limit, bound, workers)
    return CombinedPlan(places, prediction, memory, limit, bound, workers, sentence)


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding whose effects are known."""

    finding: Finding
    own: Prediction
    """Its rule's."""
    effects: tuple[Effect, ...]
    """As far as its rule trusts them: a rule may predict less than the effects it has named would give."""
    is_guess: bool
    """Its rule is less sure than the model."""

    @classmethod
    def of(cls, finding: Finding, found: Demands, analysis: Analysis, pipeline: Pipeline) -> _Known:
        own = finding.prediction
        assert own is not None
        alone = predict_from(found, analysis, pipeline, *combined_factors(own.effects))
        if alone is None or alone.value <= 1:
            return cls(finding, own, own.effects, False)
        trust = min(1.0, max(0.0, (1 - 1 / own.value) / (1 - 1 / alone.value))) if own.value > 1 else 0.0
        effects = tuple(Effect(e.iterator_id, 1 - trust * (1 - e.cost), 1 - trust * (1 - e.work)) for e in own.effects)
        return cls(finding, own, effects, is_guess=own.low < alone.low * (1 - 1e-9))


def _sets(known: Sequence[_Known]) -> Iterator[tuple[_Known, ...]]:
    """All sets, small ones first, so that of equals the smallest is met first."""
    for size in range(1, len(known) + 1):
        yield from itertools.combinations(known, size)


def _as_sure(prediction: Prediction, together: Sequence[_Known]) -> Prediction:
    """The prediction, no surer than the rules are: with a guess in it, its range begins where that of the surest part does."""
    if not any(each.is_guess for each in together):
        return prediction
    return replace(prediction, low=min(prediction.low, max(each.own.low for each in together)))


def _fits(chosen: Sequence[Finding], room: int | None) -> bool:
    """Whether the memory that they take is known, and there. Where nothing is known of the machine, only what takes none."""
    sizes = [each.memory_bytes for each in chosen]
    if any(size is None for size in sizes):
        return False
    total = sum(size or 0 for size in sizes)
    return total <= room if room is not None else total == 0


def _sentence(
    pipeline: Pipeline,
    places: tuple[int, ...],
    prediction: Prediction,
    memory_bytes: int,
    limit: Limit,
    limit_speedup: float,
    workers: int | None,
) -> str:
    numbers = [str(place + 1) for place in places]
    which = f"{', '.join(numbers[:-1])} and {numbers[-1]} together" if len(numbers) > 1 else f"{numbers[0]} alone"
    if limit.iterator_id is not None:
        iterator = pipeline.iterator(limit.iterator_id)
        call = iterator.main_call
        name = f"{call.method} (as {iterator.name}) is" if call is not None else f"{iterator.name} is"
    else:
        name = _NAMES[limit.resource]
    memory = f", {format_bytes(memory_bytes)} more memory" if memory_bytes >= 1 << 20 else ""
    at = f", at {format_ratio(limit_speedup)}" if math.isfinite(limit_speedup) else ""
    text = (
        f"Best plan: {which}, predicted "
        f"{format_range(prediction.value, prediction.low, prediction.high)}{memory}. Then {name} the limit{at}."
    )
    if workers is not None:
        needed = format_many(workers, "tf.data service worker")
        text += f" So that training waits no longer, at least {needed} like this machine would be needed."
    return text


__all__ = ["MAX_FINDINGS", "outlook", "service_workers"]
