"""Determines how often a run of the script passes over its data.

In: an `Analysis`, a pipeline, and one of its calls.  Out: `Horizon`.

The number is known from `repeat(n)`, from Keras' arguments, and from a run that was recorded to its end. From the script's own
loops, or if a callback may end the training, it is assumed. Everything else is unknown. Of a training that went on when it was
recorded, the passes that it had made are subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from advisor.model.calls import INFINITE_CARDINALITY, Call
from advisor.model.horizon import ASSUMED, KNOWN, UNKNOWN, Horizon
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.recording import Consumer, Loop
from advisor.model.shared_text import siblings_of
from advisor.model.units import format_epochs, format_many
from advisor.predict.cache_size import elements_per_epoch, steps_per_epoch, window_elements
from advisor.predict.call_index import graph_of
from advisor.predict.structure import consumed_call, upstream_calls

MANY_PASSES = 1e9
"""Larger numbers of passes are treated as unknown: no run makes them."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """How often the consumer starts to read its dataset."""

    count: float | None
    basis: str
    why: str
    elements: float | None = None
    """Elements at the root of the whole run, if the script counts steps instead of epochs; else None."""


def horizon(analysis: Analysis, pipeline: Pipeline, call: Call | None = None, *, makes_once: bool = False) -> Horizon:
    """Return how often a run passes over the elements of a call.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        call: A call of the pipeline; None for the data of its first source.
        makes_once: Whether a change makes the dataset once, if the script makes it for every pass. Otherwise the passes over
            such a dataset are unknown.
    """
    consumed = consumed_call(analysis, pipeline)
    done = _steps_done(analysis, pipeline)
    if consumed is None:
        return Horizon(UNKNOWN, "the dataset of the training was not recorded", steps_done=done)
    chain = upstream_calls(analysis, consumed)
    call = call if call is not None else chain[-1]
    reads = _reads(analysis, pipeline, consumed, call, makes_once)
    whole = root_steps_per_epoch(analysis, pipeline)
    repeats = _repeats(analysis, chain, call)
    counts = [repeat.arguments.get("count") for repeat in repeats]
    is_cut = any(_is_cut_later(analysis, chain, repeat) for repeat in repeats)
    if all(isinstance(count, int) and count > 0 for count in counts) and not is_cut:
        factor = math.prod(count for count in counts if isinstance(count, int))
        per_pass = whole / factor if whole else None
        if reads.elements is not None:
            passes = reads.elements / per_pass if per_pass else None
        else:
            passes = None if reads.count is None else reads.count * factor
        why = " and ".join((reads.why, *(f"repeat({count})" for count in counts)))
    elif all(count is None or isinstance(count, int) for count in counts):
        per_pass = _steps_of_input(analysis, pipeline, repeats)
        elements = reads.elements if reads.elements is not None else _limited(consumed, reads)
        passes = elements / per_pass if elements is not None and per_pass else None
        why = reads.why if passes is not None else "the data is repeated, and the number of steps is unknown"
    else:
        return Horizon(UNKNOWN, "the argument of repeat is unknown", steps_done=done)
    if passes is None or not 0 < passes <= MANY_PASSES:
        return Horizon(UNKNOWN, why, None, per_pass, done)
    whole_run = Horizon(reads.basis, why, passes, per_pass, done)
    if analysis.recording is None or not analysis.recording.goes_on:
        return whole_run
    return _rest(whole_run, done * elements_per_step(analysis, pipeline))


def elements_per_step(analysis: Analysis, pipeline: Pipeline) -> int:
    """Elements at the root that a step takes: more than one if Keras executes several steps in a call."""
    executed = analysis.keras.get("steps_per_execution")
    is_keras = pipeline.consumer is not None and pipeline.consumer.kind.startswith("keras")
    return executed if is_keras and isinstance(executed, int) and executed > 0 else 1


def _rest(over: Horizon, elements_done: int) -> Horizon:
    """Return what is left of a run that goes on: a change cannot help the passes that it has made.

    Args:
        over: All passes of the run; their number is known.
        elements_done: Elements at the root that the run had taken.
    """
    assert over.passes is not None
    if not over.steps_per_pass:
        return replace(
            over, basis=UNKNOWN, why=f"{over.why}, of an unknown number of steps each", passes=None, is_rest=True
        )
    done = elements_done / over.steps_per_pass
    left = over.passes - done
    why = f"{over.why}, of which {format_epochs(done)} {'is' if done == 1 else 'are'} done"
    if left <= 0:
        return replace(over, basis=UNKNOWN, why=f"{over.why}, all of which are done", passes=None, is_rest=True)
    return replace(over, why=why, passes=left, is_rest=True)


def root_steps_per_epoch(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Return the steps of an epoch of the consumer: as recorded, or else from the consumed dataset; None if unknown."""
    seen = steps_per_epoch(analysis, pipeline)
    consumed = consumed_call(analysis, pipeline)
    if seen is not None:  # an upper bound, as the last epoch may not have ended; no epoch is longer than the dataset
        size = consumed.cardinality if consumed is not None else None
        return min(seen, float(size)) if size is not None and size > 0 else seen
    count = elements_per_epoch(analysis, pipeline, consumed) if consumed is not None else None
    return float(count) if count else None


