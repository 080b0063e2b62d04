"""repeated-work-on-disk: every epoch computes the same elements again, and they fit on disk but not in memory."""

from __future__ import annotations

import hashlib
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
    Rejected,
    Rule,
    Safety,
    cache_places,
    find_break_even,
    is_read_again,
    label,
    place,
    read_from_disk,
    smallest_place,
    takes_link,
    upstream_calls,
)
from advisor.testing import batch, fires, map_, pipeline, repeat, silent, source


@dataclass(frozen=True)
class RepeatedWorkOnDisk(Rule):
    """Every epoch reads and computes the same elements again. They do not fit in memory, but they fit on disk.

    ## Why it is slow
    As with `repeated-work`, all deterministic work produces the same elements in every epoch.

    ## What the fix does
    It adds `.cache("advisor-cache/<key>")`, which writes the elements of the first epoch to files below the working
    directory of the script. Later epochs and later runs read them from there. The key is derived from the upstream
    calls and their arguments, so that a changed pipeline uses a different file. The first epoch becomes slower because
    of the writing.

    ## When not to
    When the disk is slow or shared: reading the elements must be faster than computing them. Unless the read rate of
    the disk was measured, the prediction assumes `disk_bytes_per_s`, so the fix is applied only on request. The files
    are kept. Delete them when the input files or the function change: the key does not cover these, and tf.data would
    continue to read the old elements.

    ## What tf.data already does
    Nothing: it never adds a cache.
    """

    max_memory_share: float = 0.5
    """Share of the free memory up to which `repeated-work` proposes an in-memory cache; this rule covers larger caches."""
    max_disk_share: float = 0.5
    """Share of the free disk space that the files may take."""
    equal_gain: float = 0.9
    """Places whose predicted speedup is at least this fraction of the best one's are considered equal, and the smallest
    is chosen."""
    disk_bytes_per_s: float = 500.0 * (1 << 20)
    """Assumed read rate in bytes per second if none was measured. A SATA SSD reads about 500 MB/s, NVMe several times
    as much, and a network disk often less."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield the best place for a cache on disk, if no in-memory cache has the same effect."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None or host.disk_free_bytes is None:
            return
        places = [
            p for p in cache_places(analysis, pipeline) if not p.obstacles and p.bytes and takes_link(analysis, p.call)
        ]
        limit = self.max_memory_share * host.memory_free_bytes
        in_memory = max((p.prediction.value for p in places if (p.bytes or 0) <= limit), default=1.0)
        large = [
            replace(p, prediction=read_from_disk(analysis, pipeline, p, self._rate(analysis)))
            for p in places
            if limit < (p.bytes or 0) and (p.is_repeated_below or is_read_again(analysis, pipeline, p.call))
        ]
        storable = [p for p in large if (p.bytes or 0) <= self.max_disk_share * host.disk_free_bytes]
        needed = max(in_memory / self.equal_gain, self.min_speedup)
        chosen = smallest_place(storable, self.equal_gain)
        if chosen is None:
            too_large = smallest_place(large, self.equal_gain)
            if too_large is not None and too_large.prediction.value >= needed:
                yield self._no_space(too_large, host.disk_free_bytes)
            return
        if chosen.prediction.value < needed:
            ids = {p.call.id for p in storable}
            best = max((p for p in places if p.call.id in ids), key=lambda p: p.prediction.value)
            if in_memory < self.min_speedup <= best.prediction.value:  # it is the disk that leaves no gain
                yield self._slow_to_read(analysis, best)
            return
        # Writing the file in the first epoch is assumed to be as fast as reading it.
        break_even = find_break_even(analysis, pipeline, chosen, self._rate(analysis))
        # The first epoch also writes the file; how long that takes is unknown if the length of an epoch is.
        first = 1.0 if break_even is None else break_even.epoch_ns / break_even.first_epoch_ns
        prediction = replace(chosen.prediction, first_pass=first)
        call = chosen.call
        yield self.finding(
            f"Cache after {label(call)} on disk",
            f"Every epoch computes the same elements again up to {label(call)} at {place(call)}, which causes "
            f"{format_share(chosen.saved_share)} of the wait for input. They take {format_bytes(chosen.bytes or 0)}, "
            f"too much for the {format_bytes(host.memory_free_bytes)} of free memory, but "
            f"{format_bytes(host.disk_free_bytes)} are free on disk. The prediction is based on a disk that reads "
            f"{format_bytes(int(self._rate(analysis)))} per second "
            f"({self._source_of_rate(analysis)}).",
            call=call,
            prediction=prediction,
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
                *(break_even.evidence if break_even is not None else ()),
            ),
        )

    def _no_space(self, candidate: CachePlace, free: int) -> Rejected:
        """The place for a cache that the disk has no room for."""
        return self.rejected(
            f"Cache after {label(candidate.call)} on disk",
            f"its {format_bytes(candidate.bytes or 0)} exceed {format_share(self.max_disk_share)} of the "
            f"{format_bytes(free)} that are free on disk",
            call=candidate.call,
            evidence=(
                Evidence("saved_blame_share", candidate.saved_share, "share"),
                Evidence("cache_bytes", candidate.bytes or 0, "bytes"),
                Evidence("free_disk", free, "bytes"),
            ),
        )

    def _slow_to_read(self, analysis: Analysis, candidate: CachePlace) -> Rejected:
        """The place for a cache from which elements are not read faster than they are computed."""
        rate = self._rate(analysis)
        return self.rejected(
            f"Cache after {label(candidate.call)} on disk",
            f"reading its {format_bytes(candidate.bytes or 0)} takes as long as computing them, at the "
            f"{format_bytes(int(rate))} per second that are {self._source_of_rate(analysis)}",
            call=candidate.call,
            evidence=(
                Evidence("saved_blame_share", candidate.saved_share, "share"),
                Evidence("cache_bytes", candidate.bytes or 0, "bytes"),
                Evidence("disk_rate", rate, "bytes/s"),
            ),
        )

    def _source_of_rate(self, analysis: Analysis) -> str:
        is_measured = analysis.host is not None and analysis.host.disk_read_bytes_per_s
        return "measured on your files" if is_measured else "assumed"

    def _rate(self, analysis: Analysis) -> float:
        """Read rate of the disk in bytes per second: measured on the user's files, otherwise assumed."""
        measured = analysis.host.disk_read_bytes_per_s if analysis.host is not None else None
        return measured or self.disk_bytes_per_s


def key_of(analysis: Analysis, call: Call) -> str:
    """A name that changes with the upstream calls: their methods, arguments and the ops of their functions."""
    digest = hashlib.sha256()
    for upstream in upstream_calls(analysis, call):
        ops = sorted(upstream.function.ops.items()) if upstream.function else []
        digest.update(
            repr((upstream.method, sorted(upstream.arguments.items(), key=str), ops, upstream.element_spec)).encode()
        )
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
        because="the elements fit in memory",
    ),
    silent(
        pipeline(
            _LARGE, map_("decode", ms=5, bytes=100_000), batch(32), consumer_ms=5, epochs=3, memory_gib=16, disk_gib=50
        ),
        because="the disk does not have enough free space",
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
