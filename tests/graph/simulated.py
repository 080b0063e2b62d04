"""Profiles made up event by event: threads as lists of rows, so that a test shows what happened when."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from advisor.model.trace import EventKind, HostTrace, IteratorFacts, Thread

US = 1_000


@dataclass
class Profile:
    """Collects iterators and rows; times are microseconds."""

    iterators: dict[int, IteratorFacts] = field(default_factory=dict)
    threads: dict[str, list[tuple[int, int, EventKind, str, int, int]]] = field(default_factory=dict)

    def iterator(self, id: int, long_name: str, parent: int = 0, name: str = "", **parameters: int | bool) -> int:
        self.iterators[id] = IteratorFacts(id, parent, long_name, name, 0, parameters=dict(parameters))
        return id

    def call(self, thread: str, id: int, start: int, end: int) -> None:
        facts = self.iterators[id]
        self._row(thread, start, end, EventKind.ITERATOR, facts.long_name, id, facts.parent_id)

    def produce(self, thread: str, type: str, element: int, start: int, end: int) -> None:
        self._row(thread, start, end, EventKind.PRODUCE, type, element)

    def consume(self, thread: str, type: str, element: int, at: int) -> None:
        self._row(thread, at, at, EventKind.CONSUME, type, element)

    def function(self, thread: str, step: int, start: int, end: int) -> None:
        self._row(thread, start, end, EventKind.FUNCTION, "InstantiatedCapturedFunction", 0, step)

    def executor(self, thread: str, step: int, start: int, end: int, op: str = "") -> None:
        self._row(thread, start, end, EventKind.EXECUTOR, "ExecutorState::Process", 0, step)
        if op:
            self._row(thread, start, end, EventKind.OP, op)

    def _row(self, thread: str, start: int, end: int, kind: EventKind, label: str, key: int = 0, link: int = 0) -> None:
        self.threads.setdefault(thread, []).append((start * US, end * US, kind, label, key, link))

    def host(self) -> HostTrace:
        labels: dict[str, int] = {}
        threads = []
        for number, (name, rows) in enumerate(self.threads.items()):
            rows = sorted(rows, key=lambda row: (row[0], -row[1]))
            threads.append(
                Thread(
                    number,
                    name,
                    np.array([r[0] for r in rows], np.int64),
                    np.array([r[1] for r in rows], np.int64),
                    np.array([r[2] for r in rows], np.uint8),
                    np.array([labels.setdefault(r[3], len(labels)) for r in rows], np.int32),
                    np.array([r[4] for r in rows], np.uint64),
                    np.array([r[5] for r in rows], np.uint64),
                )
            )
        return HostTrace("host", "", tuple(threads), tuple(labels), dict(self.iterators))


def map_after_prefetch(
    *, map_us: int, range_us: int, train_us: int = 0, steps: int = 20, first_id: int = 2**63 + 5
) -> Profile:
    """`range -> map -> prefetch`, one worker thread that makes one element after the other, and a consumer."""
    profile = Profile()
    root = profile.iterator(first_id, "Iterator::Root", name="inject/prefetch_MapDataset/_4")
    prefetch = profile.iterator(
        first_id + 1, "Iterator::Root::Prefetch", root, "inject/prefetch_MapDataset/_4", buffer_limit=2
    )
    map_ = profile.iterator(first_id + 2, "Iterator::Root::Prefetch::Map", prefetch, "c1")
    source = profile.iterator(first_id + 3, "Iterator::Root::Prefetch::Map::Range", map_, "c0")
    produced, asked = 0, 0
    for element in range(steps):
        ready = produced + range_us + map_us
        profile.produce("worker", "Prefetch", element, produced, ready)
        profile.call("worker", map_, produced, ready)
        profile.call("worker", source, produced, produced + range_us)
        profile.function("worker", element + 1, produced + range_us, ready)
        profile.executor("pool", element + 1, produced + range_us, ready, op="DecodeJpeg")
        produced = ready
        got = max(ready, asked + 1)
        profile.call("python", root, asked, got)
        profile.call("python", prefetch, asked, got)
        profile.consume("python", "Prefetch", element, got)
        asked = got + train_us
    return profile