# -- how often the consumer reads its dataset


def _reads(analysis: Analysis, pipeline: Pipeline, consumed: Call, call: Call, makes_once: bool) -> _Reads:
    consumer, recording = pipeline.consumer, analysis.recording
    if consumer is None or recording is None:
        return _Reads(None, UNKNOWN, "the script's loop was not recorded")
    if recording.is_pipeline_alone or recording.as_if_step_ns is not None:
        return _Reads(None, UNKNOWN, "the pipeline was measured in isolation")
    is_finished = recording.script_exit.kind == "finished" and not recording.goes_on
    if consumer.kind == "keras.fit":
        return _reads_of_fit(analysis, consumer, call, is_finished, makes_once)
    if consumer.kind.startswith("keras") or consumer.kind == "tf.function":
        return _Reads(None, UNKNOWN, f"the epochs of {consumer.kind} are not counted")
    if not makes_once and _is_made_again(analysis, consumer, call):
        return _Reads(None, UNKNOWN, "the script makes the dataset more than once")
    if is_finished:
        why = f"the script read the data {_times(consumer.iterators)} and ended"
        return _Reads(float(consumer.iterators), KNOWN, why, _elements_read(analysis, pipeline, consumed))
    return _reads_of_loops(consumer, None if makes_once else call)


def _reads_of_fit(analysis: Analysis, consumer: Consumer, call: Call, is_finished: bool, makes_once: bool) -> _Reads:
    """From the arguments of `fit`; if the script has ended, from the epochs that were counted."""
    facts = analysis.keras
    given, initial, per_epoch, fits = (facts.get(n) for n in ("epochs", "initial_epoch", "steps_per_epoch", "fits"))
    if is_finished and consumer.finished_epochs:
        return _Reads(
            float(consumer.finished_epochs), KNOWN, f"fit finished {format_many(consumer.finished_epochs, 'epoch')}"
        )
    epochs = given if isinstance(given, int) else 1 if given is None and isinstance(fits, int) else None
    if epochs is None:
        return _Reads(None, UNKNOWN, "the epochs of fit were not recorded")
    why = f"epochs={epochs} of fit"
    if isinstance(fits, int) and fits > 1 and (makes_once or not _is_made_again(analysis, consumer, call)):
        loops = _reads_of_loops(consumer, None if makes_once else call)
        if loops.count is None:
            return _Reads(None, UNKNOWN, "fit is called more than once")
        return _Reads(epochs * loops.count, ASSUMED, f"{why}, and {loops.why}")
    epochs -= initial if isinstance(initial, int) else 0
    basis = KNOWN if facts.get("may_stop") is False else ASSUMED  # earlier versions did not record callbacks
    why += "" if basis is KNOWN else ", if no callback ends it earlier"
    if isinstance(per_epoch, int) and per_epoch > 0:
        return _Reads(float(epochs), basis, f"{why} with steps_per_epoch={per_epoch}", float(epochs * per_epoch))
    return _Reads(float(epochs), basis, why)


