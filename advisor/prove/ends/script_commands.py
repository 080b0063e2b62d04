"""The exact command lines with which the user goes on after `advisor fix`.

In: how the command was called.  Out: command lines for the same script, quoted for a shell. None repeats `--out`, `--json` and
`--html`, which would be refused or replaced. `tests/prove/ends/test_early_ends.py` parses each of them as `advisor` does.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.prove.budget import in_budget_format

_STEM = "train"
"""Name of the changed script in a command if the script is a module."""


@dataclass(frozen=True, slots=True)
class ScriptCommands:
    """How `advisor fix` was called, and the commands for the same script."""

    path: Path | None = None
    """The script; None for a module."""
    module: str | None = None
    args: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    rules: tuple[Path, ...] = ()
    """Folders with rules of the user's own."""
    window: tuple[str, ...] = ()
    """Options of the window, as words: `--steps`, `20`."""
    mode: tuple[str, ...] = ()
    """What replaces the training, as words: `--pipeline-only`, or `--as-if-step` or `--as-if-speedup` with its value."""
    budget_s: float = 600.0
    is_budget_given: bool = False
    is_to_be_written: bool = False

    @property
    def is_whole_script(self) -> bool:
        """Whether the training is run."""
        return not self.mode

    def again(self) -> str:
        """Return the same command."""
        return self._fix(write=self.is_to_be_written, mode=self.mode, only=self.only)

    def longer(self, missing_s: float = 0.0) -> str:
        """Return the same command with a budget that is twice as long, or as much longer as is missing if that is more."""
        return self.with_more_time(missing_s).again()

    def with_more_time(self, missing_s: float = 0.0) -> ScriptCommands:
        """Return the commands with a budget that is twice as long, or as much longer as is missing if that is more."""
        return replace(self, budget_s=max(2 * self.budget_s, self.budget_s + missing_s), is_budget_given=True)

    def write(self) -> str:
        """Return the command that proves the same changes and writes them; after `--pipeline-only`, it runs the training, too."""
        mode = () if "--pipeline-only" in self.mode else self.mode
        return self._fix(write=True, mode=mode, only=self.only)

    def not_written(self) -> str:
        """Return the same command without `--write`."""
        return self._fix(mode=self.mode, only=self.only)

    def permitted(self, options: Sequence[str]) -> str:
        """Return the command with more `--allow LEVEL`; an `--only RULE` among the options replaces those of this command."""
        pairs = list(zip(options[::2], options[1::2], strict=True))
        allow = tuple(value for name, value in pairs if name == "--allow")
        only = tuple(value for name, value in pairs if name == "--only")
        return self._fix(mode=self.mode, allow=allow, only=only or self.only)

    def whole_script(self) -> str:
        """Return the command that runs the training, too."""
        return self._fix(only=self.only)

    def pipeline_only(self) -> str:
        """Return the command that tries everything on the pipeline alone."""
        return self._fix(mode=("--pipeline-only",), only=self.only)

    def all_rules(self) -> str:
        """Return the same command for all rules."""
        return self._fix(write=self.is_to_be_written, mode=self.mode)

    def only_these(self, rules: Sequence[str]) -> str:
        """Return the command that tries the fixes of these rules and no others."""
        return self._fix(mode=self.mode, only=tuple(dict.fromkeys(rules)))

    def analyze(self) -> str:
        """Return the command that prints all measurements and findings."""
        folders = [word for folder in self.rules for word in ("--rules", str(folder))]
        return self._joined("analyze", [*self._window_and_levels(), *folders])

    def prove(self) -> str:
        """Return the command that judges a change that was made by hand in a copy of the script; of a module, in a diff."""
        if self.path is None:
            change = ["--patch", "change.diff"]
        else:
            change = ["--with", _safe(self.path.with_name(f"{self.path.stem or _STEM}_changed{self.path.suffix}"))]
        alone = ["--pipeline-only"] if "--pipeline-only" in self.mode else []
        return self._joined("prove", [*change, *alone, *self._window_and_levels()])

    def _fix(
        self,
        *,
        write: bool = False,
        mode: Sequence[str] = (),
        allow: Sequence[str] = (),
        only: Sequence[str] = (),
    ) -> str:
        words = ["--write"] if write else []
        words += mode
        words += ["--budget", in_budget_format(self.budget_s)] if self.is_budget_given else []
        words += self._window_and_levels(allow)
        words += [word for folder in self.rules for word in ("--rules", str(folder))]
        words += [word for rule in only for word in ("--only", rule)]
        return self._joined("fix", words)

    def _window_and_levels(self, more: Sequence[str] = ()) -> list[str]:
        levels = dict.fromkeys((*self.allow, *more))
        return [*self.window, *(word for level in levels for word in ("--allow", level))]

    def _joined(self, command: str, options: Sequence[str]) -> str:
        target = ["-m", self.module] if self.module is not None else [_safe(self.path or Path(f"{_STEM}.py"))]
        return shlex.join(["advisor", command, *options, *target, *self.args])


def _safe(path: Path) -> str:
    """The path as an argument that is never taken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
