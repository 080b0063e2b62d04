"""Combines what the legality check and the worker processes found.

In: a `Movability`, a `ServiceMeasurement`, a `Sizing`.  Out: the final `Movability`, and the sentence of the report.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.calls import line_note
from advisor.model.offload_result import (
    COUNTS,
    MOVABLE,
    OP,
    REFUSED,
    SOURCE,
    UNDECIDED,
    Movability,
    Objection,
    ServiceMeasurement,
    ServiceProof,
    Sizing,
)

FASTER = "faster"
"""The verdict of a `ServiceProof` that permits writing."""
_DECIDED_BY_WORKERS = frozenset({COUNTS, OP, SOURCE})
"""Causes of doubt that a pass through worker processes with equal elements removes. State that may change later is not among
them."""


def decided(movability: Movability, measured: ServiceMeasurement) -> Movability:
    """Return the movability after the measurement: workers may refuse what nothing spoke against, and remove doubts."""
    if measured.objection is not None:
        objection = measured.objection
        where = line_note(objection.site)
        sentence = f"It cannot move: {objection.method}{where} {objection.reason}."
        return replace(movability, verdict=REFUSED, sentence=sentence, objections=(objection, *movability.objections))
    if measured.is_same is False:
        objection = Objection(
            REFUSED,
            COUNTS,
            movability.after_method,
            f"produces other elements on several workers: {measured.comparison.rstrip('.')}",
            movability.after_site,
            movability.after_id,
        )
        sentence = f"It cannot move: {measured.comparison}"
        return replace(movability, verdict=REFUSED, sentence=sentence, objections=(objection, *movability.objections))
    if movability.verdict != UNDECIDED or not measured.is_same:
        return movability
    left = tuple(o for o in movability.objections if o.cause not in _DECIDED_BY_WORKERS)
    if left:
        return replace(movability, objections=left)
    where = line_note(movability.after_site)
    sentence = f"It can move up to {movability.after_method}{where}: worker processes produced the same elements."
    return replace(movability, verdict=MOVABLE, sentence=sentence, objections=())


def sentence_of(movability: Movability, sizing: Sizing | None, proof: ServiceProof | None = None) -> str:
    """Return the first sentence of the report.

    Args:
        movability: Whether the pipeline can move to workers.
        sizing: How many workers the training needs; None if that was not computed.
        proof: The proof with a running service; None if the user named none.
    """
    if proof is not None and movability.verdict != REFUSED:
        return f"{movability.sentence} {proof.sentence}"
    if movability.verdict == REFUSED or sizing is None:
        return movability.sentence
    return f"{movability.sentence} {sizing.sentence}"


def why_not_written(movability: Movability, sizing: Sizing | None, diff: str, proof: ServiceProof | None = None) -> str:
    """Return why --write must not change the script, in one sentence; empty if it may.

    Args:
        movability: Whether the pipeline can move to workers.
        sizing: How many workers the training needs; None if that was not computed.
        diff: The unified diff of the script; empty if the change cannot be expressed.
        proof: The proof with a running service, which then decides instead of the sizing; None if the user named none.
    """
    if movability.verdict == REFUSED:
        return "Nothing was written, because the pipeline cannot move to workers."
    if movability.verdict == UNDECIDED:
        return (
            "Nothing was written, because it is unknown whether the pipeline behaves the same on workers; see the objections "
            "above."
        )
    if proof is not None:
        if proof.verdict != FASTER:
            return "Nothing was written, because the training was not proved faster with this service."
    elif sizing is None or sizing.workers is None:
        return "Nothing was written, because no number of workers was found that makes the training faster."
    return "" if diff else "Nothing was written, because the change of the script cannot be expressed."