def _reads_of_loops(consumer: Consumer, call: Call | None) -> _Reads:
    """From the loops of the script around the consumer; with a call, only from those that do not also make the dataset."""
    if consumer.loops is None:
        return _Reads(None, UNKNOWN, "the recording ended before the script did")
    loops = _around(consumer.loops, call) if call is not None else list(consumer.loops)
    if any(loop.count is None for loop in loops):
        return _Reads(None, UNKNOWN, "it is unknown how often the script's loop runs")
    count = math.prod(loop.count or 0 for loop in loops)
    if not loops:
        return _Reads(1.0, ASSUMED, "the script reads the data in no loop")
    lines = " and ".join(f"the loop at {PurePath(loop.file.replace(chr(92), '/')).name}:{loop.line}" for loop in loops)
    return _Reads(float(max(count, consumer.iterators)), ASSUMED, lines)


def _around(loops: Sequence[Loop], call: Call) -> list[Loop]:
    """The loops that repeat the consumption, but not the creation of the dataset."""
    site = call.site
    chosen = []
    for loop in loops:
        if site is not None and site.file == loop.file and loop.line <= site.line <= loop.end_line:
            break
        chosen.append(loop)
    return chosen


def _is_made_again(analysis: Analysis, consumer: Consumer, call: Call) -> bool:
    """Whether the text of the dataset makes others that no other consumer reads, for example a new one in every epoch."""
    if analysis.recording is None:
        return False
    graph = graph_of(analysis)
    others = [c.call_id for c in analysis.recording.consumers if c.id != consumer.id and c.call_id]
    read = {up.id for call_id in others if call_id in graph.by_id for up in graph.upstream(graph.by_id[call_id])}
    return any(other.id not in read for other in siblings_of(call, graph.by_id))


def _repeats(analysis: Analysis, chain: Sequence[Call], call: Call) -> list[Call]:
    """The repeats that make a run pass over the elements of a call more often: after it, and before it."""
    graph = graph_of(analysis)
    downstream = graph.downstream(call)
    upstream = {other.id for other in graph.upstream(call)}
    return [link for link in chain if link.method == "repeat" and (link.id in downstream or link.id in upstream)]


def _is_cut_later(analysis: Analysis, chain: Sequence[Call], repeat: Call) -> bool:
    """Whether a later call may end the data before the last repetition."""
    downstream = graph_of(analysis).downstream(repeat)
    return any(link.id in downstream and link.method in ("take", "take_while") for link in chain)


def _steps_of_input(analysis: Analysis, pipeline: Pipeline, repeats: Sequence[Call]) -> float | None:
    """Steps of one pass over the input of the first repeat; None if its size is unknown."""
    by_id = graph_of(analysis).by_id
    first = repeats[-1]  # nearest to the sources
    source = by_id.get(first.inputs[0]) if len(first.inputs) == 1 else None
    if source is None or source.cardinality is None or source.cardinality <= 0:
        return None
    seen = window_elements(pipeline, source) or window_elements(pipeline, first)
    return source.cardinality * pipeline.num_elements / seen if seen and pipeline.num_elements else None


def _limited(consumed: Call, reads: _Reads) -> float | None:
    """Elements at the root of the whole run, if a `take` limits them."""
    size = consumed.cardinality
    return None if size is None or size < 0 or reads.count is None else size * reads.count


def _elements_read(analysis: Analysis, pipeline: Pipeline, consumed: Call) -> float | None:
    """Elements that a finished script took from an endless dataset; None for other datasets."""
    is_endless = consumed.cardinality == INFINITE_CARDINALITY
    done = _steps_done(analysis, pipeline)
    return float(done) if is_endless and done else None


def _steps_done(analysis: Analysis, pipeline: Pipeline) -> int:
    recording, consumer = analysis.recording, pipeline.consumer
    if recording is None or consumer is None:
        return 0
    return next((s.first_step + len(s.start_ns) for s in recording.steps if s.consumer_id == consumer.id), 0)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
