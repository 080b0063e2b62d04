"""When the first half of a random function may be cached, and what the finding says if it may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.engine.rule_loader import load_rules
from advisor.engine.run import run_rules
from advisor.model.calls import Call, FunctionLine, Site
from advisor.model.edits import InsertAfter, MoveAfter, Remove, SplitMap
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.model.state import CapturedResource
from advisor.predict import split_of
from advisor.testing import batch, cache, map_, pipeline, shuffle, source, take

SCRIPT = """\
def load(file):
    image = decode(file)
    image = resize(image)
    return flip(image)


ds = ds.map(load)
"""
MAP = map_(
    "load",
    ms=5,
    random=True,
    calls=8,
    op_shares={"DecodeJpeg": 0.7, "ResizeBilinear": 0.1, "RandomUniform": 0.1},
    fixed=["DecodeJpeg", "ResizeBilinear"],
)
LINES = (
    FunctionLine(2, "decode", {"DecodeJpeg": 1}, False, 8),
    FunctionLine(3, "resize", {"ResizeBilinear": 1}, False, None),
    FunctionLine(4, "flip", {"RandomUniform": 1}, True, 1_000),
)
SPEC = "TensorSpec(shape=(), dtype=tf.string, name=None)"


def analysis_of(folder: Path, *stages: Any, lines: tuple[FunctionLine, ...] = LINES, **function: Any) -> Analysis:
    """A pipeline with `MAP`, whose function is that of `SCRIPT`."""
    path = folder / "train.py"
    path.write_text(SCRIPT)
    analysis = pipeline(*(stages or (source(spec=SPEC), shuffle(), MAP, batch(32))), consumer_ms=5, epochs=3).analysis
    file = str(path)

    def placed(call: Call) -> Call:
        if call.function is None:
            return call
        facts = replace(
            call.function, site=Site(file, 1, 1, 4, 1), lines=lines, random_site=Site(file, 4, 1, 4, 1), **function
        )
        return replace(call, site=Site(file, 7, 9, 7, 18), text=".map(load)", function=facts)

    def in_calls(calls: tuple[Call, ...]) -> tuple[Call, ...]:
        return tuple(placed(call) for call in calls)

    main = analysis.main
    assert main is not None
    moved = {id(main): replace(main, iterators=tuple(replace(it, calls=in_calls(it.calls)) for it in main.iterators))}
    return replace(
        analysis,
        calls=in_calls(analysis.calls),
        pipelines=tuple(moved.get(id(other), other) for other in analysis.pipelines),
    )


def split(analysis: Analysis, max_bytes: float = 1e9):
    assert analysis.main is not None
    call = next(call for call in analysis.calls if call.method == "map")
    return split_of(analysis, analysis.main, call, max_bytes)


def test_the_shuffle_moves_and_the_cache_comes_first(tmp_path):
    candidate = split(analysis_of(tmp_path))
    assert candidate.fix is not None, candidate.reason
    edit, move, cache = candidate.fix.edits
    assert isinstance(edit, SplitMap) and isinstance(move, MoveAfter) and isinstance(cache, InsertAfter)
    assert move.after_id == cache.call_id == edit.call_id
    assert edit.second.startswith("def load_random(image):")  # the file is not known to be the script
    assert (candidate.line, candidate.names, candidate.fix.safety) == (4, ("image",), Safety.EXACT)
    assert candidate.ops == {"DecodeJpeg": 1, "ResizeBilinear": 1}
    assert candidate.element_bytes == 1_000
    assert candidate.bytes is not None and candidate.bytes % 1_000 == 0
    assert candidate.fix.is_auto


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("PrintV2", "its first half prints in every call"),
        ("Timestamp", "its first half reads the clock"),
        ("UnheardOf", "its first half contains the stateful op UnheardOf"),
        ("EagerPyFunc", "its first half runs Python code"),
    ],
)
def test_an_op_that_may_do_anything_counts_only_in_the_first_half(tmp_path, op, reason):
    facts = {"stateful_ops": ("RandomUniform", op), "python_ops": (op,) if "Py" in op else ()}
    for number in (0, 2):
        lines = list(LINES)
        lines[number] = replace(lines[number], ops={**lines[number].ops, op: 1})
        candidate = split(analysis_of(tmp_path, lines=tuple(lines), **facts))
        assert candidate.reason.startswith(reason) if number == 0 else candidate.fix is not None


def test_a_variable_that_the_first_half_may_read_is_an_assumption(tmp_path):
    facts = {"stateful_ops": ("RandomUniform", "ReadVariableOp"), "resources": (CapturedResource("variable", "scale"),)}
    lines = (replace(LINES[0], ops={"DecodeJpeg": 1, "ReadVariableOp": 1}), *LINES[1:])
    candidate = split(analysis_of(tmp_path, lines=lines, **facts))
    assert candidate.fix is not None and not candidate.fix.is_auto
    assert "the variable `scale` is not assigned" in candidate.fix.assumptions[0]
    lines = (*LINES[:2], replace(LINES[2], ops={"RandomUniform": 1, "ReadVariableOp": 1}))
    candidate = split(analysis_of(tmp_path, lines=lines, **facts))
    assert candidate.fix is not None and not candidate.fix.assumptions


def test_what_does_not_fit_in_memory_is_not_proposed(tmp_path):
    analysis = analysis_of(tmp_path)
    size = split(analysis).bytes
    assert size is not None
    assert split(analysis, size - 1).reason == "what the first half passes on does not fit in memory"
    assert split(analysis, size).fix is not None
    lines = (*LINES[:2], replace(LINES[2], bytes_before=None))
    candidate = split(analysis_of(tmp_path, lines=lines))
    assert candidate.fix is not None and not candidate.fix.is_auto  # its size is unknown


def test_an_order_that_a_cache_would_freeze(tmp_path):
    unordered = replace(MAP, arguments=(*MAP.arguments, ("deterministic", False)))
    candidate = split(analysis_of(tmp_path, source(spec=SPEC), unordered, batch(32)))
    assert candidate.fix is None and "no fixed order" in candidate.reason


def test_the_finding_says_where_and_why_not(tmp_path):
    rule = [loaded for loaded in load_rules((), Settings()) if loaded.id == "splittable-map"]

    def finding(analysis: Analysis):
        return run_rules(analysis, rule, Settings()).findings[0]

    advice = finding(analysis_of(tmp_path))
    assert advice.fix is not None
    assert (
        "It is cut at line 4; the first half passes on `image`, 1,000 B per element and 9.54 MiB per epoch."
        in advice.because
    )
    early = (replace(LINES[0], is_random=True), *LINES[1:])
    advice = finding(analysis_of(tmp_path, lines=early))
    assert advice.fix is None
    assert advice.because.endswith(
        "It could be cut by hand at line 2. It is not cut automatically, because nothing is computed before it. "
        "The size of the elements at that point is unknown."
    )
    (tmp_path / "train.py").unlink()
    analysis = analysis_of(tmp_path)
    (tmp_path / "train.py").unlink()
    assert (
        "It could be cut by hand at line 4. It is not cut automatically, because its file cannot be read"
        in finding(analysis).because
    )
    late = (
        FunctionLine(2, "decode", {"Cast": 1}, False),
        replace(LINES[2], line=3),
        FunctionLine(4, "x", {"DecodeJpeg": 1}, False),
    )
    assert "most of the deterministic work follows that line" in finding(analysis_of(tmp_path, lines=late)).because


def test_a_cache_before_the_map_moves_and_only_the_additional_memory_counts(tmp_path):
    candidate = split(analysis_of(tmp_path, source(spec=SPEC, bytes=400), cache(), shuffle(), MAP, batch(32)))
    assert candidate.fix is not None, candidate.reason
    edit, move, added, removed = candidate.fix.edits
    assert isinstance(edit, SplitMap) and isinstance(move, MoveAfter) and isinstance(added, InsertAfter)
    assert candidate.replaced is not None and removed == Remove(candidate.replaced.id)
    assert candidate.bytes is not None and candidate.added_bytes == candidate.bytes * 600 // 1_000


def test_a_pass_that_ends_early_is_named_with_the_line_of_the_cut(tmp_path):
    rule = [loaded for loaded in load_rules((), Settings()) if loaded.id == "splittable-map"]
    report = run_rules(analysis_of(tmp_path, source(spec=SPEC), MAP, take(50), batch(32)), rule, Settings())
    assert not report.findings
    (rejected,) = report.rejected
    assert "because take at train.py:" in rejected.reason and "could be cut by hand at line 4" in rejected.reason
    assert split(analysis_of(tmp_path, source(spec=SPEC), take(5_000), MAP, batch(32))).fix is not None
