"""The traps: scripts, what each of them must keep, and the wrong fix that it tempts to.

In: `scripts/*.py`.  Out: `Trap`s, read off the literal `TRAP` in each script without running anything.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"
HELPER = SCRIPTS / "ledger.py"
MODULES = SCRIPTS / "modules"
"""Modules that some of the scripts import; they are copied beside each of them."""
TOPICS = (
    "mutable tables",
    "variables raised per epoch",
    "adapted Keras layers",
    "clocks",
    "side effects beside constant tables",
    "NumPy and Python random state",
    "generators that shuffle or grow",
    "tf.random.Generator",
    "counters as seeds",
    "seeded scripts",
    "order-dependent functions",
    "splits after a shuffle",
    "filters on a key that a map rewrites under the same name",
    "remainders dropped before unbatch",
    "datasets shared by two consumers",
    "files rewritten between epochs",
    "functions applied to whole batches",
    "functions that are split",
    "maps that leave a function",
    "windows",
    "one text that makes several datasets",
    "conditionals that build different pipelines per epoch",
    "datasets made anew in every epoch",
)
LEVELS = ("default", "rerandomized", "reordered", "numerics")
"""Values of `--allow`, and what is allowed without it."""
ALL = "all"
"""Every level allowed at once."""
_FIELDS = {"topic", "tempting", "wrong", "may_change"}


@dataclass(frozen=True, slots=True)
class Trap:
    """One script."""

    path: Path
    topic: str
    tempting: str
    """Id of the rule whose fix, or whose kind of fix, is the wrong one."""
    wrong: tuple[str, str]
    """The wrong fix as text: what stands in the script, and what the fix would make of it."""
    may_change: Mapping[str, tuple[str, ...]]
    """Key of the invariant -> levels that permit it to change. Every other key holds at every level."""

    @property
    def name(self) -> str:
        """The script's name without `.py`."""
        return self.path.stem

    def text(self) -> str:
        """The script as it is."""
        return self.path.read_text(encoding="utf-8")

    def wrong_text(self) -> str:
        """The script with the wrong fix. Raises ValueError unless the text to replace stands there exactly once."""
        text = self.text()
        end = _literal(text).end_lineno or 0
        lines = text.splitlines(keepends=True)
        head, body = "".join(lines[:end]), "".join(lines[end:])
        old, new = self.wrong
        if body.count(old) != 1:
            raise ValueError(f"{self.name}: {old!r} stands {body.count(old)} times in the script.")
        return head + body.replace(old, new)


def traps() -> tuple[Trap, ...]:
    """All traps, by name."""
    return tuple(read_trap(path) for path in sorted(SCRIPTS.glob("*.py")) if path != HELPER)


def read_trap(path: Path) -> Trap:
    """One script's trap. Raises ValueError for a header that lacks something or names an unknown topic or level."""
    value: dict[str, Any] = ast.literal_eval(_literal(path.read_text(encoding="utf-8")).value)
    if set(value) != _FIELDS:
        raise ValueError(f"{path.name}: TRAP holds {sorted(value)}, not {sorted(_FIELDS)}.")
    if value["topic"] not in TOPICS:
        raise ValueError(f"{path.name}: {value['topic']!r} is not a topic.")
    unknown = {level for levels in value["may_change"].values() for level in levels} - set(LEVELS[1:])
    if unknown:
        raise ValueError(f"{path.name}: {sorted(unknown)} are not levels.")
    old, new = value["wrong"]
    may_change = {key: tuple(levels) for key, levels in value["may_change"].items()}
    return Trap(path, value["topic"], value["tempting"], (old, new), may_change)


def allowed_by(level: str) -> tuple[str, ...]:
    """The levels of safety beyond `exact` that are allowed."""
    if level == ALL:
        return LEVELS[1:]
    return () if level == "default" else (level,)


def harmed_keys(trap: Trap, level: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys of the invariant that had to hold at this level and do not."""
    allowed = set(allowed_by(level))
    return tuple(
        key
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and not allowed & set(trap.may_change.get(key, ()))
    )


def _literal(text: str) -> ast.Assign:
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["TRAP"]:
            return node
    raise ValueError("There is no TRAP = {...} in the script.")
