"""cache-without-reuse: a cache whose elements nobody reads a second time."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_bytes
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Pipeline,
    Remove,
    Rule,
    Safety,
    cache_bytes,
    consumed_call,
    is_editable,
    is_read_again,
    is_repeated_behind,
    nested_calls,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, interleave, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class CacheWithoutReuse(Rule):
    """A cache holds elements that are never read again.

    ## Why it is slow
    It keeps every element that passes in memory. Where the elements are large, the memory that would be used again and again
    must be asked for anew each time, and the machine may run out of it. Two cases are certain: a cache inside the function of
    an `interleave` or `flat_map`, which is made anew for every input and in every epoch, and a script that was seen to its end
    and read the data once.

    ## What the fix does
    It removes the call. Elements and order stay the same; the memory is free. How much faster that is depends on the size of
    the elements; for small ones it is nothing that could be measured, so no gain is predicted.

    ## When not to
    When the run that was watched is shorter than the real one (`--epochs 1` for a trial): the real one uses the cache. A
    script that the advisor stopped, or a cache with a file name, which the next run may use, is never reported.

    ## What tf.data already does
    Nothing here: a cache that is written stays.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each cache in memory that is certainly read once."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            for inner in (call, *nested_calls(analysis, call)):
                if inner.method != "cache" or inner.arguments.get("filename"):
                    continue
                why = self._why_unused(analysis, pipeline, inner, call)
                if why is None:
                    continue
                size = cache_bytes(analysis, pipeline, inner) if inner.nested_in is None else None
                holds = f" It holds {format_bytes(size)}." if size else ""
                yield self.finding(
                    "Remove the cache",
                    f"The cache at {place(inner)} {why}, so nothing that it holds is ever read again.{holds}",
                    call=inner,
                    fix=Fix((Remove(inner.id),), Safety.EXACT, is_auto=True) if is_editable(inner) else None,
                    evidence=(Evidence("held_bytes", size, "bytes"),) if size else (),
                )

    def _why_unused(self, analysis: Analysis, pipeline: Pipeline, call: Call, outer: Call) -> str | None:
        if call.nested_in is not None:
            is_used = any(
                each.method == "repeat" and call.id in {up.id for up in upstream_calls(analysis, each)}
                for each in nested_calls(analysis, outer)
            )
            return (
                None if is_used else f"is made anew by the function of {outer.method} at {place(outer)} for every input"
            )
        recording = analysis.recording
        if recording is None or recording.script_exit.kind != "finished":
            return None
        readers = [c for c in recording.consumers if c.call_id and feeds(analysis, call, c.call_id)]
        is_once = len(readers) == 1 and not is_read_again(analysis, pipeline)
        is_keras = pipeline.consumer is not None and pipeline.consumer.kind.startswith("keras")
        if (
            not is_once
            or is_repeated_behind(analysis, pipeline, call)
            or (is_keras and analysis.keras.get("epochs") != 1)
        ):
            return None
        return "is filled in the only epoch of the script"


def feeds(analysis: Analysis, call: Call, consumed_id: str) -> bool:
    """Whether the dataset that is consumed builds on `call`."""
    return any(
        each.id == consumed_id and call.id in {up.id for up in upstream_calls(analysis, each)}
        for each in analysis.calls
    )


EXAMPLES = (
    fires(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1), map_("decode", ms=1), cache(), cycle_length=4),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        fixed="interleave(lambda file: tf.data.TFRecordDataset(files).map(decode), cycle_length=4)",
    ),
    fires(
        pipeline(source(ms=0.5), cache(), batch(32), consumer_ms=5, epochs=1, is_finished=True),
        fixed="tf.data.TFRecordDataset(files)\nds = ds.batch(32)",
    ),
    silent(
        pipeline(source(ms=0.5), cache(), batch(32), consumer_ms=5, epochs=1),
        because="the script was not seen to its end: more epochs may follow",
    ),
    silent(
        pipeline(source(ms=0.5), cache(), batch(32), consumer_ms=5, epochs=2, is_finished=True),
        because="the second epoch reads it",
    ),
    silent(
        pipeline(source(ms=0.5), cache(), repeat(3), batch(32), consumer_ms=5, is_finished=True),
        because="the repeat reads it",
    ),
    silent(
        pipeline(source(ms=0.5), cache("elements"), batch(32), consumer_ms=5, is_finished=True),
        because="it is a file, which the next run reads",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1), cache(), repeat(2), cycle_length=4),
            batch(32),
            consumer_ms=5,
        ),
        because="the repeat inside the function reads it",
    ),
)
