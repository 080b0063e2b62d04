"""Determines whether an edit changes a recorded call or its upstream calls, and whether two pipelines may share its dataset.

In: the recorder with its kept calls, and the ids of the edited calls.  Out: cached answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import DATA_SOURCES, ReplayLog

_STATELESS = frozenset(
    {
        "CsvDataset", "FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset", "batch",
        "choose_from_datasets", "concatenate", "enumerate", "filter", "flat_map", "from_generator", "interleave", "map",
        "padded_batch", "prefetch", "ragged_batch", "range", "rebatch", "repeat", "scan", "shard", "skip", "sparse_batch",
        "take", "take_while", "unbatch", "unique", "window", "with_options", "zip", *DATA_SOURCES,
    }
)  # fmt: skip
"""Methods whose dataset object two pipelines may share, provided that its functions are stateless, too."""


class Upstream:
    """Facts about a call and its upstream calls.

    Args:
        recorder: The recorder of the calls.
        log: Its replay log.
        targets: Ids of the edited calls.
    """

    def __init__(self, recorder: Recorder, log: ReplayLog, targets: Collection[str]) -> None:
        self._recorder, self._log, self._targets = recorder, log, targets
        self._untouched: dict[str, bool] = {}
        self._free: dict[str, bool] = {}

    def is_touched(self, call_id: str) -> bool:
        """Return whether an edit changes the call or one upstream of it."""
        return not self._all(call_id, self._untouched, lambda upstream_id: upstream_id not in self._targets)

    def is_free(self, call_id: str) -> bool:
        """Return whether neither the call nor any upstream call keeps state that iterators share."""
        return self._all(call_id, self._free, self._is_stateless)

    def _sources(self, call_id: str) -> set[str]:
        """Return the ids of the calls that a call uses directly: its inputs and the calls made inside it."""
        call = self._recorder.call(call_id)
        inputs = set(call.inputs) if call is not None else set()
        return inputs | {inner for inner, _ in self._log.inner.get(call_id, ())}

    def _all(self, call_id: str, known: dict[str, bool], holds: Callable[[str], bool]) -> bool:
        pending, seen = [call_id], {call_id}
        result = True
        while pending and result:
            current = pending.pop()
            if current in known:
                result = known[current]
                continue
            result = holds(current)
            for source_id in self._sources(current) - seen:
                seen.add(source_id)
                pending.append(source_id)
        known[call_id] = result
        return result

    def _is_stateless(self, call_id: str) -> bool:
        call = self._recorder.call(call_id)
        if call is None:  # it was made inside another call and did not make a dataset of its own
            return True
        if call.method == "from_generator" or call.made_by is not None:
            return call.method in _STATELESS
        facts = call.function
        has_state = facts is not None and (facts.is_stateful or bool(facts.random_ops) or bool(facts.python_ops))
        return call.method in _STATELESS and not has_state
