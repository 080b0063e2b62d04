"""What a recorded call comes from: whether an edit concerns it, whether its dataset may be used by two pipelines.

In: the recorder with its kept calls, and the ids that edits concern.  Out: answers, remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import DATA_SOURCES, KeptCalls

_STATELESS = frozenset(
    {
        "CsvDataset", "FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset", "batch",
        "choose_from_datasets", "concatenate", "enumerate", "filter", "flat_map", "from_generator", "interleave", "map",
        "padded_batch", "prefetch", "ragged_batch", "range", "rebatch", "repeat", "scan", "shard", "skip", "sparse_batch",
        "take", "take_while", "unbatch", "unique", "window", "with_options", "zip", *DATA_SOURCES,
    }
)  # fmt: skip
"""Methods whose dataset object may serve two pipelines at once, if their functions keep no state either."""


class Upstream:
    """Questions about a call and all that it comes from."""

    def __init__(self, recorder: Recorder, kept: KeptCalls, targets: Collection[str]) -> None:
        self._recorder, self._kept, self._targets = recorder, kept, targets
        self._untouched: dict[str, bool] = {}
        self._free: dict[str, bool] = {}

    def is_touched(self, call_id: str) -> bool:
        """Whether an edit concerns that call or any that it comes from."""
        return not self._all(call_id, self._untouched, lambda each: each not in self._targets)

    def is_free(self, call_id: str) -> bool:
        """Whether neither that call nor any that it comes from keeps state between iterators."""
        return self._all(call_id, self._free, self._is_stateless)

    def _sources(self, call_id: str) -> set[str]:
        """Ids of the calls that a call uses directly: its inputs, and what was made inside it."""
        call = self._recorder.call(call_id)
        found = set(call.inputs) if call is not None else set()
        return found | {inner for inner, _ in self._kept.inner.get(call_id, ())}

    def _all(self, call_id: str, known: dict[str, bool], holds: Callable[[str], bool]) -> bool:
        todo, seen = [call_id], {call_id}
        result = True
        while todo and result:
            current = todo.pop()
            if current in known:
                result = known[current]
                continue
            result = holds(current)
            for each in self._sources(current) - seen:
                seen.add(each)
                todo.append(each)
        known[call_id] = result
        return result

    def _is_stateless(self, call_id: str) -> bool:
        call = self._recorder.call(call_id)
        if call is None:  # began inside another and made nothing of its own
            return True
        if call.method == "from_generator" or call.made_by is not None:
            return call.method in _STATELESS
        facts = call.function
        has_state = facts is not None and (facts.is_stateful or bool(facts.random_ops) or bool(facts.python_ops))
        return call.method in _STATELESS and not has_state
