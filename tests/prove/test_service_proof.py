"""The sentence and the verdict on a script with a running service."""

from __future__ import annotations

import pytest

from advisor.model.offload_result import ServedMeasurement, ServiceMeasurement
from advisor.model.outcome import Interval
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.service_proof import proof_of

ADDRESS = "grpc://dispatcher:5000"
SERVED = ServedMeasurement(ServiceMeasurement(), workers=4, delivered_per_s=100.0, client_cpu_s=0.001)
OWN, THEIRS = (RunSteps(40e6, 0.8, 50, 1_000_000),) * 3, (RunSteps(10e6, 0.2, 50, 1_100_000),) * 3
FASTER = EndToEnd("faster", Interval(4.0, 3.9, 4.1), OWN, THEIRS)


def test_a_faster_training_is_described_by_its_steps_and_waits():
    proof = proof_of(ADDRESS, SERVED, 4.2, FASTER)
    assert (proof.verdict, proof.turns, proof.predicted_speedup) == ("faster", 3, 4.2)
    assert proof.sentence == (
        "With 4 workers at dispatcher:5000, the training is faster: 4.0x (3.9x to 4.1x); a step takes 10 ms instead of 40 ms, "
        "and waits for input 20 % of the time instead of 80 %. 4.2x was predicted from the rate at which the workers deliver."
    )
    assert (proof.before.step_ns, proof.after.step_ns, proof.after.wait_share) == (40e6, 10e6, 0.2)


@pytest.mark.parametrize(
    ("whole", "verdict", "words"),
    [
        (EndToEnd("slower", Interval(0.5, 0.4, 0.6), OWN, THEIRS), "slower", "the training is slower: 0.50x"),
        (EndToEnd("same", Interval(1.0, 0.99, 1.01), OWN, THEIRS), "same", "neither faster nor slower"),
        (EndToEnd("same", Interval(1.3, 0.9, 1.9), OWN, THEIRS), "undecided", "it is undecided whether"),
        (EndToEnd("broken", note="With the changes: train.py failed: no such op."), "broken", "fails: train.py failed: no such"),
        (EndToEnd("refused", note="The script ended before its steps could be timed."), "not measured", "the script ended"),
        (EndToEnd("refused", Interval(1.3, 0.9, 1.9), OWN, THEIRS, "Late.", is_out_of_time=True), "undecided", "faster. Late."),
        (None, "not measured", "see the notes"),
    ],
)  # fmt: skip
def test_every_verdict_has_its_sentence(whole, verdict, words):
    proof = proof_of(ADDRESS, SERVED, None, whole)
    assert proof.verdict == verdict and words in proof.sentence


def test_workers_that_ended_are_named_once():
    served = ServedMeasurement(ServiceMeasurement(), workers=4, lost=("b:1",))
    proof = proof_of(ADDRESS, served, None, FASTER, lost=("b:1", "c:1"))
    assert proof.lost_workers == ("b:1", "c:1")
    assert "2 workers ended meanwhile or can no longer be reached (b:1, c:1)" in proof.sentence
