"""The API for rule files: the `Rule` base class, the data model, and the available predictions.

In: an `Analysis`. Out: `Finding`s (advice) and `Note`s (why a tempting fix is not proposed).

A rule is a frozen dataclass. Its fields are its thresholds, set in `[tool.advisor.rules.<id>]`; its docstring is its
page. `docs/writing-rules.md` describes how to write one.
"""

from __future__ import annotations

from collections.abc import Iterator as Iter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from advisor.host.calibration.analysis import EXPLAINED_SHARE
from advisor.model import catalog
from advisor.model.call_names import label, line_in, place
from advisor.model.calls import INFINITE_CARDINALITY, Call, FunctionFacts, Site
from advisor.model.edits import (
    BuildOnce,
    Code,
    Edit,
    InsertAfter,
    MoveAfter,
    Remove,
    SetArgument,
    SetFunction,
    SetOption,
    SplitFlatMap,
    SplitMap,
    Vectorize,
    WrapData,
)
from advisor.model.finding import Evidence, Finding, Fix, Prediction, Rejected, Safety
from advisor.model.pipeline import Analysis, Iterator, OpCost, Pipeline, StepStats, Verdict
from advisor.model.profile_statistics import DeviceFacts, KernelRow, OpRow
from advisor.model.recording import Consumer, Host, ProductTimes
from advisor.model.window_readings import Usage
from advisor.predict import (
    HIGH_WAITING,
    BreakEven,
    BuiltOnce,
    CachePlace,
    CoresNeeded,
    CoreUse,
    Hoist,
    Obstacle,
    OpWork,
    ProductWork,
    Remade,
    Split,
    are_in_one_statement,
    asynchronous,
    batch_after,
    batch_edit,
    batch_parser,
    best_place,
    built_once,
    cache_assumptions,
    cache_bytes,
    cache_edits,
    cache_obstacles,
    cache_places,
    cache_safety,
    compile_edit,
    consumed_call,
    copies_of,
    core_use,
    cores_needed,
    costliest_line,
    decorated_edit,
    downstream_calls,
    edits_to_batch_first,
    element_bytes,
    elements_per_epoch,
    file_count,
    find_break_even,
    flat_map_split,
    forbidding_options,
    function_edit,
    graph_step_edit,
    has_consumer_elsewhere,
    hoist,
    input_share,
    is_cached_downstream,
    is_editable,
    is_fed,
    is_prefetched_by_tensorflow,
    is_read_again,
    is_repeated_downstream,
    is_retraced_alike,
    is_rewrite_forbidden,
    is_sequential_stateless_map,
    is_short,
    iterators_inside,
    iterators_of_call,
    larger_place,
    last_batch,
    last_editable_call,
    linear_chain,
    machine_costs,
    measured_ns,
    mixed_function,
    movable_shuffles,
    moves_after_batch,
    nested_calls,
    newly_saved_work,
    only_compile,
    op_share,
    op_work,
    overlap_factors,
    padding_obstacle,
    parallel_calls,
    parallel_fix,
    parallel_safety,
    policy_edit,
    predict_batched,
    predict_parallel,
    predict_part_parallel,
    predict_speedup,
    predict_without_start,
    product_work,
    python_share,
    ragged_text,
    read_from_disk,
    record_parser,
    remade,
    rows_of_lengths,
    saved_work,
    serial_maps,
    share_of_wait,
    smallest_place,
    split_of,
    step_fix,
    step_site,
    steps_per_epoch,
    steps_seen,
    takes_link,
    top_iterator,
    upstream_calls,
    vectorized_bytes,
    vectorizing_fix,
    vectorizing_obstacle,
    wait_share_of,
    with_parallel_end,
    without_autotune,
)

AUTOTUNE = Code("tf.data.AUTOTUNE")


