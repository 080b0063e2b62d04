"""Selects the best set of changes for the available cores and memory, and determines the limit that remains.

In: an `Analysis`, one of its pipelines, and findings whose fixes are allowed and compatible in any combination.
Out: `Outlook` with its `CombinedPlan`.

Gains do not add up, so every set is predicted as a whole from the effects of its findings. The number of findings is small enough
to try all sets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.prediction import MEMORY_SHARE, STILL_WAITING, WORTH_MORE
from advisor.model.finding import Effect, Finding, Prediction, RunGain
from advisor.model.horizon import Horizon
from advisor.model.outlook import CombinedPlan, Limit, Outlook
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import format_bytes, format_epochs, format_many, format_range, format_ratio
from advisor.predict.call_index import graph_of
from advisor.predict.demand import Demands, demands
from advisor.predict.headroom import headroom
from advisor.predict.limit_names import name_of_limit
from advisor.predict.operational import combined_factors, predict_from
from advisor.predict.passes_over_data import horizon
from advisor.predict.run_gain import run_gain
from advisor.predict.shared_cores import shared_cores
from advisor.predict.unprofiled_costs import unprofiled

MAX_FINDINGS = 8
"""All sets of this many findings, those with the best predictions, are tried (256 sets)."""


def outlook(
    analysis: Analysis, pipeline: Pipeline, findings: Sequence[Finding], allowed: Sequence[Finding]
) -> Outlook | None:
    """Compute the outlook of a pipeline.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        findings: The findings of the report.
        allowed: The findings whose fixes are legal, allowed and compatible with each other.

    Returns:
        The outlook, or None if no steps were measured.
    """
    pipeline = unprofiled(pipeline)
    measured = demands(analysis, pipeline)
    if measured is None:
        return None
    delayed = next((finding for finding in allowed if finding.is_delayed), None)
    call = graph_of(analysis).by_id.get(delayed.call_id or "") if delayed is not None else None
    over = horizon(analysis, pipeline, call, makes_once=delayed is not None and delayed.makes_once)
    host = analysis.host
    room = None if host is None else int(MEMORY_SHARE.value * host.memory_free_bytes)
    return Outlook(
        step_ns=measured.step_ns,
        consumer_ns=measured.consumer_ns,
        demands=measured.nodes,
        limits=measured.limits(),
        memory_room_bytes=room,
        plan=_best(analysis, pipeline, measured, findings, allowed, room, over),
        horizon=over,
        headroom=headroom(analysis, pipeline, measured),
        shared_cores=shared_cores(analysis, pipeline, measured),
    )


def service_workers(measured: Demands, work: dict[str, float] | None = None) -> int | None:
    """Return how many machines like this one would have to do the input work so that the consumer does not wait.

    Args:
        measured: The demands of the pipeline.
        work: Iterator id -> share of its work that remains; missing means 1.

    Returns:
        The number of workers, each with as many cores as this host and its own Python process; None if unknown.
    """
    left = work or {}
    if measured.cores is None or measured.consumer_ns <= 0:
        return None
    cpu_ns = sum(node.cpu_ns * left.get(node.iterator_id, 1.0) for node in measured.nodes)
    python_ns = measured.python_share * sum(node.python_ns * left.get(node.iterator_id, 1.0) for node in measured.nodes)
    needed = max(cpu_ns / measured.cores.usable, python_ns) / measured.consumer_ns
    return math.ceil(needed - 1e-6) if math.isfinite(needed) and needed <= _MOST_WORKERS else None


_MOST_WORKERS = 10_000
"""A larger result means that the consumer's own time was too short to be measured."""


def _best(
    analysis: Analysis,
    pipeline: Pipeline,
    measured: Demands,
    findings: Sequence[Finding],
    allowed: Sequence[Finding],
    room: int | None,
    over: Horizon,
) -> CombinedPlan | None:
    known = [
        _Known.of(finding, measured, analysis, pipeline)
        for finding in allowed
        if finding.prediction and finding.prediction.effects
    ]
    known = sorted(known, key=lambda candidate: -candidate.finding.gain)[:MAX_FINDINGS]
    predicted: list[_Predicted] = []
    for together in _sets(known):
        if not _fits([candidate.finding for candidate in together], room):
            continue
        later = _together(measured, analysis, pipeline, together)
        if later is None:
            continue
        from_first = tuple(candidate for candidate in together if not candidate.own.is_delayed)
        first = None
        if len(from_first) < len(together):
            costs = math.prod(candidate.own.first_pass or 1.0 for candidate in together)
            first = _slowed(_together(measured, analysis, pipeline, from_first), costs)
            later = replace(later, first_pass=first.value)
        gain = run_gain(later, over, measured.step_ns, first)
        entry = _Predicted(together, later, gain)
        if entry.value >= WORTH_MORE.value:
            predicted.append(entry)
    if not predicted:
        return None
    most = max(entry.value for entry in predicted)
    best = next(entry for entry in predicted if WORTH_MORE.value * entry.value >= most)
    known_best, prediction = best.together, best.prediction
    chosen = [candidate.finding for candidate in known_best]
    cost, work = combined_factors(effect for candidate in known_best for effect in candidate.own.effects)
    limit = measured.limits(cost, work)[0]
    is_training = analysis.recording is None or not analysis.recording.is_pipeline_alone
    is_host = (
        is_training and limit.resource in ("cpu", "gil") and limit.step_ns > STILL_WAITING.value * measured.consumer_ns
    )
    workers = service_workers(measured, work) if is_host else None
    places = tuple(sorted(findings.index(finding) for finding in chosen))
    memory = sum(finding.memory_bytes or 0 for finding in chosen)
    bound = max(prediction.value, measured.step_ns / limit.step_ns) if limit.step_ns > 0 else math.inf
    sentence = _sentence(pipeline, places, best, memory, limit, bound, workers)
    return CombinedPlan(places, prediction, memory, limit, bound, workers, sentence, best.over_run)


