"""Find and load the rules, and apply the user's thresholds.

In: folders of rule files and settings. Out: `LoadedRule`s: shipped ones first, then those of entry points, then those
of folders.

Any error in a user's rule file or threshold raises an `AdvisorError` with one sentence that names the file and the cause.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.engine.rule_file import LoadedRule, load_file, rule_of
from advisor.engine.rule_process import try_loading
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings
from advisor.model.text import did_you_mean

SHIPPED = "advisor.rules"
ENTRY_POINT_GROUP = "advisor.rules"


def load_rules(directories: Sequence[Path], settings: Settings) -> list[LoadedRule]:
    """Load the shipped rules, the installed ones (entry points `advisor.rules`), and those in folders.

    Args:
        directories: Folders of rule files, in addition to those in the settings.
        settings: Thresholds, ignored rules and further folders.

    Raises:
        AdvisorError: A folder does not exist, a rule file is broken, two rules have the same id, or the settings name
            an unknown rule or threshold or a value of the wrong type.
    """
    rules = [*_shipped(), *_installed(settings)]
    for folder in dict.fromkeys(path.resolve() for path in (*settings.rule_directories, *directories)):
        rules += _from_folder(folder, settings)
    by_id: dict[str, LoadedRule] = {}
    for loaded in rules:
        other = by_id.setdefault(loaded.id, loaded)
        if other is not loaded:
            raise AdvisorError(
                f"Two rules are called {loaded.id}: {other.path} and {loaded.path}. Rename one of the files."
            )
    if not settings.unloaded_directories:  # the settings may name rules in them
        _check_names((*settings.rules, *settings.ignore), by_id)
    return [_with_thresholds(loaded, settings.rules.get(loaded.id, {})) for loaded in by_id.values()]


def _shipped() -> Iterator[LoadedRule]:
    package = importlib.import_module(SHIPPED)
    for path in _rule_files(Path(package.__path__[0])):
        yield replace(rule_of(importlib.import_module(f"{SHIPPED}.{path.stem}"), path), is_shipped=True)


def _from_folder(folder: Path, settings: Settings) -> Iterator[LoadedRule]:
    if not folder.is_dir():
        raise AdvisorError(f"There is no folder {folder} to load rules from.")
    for path in _rule_files(folder):
        yield _load_own(path, settings)


def _load_own(path: Path, settings: Settings) -> LoadedRule:
    """Load a user's rule, first in a separate process, which protects against code that does not end."""
    try_loading(path, settings.rule_seconds)
    return replace(load_file(path), is_apart=True)


def _installed(settings: Settings) -> Iterator[LoadedRule]:
    """Load the rules of entry points, which name a module (one rule) or a package (one rule per file)."""
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            with contextlib.redirect_stdout(sys.stderr):
                module = entry.load()
        except (Exception, SystemExit) as error:
            owner = f" of {entry.dist.name}" if entry.dist else ""
            raise AdvisorError(
                f"The rules entry point {entry.name}{owner} cannot be loaded: {type(error).__name__}: {error}."
            ) from None
        if not isinstance(module, ModuleType) or module.__file__ is None:
            raise AdvisorError(
                f"The rules entry point {entry.name} must name a module or a package, not {entry.value}."
            )
        if hasattr(module, "__path__"):
            yield from _from_folder(Path(module.__file__).parent, settings)
        else:
            yield _load_own(Path(module.__file__), settings)


def _rule_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith(("_", ".")))


def _check_names(names: Sequence[str], by_id: dict[str, LoadedRule]) -> None:
    for name in names:
        if name not in by_id:
            raise AdvisorError(f"The settings name the rule {name!r}, but there is none.{did_you_mean(name, by_id)}")


def _with_thresholds(loaded: LoadedRule, values: dict[str, object]) -> LoadedRule:
    if not values:
        return loaded
    known = {field.name: getattr(loaded.rule, field.name) for field in fields(loaded.rule)}
    changed: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            hint = did_you_mean(name, known) or f" It has {', '.join(sorted(known))}."
            raise AdvisorError(
                f"The settings give {loaded.id} the threshold {key!r}, but it has none of that name.{hint}"
            )
        changed[name] = _converted(value, known[name], f"{loaded.id}.{key}")
    return replace(loaded, rule=replace(loaded.rule, **changed))


def _converted(value: object, default: object, name: str) -> object:
    """`value` in the type of `default`. Integers are accepted for floats, and lists for tuples."""
    wanted = type(default)
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value, name)
    if wanted is tuple and isinstance(value, list):
        return tuple(value)
    if type(value) is wanted:
        return value
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a string", tuple: "a list"}
    raise AdvisorError(
        f"The settings give {name} the value {value!r}, but it must be {words.get(wanted, wanted.__name__)}."
    )


def _number(value: int | float, name: str) -> float:
    """A comparable number. TOML also allows `nan` and integers beyond the range of floats."""
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise AdvisorError(f"The settings give {name} the value {str(value)[:20]}, but it must be a number.")
    return number
