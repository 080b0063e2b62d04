"""The findings of rules, the fixes that they propose, and the predicted effects of these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from advisor.model.calls import Site
from advisor.model.edits import Edit, StepEdit


class Safety(StrEnum):
    """The effect of a fix on the data, ordered from harmless to harmful."""

    EXACT = "exact"
    """The same elements in the same order, bit for bit."""
    RERANDOMIZED = "rerandomized"
    """Random ops draw different numbers from the same distribution."""
    REORDERED = "reordered"
    """The same elements in a different order."""
    NUMERICS = "numerics"
    """The arithmetic or the schedule of the training changes."""
    CHANGES = "changes"
    """Different data: reported, but never applied."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A set of edits that are applied together."""

    edits: tuple[Edit, ...]
    safety: Safety
    is_auto: bool
    """Whether the fix is tried by default, provided that its safety level is allowed."""
    is_provable: bool = True
    """False if the fix makes nothing faster but saves memory or restores the intended behaviour. Its diff is shown but never
    applied, because only changes that are proved faster are applied."""
    assumptions: tuple[str, ...] = ()
    """Conditions for `safety` that no observation can establish, as clauses without a period. A fix with assumptions is tried
    only if its rule is named explicitly (`--only`), regardless of the allowed levels."""
    step_edits: tuple[StepEdit, ...] = ()
    """Changes of the training step. Only a move to workers has `edits` as well: of the pipeline, and of the call that trains."""
    fills_cache: bool = False
    """Whether it speeds up what fills a cache: calls that it moves to the place of the cache go before it."""

    @property
    def is_of_step(self) -> bool:
        """Whether the fix changes nothing but the training step, so that only the whole script can prove it."""
        return bool(self.step_edits) and not self.edits

    @property
    def changes(self) -> tuple[Edit | StepEdit, ...]:
        """Everything that the fix changes; two fixes with equal changes are the same."""
        return (*self.edits, *self.step_edits)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured fact."""

    name: str
    value: float
    """With full precision."""
    unit: str = ""
    """`ns`, `bytes`, `share`, `elements/s`, `calls`, ...; empty for a plain number."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change on one iterator, as factors from 0 (removed) to 1 (unchanged)."""

    iterator_id: str
    cost: float
    """Factor for the time that others wait for it; parallel calls reduce this but not the work."""
    work: float = 1.0
    """Factor for the CPU work that remains."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted end-to-end speedup (ratio of step times; above 1 is faster) with its range."""

    value: float
    low: float
    high: float
    effects: tuple[Effect, ...] = field(default=(), compare=False)
    """The effects that it was predicted from, so that several changes can be combined; empty if they are unknown."""
    best_effects: tuple[Effect, ...] = field(default=(), compare=False)
    """The effects at the upper end of the range; empty if they are the same."""
    uncalibrated: tuple[str, ...] = field(default=(), compare=False)
    """Costs of the machine (fields of `Calibration`) that it was computed with, but that were not measured on that machine."""
    first_pass: float | None = field(default=None, compare=False)
    """Speedup of the first pass over the data, if it differs from that of later ones: 1 for a cache in memory, less for one that
    is written to disk."""
    makes_once: bool = field(default=False, compare=False)
    """Whether the change makes a dataset once that the script makes for every pass, so that all passes are over one dataset."""

    @property
    def is_delayed(self) -> bool:
        """Whether only later passes over the data are faster than now."""
        return self.first_pass is not None


@dataclass(frozen=True, slots=True)
class RunGain:
    """The predicted effect of a change on a whole run of the script, which makes a number of passes over the data."""

    passes: float | None
    """Passes over the data in the run; None if unknown."""
    basis: str
    """How the number of passes is known, see `advisor.model.horizon.Horizon.basis`."""
    prediction: Prediction | None
    """Predicted speedup of all passes together; None if their number is unknown."""
    saved_ns: float
    """Time that the change saves: see `saved_per`."""
    saved_per: str
    """`run` if the number and the length of the passes are known, `pass` (a later one) if only their length is, else `step`."""
    break_even_pass: int | None = None
    """The pass in which a change that does not help the first one has saved time; None for other changes."""
    sentence: str = ""
    """The effect as text for the report; empty if it is that of a step."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A change that a rule considered and does not propose, with the measurement that speaks against it."""

    rule: str
    """The rule's id."""
    change: str
    """The change, as a finding would be titled: `Parallelise map(decode)`."""
    reason: str
    """What speaks against it, as a clause with figures: `the process uses 1.9 of 2 cores`."""
    evidence: tuple[Evidence, ...] = ()
    site: Site | None = None
    """The call that it would have changed; None if it is about no single call."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a rule: what was measured and what to change."""

    rule: str
    """The rule's id (`serial-map`)."""
    title: str
    """The action, in a few words: `Parallelise map(decode)`."""
    because: str
    """The measurements behind it, in one or two sentences."""
    site: Site | None = None
    iterator_id: str | None = None
    call_id: str | None = None
    prediction: Prediction | None = None
    memory_bytes: int | None = None
    """Predicted additional memory of the change; 0 if negligible, None if unknown."""
    fix: Fix | None = None
    """None if the finding is advice only."""
    evidence: tuple[Evidence, ...] = ()
    diff: str | None = None
    """Unified one-hunk diff, filled in by the engine from the fix and the user's source."""
    code: str = ""
    """Code to start from, for advice that no edit of a call can express; of a hint, what to write, in one line."""
    trade: str = ""
    """What a change that gains about as much would cost, as a sentence for the result of a proof; empty if there is none."""
    over_run: RunGain | None = None
    """The effect on a whole run, filled in by the engine; None without a prediction."""
    prove_command: str = ""
    """The command that judges `diff`, read from stdin; filled in by the engine; empty without a diff, or if the run cannot be
    repeated."""
    fix_command: str = ""
    """The command that tries this fix alone, with the options that permit it; filled in by the engine; empty if `advisor fix`
    never tries it, or if the run cannot be repeated."""

    proposed: Fix | None = field(default=None, compare=False)
    """The fix as its rule proposed it, if the proof has replaced AUTOTUNE in `fix` by numbers
    (`advisor.prove.search.fixed_numbers`)."""
    otherwise: Finding | None = field(default=None, compare=False)
    """A finding about the same, reported instead if `fix` cannot be written into the text: the second best change."""

    @property
    def identity(self) -> tuple[str, str, Site | None]:
        """What stays the same in a later report of the same script: title, rule and place."""
        return self.title, self.rule, self.site

    @property
    def is_of_step(self) -> bool:
        """Whether its fix changes the training step."""
        return self.fix is not None and self.fix.is_of_step

    @property
    def as_proposed(self) -> Finding:
        """The finding as its rule made it."""
        return self if self.proposed is None else replace(self, fix=self.proposed, proposed=None)

    @property
    def gain(self) -> float:
        """The predicted speedup by which findings are ranked: of the whole run if its passes are counted, else of a step."""
        if self.over_run is not None and self.over_run.prediction is not None:
            return self.over_run.prediction.value
        return self.prediction.value if self.prediction is not None else 0.0

    @property
    def is_delayed(self) -> bool:
        """Whether the change does not help the first pass over the data."""
        return self.prediction is not None and self.prediction.is_delayed

    @property
    def makes_once(self) -> bool:
        """Whether the change makes a dataset once that the script makes for every pass."""
        return self.prediction is not None and self.prediction.makes_once
