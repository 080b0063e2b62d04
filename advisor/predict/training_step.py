"""Facts about the training step for rules: its input wait, its location, the cost of its ops.

In: an `Analysis`.  Out: shares (0 to 1), nanoseconds, a location in the user's file, text for reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.host.calibration.prediction import OVERLAP_RATIO
from advisor.model.calls import Call, Site
from advisor.model.pipeline import Analysis
from advisor.model.profile_statistics import DeviceFacts, OpRow
from advisor.model.wait_shares import HIGH_WAIT_SHARE, MODERATE_WAIT_SHARE
from advisor.predict.structure import consumed_call, upstream_calls

HIGH_WAITING = HIGH_WAIT_SHARE
"""The threshold by the name that rules know."""
PRODUCTS = ("MatMul", "Conv2D", "Conv3D", "Einsum")
"""Substrings of the names of host ops that multiply matrices: `_FusedMatMul`, `BatchMatMulV2`, `Conv2DBackpropFilter`,
..."""
_NO_WORK = frozenset({
    "", "IDLE", "Dataset", "_Arg", "_Retval", "_Send", "_Recv", "IteratorGetNext", "OptionalGetValue", "NoOp", "Identity",
})  # fmt: skip
"""Types of ops that fetch input or only pass values on."""


@dataclass(frozen=True, slots=True)
class OpWork:
    """The ops that the host ran in the steps, without those of tf.data."""

    per_step: float
    mean_ns: float
    """Self time of one op."""
    step_share: float
    """Share of the step time. Ops run concurrently, so it is their share of the self time of all ops, times the traced share of
    the step."""


@dataclass(frozen=True, slots=True)
class ProductWork:
    """The matrix products and convolutions that the host ran in the steps."""

    per_step: float
    mean_ns: float
    """Self time of one product."""
    step_ns: float
    """Time of a step in which at least one of them ran."""
    is_overlapping: bool
    """Whether several of them ran at once: together they took longer than `step_ns`."""

    def share(self, facts: DeviceFacts) -> float:
        """Return `step_ns` as a share of the step time."""
        return self.step_ns / facts.step_ns if facts.step_ns else 0.0


def product_work(analysis: Analysis) -> ProductWork | None:
    """Return the products of a step on the host; None if there are none or if that is unknown.

    Their share of all ops' self time is too large a share of a step in which much happens that is no op, and their sum is too
    large if they ran at once. The smaller of the two is used.
    """
    facts, work = analysis.device, op_work(analysis, is_product)
    if facts is None or work is None:
        return None
    sum_ns, share_ns = work.per_step * work.mean_ns, work.step_share * facts.step_ns
    return ProductWork(work.per_step, work.mean_ns, min(sum_ns, share_ns), sum_ns > OVERLAP_RATIO.value * share_ns)


def is_product(row: OpRow) -> bool:
    """Whether ops of this type multiply matrices."""
    return any(part in row.type for part in PRODUCTS)


def input_share(analysis: Analysis) -> float | None:
    """Return the share of the step spent waiting for input; None if unknown.

    It is the verdict's share or, if that has too few steps, the share in the profile without copies to the device.
    """
    if analysis.verdict.input_wait_share is not None:
        return analysis.verdict.input_wait_share
    overview = analysis.statistics.overview if analysis.statistics else None
    if overview is None or not overview.breakdown.total_ns:
        return None
    return (overview.breakdown.input_ns - overview.breakdown.to_device_ns) / overview.breakdown.total_ns


def is_fed(analysis: Analysis, line: float = MODERATE_WAIT_SHARE) -> bool:
    """Return whether the input wait is below a threshold or unknown; only then does a faster step accelerate the training.

    Use HIGH_WAITING for eager loops: fetching a batch in Python takes a few tenths of a millisecond, 8 % of an eager step of 3
    ms, regardless of the pipeline.

    Args:
        analysis: The analysis.
        line: The threshold, as a share of the step time.
    """
    share = input_share(analysis)
    return share is None or share < line


def measured_ns(facts: DeviceFacts) -> int:
    """Return the time of all steps in the profile in ns; 0 if it contains none."""
    return facts.num_steps * facts.step_ns


def steps_seen(facts: DeviceFacts) -> str:
    """Return a phrase for the report, such as `in 25 steps of the profile`."""
    return f"in {facts.num_steps} steps of the profile" if facts.num_steps != 1 else "in the only step of the profile"


def step_site(analysis: Analysis) -> Site | None:
    """Return the location of the training loop or of the call of `fit`; None if the run was not recorded."""
    main = analysis.main
    return main.consumer.site if main is not None and main.consumer is not None else None


def last_batch(analysis: Analysis) -> Call | None:
    """Return the call that sets the number of elements per step; None if unknown."""
    consumed = consumed_call(analysis, analysis.main) if analysis.main is not None else None
    calls = upstream_calls(analysis, consumed) if consumed is not None else ()
    return next((call for call in calls if call.method in ("batch", "padded_batch", "ragged_batch")), None)


def rows_per_step(analysis: Analysis) -> int | None:
    """Return the elements per measured step: the batch size times Keras' `steps_per_execution`; None if unknown."""
    call, per_call = last_batch(analysis), analysis.keras.get("steps_per_execution")
    size = call.arguments.get("batch_size") if call is not None else None
    if not isinstance(size, int):
        return None
    return size * (per_call if isinstance(per_call, int) and per_call > 0 else 1)


def is_short(row: OpRow, most_ns: float) -> bool:
    """Whether ops of this type run in graphs and usually have at most this self time.

    Args:
        row: The row of an op type.
        most_ns: The self time in ns.
    """
    usual_ns = row.median_self_ns
    if usual_ns is None:
        usual_ns = row.self_ns / row.occurrences if row.occurrences else 0.0
    return not row.is_eager and usual_ns <= most_ns


def op_work(analysis: Analysis, is_counted: Callable[[OpRow], bool] = lambda row: True) -> OpWork | None:
    """Return the cost of the host's ops per step.

    Args:
        analysis: The analysis.
        is_counted: Selects the op types to count; all by default.

    Returns:
        The cost, or None if there are no steps or no traced ops.
    """
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
