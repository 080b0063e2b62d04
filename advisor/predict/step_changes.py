"""Changes of the training step that can be written into the script, where what was recorded leaves no doubt.

In: an `Analysis`.  Out: `StepEdit`s, and the fix with them. The list of what is allowed is short: one call of `compile` in the
script's own code, or a policy that nothing sets yet. Whatever the text adds to that (arguments hidden in `**`, a second
definition of a function), `advisor.rewrite.step_edits` refuses.
"""

from __future__ import annotations

from pathlib import PurePath

from advisor.model.calls import Call
from advisor.model.edits import (
    DecorateFunction,
    SetBatchSize,
    SetCompileArgument,
    SetFunctionArgument,
    SetPolicy,
    StepEdit,
    Value,
)
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.model.recording import CompileCall
from advisor.model.shared_text import siblings_of
from advisor.predict.training_step import step_site


def step_fix(*edits: StepEdit | None) -> Fix | None:
    """The fix with these changes; None if one of them cannot be made. `advisor fix` tries it with `--allow numerics` only."""
    known = tuple(edit for edit in edits if edit is not None)
    return Fix((), Safety.NUMERICS, is_auto=False, step_edits=known) if known and len(known) == len(edits) else None


def only_compile(analysis: Analysis) -> CompileCall | None:
    """The one call of `compile` in the script's own code; None if there are others, or if a library makes it."""
    recording = analysis.recording
    calls = recording.compiles if recording is not None else ()
    if len(calls) != 1 or calls[0].site is None or calls[0].library is not None:
        return None
    return calls[0]


def compile_edit(analysis: Analysis, name: str, value: Value, is_given: bool = False) -> SetCompileArgument | None:
    """The change of an argument of `compile`.

    Args:
        analysis: The analysis.
        name: Name of the parameter.
        value: Its new value.
        is_given: Whether the call must pass the argument now; otherwise it must not.
    """
    call = only_compile(analysis)
    if call is None or call.site is None or (name in call.explicit) != is_given:
        return None
    return SetCompileArgument(call.site, call.text, name, value)


def policy_edit(analysis: Analysis, policy: str) -> SetPolicy | None:
    """The call that sets Keras' policy in the script; None for a module, whose file is unknown.

    Args:
        analysis: The run.
        policy: Name of a Keras dtype policy, such as `mixed_float16`.
    """
    script = main_script(analysis)
    return None if script is None else SetPolicy(script, policy)


def function_edit(analysis: Analysis, name: str, value: bool) -> SetFunctionArgument | None:
    """The change of an argument of the `tf.function` that was traced or compiled most often, in the file of the training loop.

    Args:
        analysis: The run.
        name: Parameter of `tf.function`, such as `reduce_retracing`.
        value: Its new value.

    Returns:
        The edit; None if the file of the loop or the name of the function is unknown.
    """
    site, facts = step_site(analysis), analysis.device
    if site is None or facts is None or not facts.compiled_names or not facts.compiled_names[0].isidentifier():
        return None
    return SetFunctionArgument(site.file, facts.compiled_names[0], name, value)


def graph_step_edit(analysis: Analysis, name: str, value: bool) -> tuple[SetFunctionArgument | None, str]:
    """The change of an argument of the `tf.function` that was seen to run the training step.

    Args:
        analysis: The analysis.
        name: Name of the parameter.
        value: Its new value.

    Returns:
        The change; or None and the reason, as a sentence. The reason is empty if the script is unknown.
    """
    consumer = analysis.main.consumer if analysis.main is not None else None
    if consumer is None or analysis.recording is None:
        return None, ""
    steps = consumer.graph_steps
    if not steps:
        return None, "No tf.function of the script was seen to take a gradient of a batch that it is passed."
    if len(steps) > 1:
        functions = " and ".join(f"{step.function} (line {step.line})" for step in steps)
        return None, f"It is unclear which function is the step: {functions} take gradients."
    (step,) = steps
    for call in analysis.calls:
        site = call.function.site if call.function is not None else None
        if site is not None and (site.file, site.line) == (step.file, step.line):
            return None, f"{step.function} is also the function of {call.method}, so the data would be compiled too."
    return SetFunctionArgument(step.file, step.function, name, value, step.line), ""


def decorated_edit(analysis: Analysis) -> DecorateFunction | None:
    """The decorator `@tf.function` for the function that runs the training step eagerly, if the recorder has seen it."""
    main = analysis.main
    step = main.consumer.eager_step if main is not None and main.consumer is not None else None
    return None if step is None else DecorateFunction(step.file, step.function, step.line)


def batch_edit(analysis: Analysis, call: Call | None, size: int) -> SetBatchSize | None:
    """The change of a batch size; None if other datasets are made by the same text, or a library makes the call.

    Args:
        analysis: The run.
        call: The `batch`; None if it is unknown.
        size: The new number of elements per batch.
    """
    if call is None or call.site is None or call.library is not None or call.made_by is not None:
        return None
    is_shared = bool(siblings_of(call, {other.id: other for other in analysis.calls}))
    return None if is_shared or call.method != "batch" else SetBatchSize(call.site, call.text, size)


def main_script(analysis: Analysis) -> str | None:
    """The script's file; None if it was run as a module or not recorded."""
    recording = analysis.recording
    if recording is None or not recording.argv or not recording.argv[0].endswith(".py"):
        return None
    return str(PurePath(recording.cwd) / recording.argv[0])