@dataclass(frozen=True, slots=True)
class _Predicted:
    """A set of changes and its predicted effect."""

    together: tuple[_Known, ...]
    prediction: Prediction
    over_run: RunGain

    @property
    def value(self) -> float:
        """The speedup by which sets are compared: of the whole run if its passes are counted, else of a step."""
        whole = self.over_run.prediction
        return self.prediction.value if whole is None else whole.value


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding whose effects are known."""

    finding: Finding
    own: Prediction
    """The prediction of its rule."""
    effects: tuple[Effect, ...]
    """The effects, scaled to the prediction of the rule, which may be lower than the effects imply."""
    is_guess: bool
    """Whether the rule is less certain than the model."""

    @classmethod
    def of(cls, finding: Finding, measured: Demands, analysis: Analysis, pipeline: Pipeline) -> _Known:
        own = finding.prediction
        assert own is not None
        alone = predict_from(measured, analysis, pipeline, *combined_factors(own.effects))
        if alone is None or alone.value <= 1:
            return cls(finding, own, own.effects, False)
        trust = min(1.0, max(0.0, (1 - 1 / own.value) / (1 - 1 / alone.value))) if own.value > 1 else 0.0
        effects = tuple(Effect(e.iterator_id, 1 - trust * (1 - e.cost), 1 - trust * (1 - e.work)) for e in own.effects)
        return cls(finding, own, effects, is_guess=own.low < alone.low * (1 - 1e-9))


def _together(
    measured: Demands, analysis: Analysis, pipeline: Pipeline, together: Sequence[_Known]
) -> Prediction | None:
    """The prediction for a step with all of these changes; None if nothing was measured."""
    factors = combined_factors(effect for candidate in together for effect in candidate.effects)
    prediction = predict_from(measured, analysis, pipeline, *factors)
    return None if prediction is None else _as_sure(prediction, together)


def _slowed(prediction: Prediction | None, factor: float) -> Prediction:
    """The prediction for a first pass that also has to fill caches."""
    if prediction is None:
        return Prediction(factor, factor, factor)
    return replace(
        prediction, value=prediction.value * factor, low=prediction.low * factor, high=prediction.high * factor
    )


def _sets(known: Sequence[_Known]) -> Iterator[tuple[_Known, ...]]:
    """All sets, smallest first, so that the smallest of equally good sets is found first."""
    for size in range(1, len(known) + 1):
        yield from itertools.combinations(known, size)


def _as_sure(prediction: Prediction, together: Sequence[_Known]) -> Prediction:
    """Lower the range to the certainty of the rules: with a guess in the set, it starts at the highest `low` of its members."""
    if not any(candidate.is_guess for candidate in together):
        return prediction
    return replace(prediction, low=min(prediction.low, max(candidate.own.low for candidate in together)))


def _fits(chosen: Sequence[Finding], room: int | None) -> bool:
    """Whether the required memory is known and available. On an unknown machine, only changes without memory fit."""
    sizes = [finding.memory_bytes for finding in chosen]
    if any(size is None for size in sizes):
        return False
    total = sum(size or 0 for size in sizes)
    return total <= room if room is not None else total == 0


def _sentence(
    pipeline: Pipeline,
    places: tuple[int, ...],
    best: _Predicted,
    memory_bytes: int,
    limit: Limit,
    limit_speedup: float,
    workers: int | None,
) -> str:
    numbers = [str(place + 1) for place in places]
    which = f"{', '.join(numbers[:-1])} and {numbers[-1]} together" if len(numbers) > 1 else f"{numbers[0]} alone"
    name = name_of_limit(pipeline, limit)
    memory = f", {format_bytes(memory_bytes)} more memory" if memory_bytes >= 1 << 20 else ""
    at = f", at {format_ratio(limit_speedup)}" if math.isfinite(limit_speedup) else ""
    text = f"Best plan: {which}, predicted {_gain_text(best)}{memory}. Then {name} the limit{at}."
    if workers is not None:
        needed = format_many(workers, "tf.data service worker")
        text += f" To remove the wait, at least {needed} like this machine would be needed."
    return text


def _gain_text(best: _Predicted) -> str:
    """`2.9x (2.5x to 3.2x)`; with a cache, over the epochs of the run or from the second one on."""
    later, whole = best.prediction, best.over_run.prediction
    steady = format_range(later.value, later.low, later.high)
    if not later.is_delayed:
        return steady
    if whole is None or best.over_run.passes is None:
        return f"{steady} from the second epoch on"
    epochs = format_epochs(best.over_run.passes)
    return f"{format_range(whole.value, whole.low, whole.high)} over the {epochs} of this run"


__all__ = ["MAX_FINDINGS", "outlook", "service_workers"]
