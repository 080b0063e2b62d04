"""The input-pipeline analyzer: the input share of a step, and the host's time by category.

In: ops and steps of all hosts, and the measured pipelines.  Out: `InputStatistics`.

Categories and columns are those of the profiler guide and of XProf (`op_stats_to_input_pipeline_analysis.cc`). XProf rescales the
host's categories by the share of enqueuing; here every category is the measured time. Times on several threads are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from advisor.model.activity import HostActivity, HostKind
from advisor.model.pipeline import Pipeline
from advisor.model.profile_statistics import InputOpRow, InputStatistics, PipelineRow
from advisor.profile.long_names import parse_long_name
from advisor.statistics.ops import DATASET, OpSum, SideSums
from advisor.statistics.step_totals import StepTotals

ON_DEMAND, IN_ADVANCE = "reading on demand", "reading in advance"
PREPROCESSING, ENQUEUING, OTHER = "preprocessing", "enqueuing", "other"
CATEGORIES = (ON_DEMAND, IN_ADVANCE, PREPROCESSING, ENQUEUING, OTHER)

_FILE_READERS = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord"})
_ADVANCE = ("MemoryReader", "MemoryWriter", "Interleave", "Prefetch", "ParallelMap", "ParallelInterleave")
_ENQUEUE_OPS = frozenset({"InfeedEnqueue", "InfeedEnqueueTuple"})
_GENERATOR = "Generator"
MODERATE_SHARE, HIGH_SHARE = 0.05, 0.20
"""Thresholds for the share of step time spent on input. Source: XProf."""


def enqueue_ps(activity: HostActivity) -> int:
    """Return the time in the host's calls that copy to a device."""
    return int(activity.duration_ps[activity.kind == HostKind.COPY_TO_DEVICE].sum())


def analyze_input(
    host: SideSums, enqueued_ps: int, totals: StepTotals, pipelines: Sequence[Pipeline]
) -> InputStatistics | None:
    """Analyse the input of all hosts.

    Args:
        host: The sums of the host's ops.
        enqueued_ps: Time of the host's calls that copy to a device, see `enqueue_ps`.
        totals: The steps of all hosts.
        pipelines: The measured pipelines of all hosts.

    Returns:
        The figures; None without an input pipeline.
    """
    rows = _rows(host.ops)
    if not rows and not pipelines:
        return None
    time_ns = dict.fromkeys(CATEGORIES, 0)
    for row in rows:
        time_ns[row.category] += row.self_ns
    time_ns[ENQUEUING] += round(enqueued_ps / 1000)
    waited = totals.waited
    has_steps = totals.steps.total > 0
    share = waited.total / totals.steps.total if has_steps else None
    return InputStatistics(
        input_share=share,
        input_mean_ns=round(waited.mean / 1000) if has_steps else None,
        input_min_ns=waited.shortest // 1000 if has_steps else None,
        input_max_ns=waited.longest // 1000 if has_steps else None,
        level=_level(share),
        host_time_ns=time_ns,
        ops=tuple(rows),
        pipelines=tuple(_pipeline_row(pipeline) for pipeline in pipelines),
    )


def _rows(ops: Mapping[tuple[str, str], OpSum]) -> list[InputOpRow]:
    input_ops = [(name, kind, op) for (name, kind), op in ops.items() if kind == DATASET or kind in _ENQUEUE_OPS]
    whole = sum(op.own for _, _, op in input_ops)
    rows = [
        InputOpRow(
            name=name,
            count=op.occurrences,
            total_ns=round(op.total / 1000),
            total_share=op.total / whole if whole else 0.0,
            self_ns=round(op.own / 1000),
            self_share=op.own / whole if whole else 0.0,
            category=ENQUEUING if kind in _ENQUEUE_OPS else categorize(name),
        )
        for name, kind, op in input_ops
    ]
    rows.sort(key=lambda row: (-row.self_ns, row.name))
    return rows


def categorize(long_name: str) -> str:
    """Return the category of an iterator, from its type and the types downstream of it, which may run ahead."""
    parsed = parse_long_name(long_name)
    types = [node.type for node in parsed.nodes] if parsed else long_name.split("::")
    if types[-1] in _FILE_READERS:
        return IN_ADVANCE if any(kind.startswith(_ADVANCE) for kind in types[:-1]) else ON_DEMAND
    return OTHER if types[-1] == _GENERATOR else PREPROCESSING


def _pipeline_row(pipeline: Pipeline) -> PipelineRow:
    return PipelineRow(
        pipeline_id=pipeline.id,
        host=pipeline.host,
        name=pipeline.root.long_name,
        min_ns=pipeline.min_call_ns,
        mean_ns=pipeline.mean_call_ns,
        max_ns=pipeline.max_call_ns,
        calls=pipeline.root.num_calls,
        slow_calls=pipeline.slow_calls,
    )


def _level(share: float | None) -> str:
    if share is None or not np.isfinite(share):
        return "unknown"
    return "high" if share >= HIGH_SHARE else "moderate" if share >= MODERATE_SHARE else "none"
