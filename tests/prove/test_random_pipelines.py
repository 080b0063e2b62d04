"""Random pipelines: honest edits always keep their claim, planted ones are always caught."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Vectorize
from advisor.model.finding import Safety
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from tests.effort import examples
from tests.prove.random_pipelines import (
    Script,
    build,
    chain_of,
    hoisting,
    illegal,
    legal,
    nested_scripts,
    scripts,
    vectorizable_scripts,
)
from tests.recorded import install

pytestmark = pytest.mark.tensorflow
BOUNDS = Bounds(200, 10.0)
"""A tenth of the elements that a trial compares. With fewer, figures of two distributions may be as different as this allows by
chance, and what is random could be changed unseen."""
PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def patient(ordinary: int) -> settings:
    return settings(max_examples=examples(ordinary), suppress_health_check=PATIENT)


def check(
    script: Script, data: st.DataObject, is_legal: bool, is_vectorizing: bool = False, is_hoisting: bool = False
) -> None:
    import tensorflow as tf

    with install() as recorded, tempfile.TemporaryDirectory() as files:
        try:
            dataset = build(script)
            call_id = call_id_of(dataset)
            assert call_id is not None
            calls = {call.id: call for call in recorded.recorder.calls()}
            chain = chain_of(calls, call_id)
            recorded.recorder.is_open = False
            if is_hoisting:
                choices = hoisting(calls)
            elif is_legal:
                choices = legal(calls, chain, script.seed)
            else:
                choices = illegal(calls, chain, counts(recorded, chain), BOUNDS.elements)
            if is_vectorizing:
                choices = [choice for choice in choices if isinstance(choice.edits[-1], Vectorize)]
            if not choices:
                event("nothing to edit")
                return
            claim = data.draw(st.sampled_from(choices), label="edits")
            event(type(claim.edits[0]).__name__)
            judge = Equivalence(recorded.recorder, call_id, BOUNDS, Path(files))
            judgement = judge.judge(claim.edits)
            if is_legal:
                assert judgement.holds(claim.safety), (claim, judgement)
            else:
                # Of a part of a pass nobody can tell what is left out from another order; the claim is broken all the same.
                mildest = Safety.NUMERICS if judgement.is_complete else claim.safety
                assert not judgement.holds(mildest), (claim, judgement)
        finally:
            tf.random.set_seed(None)


def counts(recorded: Any, chain: list[Any]) -> dict[str, int]:
    """Elements of one epoch behind each call."""
    kept = recorded.recorder.replay_log.calls
    return {c.id: 0 if c.cardinality == -1 else sum(1 for _ in kept[c.id].dataset) for c in chain}


@pytest.mark.long
@patient(20)
@given(scripts, st.data())
def test_honest_edits_keep_their_claim(script: Script, data: st.DataObject) -> None:
    check(script, data, is_legal=True)


@pytest.mark.long
@patient(10)
@given(vectorizable_scripts, st.data())
def test_vectorised_functions_keep_their_claim(script: Script, data: st.DataObject) -> None:
    check(script, data, is_legal=True, is_vectorizing=True)


@pytest.mark.long
@patient(10)
@given(nested_scripts, st.data())
def test_maps_that_leave_a_function_keep_their_claim(script: Script, data: st.DataObject) -> None:
    check(script, data, is_legal=True, is_hoisting=True)


@pytest.mark.long
@patient(20)
@given(scripts, st.data())
def test_planted_edits_are_caught(script: Script, data: st.DataObject) -> None:
    check(script, data, is_legal=False)
