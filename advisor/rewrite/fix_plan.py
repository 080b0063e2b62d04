"""Decides which fixes are tried, in which order, and why the others are not.

In: findings, the recorded calls, the allowed safety levels.  Out: `Plan`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.model.calls import Call
from advisor.model.edits import AUTOTUNE_OPTION, BuildOnce, Edit, SetOption, SplitFunction, Vectorize
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.untried import Why
from advisor.rewrite.conflicts import clash_of
from advisor.rewrite.obstacles import obstacle_to

_NEVER = "It would change the data; such changes are never made automatically."
_UNPROVABLE = "It makes nothing faster, so no measurement can prove it; make the change yourself if you want it."
_SAFETY = {
    Safety.RERANDOMIZED: "Random numbers would differ from those of this seeded script; --allow rerandomized tries it.",
    Safety.REORDERED: "The elements would come in another order; --allow reordered tries it.",
    Safety.NUMERICS: "The arithmetic or the schedule of training would change; --allow numerics tries it.",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A finding whose fix is not tried, and the reason."""

    finding: Finding
    reason: str
    """Why, in one sentence."""
    why: Why = Why.CANNOT_REWRITE
    options: tuple[str, ...] = ()
    """The options of `advisor fix` with which it is tried; none if no option helps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The fixes to try. No two of `findings` conflict, so any subset of them can be combined."""

    findings: tuple[Finding, ...] = ()
    """The findings to try, best prediction first; each has a fix."""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes of `findings`, in the same order."""
        return tuple(finding.fix for finding in self.findings if finding.fix is not None)


def make_plan(
    findings: Sequence[Finding],
    calls: Mapping[str, Call],
    allow: Collection[Safety] = frozenset(),
    is_seeded: bool = False,
    only: Collection[str] = frozenset(),
) -> Plan:
    """Choose and order the fixes to try.

    A finding that is left out because of a conflict may be chosen by a later plan, after the conflicting fix was dropped.

    Args:
        findings: The findings of a report.
        calls: The recorded calls by id.
        allow: Safety levels beyond `exact` that the user allowed.
        is_seeded: Whether the script fixes its random numbers, see `is_seeded`. If not, `rerandomized` is allowed anyway, because
            every run draws other numbers.
        only: Ids of the requested rules; empty means all.
    """
    chosen: list[Finding] = []
    left_out: list[LeftOut] = []
    for finding in sorted(findings, key=_preference, reverse=True):
        against = _against(finding, calls, allow, is_seeded, only) or _conflict_with(finding, chosen, calls)
        if against is None:
            chosen.append(finding)
            continue
        can_be_permitted = against.why in (Why.NEEDS_PERMISSION, Why.NEEDS_REQUEST)
        options = permission_for(finding, calls, allow, is_seeded) if can_be_permitted else against.options
        left_out.append(replace(against, options=options))
    return Plan(tuple(chosen), tuple(left_out))


def _preference(finding: Finding) -> tuple[float, bool]:
    """The gain over the run, or of a step if its passes are not counted; of equal ones, what helps from the first element."""
    return finding.gain, not finding.is_delayed


def is_asked(finding: Finding, only: Collection[str]) -> bool:
    """Whether the user requested this fix by the name of its rule.

    `--allow` is no such request: it permits the effect on the data that a fix claims, not effects that could not be proved.

    Args:
        finding: The finding with the fix.
        only: Ids of the rules named by `--only`; with none, no fix is requested.
    """
    return finding.rule in only


def is_vectorizing(fix: Fix) -> bool:
    """Whether the fix calls a function once per batch, so that its results may differ in their last digits."""
    return any(isinstance(edit, Vectorize) for edit in fix.edits)


def is_splitting(fix: Fix) -> bool:
    """Whether the fix splits a function, so that the halves must be compared with it before they are run."""
    return any(isinstance(edit, SplitFunction) for edit in fix.edits)


def is_building_once(fix: Fix) -> bool:
    """Whether the fix moves what makes a dataset out of a loop, which changes nothing in the dataset itself."""
    return any(isinstance(edit, BuildOnce) for edit in fix.edits)


def is_untuning(fix: Fix) -> bool:
    """Whether the fix turns AUTOTUNE off, so that iterators are destroyed at once; that saves time between epochs only."""
    return any(map(turns_autotune_off, fix.edits))


def turns_autotune_off(edit: Edit) -> bool:
    """Whether the edit sets the option that turns AUTOTUNE off."""
    return isinstance(edit, SetOption) and edit.option == AUTOTUNE_OPTION and edit.value is False


def _against(
    finding: Finding,
    calls: Mapping[str, Call],
    allow: Collection[Safety],
    is_seeded: bool,
    only: Collection[str],
) -> LeftOut | None:
    """Why the fix is not tried, whatever the other fixes are; None if nothing speaks against it."""
    fix = finding.fix
    if only and finding.rule not in only:
        return LeftOut(finding, f"Not requested: --only names {', '.join(sorted(only))}.", Why.NOT_REQUESTED)
    if fix is None:
        return LeftOut(finding, "Advice only: the change cannot be made by editing a call.", Why.ADVICE_ONLY)
    if fix.safety is Safety.CHANGES:
        return LeftOut(finding, _NEVER, Why.NOT_LEGAL)
    if not fix.is_provable:
        return LeftOut(finding, _UNPROVABLE, Why.MAKES_NOTHING_FASTER)
    is_allowed = fix.safety in allow
    is_harmless = fix.safety is Safety.EXACT or (fix.safety is Safety.RERANDOMIZED and not is_seeded)
    if not is_allowed and not is_harmless:
        return LeftOut(finding, _SAFETY[fix.safety], Why.NEEDS_PERMISSION)
    if fix.assumptions and not is_asked(finding, only):
        reason = f"It assumes that {', and that '.join(fix.assumptions)}; --only {finding.rule} tries it."
        return LeftOut(finding, reason, Why.NEEDS_REQUEST)
    if not fix.is_auto and not is_asked(finding, only) and not is_allowed:
        return LeftOut(finding, f"Tried only if requested by name: --only {finding.rule}.", Why.NEEDS_REQUEST)
    obstacle = next((problem for edit in fix.edits if (problem := obstacle_to(edit, calls)) is not None), None)
    return None if obstacle is None else LeftOut(finding, obstacle)


def permission_for(
    finding: Finding, calls: Mapping[str, Call], allow: Collection[Safety], is_seeded: bool
) -> tuple[str, ...]:
    """Return the options with which `advisor fix` tries a fix that it does not try by itself: `("--allow", "rerandomized")`.

    Args:
        finding: The finding.
        calls: The recorded calls by id.
        allow: Safety levels beyond `exact` that are allowed already.
        is_seeded: As in `make_plan`.

    Returns:
        The options; none if it is tried anyway, or if no option makes it one that can be tried.
    """
    return options_for(finding, calls, allow, is_seeded) or ()


def options_for(
    finding: Finding, calls: Mapping[str, Call], allow: Collection[Safety], is_seeded: bool
) -> tuple[str, ...] | None:
    """Like `permission_for`; None if no option makes it a fix that can be tried.

    Args:
        finding: The finding with the fix.
        calls: The recorded calls by id.
        allow: Safety levels beyond `exact` that are allowed already.
        is_seeded: As in `make_plan`.

    Returns:
        The options; empty if it is tried anyway.
    """
    fix, only = finding.fix, frozenset({finding.rule})
    if fix is None:
        return None
    more = frozenset({*allow, fix.safety})
    by_name, by_level = ("--only", finding.rule), ("--allow", str(fix.safety))
    for levels, names, options in (
        (allow, frozenset[str](), ()),
        (allow, only, by_name),
        (more, frozenset[str](), by_level),
        (more, only, (*by_level, *by_name)),
    ):
        if _against(finding, calls, levels, is_seeded, names) is None:
            return options
    return None


def _conflict_with(finding: Finding, chosen: Sequence[Finding], calls: Mapping[str, Call]) -> LeftOut | None:
    for other in chosen:
        if finding.fix is not None and other.fix is not None:
            clash = clash_of(finding.fix, other.fix, calls)
            if clash is not None:
                reason = f"Conflicts with {other.rule} ({other.title}), which has the larger prediction: {clash}."
                return LeftOut(finding, reason, Why.CONFLICT, ("--only", finding.rule))
    return None
