"""`[tool.advisor]` of the user's pyproject.toml.

In: the folder to start from.  Out: `Settings`; options of the command line are laid over them by `advisor.cli`.

    [tool.advisor]
    ignore = ["scalar-map"]              # rules that are not asked
    rule-directories = ["tools/rules"]   # more rules; relative to the pyproject.toml
    allow = ["reordered"]                # what fixes may do to the data beyond `exact`
    steps = 50                           # the window: steps profiled, steps before it, seconds at most
    warmup = 20
    seconds = 30
    keep-runs = 20                       # run folders kept in their default place; false: all
    keep-runs-gib = 2                    # and how much they may hold together
    rule-seconds = 10                    # longest time that one rule of one's own may take

    [tool.advisor.rules.serial-map]      # thresholds of one rule
    min_blame_share = 0.1
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.model.regular_files import read_regular

_MENTION = re.compile(rb"tool\s*\.\s*[\"']?advisor|^\s*[\"']?advisor\b", re.MULTILINE)
"""Where a file that is no TOML speaks of us."""
ALLOWABLE = ("rerandomized", "reordered", "numerics")
"""Safety levels that can be asked for: `exact` needs no asking, `changes` is never applied."""

DEFAULT_RULE_SECONDS = 10.0
"""A shipped rule takes milliseconds, on the largest profiles tenths of a second."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user has set; None and empty: left to the tool."""

    rules: dict[str, dict[str, object]] = field(default_factory=dict)
    """Rule id -> threshold -> value."""
    ignore: tuple[str, ...] = ()
    """Ids of rules that are not asked."""
    rule_directories: tuple[Path, ...] = ()
    unloaded_directories: tuple[Path, ...] = ()
    """Folders of rules that the settings name and that are not loaded: the settings stand in a folder that is only read."""
    rule_seconds: float = DEFAULT_RULE_SECONDS
    """Longest time that one rule of the user's may take."""
    steps: int | None = None
    """Steps to profile."""
    warmup: int | None = None
    """Steps before the window."""
    seconds: float | None = None
    """Longest window."""
    allow: tuple[str, ...] = ()
    """Safety levels beyond `exact` that fixes may have."""
    keep_runs: int | None = 20
    """Run folders that are kept in their default place; None: all."""
    keep_runs_gib: float = 2.0
    """How much they may hold together, GiB."""

    @property
    def keep_runs_bytes(self) -> float:
        """The same in bytes."""
        return self.keep_runs_gib * (1 << 30)


def load_settings(start: Path) -> Settings:
    """The settings of the nearest pyproject.toml with a `[tool.advisor]` table, from `start` (file or folder) upward.

    The defaults where there is none. Raises AdvisorError for a file that is no TOML and for an unknown or ill-typed key.
    """
    folder = start.resolve()
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        table = _advisor_table(path)
        if table is not None:
            return _parse(table, path)
    return Settings()


def without_named_rules(settings: Settings, loaded: Iterable[Path] = ()) -> Settings:
    """The settings of a folder that is only read: no code of it is run, so the rule folders that they name are not loaded.

    `loaded`: folders that the user named as well, and thereby trusts.
    """
    trusted = {path.resolve() for path in loaded}
    left_out = tuple(path for path in settings.rule_directories if path.resolve() not in trusted)
    return replace(settings, rule_directories=(), unloaded_directories=left_out)


def not_loaded_sentence(settings: Settings) -> str:
    """What was left out, and how to have it; empty: nothing."""
    if not settings.unloaded_directories:
        return ""
    folders = ", ".join(map(str, settings.unloaded_directories))
    options = " ".join(f"--rules {path}" for path in settings.unloaded_directories)
    return (
        f"The rules in {folders}, which pyproject.toml names, were not loaded: no code of a folder that is only read is run. "
        f"{options} loads them."
    )


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """` Did you mean X?` where one of `choices` is near, else nothing."""
    near = difflib.get_close_matches(word, list(choices), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _advisor_table(path: Path) -> Mapping[str, object] | None:
    try:
        text = read_regular(path)
    except OSError:
        return None  # absent, or not ours to read: the same to us
    try:
        tool = tomllib.loads(text.decode("utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if not _MENTION.search(text.replace(b"\0", b"")):  # without the zeros of UTF-16
            return None  # broken, but not speaking of us: the script's own tools will say so
        if isinstance(error, UnicodeDecodeError):
            raise AdvisorError(
                f"{path} is not UTF-8 text, so its [tool.advisor] cannot be read: save it as UTF-8."
            ) from None
        raise AdvisorError(f"{path} is not valid TOML: {error}.") from None
    table = tool.get("advisor") if isinstance(tool, dict) else None
    if table is None or isinstance(table, dict):
        return table
    raise AdvisorError(f"{path}: tool.advisor must be a table.")


def _parse(table: Mapping[str, object], path: Path) -> Settings:
    readers: dict[str, Callable[[object], object]] = {
        "rules": _thresholds,
        "ignore": _names,
        "rule-directories": lambda value: tuple(path.parent / name for name in _names(value)),
        "steps": lambda value: _whole(value, at_least=1),
        "warmup": lambda value: _whole(value, at_least=0),
        "seconds": _seconds,
        "rule-seconds": _seconds,
        "allow": _levels,
        "keep-runs": lambda value: None if value is False else _whole(value, at_least=1),
        "keep-runs-gib": _seconds,
    }
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in readers:
            hint = did_you_mean(key.replace("_", "-"), readers) or f" Known: {', '.join(sorted(readers))}."
            raise AdvisorError(f"{path}: [tool.advisor] has no key {key!r}.{hint}")
        try:
            values[key.replace("-", "_")] = readers[key](value)
        except ValueError as error:
            raise AdvisorError(f"{path}: tool.advisor.{key} {error}, not {value!r}.") from None
    return Settings(**values)  # type: ignore[arg-type]  # the readers give each key its type


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _levels(value: object) -> tuple[str, ...]:
    levels = _names([value] if isinstance(value, str) else value)
    if not set(levels) <= set(ALLOWABLE):
        raise ValueError(f"may name {', '.join(ALLOWABLE)}")
    return levels


def _whole(value: object, at_least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"must be a whole number of at least {at_least}")
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ValueError("must be a number of seconds above 0")
    return float(value)


def _thresholds(value: object) -> dict[str, dict[str, object]]:
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise ValueError("must be a table of tables, one per rule")
    return value
