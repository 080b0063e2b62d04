"""Which `tf.function` is the training step, according to what was recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advisor.rules.no_xla import NoXla

from advisor.model.calls import CodeLine, FunctionFacts, Site
from advisor.model.edits import SetFunctionArgument
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.model.recording import Consumer, Recording, ScriptExit
from advisor.predict import graph_step_edit
from advisor.testing import batch, gpu, map_, pipeline, prefetch, source

STEP = CodeLine("train.py", 12, "train_step")
OTHER = CodeLine("train.py", 30, "train_critic")


def analysis_of(*steps: CodeLine) -> Analysis:
    stages = (source(), map_("load", ms=0.01), batch(64), prefetch())
    device = gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4)
    analysis = pipeline(*stages, consumer_ms=10, device=device).analysis
    assert analysis.main is not None and analysis.host is not None
    consumer = Consumer("c1", None, "for", Site("train.py", 40, 1, 40, 9), graph_steps=steps)
    recording = Recording("train.py", analysis.host, ScriptExit("stopped"), calls=analysis.calls)
    return replace(analysis, pipelines=(replace(analysis.main, consumer=consumer),), recording=recording)


def test_the_only_function_that_takes_a_gradient_is_the_step() -> None:
    edit, why = graph_step_edit(analysis_of(STEP), "jit_compile", True)
    assert (edit, why) == (SetFunctionArgument("train.py", "train_step", "jit_compile", True, 12), "")


def test_two_of_them_are_unclear() -> None:
    edit, why = graph_step_edit(analysis_of(STEP, OTHER), "jit_compile", True)
    assert edit is None
    assert why == (
        "It is unclear which function is the step: train_step (line 12) and train_critic (line 30) take gradients."
    )


def test_none_was_seen() -> None:
    edit, why = graph_step_edit(analysis_of(), "jit_compile", True)
    assert edit is None and why.startswith("No tf.function of the script was seen")


def test_a_function_of_the_dataset_is_no_step_to_change() -> None:
    analysis = analysis_of(STEP)
    (mapped,) = (call for call in analysis.calls if call.method == "map")
    facts = replace(mapped.function or FunctionFacts(), site=Site("train.py", 12, 1, 20, 1))
    calls = tuple(replace(call, function=facts) if call is mapped else call for call in analysis.calls)
    edit, why = graph_step_edit(replace(analysis, calls=calls), "jit_compile", True)
    assert edit is None
    assert why == "train_step is also the function of map, so the data would be compiled too."


@pytest.mark.parametrize(("steps", "has_fix"), [((STEP,), True), ((STEP, OTHER), False), ((), False)])
def test_no_xla_changes_the_step_of_a_loop_only_where_it_is_clear(steps: tuple[CodeLine, ...], has_fix: bool) -> None:
    (finding,) = NoXla().check(analysis_of(*steps))
    assert (finding.fix is not None) is has_fix
    if finding.fix is not None:
        assert finding.fix.safety is Safety.NUMERICS and not finding.fix.is_auto
        assert finding.because.endswith("Nothing was compiled by XLA.")
    else:
        assert finding.because.endswith(("take gradients.", "that it is passed."))
