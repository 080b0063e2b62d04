"""repeated-work-on-disk: every epoch computes the same elements again, and they fit on the disk but not in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    Analysis,
    CachePlace,
    Call,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    Iter,
    Note,
    Pipeline,
    Prediction,
    Rule,
    Safety,
    cache_places,
    is_read_again,
    label,
    payoff,
    place,
    takes_link,
    upstream_calls,
)
from advisor.testing import batch, fires, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class RepeatedWorkOnDisk(Rule):
    """Every epoch reads and computes the same elements again; they are too many for memory, but there is room on the disk.

    ## Why it is slow
    As with `repeated-work`: whatever does not depend on chance gives the same elements in every epoch.

    ## What the fix does
    `.cache("advisor-cache/<key>")` writes the elements of the first epoch into files below the folder in which the script runs;
    later epochs, and later runs, read them from there. The key is made from the calls upstream and their arguments, so that a
    pipeline that is changed there gets another file. The first epoch becomes slower by the writing.

    ## When not to
    When the disk is slow or shared: reading the elements must be quicker than computing them. The prediction takes a disk of
    `disk_bytes_per_s` for granted, which nobody has measured, and that is why the fix is not applied unasked. The files stay:
    delete them when the input files or the function change, which the key cannot see, since tf.data would go on reading the old
    elements.

    ## What tf.data already does
    Nothing here: it never caches by itself.
    """

    max_memory_share: float = 0.5
    """Share of the free memory up to which `repeated-work` proposes a cache in memory; this rule speaks of what is larger."""
    max_disk_share: float = 0.5
    """Share of the free disk space that the files may take."""
    disk_bytes_per_s: float = 500.0 * (1 << 20)
    """Assumed rate of reading, where none was measured. A SATA SSD reads about 500 MB/s, NVMe several times that, a network disk
    often less."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """The best place for a cache on the disk, where no cache in memory does the same."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None or host.disk_free_bytes is None:
            return
        places = [
            p for p in cache_places(analysis, pipeline) if not p.obstacles and p.bytes and takes_link(analysis, p.call)
        ]
        limit = self.max_memory_share * host.memory_free_bytes
        in_memory = max((p.prediction.value for p in places if (p.bytes or 0) <= limit), default=1.0)
        large = [
            replace(p, prediction=self._from_disk(analysis, pipeline, p))
            for p in places
            if limit < (p.bytes or 0) <= self.max_disk_share * host.disk_free_bytes
            and (p.is_repeated_below or is_read_again(analysis, pipeline))
        ]
        chosen = smallest_of_best(large)
        if chosen is None or chosen.prediction.value <= in_memory / 0.9:
            return
        call = chosen.call
        yield self.finding(
            f"Cache behind {label(call)} on the disk",
            f"Every epoch computes the same elements again up to {label(call)} at {place(call)}, which causes "
            f"{format_share(chosen.saved_share)} of the wait for input. They take {format_bytes(chosen.bytes or 0)}: "
            f"too much for the {format_bytes(host.memory_free_bytes)} of free memory, but "
            f"{format_bytes(host.disk_free_bytes)} are free on the disk. Predicted for a disk that reads "
            f"{format_bytes(int(self._rate(analysis)))} a second, "
            f"{'as it did your files' if host.disk_read_bytes_per_s else 'which is an assumption'}.",
            call=call,
            prediction=chosen.prediction,
            memory_bytes=0,
            fix=Fix(
                (InsertAfter(call.id, "cache", (("", f"advisor-cache/{key_of(analysis, call)}"),)),),
                Safety.EXACT,
                is_auto=False,
                assumptions=chosen.assumptions,
            ),
            evidence=(
                Evidence("saved_blame_share", chosen.saved_share, "share"),
                Evidence("cache_bytes", chosen.bytes or 0, "bytes"),
                Evidence("free_memory", host.memory_free_bytes, "bytes"),
                Evidence("free_disk", host.disk_free_bytes, "bytes"),
                Evidence("disk_rate", self._rate(analysis), "bytes/s"),
                *self._pays(analysis, pipeline, chosen),
            ),
        )

    def _pays(self, analysis: Analysis, pipeline: Pipeline, chosen: CachePlace) -> Iter[Evidence]:
        """What the first epoch takes, which writes the file (taken to be as fast as reading), and when that has paid."""
        found = payoff(analysis, pipeline, chosen, self._rate(analysis))
        if found is not None:
            yield Evidence("first_epoch", found.first_epoch_ns, "ns")
            yield Evidence("later_epochs", found.later_epoch_ns, "ns")
            yield Evidence("break_even_epoch", found.break_even_epoch)

    def _rate(self, analysis: Analysis) -> float:
        """Bytes per second of the disk: measured on the user's files, else assumed."""
        measured = analysis.host.disk_read_bytes_per_s if analysis.host is not None else None
        return measured or self.disk_bytes_per_s

    def _from_disk(self, analysis: Analysis, pipeline: Pipeline, candidate: CachePlace) -> Prediction:
        """The prediction, if the elements must come from the disk: no step is shorter than its elements take to read, unless the
        system still has them in memory, which is the upper end of the range.
        """
        it = next((it for it in pipeline.iterators if any(c.id == candidate.call.id for c in it.calls)), None)
        if it is None or not it.elements or not pipeline.num_elements or not candidate.element_bytes:
            return candidate.prediction
        step_s = pipeline.step_ns / 1e9
        is_fused = it.calls[-1].id != candidate.call.id
        size = it.calls[-1].arguments.get("batch_size") if is_fused else 1
        per_step = it.elements * (size if isinstance(size, int) else 1) / pipeline.num_elements
        most = max(1.0, step_s / (per_step * candidate.element_bytes / self._rate(analysis)))
        p = candidate.prediction
        return replace(p, value=min(p.value, most), low=min(p.low, most))


