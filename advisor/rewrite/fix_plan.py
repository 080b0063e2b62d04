"""Which fixes are tried, in which order, and why the others are not.

In: findings, the recorded calls, the levels of safety that are allowed.  Out: `Plan`; and `combine`, the edits of several fixes
in an order in which all of them hold together.

Edits are carried out one after the other, and a link goes directly behind its call. So of two links behind the same call the
one named *later* stands *nearer*: `cache` comes last in a list of edits, `prefetch` first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.model.finding import (
    Edit,
    Finding,
    Fix,
    InsertAfter,
    MoveAfter,
    Remove,
    Safety,
    SetArgument,
    SetOption,
    Vectorize,
)
from advisor.model.recording import Call, Recording
from advisor.model.shared_text import span_of
from advisor.rewrite.obstacles import obstacle_to

_NEVER = "It would change the data, which is never done for you."
_UNPROVABLE = "It makes nothing faster, so nothing can prove it; make the change yourself if it is what you want."
_SAFETY = {
    Safety.RERANDOMIZED: "Random numbers would differ from those of this seeded script; --allow rerandomized tries it.",
    Safety.REORDERED: "The elements would come in another order; --allow reordered tries it.",
    Safety.NUMERICS: "The arithmetic of training would change; --allow numerics tries it.",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A finding whose fix is not tried."""

    finding: Finding
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be tried. No two of `findings` conflict, so any subset of them can be combined."""

    findings: tuple[Finding, ...] = ()
    """Those whose fixes are tried, best predicted first; each has a fix."""
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
    """Choose and order the fixes.

    `allow`: levels of safety beyond `exact` that the user allowed. `is_seeded`: the script fixes its random numbers, so that
    drawing others needs to be allowed; a rerun of an unseeded script draws others anyway. `only`: ids of the rules asked for;
    none named means all. A finding left out for a conflict may be planned again once the fix before it has been dropped.
    """
    chosen: list[Finding] = []
    left_out: list[LeftOut] = []
    for finding in sorted(findings, key=lambda each: -(each.prediction.value if each.prediction else 0.0)):
        reason = _reason_against(finding, calls, allow, is_seeded, only) or _conflict_with(finding, chosen, calls)
        if reason is None:
            chosen.append(finding)
        else:
            left_out.append(LeftOut(finding, reason))
    return Plan(tuple(chosen), tuple(left_out))


def is_seeded(recording: Recording) -> bool:
    """Whether a rerun of the script draws the same random numbers somewhere, so that drawing others changes its results.

    Anything that fixes a seed counts: `tf.random.set_seed` (`keras.utils.set_random_seed` calls it), a `seed=` of a call of the
    script, a seeded op in a function. What is not known counts as seeded.
    """
    if recording.is_seeded is not False:
        return True
    has_argument = any(call.library is None and call.arguments.get("seed") is not None for call in recording.calls)
    return has_argument or any(call.function is not None and call.function.is_seeded for call in recording.calls)


def is_asked(finding: Finding, only: Collection[str]) -> bool:
    """Whether the user asked for this fix by its rule's name.

    An allowed level is no such question: it permits what a fix claims to do to the data, not what could not be proved.
    """
    return finding.rule in only


def is_vectorizing(fix: Fix) -> bool:
    """Whether the fix calls a function once per batch, so that its results may differ in their last digits."""
    return any(isinstance(edit, Vectorize) for edit in fix.edits)


def combine(fixes: Sequence[Fix], calls: Mapping[str, Call] | None = None) -> tuple[Edit, ...]:
    """The edits of several fixes, in an order in which all hold: each edit once, and of the links behind one call `cache`
    nearest to it, then what works on elements, then `prefetch`, then options.

    `calls` lets edits of the same text (a helper called twice) count as one. Raises ValueError for fixes that conflict.
    """
    known = calls or {}
    for index, fix in enumerate(fixes):
        for other in fixes[:index]:
            clash = _clash(fix, other, known)
            if clash is not None:
                raise ValueError(f"fixes that conflict cannot be combined: {clash}")
    found: dict[Edit, None] = {}
    for fix in sorted(fixes, key=_distance, reverse=True):
        found |= dict.fromkeys(fix.edits)
    return tuple(found)


def _distance(fix: Fix) -> int:
    """How far behind its call a fix's links belong: 0 a cache, 1 anything else, 2 a prefetch, 3 options."""
    methods = [edit.method for edit in fix.edits if isinstance(edit, InsertAfter)]
    if "cache" in methods:
        return 0
    if any(isinstance(edit, SetOption) for edit in fix.edits):
        return 3
    return 2 if methods and all(method == "prefetch" for method in methods) else 1


