"""The budgets of `advisor check`, as `[tool.advisor.budgets]` declares them.

In: the TOML table.  Out: `Budgets`; `budgets_of` and `runs_of` answer for one script.

    [tool.advisor.budgets]
    input_wait = ["error", { max = 0.10 }]                        # share of the step time
    step_time = ["error", { max_ratio = 1.10 }]                   # relative to the revision of --against
    memory = ["warn", { max = "4GiB", aggregation = "pessimistic" }]
    findings = "error"                                            # none that the baseline lacks
    runs = 3                                                      # runs of the script that are aggregated

    [tool.advisor.budgets."experiments/*.py"]                     # replaces single budgets for these scripts
    input_wait = "off"
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

import msgspec

from advisor.model.errors import AdvisorError
from advisor.model.text import did_you_mean
from advisor.model.units import NS_PER_S, parse_bytes, parse_seconds

Level = Literal["off", "warn", "error"]
Aggregation = Literal["median", "optimistic", "pessimistic"]
LEVELS: tuple[Level, ...] = get_args(Level)

INPUT_WAIT, STEP_TIME, MEMORY, FINDINGS = "input_wait", "step_time", "memory", "findings"
QUANTITIES = (INPUT_WAIT, STEP_TIME, MEMORY, FINDINGS)
UNITS = {INPUT_WAIT: "share", STEP_TIME: "ns", MEMORY: "bytes", FINDINGS: "findings"}
COMPARABLE = (STEP_TIME, MEMORY)
"""Quantities that may have a `max_ratio`."""
DEFAULT_RATIO = 1.10
"""Limit of the step time with `--against` if no budget has a `max_ratio`. Chosen, not measured. The model may not import
`advisor.host.calibration`, so it stands here."""
_RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Budget:
    """The limit of one quantity."""

    quantity: str
    """One of `QUANTITIES`."""
    level: Level
    """What exceeding it means: `error` fails the check, `warn` is reported, `off` is not looked at."""
    limit: float | None = None
    """Largest value, in the unit of the quantity; None without an absolute limit."""
    ratio_limit: float | None = None
    """Largest value relative to the base revision; None without one."""
    aggregation: Aggregation = "median"
    """How the values of several runs become one: `optimistic` takes the lowest, `pessimistic` the highest."""
    not_measured: Level | None = None
    """The level if the quantity is not measured; None: `level`."""


DEFAULT_BUDGETS = (Budget(FINDINGS, "error", 0),)
"""Used if `[tool.advisor.budgets]` is absent."""


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The budgets of some scripts."""

    pattern: str
    """Glob pattern of the scripts' paths, matched from the right; empty for all scripts."""
    budgets: tuple[Budget, ...]
    runs: int | None = None
    """How often the script is run; None if not set."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """All tables, the general one first, then those with a pattern in the order of the file."""

    tables: tuple[BudgetTable, ...]
    folder: Path
    """The folder of the pyproject.toml; paths of scripts are relative to it."""

    def matching(self, script: str) -> list[BudgetTable]:
        """Return the tables that apply to a script, given by its path or as the name of a module."""
        path = PurePosixPath(_relative(script, self.folder))
        return [table for table in self.tables if not table.pattern or path.match(table.pattern)]


def budgets_of(budgets: Budgets | None, script: str) -> tuple[Budget, ...]:
    """Return the budgets of a script without those that are off; of several tables that apply, the last one decides.

    Args:
        budgets: The settings; None for `DEFAULT_BUDGETS`.
        script: Path of the script, or name of the module.
    """
    if budgets is None:
        return DEFAULT_BUDGETS
    chosen = {budget.quantity: budget for table in budgets.matching(script) for budget in table.budgets}
    return tuple(chosen[name] for name in QUANTITIES if name in chosen and chosen[name].level != "off")


def runs_of(budgets: Budgets | None, script: str) -> int:
    """Return how often the script is to be run: 1 unless the settings say otherwise."""
    runs = [table.runs for table in budgets.matching(script) if table.runs is not None] if budgets else []
    return runs[-1] if runs else 1


def read_budgets(value: object, path: Path) -> Budgets:
    """Read `[tool.advisor.budgets]`.

    Args:
        value: The parsed table.
        path: The pyproject.toml, for messages and patterns.

    Raises:
        AdvisorError: A budget is unknown or malformed.
    """
    if not isinstance(value, dict):
        raise AdvisorError(f"{path}: tool.advisor.budgets must be a table of budgets, not {value!r}.")
    scripts = {name: inner for name, inner in value.items() if isinstance(inner, dict) and name not in QUANTITIES}
    general = {name: inner for name, inner in value.items() if name not in scripts}
    tables = [_read_table("", general, f"{path}: tool.advisor.budgets")]
    tables += [_read_table(name, inner, f'{path}: tool.advisor.budgets."{name}"') for name, inner in scripts.items()]
    return Budgets(tuple(tables), path.parent)


class _Options(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The table that may follow the level."""

    max: float | str | None = None
    max_ratio: float | None = None
    aggregation: Aggregation = "median"
    not_measured: Level | None = None