def smallest_of_best(places: Sequence[CachePlace]) -> CachePlace | None:
    """Of the places that give about as much as the best one, the smallest."""
    most = max((each.prediction.value for each in places), default=0.0)
    equal = [each for each in places if each.prediction.value >= 0.9 * most]
    return min(equal, key=lambda each: each.bytes or 0, default=None)


def key_of(analysis: Analysis, call: Call) -> str:
    """A name that changes with the calls upstream: their methods, arguments and functions' ops."""
    digest = hashlib.sha256()
    for each in upstream_calls(analysis, call):
        ops = sorted(each.function.ops.items()) if each.function else []
        digest.update(repr((each.method, sorted(each.arguments.items(), key=str), ops, each.element_spec)).encode())
    return f"{call.method}-{digest.hexdigest()[:12]}"


_LARGE = source(elements=400_000, bytes=100_000)

EXAMPLES = (
    fires(
        pipeline(
            _LARGE, map_("decode", ms=5, bytes=100_000), batch(32), consumer_ms=5, epochs=3, memory_gib=16, disk_gib=500
        ),
        fixed="ds = ds.batch(32).cache('advisor-cache/batch-",
    ),
    fires(
        pipeline(
            source(elements=2_000_000, bytes=20_000, ms=1),
            batch(32),
            repeat(),
            consumer_ms=1,
            cores=4,
            memory_gib=16,
            disk_gib=200,
        ),
        fixed="ds = ds.batch(32).cache('advisor-cache/batch-",
    ),
    silent(
        pipeline(
            source(),
            map_("decode", ms=5, bytes=100_000),
            batch(32),
            consumer_ms=5,
            epochs=3,
            memory_gib=16,
            disk_gib=500,
        ),
        because="they fit in memory",
    ),
    silent(
        pipeline(
            _LARGE, map_("decode", ms=5, bytes=100_000), batch(32), consumer_ms=5, epochs=3, memory_gib=16, disk_gib=50
        ),
        because="there is no room on the disk",
    ),
    silent(
        pipeline(
            _LARGE,
            map_("decode", ms=0.5, bytes=500_000),
            batch(32),
            consumer_ms=1,
            epochs=3,
            memory_gib=16,
            disk_gib=900,
        ),
        because="reading the elements takes as long as computing them",
    ),
    silent(
        pipeline(
            _LARGE, map_("decode", ms=5, bytes=100_000), batch(32), consumer_ms=5, epochs=1, memory_gib=16, disk_gib=500
        ),
        because="the data is read once",
    ),
)
