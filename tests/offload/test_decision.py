"""What worker processes add to the legality check."""

from __future__ import annotations

import dataclasses

from advisor.model.offload_result import (
    MOVABLE,
    PYTHON,
    REFUSED,
    SOURCE,
    STATE,
    UNDECIDED,
    Movability,
    Objection,
    ServiceMeasurement,
    ServiceProof,
    Sizing,
)
from advisor.offload.decision import decided, sentence_of, why_not_written

DOUBT = Objection(UNDECIDED, SOURCE, "load", "is not known to be divisible among workers")
UNSURE = Movability(UNDECIDED, "It may move.", "c2", "batch", objections=(DOUBT,))
SAME = ServiceMeasurement(is_same=True, comparison="The same.")


def test_equal_elements_remove_a_doubt_about_the_source():
    decision = decided(UNSURE, SAME)
    assert decision.verdict == MOVABLE and not decision.objections


def test_equal_elements_do_not_remove_a_doubt_about_state():
    stateful = dataclasses.replace(UNSURE, objections=(DOUBT, dataclasses.replace(DOUBT, cause=STATE)))
    decision = decided(stateful, SAME)
    assert decision.verdict == UNDECIDED
    assert [objection.cause for objection in decision.objections] == [STATE]


def test_without_a_comparison_a_doubt_remains():
    assert decided(UNSURE, ServiceMeasurement()) == UNSURE


def test_other_elements_are_a_refusal():
    decision = decided(
        Movability(MOVABLE, "", "c2", "batch"), ServiceMeasurement(is_same=False, comparison="20 instead of 10.")
    )
    assert decision.verdict == REFUSED and "20 instead of 10" in decision.sentence


def test_an_error_of_a_worker_is_a_refusal():
    objection = Objection(REFUSED, PYTHON, "map", "fails on a worker process: Could not find callback")
    decision = decided(Movability(MOVABLE, "", "c2", "map"), ServiceMeasurement(objection=objection))
    assert decision.verdict == REFUSED and decision.objections[0] is objection
    assert "Could not find callback" in decision.sentence


def test_the_source_is_changed_only_if_that_helps_and_is_certain():
    movable, enough = Movability(MOVABLE, ""), Sizing("workers", "", workers=2)
    assert why_not_written(movable, enough, "diff") == ""
    assert "cannot move" in why_not_written(Movability(REFUSED, ""), None, "")
    assert "it is unknown whether" in why_not_written(UNSURE, enough, "diff")
    assert "no number of workers" in why_not_written(movable, Sizing("no gain", ""), "diff")
    assert "cannot be expressed" in why_not_written(movable, enough, "")


def test_the_first_sentence_holds_the_number_of_workers():
    assert (
        sentence_of(Movability(MOVABLE, "It can move."), Sizing("workers", "It takes 2.")) == "It can move. It takes 2."
    )
    assert sentence_of(Movability(REFUSED, "It cannot."), None) == "It cannot."


def test_with_a_service_the_source_is_changed_only_if_it_is_proved_faster():
    movable = Movability(MOVABLE, "It can move.")
    faster = ServiceProof("grpc://d:1", "faster", "The training is faster.")
    assert why_not_written(movable, None, "diff", faster) == ""
    for verdict in ("same", "slower", "undecided", "not measured", "broken"):
        assert "not proved faster" in why_not_written(
            movable, None, "diff", dataclasses.replace(faster, verdict=verdict)
        )
    assert "it is unknown whether" in why_not_written(UNSURE, None, "diff", faster)
    assert sentence_of(movable, None, faster) == "It can move. The training is faster."
    assert sentence_of(Movability(REFUSED, "It cannot."), None, faster) == "It cannot."