def _reason_against(
    finding: Finding,
    calls: Mapping[str, Call],
    allow: Collection[Safety],
    is_seeded: bool,
    only: Collection[str],
) -> str | None:
    fix = finding.fix
    if only and finding.rule not in only:
        return f"Not asked for: --only names {', '.join(sorted(only))}."
    if fix is None:
        return "Advice only: there is no change of a call that would do it."
    if fix.safety is Safety.CHANGES:
        return _NEVER
    if not fix.is_provable:
        return _UNPROVABLE
    is_allowed = fix.safety in allow
    is_harmless = fix.safety is Safety.EXACT or (fix.safety is Safety.RERANDOMIZED and not is_seeded)
    if not is_allowed and not is_harmless:
        return _SAFETY[fix.safety]
    if fix.assumptions and not is_asked(finding, only):
        return f"It assumes that {', and that '.join(fix.assumptions)}; --only {finding.rule} tries it."
    if not fix.is_auto and not is_asked(finding, only) and not is_allowed:
        return f"Tried only when asked for by name: --only {finding.rule}."
    return next((reason for edit in fix.edits if (reason := obstacle_to(edit, calls)) is not None), None)


def _conflict_with(finding: Finding, chosen: Sequence[Finding], calls: Mapping[str, Call]) -> str | None:
    for other in chosen:
        if finding.fix is not None and other.fix is not None:
            clash = _clash(finding.fix, other.fix, calls)
            if clash is not None:
                return f"Conflicts with {other.rule} ({other.title}), which promises more: {clash}."
    return None


def _clash(fix: Fix, other: Fix, calls: Mapping[str, Call]) -> str | None:
    """Why two fixes cannot both be made; None if they can."""
    for edit in fix.edits:
        for before in other.edits:
            reason = _clash_of_edits(edit, before, calls) or _clash_of_edits(before, edit, calls)
            if edit != before and reason is not None:
                return reason
    return None


def _clash_of_edits(edit: Edit, other: Edit, calls: Mapping[str, Call]) -> str | None:
    """Why `edit` does not go with `other`. Asked both ways round."""
    call = calls.get(edit.call_id)
    name = f"{call.method} at line {call.site.line}" if call is not None and call.site is not None else "the same call"
    spans = {span_of(edit.call_id, calls)}
    touched = set(_spans(other, calls))
    match edit:
        case SetArgument():
            if isinstance(other, SetArgument) and other.name == edit.name and span_of(other.call_id, calls) in spans:
                return f"both set {edit.name} of {name}" if other.value != edit.value else None
        case SetOption():
            if isinstance(other, SetOption) and other.option == edit.option and other.value != edit.value:
                return f"both set the option {edit.option}"
        case Remove():
            is_same = isinstance(other, Remove) and span_of(other.call_id, calls) in spans
            if not is_same and spans & touched:
                return f"one takes {name} out, the other changes it"
        case MoveAfter():
            is_same = isinstance(other, MoveAfter) and list(_spans(edit, calls)) == list(_spans(other, calls))
            if not is_same and not isinstance(other, SetArgument) and spans & touched:
                return f"one moves {name}, the other changes what is behind it"
        case InsertAfter():
            pass
    return None


def _spans(edit: Edit, calls: Mapping[str, Call]) -> Iterator[object]:
    yield span_of(edit.call_id, calls)
    if isinstance(edit, MoveAfter):
        yield span_of(edit.after_id, calls)