def _read_table(pattern: str, table: Mapping[str, object], where: str) -> BudgetTable:
    budgets: list[Budget] = []
    runs: int | None = None
    for name, value in table.items():
        if name == _RUNS:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise AdvisorError(f"{where}.runs must be a whole number of at least 1, not {value!r}.")
            runs = value
        elif name in QUANTITIES:
            budgets.append(_read_budget(name, value, f"{where}.{name}"))
        else:
            known = (*QUANTITIES, _RUNS)
            hint = did_you_mean(name, known) or f" Known: {', '.join(known)}; a table with another name is a pattern."
            raise AdvisorError(f"{where} has no budget {name!r}.{hint}")
    return BudgetTable(pattern, tuple(budgets), runs)


def _read_budget(quantity: str, value: object, where: str) -> Budget:
    parts = value if isinstance(value, list) else [value]
    level = next((level for level in LEVELS if parts and parts[0] == level), None)
    if level is None or len(parts) > 2:
        example = '["error", { max = ' + _EXAMPLES[quantity] + " }]"
        raise AdvisorError(f"{where} must be a level ({', '.join(LEVELS)}) or a list such as {example}, not {value!r}.")
    try:
        options = msgspec.convert(parts[1] if len(parts) == 2 else {}, _Options)
    except msgspec.ValidationError as error:
        raise AdvisorError(
            f"{where} is not valid: {error}; known are {', '.join(_Options.__struct_fields__)}."
        ) from None
    limit = 0.0 if quantity == FINDINGS and options.max is None else None
    if options.max is not None:
        limit = _read_limit(quantity, options.max, where)
    if options.max_ratio is not None:
        if quantity not in COMPARABLE:
            raise AdvisorError(f"{where}.max_ratio is known only for {' and '.join(COMPARABLE)}: set max.")
        if not 0 < options.max_ratio < math.inf:
            raise AdvisorError(f"{where}.max_ratio must be a ratio above 0, such as 1.1, not {options.max_ratio!r}.")
    if limit is None and options.max_ratio is None and level != "off":
        raise AdvisorError(f"{where} needs a limit, such as {{ max = {_EXAMPLES[quantity]} }}.")
    return Budget(quantity, level, limit, options.max_ratio, options.aggregation, options.not_measured)


_EXAMPLES = {INPUT_WAIT: "0.10", STEP_TIME: '"50ms"', MEMORY: '"4GiB"', FINDINGS: "0"}
_KINDS = {
    INPUT_WAIT: "a share from 0 to 1",
    STEP_TIME: "a duration with its unit",
    MEMORY: "a size",
    FINDINGS: "a number of findings",
}


def _read_limit(quantity: str, value: float | str, where: str) -> float:
    """Return a limit in the unit of its quantity."""
    try:
        limit = _parse_limit(quantity, value)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf or (quantity == INPUT_WAIT and limit > 1):
        raise AdvisorError(f"{where}.max must be {_KINDS[quantity]} such as {_EXAMPLES[quantity]}, not {value!r}.")
    return limit


def _parse_limit(quantity: str, value: float | str) -> float:
    if quantity == MEMORY:
        return parse_bytes(value) if isinstance(value, str) else value
    if quantity == STEP_TIME:  # a bare number is refused: seconds and milliseconds are equally likely
        if not isinstance(value, str) or not any(char.isalpha() for char in value):
            raise ValueError
        return parse_seconds(value) * NS_PER_S
    if isinstance(value, str):
        raise ValueError
    return value


def _relative(script: str, folder: Path) -> str:
    """Return the path relative to the folder, if it is inside; the name of a module is not changed."""
    path = Path(script)
    try:
        return path.resolve().relative_to(folder.resolve()).as_posix() if path.suffix or path.exists() else script
    except (OSError, ValueError):
        return path.as_posix()
