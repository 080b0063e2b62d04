"""What rules about the training step ask first: whether it gets its input, what steps these are, what its ops cost.

In: an `Analysis`.  Out: shares (0 to 1), nanoseconds, a place in the user's file, words for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.model.pipeline import Analysis
from advisor.model.profile_statistics import DeviceFacts, OpRow
from advisor.model.recording import Call, Site
from advisor.predict.structure import consumed_call, upstream_calls

WAITING = 0.05
"""Below this share of waiting a step is not input-bound. Source: XProf's threshold."""
HIGH_WAITING = 0.20
"""From this share of waiting on a step is highly input-bound. Source: XProf's threshold."""
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
    """Of the step time. Ops run beside one another, so it is their part of all ops' self time, times the part of the
    step in which anything was traced."""


def input_share(analysis: Analysis) -> float | None:
    """Share of the step spent waiting for input: the verdict's; where that has too few steps, the profile's own
    figure, copies to the device left out. None: neither is known.
    """
    if analysis.verdict.input_wait_share is not None:
        return analysis.verdict.input_wait_share
    overview = analysis.statistics.overview if analysis.statistics else None
    if overview is None or not overview.breakdown.total_ns:
        return None
    return (overview.breakdown.input_ns - overview.breakdown.to_device_ns) / overview.breakdown.total_ns


def is_fed(analysis: Analysis, line: float = WAITING) -> bool:
    """Whether steps wait for less than that share of their time, as far as is known: only then a faster step is a
    faster training.

    HIGH_WAITING is the line for what Python does step by step: fetching a batch from a loop in Python takes some
    tenths of a millisecond, 8 % of an eager step of 3 ms, whatever the pipeline costs.
    """
    share = input_share(analysis)
    return share is None or share < line


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


def last_batch(analysis: Analysis) -> Call | None:
    """The call that sets how many elements a step takes; None: not known."""
    consumed = consumed_call(analysis, analysis.main) if analysis.main is not None else None
    calls = upstream_calls(analysis, consumed) if consumed is not None else ()
    return next((call for call in calls if call.method in ("batch", "padded_batch", "ragged_batch")), None)


def rows_per_step(analysis: Analysis) -> int | None:
    """Elements that one measured step takes: the batch's, times the steps of one call of Keras. None: not known."""
    call, per_call = last_batch(analysis), analysis.keras.get("steps_per_execution")
    size = call.arguments.get("batch_size") if call is not None else None
    if not isinstance(size, int):
        return None
    return size * (per_call if isinstance(per_call, int) and per_call > 0 else 1)


def op_work(analysis: Analysis, is_counted: Callable[[OpRow], bool] = lambda row: True) -> OpWork | None:
    """The ops of the step on the host, those of some types only if asked. None: no steps, or no op was traced."""
    facts, statistics = analysis.device, analysis.statistics
    if facts is None or statistics is None or statistics.op_types is None or not measured_ns(facts):
        return None
    rows = [row for row in statistics.op_types if row.side == "host" and row.type not in _NO_WORK]
    counted = [row for row in rows if is_counted(row)]
    runs, self_ns, all_ns = (
        sum(row.occurrences for row in counted),
        sum(row.self_ns for row in counted),
        sum(row.self_ns for row in rows),
    )
    if not runs or not all_ns:
        return None
    return OpWork(runs / facts.num_steps, self_ns / runs, self_ns / all_ns * (1 - (facts.other_share or 0.0)))
