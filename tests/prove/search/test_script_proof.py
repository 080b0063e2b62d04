"""What the whole script is measured with, and which changes are kept then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor.model.edits import MoveAfter, SetArgument
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.outcome import Interval
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.script_proof import prove_on_script
from advisor.prove.trial.trial_result import FASTER, REFUSED, SAME, Trial

WEAK = Finding(
    "serial-map",
    "Parallelise the map",
    "Because.",
    fix=Fix((SetArgument("d1", "num_parallel_calls", 4),), Safety.EXACT, is_auto=True),
)
LATE = Finding(
    "late-shuffle",
    "Shuffle first",
    "Because.",
    fix=Fix((MoveAfter("d1", "d2"),), Safety.RERANDOMIZED, is_auto=True),
)
"""A change that only the whole script can prove, ..."""
SHUFFLED = Trial(SAME, Interval(1.0, 0.98, 1.02), safety_seen=Safety.RERANDOMIZED)
"""... as the pipeline alone shows."""


class Script:
    """Stands in for `WholeScript`: the runs with a rule of `verdicts` have its verdict, all others are faster."""

    def __init__(self, **verdicts: str) -> None:
        self.method_of = {"d1": "map", "d2": "shuffle"}
        self.notes: list[str] = []
        self.measured: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self._verdicts = {rule.replace("_", "-"): verdict for rule, verdict in verdicts.items()}

    def measure(self, base: Sequence[Finding], candidate: Sequence[Finding], title: str) -> EndToEnd:
        rules = tuple(finding.rule for finding in candidate)
        self.measured.append((tuple(finding.rule for finding in base), rules))
        verdict = next((self._verdicts[rule] for rule in rules if rule in self._verdicts), FASTER)
        return EndToEnd(verdict, None if verdict == REFUSED else Interval(1.5, 1.4, 1.6))


ALL_LATER = [(("serial-map",), ("serial-map", "late-shuffle")), ((), ("serial-map", "late-shuffle"))]


@pytest.mark.parametrize(
    ("gain", "asked", "verdict", "measured", "kept"),
    [
        (1.07, "", FASTER, [((), ("late-shuffle",))], ["late-shuffle"]),
        (1.07, "", SAME, [((), ("late-shuffle",)), ((), ("serial-map",))], ["serial-map"]),
        (1.07, "", REFUSED, [((), ("late-shuffle",)), ((), ("serial-map",))], ["serial-map"]),
        (1.2, "", FASTER, ALL_LATER, ["serial-map", "late-shuffle"]),
        (1.07, "serial-map", FASTER, ALL_LATER, ["serial-map", "late-shuffle"]),
    ],
)
def test_a_change_that_gains_little_is_left_out_if_the_script_proves_another(
    gain: float,
    asked: str,
    verdict: str,
    measured: list[tuple[tuple[str, ...], tuple[str, ...]]],
    kept: list[str],
) -> None:
    alone, none = Trial(FASTER, Interval(gain, gain, gain)), SHUFFLED
    attempts = Attempt(WEAK, alone, is_kept=True), Attempt(LATE, none, is_kept=False)
    script = Script(late_shuffle=verdict)
    loop, whole = prove_on_script(LoopResult(attempts, (WEAK,), alone), script, lambda finding: finding.rule == asked)
    assert script.measured == measured
    assert [finding.rule for finding in loop.kept] == kept
    assert [attempt.finding.rule for attempt in loop.attempts if attempt.is_kept] == kept
    assert ("Left out" in loop.attempts[0].trial.note) is ("serial-map" not in kept)
    assert loop.attempts[0].trial.speedup == alone.speedup
    assert whole is not None and whole.verdict == FASTER


def test_a_weak_change_alone_is_measured_as_any_other() -> None:
    alone = Trial(FASTER, Interval(1.07, 1.06, 1.08))
    script = Script()
    loop, whole = prove_on_script(LoopResult((Attempt(WEAK, alone, is_kept=True),), (WEAK,), alone), script)
    assert script.measured == [((), ("serial-map",))] and loop.kept == (WEAK,) and whole is not None


def test_changes_of_unknown_gain_are_not_weak() -> None:
    """They were kept by a trial of all together, say."""
    unknown = Trial(FASTER)
    attempts = Attempt(WEAK, unknown, is_kept=True), Attempt(LATE, SHUFFLED, is_kept=False)
    script = Script()
    loop, _ = prove_on_script(LoopResult(attempts, (WEAK,)), script)
    assert script.measured == ALL_LATER and loop.kept == (WEAK, LATE)
