"""Scripts as people write them, with edits and what becomes of the text: data for `test_snippets.py`, which runs them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from advisor.model.calls import Call
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption

AUTOTUNE = Code("tf.data.AUTOTUNE")


@dataclass(frozen=True)
class Snippet:
    """A script `train.py` and modules beside it. It leaves its dataset in `ds`, or several in `datasets`."""

    text: str
    edits: Callable[[Recorded], Iterable[Edit]]
    changes: Sequence[tuple[str, str]]
    """(what stands once in the text, what stands there afterwards)."""
    file: str = "train.py"
    """The file that changes."""
    modules: dict[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    """Lines of the new text that are no part of the calls: imports, options."""
    gone: tuple[str, ...] = ()
    """Lines of the old text that are no part of the calls: `ds = ds.cache()` without its call."""
    encoding: str = "utf-8"
    is_any_order: bool = False
    serves: int = 1
    """How many datasets the changed lines make."""

    @property
    def before(self) -> str:
        return self.modules.get(self.file, self.text)

    @property
    def after(self) -> str:
        text = self.before
        for old, new in self.changes:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
            text = text.replace(old, new)
        return text


class Recorded:
    """Ids of the recorded calls by method."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._calls = tuple(calls)

    def __call__(self, method: str, index: int = 0) -> str:
        return self.all(method)[index]

    def all(self, method: str) -> list[str]:
        return [call.id for call in self._calls if call.method == method]

    def last(self) -> str:
        """The last call that a library made."""
        return [call.id for call in self._calls if call.library is not None and call.made_by is None][-1]


def parallel(method: str = "map", index: int = 0) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [SetArgument(c(method, index), "num_parallel_calls", AUTOTUNE)]


def cached(method: str = "map", index: int = 0) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [InsertAfter(c(method, index), "cache")]


def prefetched(method: str = "batch", index: int = 0) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [InsertAfter(c(method, index), "prefetch", (("", AUTOTUNE),))]


def removed(method: str, index: int = 0) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [Remove(c(method, index))]


def moved(method: str, after: str) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [MoveAfter(c(method), c(after))]


def option(method: str, name: str, value: bool | int | None) -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [SetOption(c(method), name, value)]
