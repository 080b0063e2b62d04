"""The JSON of `advisor compare`, described by `comparison.schema.json` in this folder.

In: a `RunComparison`.  Out: the bytes. The keys are the fields of `comparison_format.RunComparison`.
"""

from __future__ import annotations

from advisor.model.pipeline import Iterator
from advisor.model.run_comparison import ComparedRun, NodeChange, RunComparison
from advisor.model.version import __version__
from advisor.report import comparison_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, read_schema, to_bytes, to_dict
from advisor.report.proof_json import paired_test, speedup


def comparison_to_bytes(comparison: RunComparison) -> bytes:
    """Return the comparison as UTF-8 JSON with a final newline."""
    document = v1.RunComparison.of(
        comparison,
        schema_version=SCHEMA_VERSION,
        advisor_version=__version__,
        before=_run(comparison.before),
        after=_run(comparison.after),
        step_time=speedup(comparison.step_speedup),
        test=paired_test(comparison.test),
        nodes=[_node(node) for node in comparison.nodes],
    )
    return to_bytes(to_dict(document))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `comparison_to_bytes`."""
    return read_schema("comparison.schema.json")


def _run(run: ComparedRun) -> v1.Run:
    figures = run.figures
    return v1.Run.of(
        run,
        run_folder=run.run_folder or None,
        step_time_ms=None if figures.step_ns is None else milliseconds(figures.step_ns),
        steps=run.num_steps,
        input_wait_share=figures.wait_share,
        elements_per_s=figures.elements_per_s,
        peak_rss_bytes=figures.peak_rss_bytes,
    )


def _node(node: NodeChange) -> v1.Node:
    iterator = node.after or node.before
    assert iterator is not None
    return v1.Node(
        method=iterator.main_call.method if iterator.main_call else None,
        long_name=iterator.long_name,
        before=_iterator(node.before, node.before_busy_ns) if node.before else None,
        after=_iterator(node.after, node.after_busy_ns) if node.after else None,
    )


def _iterator(iterator: Iterator, busy_ns: float | None) -> v1.Iterator:
    site = iterator.main_call and iterator.main_call.site
    return v1.Iterator.of(iterator, file=site and site.file, line=site and site.line, busy_ns_per_element=busy_ns)