@dataclass(frozen=True, slots=True)
class Note:
    """A remark in the report that is not advice."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Base class of all rules: frozen dataclasses with a CamelCase name. The id is the file name with dashes."""

    needs_input_bound: ClassVar[bool] = True
    """If True, the engine evaluates the rule only when the verdict is input-bound. Device-side rules set this to False."""

    is_fallback: ClassVar[bool] = False
    """If True, the engine evaluates the rule last, and only if input is the bottleneck and no other rule has a finding that is
    reported."""

    is_hint: ClassVar[bool] = False
    """If True, its findings are hints: they concern the training step, and nothing predicts or proves their gain until `advisor
    fix --allow numerics` measures it. Reports list them in one line each, below all findings."""

    is_tried_if_uncertain: ClassVar[bool] = False
    """If True, a change that most likely gains nothing, but may, is tried where nothing else can be. Only for rules whose
    predictions span what is known to happen, not what a bound merely allows."""

    min_speedup: float = 1.05
    """Findings with a smaller predicted speedup (step time before / after) are dropped: two runs of the same script
    differ by as much, so it could not be proved."""

    @property
    def id(self) -> str:
        """`serial-map` for the rule in `serial_map.py`."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield the problems found by the rule; yield nothing for a healthy pipeline."""
        raise NotImplementedError

    def rejected(
        self, change: str, reason: str, *, call: Call | None = None, evidence: Sequence[Evidence] = ()
    ) -> Rejected:
        """Create a `Rejected` of this rule: a change that was close and is not proposed.

        Args:
            change: The change, as the title of a finding.
            reason: The measurement that speaks against it, as a clause with figures.
            call: The call that it would have changed; its position in the source is used.
            evidence: The figures.
        """
        return Rejected(self.id, change, reason, tuple(evidence), call.site if call is not None else None)

    def finding(
        self,
        title: str,
        because: str,
        *,
        call: Call | None = None,
        iterator: Iterator | None = None,
        site: Site | None = None,
        prediction: Prediction | None = None,
        memory_bytes: int | None = 0,
        fix: Fix | None = None,
        evidence: Sequence[Evidence] = (),
        code: str = "",
        trade: str = "",
        otherwise: Finding | None = None,
    ) -> Finding:
        """Create a `Finding` of this rule.

        Args:
            title: What to do, in the imperative.
            because: What was measured, with figures.
            call: The call that the finding refers to; its position in the source is used.
            iterator: The executed iterator that causes the problem.
            site: The position in the source, if there is no `call`.
            prediction: The predicted speedup of the step; ranks the finding.
            memory_bytes: Additional memory that the fix takes; None if unknown.
            fix: The edits; None for advice only.
            evidence: The measurements that support the finding.
            code: Code to start from, for advice only; of a hint, what to write, in one line.
            trade: What a change that gains about as much would cost, as a sentence; the proof shows it with its result.
            otherwise: What to report instead if `fix` cannot be written into the text.
        """
        return Finding(
            rule=self.id,
            title=title,
            because=because,
            site=call.site if call else site,
            iterator_id=iterator.id if iterator else None,
            call_id=call.id if call else None,
            prediction=prediction,
            memory_bytes=memory_bytes,
            fix=fix,
            evidence=tuple(evidence),
            code=code,
            trade=trade,
            otherwise=otherwise,
        )


NEAR_SHARE = EXPLAINED_SHARE.value
"""Share of the wait, 0 to 1, from which a rule says why it proposes nothing for an iterator. A smaller share needs no
explanation."""


__all__ = [
    "AUTOTUNE",
    "HIGH_WAITING",
    "INFINITE_CARDINALITY",
    "NEAR_SHARE",
    "Analysis",
    "BreakEven",
    "BuildOnce",
    "BuiltOnce",
    "CachePlace",
    "Call",
    "Code",
    "Consumer",
    "CoreUse",
    "CoresNeeded",
    "DeviceFacts",
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "FunctionFacts",
    "Hoist",
    "Host",
    "InsertAfter",
    "Iter",
    "Iterator",
    "KernelRow",
    "MoveAfter",
    "Note",
    "Obstacle",
    "OpCost",
    "OpRow",
    "OpWork",
    "Pipeline",
    "Prediction",
    "ProductTimes",
    "ProductWork",
    "Rejected",
    "Remade",
    "Remove",
    "Rule",
    "Safety",
    "SetArgument",
    "SetFunction",
    "SetOption",
    "Site",
    "Split",
    "SplitFlatMap",
    "SplitMap",
    "StepStats",
    "Usage",
    "Vectorize",
    "Verdict",
    "WrapData",
    "are_in_one_statement",
    "asynchronous",
    "batch_after",
    "batch_edit",
    "batch_parser",
    "best_place",
    "built_once",
    "cache_assumptions",
    "cache_bytes",
    "cache_edits",
    "cache_obstacles",
    "cache_places",
    "cache_safety",
    "catalog",
    "compile_edit",
    "consumed_call",
    "copies_of",
    "core_use",
    "cores_needed",
    "costliest_line",
    "decorated_edit",
    "downstream_calls",
    "edits_to_batch_first",
    "element_bytes",
    "elements_per_epoch",
    "file_count",
    "find_break_even",
    "flat_map_split",
    "forbidding_options",
    "function_edit",
    "graph_step_edit",
    "has_consumer_elsewhere",
    "hoist",
    "input_share",
    "is_cached_downstream",
    "is_editable",
    "is_fed",
    "is_prefetched_by_tensorflow",
    "is_read_again",
    "is_repeated_downstream",
    "is_retraced_alike",
    "is_rewrite_forbidden",
    "is_sequential_stateless_map",
    "is_short",
    "iterators_inside",
    "iterators_of_call",
    "label",
    "larger_place",
    "last_batch",
    "last_editable_call",
    "line_in",
    "linear_chain",
    "machine_costs",
    "measured_ns",
    "mixed_function",
    "movable_shuffles",
    "moves_after_batch",
    "nested_calls",
    "newly_saved_work",
    "only_compile",
    "op_share",
    "op_work",
    "overlap_factors",
    "padding_obstacle",
    "parallel_calls",
    "parallel_fix",
    "parallel_safety",
    "place",
    "policy_edit",
    "predict_batched",
    "predict_parallel",
    "predict_part_parallel",
    "predict_speedup",
    "predict_without_start",
    "product_work",
    "python_share",
    "ragged_text",
    "read_from_disk",
    "record_parser",
    "remade",
    "rows_of_lengths",
    "saved_work",
    "serial_maps",
    "share_of_wait",
    "smallest_place",
    "split_of",
    "step_fix",
    "step_site",
    "steps_per_epoch",
    "steps_seen",
    "takes_link",
    "top_iterator",
    "upstream_calls",
    "vectorized_bytes",
    "vectorizing_fix",
    "vectorizing_obstacle",
    "wait_share_of",
    "with_parallel_end",
    "without_autotune",
]
