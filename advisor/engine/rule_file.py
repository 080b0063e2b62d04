"""Loads the rule in one file.

In: the path of a rule file, or its module.  Out: a `LoadedRule`. Each file contains one rule, whose id is the
file name with dashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.engine.explanation import Page, read_page
from advisor.model.errors import AdvisorError
from advisor.rule import Rule
from advisor.testing import Example


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule that is ready to be evaluated."""

    id: str
    rule: Rule
    """The rule with the user's thresholds."""
    path: Path
    examples: tuple[Example, ...] = ()
    is_shipped: bool = False
    is_apart: bool = False
    """Whether the rule is evaluated in a separate process with a time limit, as all rules that are not shipped."""

    @property
    def page(self) -> Page:
        """The rule's documentation, read from its file on access."""
        return read_page(type(self.rule), self.path)


def threshold_of(rules: Sequence[LoadedRule], rule_id: str, field: str) -> float | None:
    """Return a threshold of a rule, for code that decides before the rule is asked.

    Args:
        rules: The loaded rules, with the user's thresholds.
        rule_id: Id of the rule.
        field: Name of a field with a number.

    Returns:
        The threshold in the field's unit; None if the rule is not among `rules`.
    """
    return next((float(getattr(loaded.rule, field)) for loaded in rules if loaded.id == rule_id), None)


def load_file(path: Path) -> LoadedRule:
    """Load the rule in a single file outside any package.

    Raises:
        AdvisorError: The file cannot be loaded or does not contain exactly one rule.
    """
    # A unique name allows files of the same name in several folders; its last part is the rule's id.
    folder = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
    name = f"advisor_rules_{folder}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdvisorError(f"{path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up annotations here
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is reserved for the report
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise AdvisorError(f"The rule file {path} cannot be loaded: {_cause(error, path)}.") from None
    return rule_of(module, path)


def rule_of(module: ModuleType, path: Path) -> LoadedRule:
    """Return the rule in an imported module.

    Args:
        module: The module.
        path: Its file.

    Raises:
        AdvisorError: It does not contain exactly one rule.
    """
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise AdvisorError(f"The rule file {path} must define exactly one subclass of Rule; found: {names}.")
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
