"""Find rule files, load them, and lay the user's thresholds over theirs.

In: folders of rule files and settings.  Out: `LoadedRule`s, shipped ones first, then those of entry points, then of folders.

One file holds one rule; its id is the file's name with dashes. Whatever is wrong with a user's rule file or threshold is an
`AdvisorError` of one sentence that names the file and the cause.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.engine.page import Page, read_page
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings, did_you_mean
from advisor.rule import Rule
from advisor.testing import Example

SHIPPED = "advisor.rules"
ENTRY_POINT_GROUP = "advisor.rules"


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule ready to be asked."""

    id: str
    rule: Rule
    """With the user's thresholds."""
    path: Path
    examples: tuple[Example, ...] = ()
    is_shipped: bool = False
    is_apart: bool = False
    """Asked in another process, within a time limit: a rule of the user's."""

    @property
    def page(self) -> Page:
        """What a person reads of the rule; read from its file when asked for."""
        return read_page(type(self.rule), self.path)


def load_rules(directories: Sequence[Path], settings: Settings) -> list[LoadedRule]:
    """All rules: shipped, installed (entry points `advisor.rules`), and those of `directories` and the settings' folders.

    Raises AdvisorError for a folder that is not there, a broken rule file, two rules of one id, and for settings that name an
    unknown rule or threshold or give it a value of another type.
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
    if not settings.unloaded_directories:  # their rules may be the ones that are named
        _check_names((*settings.rules, *settings.ignore), by_id)
    return [_with_thresholds(loaded, settings.rules.get(loaded.id, {})) for loaded in by_id.values()]


def load_file(path: Path) -> LoadedRule:
    """The rule of one file outside of any package. Raises AdvisorError."""
    # A name of its own, so that two folders may hold files of the same name; its last part gives the rule's id.
    folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
    name = f"advisor_rules_{folder}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdvisorError(f"{path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their annotations up there
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to the report
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise AdvisorError(f"The rule file {path} cannot be loaded: {_cause(error, path)}.") from None
    return _loaded(module, path)


def _shipped() -> Iterator[LoadedRule]:
    package = importlib.import_module(SHIPPED)
    for path in _rule_files(Path(package.__path__[0])):
        yield replace(_loaded(importlib.import_module(f"{SHIPPED}.{path.stem}"), path), is_shipped=True)


def _from_folder(folder: Path, settings: Settings) -> Iterator[LoadedRule]:
    if not folder.is_dir():
        raise AdvisorError(f"There is no folder {folder} to load rules from.")
    for path in _rule_files(folder):
        yield _load_own(path, settings)


def _load_own(path: Path, settings: Settings) -> LoadedRule:
    """A rule of the user's: loaded in another process first, which ends where the file does not."""
    from advisor.engine.rule_process import try_loading

    try_loading(path, settings.rule_seconds)
    return replace(load_file(path), is_apart=True)


def _installed(settings: Settings) -> Iterator[LoadedRule]:
    """Entry points name a module (one rule) or a package (a rule in each of its files)."""
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


def _loaded(module: ModuleType, path: Path) -> LoadedRule:
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        found = ", ".join(cls.__name__ for cls in classes) or "none"
        raise AdvisorError(f"The rule file {path} must define exactly one subclass of Rule; found: {found}.")
    cls = classes[0]
    parameters: Any = cls.__dict__.get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise AdvisorError(f"{cls.__name__} in {path} must be decorated with @dataclass(frozen=True).")
    try:
        rule = cls()
    except TypeError:
        raise AdvisorError(f"Every threshold of {cls.__name__} in {path} needs a default value.") from None
    examples = tuple(getattr(module, "EXAMPLES", ()))
    if not all(isinstance(example, Example) for example in examples):
        raise AdvisorError(f"EXAMPLES in {path} may hold only fires(...) and silent(...).")
    return LoadedRule(rule.id, rule, path, examples)


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
    """`value` in the type of `default`: whole numbers may stand for others, lists for tuples."""
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
    """A number that can be compared: TOML also knows `nan`, and whole numbers beyond all floats."""
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise AdvisorError(f"The settings give {name} the value {str(value)[:20]}, but it must be a number.")
    return number


def _cause(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno}: {error.msg}"
    line = None
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}: {error}"
