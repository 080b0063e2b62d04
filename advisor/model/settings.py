"""Reads `[tool.advisor]` from the user's pyproject.toml.

In: the folder to start from.  Out: `Settings`; command line options override them.

    [tool.advisor]
    ignore = ["scalar-map"]              # rules that are not run
    rule-directories = ["tools/rules"]   # more rules; relative to the pyproject.toml
    allow = ["reordered"]                # what fixes may do to the data beyond `exact`
    steps = 50                           # the window: steps profiled, steps before it, seconds at most
    warmup = 20
    seconds = 30
    keep-runs = 20                       # run folders kept in the default location; false: all
    keep-runs-gib = 2                    # maximum size of these folders together
    rule-seconds = 10                    # time limit for each of the user's own rules

    [tool.advisor.budgets]               # limits of `advisor check`: `advisor.model.budgets`
    input_wait = ["error", { max = 0.10 }]

    [tool.advisor.rules.serial-map]      # thresholds of one rule
    min_blame_share = 0.1
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from advisor.model.budgets import Budgets, read_budgets
from advisor.model.errors import AdvisorError
from advisor.model.regular_files import read_regular
from advisor.model.text import did_you_mean

_MENTION = re.compile(rb"tool\s*\.\s*[\"']?advisor|^\s*[\"']?advisor\b", re.MULTILINE)
"""Matches files that mention the advisor, for files that are not valid TOML."""
_Level = Literal["rerandomized", "reordered", "numerics"]
ALLOWABLE: tuple[str, ...] = get_args(_Level)
"""Safety levels that can be allowed; `exact` is always allowed, `changes` is never applied."""

DEFAULT_RULE_SECONDS = 10.0
"""Default time limit per rule. A shipped rule takes milliseconds, and tenths of a second on the largest profiles."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings. None or empty means the tool's default."""

    rules: dict[str, dict[str, object]] = field(default_factory=dict)
    """Rule id -> threshold -> value."""
    ignore: tuple[str, ...] = ()
    """Ids of rules that are not run."""
    rule_directories: tuple[Path, ...] = ()
    unloaded_directories: tuple[Path, ...] = ()
    """Rule folders that the settings name but that are not loaded, because the settings are in a folder that is only read."""
    rule_seconds: float = DEFAULT_RULE_SECONDS
    """Time limit in seconds for each of the user's own rules."""
    steps: int | None = None
    """Steps to profile."""
    warmup: int | None = None
    """Steps before the window."""
    seconds: float | None = None
    """Maximum length of the window in seconds."""
    allow: tuple[str, ...] = ()
    """Safety levels beyond `exact` that fixes may have."""
    keep_runs: int | None = 20
    """Number of run folders kept in the default location; None keeps all."""
    keep_runs_gib: float = 2.0
    """Maximum size of these folders together, in GiB."""
    budgets: Budgets | None = None
    """The budgets of `advisor check`; None for its defaults."""

    @property
    def keep_runs_bytes(self) -> float:
        """`keep_runs_gib` in bytes."""
        return self.keep_runs_gib * (1 << 30)


def load_settings(start: Path) -> Settings:
    """Load the settings from the nearest pyproject.toml with a `[tool.advisor]` table.

    Args:
        start: The file or folder at which the search starts; it continues in the parent folders.

    Returns:
        The settings, or the defaults if there is no such file.

    Raises:
        AdvisorError: The file is not valid TOML, or a key is unknown or has the wrong type.
    """
    folder = start.resolve()
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        table = _advisor_table(path)
        if table is not None:
            return _parse(table, path)
    return Settings()


def without_named_rules(settings: Settings, loaded: Iterable[Path] = ()) -> Settings:
    """Remove the rule folders from settings of a folder that is only read, so that none of its code is run.

    Args:
        settings: The settings of the folder.
        loaded: Folders that the user named explicitly and therefore trusts.
    """
    trusted = {path.resolve() for path in loaded}
    left_out = tuple(path for path in settings.rule_directories if path.resolve() not in trusted)
    return replace(settings, rule_directories=(), unloaded_directories=left_out)


def not_loaded_sentence(settings: Settings) -> str:
    """Describe the rule folders that were not loaded and how to load them; empty if there are none."""
    if not settings.unloaded_directories:
        return ""
    folders = ", ".join(map(str, settings.unloaded_directories))
    options = " ".join(f"--rules {path}" for path in settings.unloaded_directories)
    return (
        f"The rules in {folders}, which pyproject.toml names, were not loaded: code of a folder that is only read is not run. "
        f"{options} loads them."
    )


def _advisor_table(path: Path) -> Mapping[str, object] | None:
    try:
        text = read_regular(path)
    except OSError:
        return None  # absent, or no permission to read it
    try:
        tool = tomllib.loads(text.decode("utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if not _MENTION.search(text.replace(b"\0", b"")):  # without the zero bytes of UTF-16
            return None  # invalid, but without settings for the advisor: other tools will report it
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
        "steps": _positive,
        "warmup": _count,
        "seconds": _seconds,
        "rule-seconds": _seconds,
        "allow": lambda value: _levels(_names([value] if isinstance(value, str) else value)),
        "keep-runs": lambda value: None if value is False else _positive(value),
        "keep-runs-gib": _seconds,
        "budgets": lambda value: read_budgets(value, path),
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


def _reader(kind: object, requirement: str) -> Callable[[object], Any]:
    """Return a function that converts a TOML value to `kind`, or raises ValueError with the requirement."""

    def read(value: object) -> object:
        try:
            return msgspec.convert(value, type=kind)
        except msgspec.ValidationError:
            raise ValueError(requirement) from None

    return read


_names = _reader(tuple[str, ...], "must be a list of strings")
_levels = _reader(tuple[_Level, ...], f"may name {', '.join(ALLOWABLE)}")
_count = _reader(Annotated[int, Meta(ge=0)], "must be a whole number of at least 0")
_positive = _reader(Annotated[int, Meta(ge=1)], "must be a whole number of at least 1")
_seconds = _reader(Annotated[float, Meta(gt=0, le=sys.float_info.max)], "must be a number of seconds above 0")
_thresholds = _reader(dict[str, dict[str, object]], "must be a table of tables, one per rule")
