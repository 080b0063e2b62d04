"""What rules about the training step ask first: whether it gets its input, what steps these are, what its ops cost.

In: an `Analysis`.  Out: shares (0 to 1), nanoseconds, a place in the user's file, words for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.model.pipeline import Analysis
from advisor.model.recording import Site
from advisor.model.statistics import DeviceFacts, OpRow

WAITING = 0.05
"""Below this share of waiting a step is not input-bound. Source: XProf's threshold."""
_NO_WORK = frozenset({
    "", "IDLE", "Dataset", "_Arg", "_Retval", "_Send", "_Recv", "IteratorGetNext", "OptionalGetValue", "NoOp", "Identity",
})  # fmt: skip
"""Types of ops that fetch input or only hand something on."""


@dataclass(frozen=True, slots=True)
class OpWork:
    """The ops that the host ran in the steps, tf.data's left out."""

    per_step: float
    mean_ns: float
    """Self time of one op."""
    step_share: float
    """Of the step time; threads add up, so it can exceed 1."""


def input_share(analysis: Analysis) -> float | None:
    """Share of the step spent waiting for input: the verdict's; where that has too few steps, the profile's own figure, copies
    to the device left out. None: neither is known.
    """
    if analysis.verdict.input_wait_share is not None:
        return analysis.verdict.input_wait_share
    overview = analysis.statistics.overview if analysis.statistics else None
    if overview is None or not overview.breakdown.total_ns:
        return None
    return (overview.breakdown.input_ns - overview.breakdown.to_device_ns) / overview.breakdown.total_ns


def is_fed(analysis: Analysis) -> bool:
    """Whether steps hardly wait for input, as far as is known: only then a faster step is a faster training."""
    share = input_share(analysis)
    return share is None or share < WAITING


def measured_ns(facts: DeviceFacts) -> int:
    """Time of all steps of the profile; 0: it holds none."""
    return facts.num_steps * facts.step_ns


def steps_seen(facts: DeviceFacts) -> str:
    """`in 25 steps of the profile`, for people."""
    return f"in {facts.num_steps} steps of the profile" if facts.num_steps != 1 else "in the only step of the profile"


def step_site(analysis: Analysis) -> Site | None:
    """Where the steps are taken: the loop, or the call of `fit`. None: the run was not recorded."""
    main = analysis.main
    return main.consumer.site if main is not None and main.consumer is not None else None


def op_work(analysis: Analysis, is_counted: Callable[[OpRow], bool] = lambda row: True) -> OpWork | None:
    """The ops of the step on the host, those of some types only if asked. None: no steps, or no op was traced."""
    facts, statistics = analysis.device, analysis.statistics
    if facts is None or statistics is None or statistics.op_types is None or not measured_ns(facts):
        return None
    rows = [r for r in statistics.op_types if r.side == "host" and r.type not in _NO_WORK and is_counted(r)]
    runs, self_ns = sum(row.occurrences for row in rows), sum(row.self_ns for row in rows)
    if not runs:
        return None
    return OpWork(runs / facts.num_steps, self_ns / runs, self_ns / measured_ns(facts))
