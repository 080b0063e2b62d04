"""Judges whether a pipeline can move, with those repairs that can be written into the text of its script.

In: an `Analysis` and the project's folder.  Out: `Movability`. A repair without which the pipeline moves as well is left to the
user if the text does not allow it, with the reason, so that it never keeps `distribute` from being written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from advisor.model.offload_result import REFUSED, Movability
from advisor.model.pipeline import Analysis
from advisor.offload.legality import judge
from advisor.offload.repairs import SERVICE_ADDRESS, distribute_edit, edits_with_distribute
from advisor.rewrite.patch import CannotRewrite, patch_for


def judged(analysis: Analysis, policy: str, root_of: Callable[[Movability], Path]) -> Movability:
    """Return whether the pipeline can move, and with which repairs.

    Args:
        analysis: The analysis of a run of the script.
        policy: The sharding policy.
        root_of: Returns the folder of the project whose files may change.
    """
    by_hand: dict[str, str] = {}
    while True:
        movability = judge(analysis, policy, by_hand)
        if movability.verdict == REFUSED or not movability.after_id:
            return movability
        kinds = {repair.kind for repair in movability.repairs if repair.kind and repair.is_written}
        reason = _obstacle(analysis, movability, kinds, policy, root_of) if kinds else ""
        if not reason:
            return movability
        # The one that stands in the way is the first without which the rest can be written, or else all of them.
        blocking = next(
            (kind for kind in sorted(kinds) if not _obstacle(analysis, movability, kinds - {kind}, policy, root_of)),
            None,
        )
        by_hand |= dict.fromkeys({blocking} if blocking is not None else kinds, reason)


def _obstacle(
    analysis: Analysis, movability: Movability, kinds: set[str], policy: str, root_of: Callable[[Movability], Path]
) -> str:
    """Why the change cannot be written with the repairs of these kinds; empty if it can be."""
    repairs = tuple(repair for repair in movability.repairs if not repair.kind or repair.kind in kinds)
    some = Movability(movability.verdict, "", movability.after_id, repairs=repairs)
    edits = edits_with_distribute(some, distribute_edit(movability.after_id, policy, SERVICE_ADDRESS))
    calls = {call.id: call for call in analysis.calls}
    patch = patch_for(edits, calls, root_of(movability), step_edits=some.step_edits)
    return patch.reason if isinstance(patch, CannotRewrite) else ""
