"""cache-without-reuse: a cache whose elements are never read a second time."""

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
    is_repeated_downstream,
    nested_calls,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, interleave, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class CacheWithoutReuse(Rule):
    """A cache holds elements that are never read again.

    ## Why it is slow
    The cache keeps every element in memory. With large elements, memory that would be reused must be allocated again
    for each element, and the machine may run out of it. Two cases are certain: a cache inside the function of an
    `interleave` or `flat_map`, which is recreated for every input in every epoch, and a script that was observed to the
    end and read the data only once.

    ## What the fix does
    It removes the call and frees the memory. Elements and order stay the same. The effect on speed depends on the
    element size and is not measurable for small elements, so no speedup is predicted.

    ## When not to
    When the analysed run is shorter than the real one (for example a trial with `--epochs 1`) and the real run does use
    the cache. Caches in a script that the advisor stopped, and caches with a file name that the next run may use, are
    never reported.

    ## What tf.data already does
    Nothing.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each in-memory cache that is known to be read only once."""
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
                    f"The cache at {place(inner)} {why}, so its elements are never read again.{holds}",
                    call=inner,
                    fix=Fix((Remove(inner.id),), Safety.EXACT, is_auto=True) if is_editable(inner) else None,
                    evidence=(Evidence("held_bytes", size, "bytes"),) if size else (),
                )

    def _why_unused(self, analysis: Analysis, pipeline: Pipeline, call: Call, outer: Call) -> str | None:
        if call.nested_in is not None:
            is_used = any(
                inner.method == "repeat" and call.id in {up.id for up in upstream_calls(analysis, inner)}
                for inner in nested_calls(analysis, outer)
            )
            return (
                None if is_used else f"is recreated for every input by the function of {outer.method} at {place(outer)}"
            )
        recording = analysis.recording
        if recording is None or recording.script_exit.kind != "finished":
            return None
        readers = [c for c in recording.consumers if c.call_id and feeds(analysis, call, c.call_id)]
        is_once = len(readers) == 1 and not is_read_again(analysis, pipeline)
        is_keras = pipeline.consumer is not None and pipeline.consumer.kind.startswith("keras")
        if (
            not is_once
            or is_repeated_downstream(analysis, pipeline, call)
            or (is_keras and (analysis.keras.get("epochs") != 1 or analysis.keras.get("fits", 1) != 1))
        ):
            return None
        return "is filled in the only epoch of the script"


def feeds(analysis: Analysis, call: Call, consumed_id: str) -> bool:
    """Whether `call` is upstream of the dataset that is consumed.

    Args:
        analysis: The run.
        call: Any call; it also feeds the dataset that it makes itself.
        consumed_id: Id of the call whose dataset is consumed.
    """
    return any(
        consumed.id == consumed_id and call.id in {up.id for up in upstream_calls(analysis, consumed)}
        for consumed in analysis.calls
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
        because="the script was not observed to the end: more epochs may follow",
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
        because="the cache is a file that the next run can read",
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
