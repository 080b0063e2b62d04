"""Predicts the speedup, the memory and the effect on the data of a change before it is tried.

In: an `Analysis` and the effect of the change on the cost of iterators.  Out: speedups (`operational`), service demands and
limits (`demand`), the best set of changes (`best_plan`), cores and the GIL (`capacity`), cache sizes (`cache_size`), safety
(`determinism`), cache places (`caching`), the best of them (`cache_choice`) and their break-even (`cache_break_even`), tf.data's
own rewrites (`rewrites`), and the composition of the training step (`training_step`) and its changes (`step_changes`). See
docs/predictions.md.
"""

from advisor.predict.batch_functions import (
    edits_to_batch_first,
    makes_full_windows,
    moves_after_batch,
    padding_obstacle,
    record_parser,
    vectorized_bytes,
    vectorizing_fix,
)
from advisor.predict.batch_parsers import batch_parser
from advisor.predict.batched_calls import predict_batched
from advisor.predict.built_once import BuiltOnce, are_in_one_statement, built_once
from advisor.predict.cache_break_even import BreakEven, find_break_even
from advisor.predict.cache_choice import best_place, cache_edits, cache_safety, larger_place, smallest_place
from advisor.predict.cache_size import cache_bytes, element_bytes, elements_per_epoch, steps_per_epoch
from advisor.predict.caching import (
    CachePlace,
    cache_places,
    downstream_calls,
    is_cached_downstream,
    is_read_again,
    is_repeated_downstream,
    movable_shuffles,
    newly_saved_work,
    saved_work,
)
from advisor.predict.capacity import CoreUse, core_use, python_share
from advisor.predict.cores_needed import CoresNeeded, cores_needed
from advisor.predict.demand import has_consumer_elsewhere
from advisor.predict.determinism import Obstacle, cache_assumptions, cache_obstacles, parallel_safety
from advisor.predict.disk_reads import read_from_disk
from advisor.predict.editable_calls import is_editable, last_editable_call, takes_link
from advisor.predict.epoch_ends import without_autotune
from advisor.predict.epoch_start import predict_without_start
from advisor.predict.flat_map_splits import flat_map_split
from advisor.predict.function_costs import costliest_line, op_share
from advisor.predict.hoisting import Hoist, hoist
from advisor.predict.machine_costs import machine_costs
from advisor.predict.mixed_functions import mixed_function
from advisor.predict.moved_functions import is_retraced_alike
from advisor.predict.operational import asynchronous, overlap_factors, predict_speedup
from advisor.predict.parallel_ends import parallel_calls, with_parallel_end
from advisor.predict.parallel_fixes import is_prefetched_by_tensorflow, parallel_fix
from advisor.predict.parallel_scaling import predict_parallel, predict_part_parallel
from advisor.predict.ragged_text import ragged_text
from advisor.predict.remade_calls import Remade, remade
from advisor.predict.rewrites import (
    forbidding_options,
    is_rewrite_forbidden,
    is_sequential_stateless_map,
    serial_maps,
    top_iterator,
)
from advisor.predict.rows_of_lengths import rows_of_lengths
from advisor.predict.splits import Split, split_of
from advisor.predict.step_changes import (
    batch_edit,
    compile_edit,
    decorated_edit,
    function_edit,
    graph_step_edit,
    only_compile,
    policy_edit,
    step_fix,
)
from advisor.predict.structure import (
    batch_after,
    consumed_call,
    copies_of,
    file_count,
    iterators_inside,
    iterators_of_call,
    linear_chain,
    nested_calls,
    share_of_wait,
    upstream_calls,
    wait_share_of,
)
from advisor.predict.timing import with_timing
from advisor.predict.training_step import (
    HIGH_WAITING,
    OpWork,
    ProductWork,
    input_share,
    is_fed,
    is_short,
    last_batch,
    measured_ns,
    op_work,
    product_work,
    rows_per_step,
    step_site,
    steps_seen,
)
from advisor.predict.vectorizing_obstacles import vectorizing_obstacle

__all__ = [
    "HIGH_WAITING",
    "BreakEven",
    "BuiltOnce",
    "CachePlace",
    "CoreUse",
    "CoresNeeded",
    "Hoist",
    "Obstacle",
    "OpWork",
    "ProductWork",
    "Remade",
    "Split",
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
    "larger_place",
    "last_batch",
    "last_editable_call",
    "linear_chain",
    "machine_costs",
    "makes_full_windows",
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
    "rows_per_step",
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
    "with_timing",
    "without_autotune",
]
