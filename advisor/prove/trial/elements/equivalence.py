"""Determines the effect of edits on the data by comparing elements.

In: the recorded calls and the edits.  Out: a `Judgement`: the observed safety level and the number of elements compared.

Several epochs of each side are sampled (`advisor.prove.trial.elements.sampled_streams`) and compared
(`advisor.prove.trial.elements.element_comparison`). The input of a new cache must be the same every epoch. That is tested on
the cache's own input, because a sample at the root may be too short to reach a second epoch there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.model.calls import Call
from advisor.model.edits import Edit, SetOption, Vectorize
from advisor.model.recorded_graph import RecordedGraph
from advisor.prove.trial.elements.compared_streams import (
    FROZEN,
    UNKNOWN_CACHE,
    Passes,
    cardinality_difference,
    spec_difference,
)
from advisor.prove.trial.elements.deviations import Deviation
from advisor.prove.trial.elements.element_comparison import ElementComparison
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.heartbeat import silent
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.rounding import largest_deviation
from advisor.prove.trial.elements.sampled_streams import SampledStreams
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.replay import AS_RECORDED, Built

_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"})


class Equivalence:
    """Compares edited versions of one recorded dataset with the original."""

    def __init__(
        self, recorder: Recorder, call_id: str, bounds: Bounds, files: Path, on_element: Callable[[], None] = silent
    ) -> None:
        """Prepare the comparison.

        Args:
            recorder: A closed recorder with a replay log.
            call_id: The call that made the dataset.
            bounds: Limits for one pass over the dataset; about six passes are made.
            files: An existing temporary folder for file caches.
            on_element: Called after each element of any stream.
        """
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._on_element = on_element
        self._made: SampledStreams | None = None

    @property
    def _streams(self) -> SampledStreams:
        if self._made is None:
            self._made = SampledStreams(
                self._recorder, self._call_id, self._bounds, self._files, on_element=self._on_element
            )
        return self._made

    @property
    def original_s(self) -> float:
        """Seconds in which streams of the original were collected until now."""
        return 0.0 if self._made is None else self._made.original_s

    def judge(self, edits: tuple[Edit, ...]) -> Judgement:
        """Compare the dataset with these edits to the original.

        Raises:
            CannotReplay: The dataset cannot be rebuilt with the edits.
            OriginalFails: The script's own pipeline raises an exception.
        """
        return ElementComparison(EditedStreams(self._streams, self._recorder, self._call_id, edits)).judge()


class EditedStreams:
    """The streams of a recorded dataset, and of the same with edits: a `ComparedStreams`."""

    def __init__(self, streams: SampledStreams, recorder: Recorder, call_id: str, edits: tuple[Edit, ...]) -> None:
        """Describe both sides; nothing is rebuilt yet."""
        self._streams, self._recorder, self._call_id, self._edits = streams, recorder, call_id, edits
        self._made: tuple[Any, list[Built]] | None = None
        self._rows: dict[str, Stream] = {}

    @property
    def passes(self) -> Passes:
        """See `ComparedStreams`."""
        return self._streams.passes

    @property
    def is_seeded(self) -> bool:
        """See `ComparedStreams`."""
        return is_seeded(self._recorder)

    @property
    def is_batched(self) -> bool:
        """See `ComparedStreams`."""
        return is_batched(self._recorder, self._call_id)

    def original(self, seeding: str, run: int = 0) -> Stream:
        """See `ComparedStreams`."""
        return self._streams.original(seeding, run)

    def changed(self, seeding: str) -> Stream:
        """See `ComparedStreams`."""
        stream, rows = self._streams.collect_with_rows(self._edited(seeding)[0], seeding)
        if rows is not None:
            self._rows[seeding] = rows
        return stream

    def rows(self, seeding: str, is_changed: bool) -> Stream | None:
        """See `ComparedStreams`."""
        if not is_changed:
            return self._streams.original_rows(seeding)
        if seeding in self._rows:
            return self._rows[seeding]
        return self._streams.rows_of_batches(self._streams.dataset(self._edits, seeding)[0], seeding)

    def static_difference(self) -> str:
        """See `ComparedStreams`."""
        before, after = self._streams.original_built()[-1].dataset, self._edited(AS_RECORDED)[0]
        if after.element_spec != before.element_spec:
            return spec_difference(before.element_spec, after.element_spec)
        return cardinality_difference(int(before.cardinality()), int(after.cardinality()))

    def frozen_by_cache(self) -> tuple[str, str]:
        """See `ComparedStreams`."""
        unseen = ""
        original = {built_call.id: built_call for built_call in self._streams.original_built()}
        for cache in self._edited(AS_RECORDED)[1]:
            if cache.method != "cache" or cache.input is None or not cache.is_new or cache.is_inside:
                continue
            known = original.get(cache.id)
            if known is not None and not is_touched(self._recorder, cache.id, self._edits):
                continue  # the script's own cache stores what it always has
            if known is not None and known.input is not None and self._streams.repeats(known.input) is False:
                continue  # the script's own cache freezes it
            repeats = self._streams.repeats(cache.input)
            if repeats is False:
                return FROZEN, ""
            if repeats is None:
                unseen = UNKNOWN_CACHE
        return "", unseen

    def rounding(self) -> Deviation | None:
        """See `ComparedStreams`; only vectorised functions may differ in the last digits."""
        if not any(isinstance(edit, Vectorize) for edit in self._edits):
            return None
        return largest_deviation(self._streams.pairs(self._edits))

    def _edited(self, seeding: str) -> tuple[Any, list[Built]]:
        if seeding != AS_RECORDED:
            return self._streams.dataset(self._edits, seeding)
        if self._made is None:
            self._made = self._streams.dataset(self._edits, seeding)
        return self._made


def is_seeded(recorder: Recorder) -> bool:
    """Return whether the script fixes a seed that affects its datasets."""
    log = recorder.replay_log
    has_global = log is not None and any(call.seeds.global_seed is not None for call in log.calls.values())
    return has_global or any(
        call.arguments.get("seed") is not None or (call.function is not None and call.function.is_seeded)
        for call in recorder.calls()
    )


def is_batched(recorder: Recorder, call_id: str) -> bool:
    """Return whether elements of the dataset are composed of others."""
    return any(call.method in _BATCHING for call in _upstream(recorder, call_id))


def is_touched(recorder: Recorder, call_id: str, edits: Collection[Edit]) -> bool:
    """Return whether an edit may affect what a call makes: it names the call, one upstream of it, or one in their functions.

    Options are those of the whole dataset, and what an edit names may be unknown: both count as touched.

    Args:
        recorder: A closed recorder.
        call_id: The call that made the dataset.
        edits: Edits with the call ids of this recorder.
    """
    if any(isinstance(edit, SetOption) for edit in edits):
        return True
    upstream = {call.id for call in _upstream(recorder, call_id)}
    named = {call_id for edit in edits for call_id in (edit.call_id, getattr(edit, "after_id", None)) if call_id}
    for named_call in named:
        call = recorder.call(named_call)
        while call is not None and call.id not in upstream and call.nested_in is not None:
            call = recorder.call(call.nested_in)
        if call is None or call.id in upstream:
            return True
    return False


def _upstream(recorder: Recorder, call_id: str) -> tuple[Call, ...]:
    """A recorded call and all upstream of it."""
    call = recorder.call(call_id)
    return RecordedGraph(recorder.calls()).upstream(call) if call is not None else ()
