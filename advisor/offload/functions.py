"""Judges whether the functions of a call can run on a tf.data service worker.

In: a recorded call and its observations.  Out: an `Objection`, or None; conditions as clauses.

A worker is another process on another machine: it receives the serialised graph of the pipeline, with the contents of static
tables and the present values of variables, and nothing else. As in `advisor.predict.determinism`, everything is judged by
allow-lists, and what is on no list is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.model import op_effects, state
from advisor.model.calls import Call, FunctionFacts
from advisor.model.offload_result import (
    EFFECT,
    FILES,
    OP,
    PYTHON,
    RANDOM,
    REFUSED,
    STATE,
    UNDECIDED,
    Objection,
)
from advisor.model.recording import Recording
from advisor.model.state import CapturedResource, ObservedState
from advisor.predict.observed import Observations

FUNCTION_METHODS = frozenset({"filter", "flat_map", "interleave", "map", "scan", "take_while", "group_by_window"})
"""Methods whose elements depend on a function; without facts about it, they are undecided."""
_TRAVELS = frozenset({state.STATIC_TABLE, state.DATASET, state.VARIABLE})
"""Kinds of captured resources that are sent to the workers with the graph. Tried on TF 2.21 with separate processes."""
_STAYS = frozenset({state.MUTABLE_TABLE, state.QUEUE, state.ITERATOR, state.SUMMARY_WRITER, state.PYTHON_OBJECT})
"""Kinds that exist only in the trainer's process."""
_HARMLESS_EFFECTS = frozenset({"prints"})
"""Effects that may happen on a worker instead; they are named as conditions."""
_SEEDED = (
    "draws random numbers from a fixed seed, of which every worker would draw the same: an unseeded op, or "
    "`tf.random.stateless_*` with a seed from the element, draws its own"
)
_DRAWS_FROM_STATE = ("Rng", "Stateful", "Stateless")
"""Prefixes of random ops that keep their state in a variable: those of `tf.random.Generator` and of Keras' `SeedGenerator`, with
or without a seed. Tried on TF 2.21: two worker processes draw the same numbers, and draw them again in the next pass."""
_GENERATOR = (
    "draws random numbers from a generator{}, whose state every worker receives as it was when training began: each of them "
    "draws the same numbers, again in every pass. An unseeded op, or `tf.random.stateless_*` with a seed from the element, draws "
    "its own"
)


def objection_to(call: Call, recording: Recording | None) -> Objection | None:
    """Return why the function of a call must not run on a worker, or may not; None if nothing speaks against it."""
    objection = _objection(call, recording)
    if objection is None:
        return None
    verdict, cause, reason = objection
    return Objection(verdict, cause, call.method, reason, call.site, call.id)


def _objection(call: Call, recording: Recording | None) -> tuple[str, str, str] | None:
    function = call.function
    if function is None:
        if call.method in FUNCTION_METHODS:
            return UNDECIDED, OP, "has a function that could not be inspected"
        return None
    if function.python_ops:
        op = function.python_ops[0]
        return (
            REFUSED,
            PYTHON,
            f"runs Python code of this process ({op}), which worker processes do not have (`Could not find callback`)",
        )
    if not function.is_traced:
        return UNDECIDED, OP, "was not run, so its ops are unknown"
    if any(op.startswith(_DRAWS_FROM_STATE) for op in function.random_ops):  # its variable changes with every draw
        return REFUSED, RANDOM, _GENERATOR.format(_generator_name(function))
    changed = Observations(recording).change_of(call)
    if changed is not None:
        return REFUSED, STATE, f"{changed}; a worker keeps the state of the moment at which training began"
    if function.random_ops and function.is_seeded:
        return REFUSED, RANDOM, _SEEDED
    if function.stateful_ops is None and (function.is_stateful or function.captured):
        return UNDECIDED, STATE, "keeps state that this recording, made by an earlier version, does not describe"
    return _of_ops(function) or _of_resources(function, recording)


def _generator_name(function: FunctionFacts) -> str:
    """The name of the generator in the script, if the function reads no other variable; its variable is `NAME._state_var`."""
    names = [resource.name for resource in function.resources if resource.kind == state.VARIABLE]
    name = names[0].removesuffix("._state_var") if len(names) == 1 else ""
    return f" (`{name}`)" if name else ""


def _of_ops(function: FunctionFacts) -> tuple[str, str, str] | None:
    undecided: tuple[str, str, str] | None = None
    for op in function.stateful_ops or ():
        if op in function.random_ops or op in op_effects.SEED_OPS or op_effects.is_dataset_op(op):
            continue  # unseeded random numbers are drawn anew on every worker; datasets are judged as calls
        effect = op_effects.effect_of(op)
        if effect in _HARMLESS_EFFECTS:
            continue
        if effect is not None:
            cause = STATE if effect in op_effects.STATE_CHANGES else FILES if "file" in effect else EFFECT
            return REFUSED, cause, f"{effect} in every call ({op}), which would happen on every worker"
        if op_effects.reason_against(op) is not None and undecided is None:
            undecided = (
                UNDECIDED,
                OP,
                f"contains the stateful op {op}, which is not known to work the same on another machine",
            )
    return undecided


def _of_resources(function: FunctionFacts, recording: Recording | None) -> tuple[str, str, str] | None:
    undecided: tuple[str, str, str] | None = None
    for resource in function.resources:
        name = f" `{resource.name}`" if resource.name else ""
        if resource.kind in _STAYS:
            return REFUSED, STATE, f"reads the {resource.kind}{name}, which exists in this process only"
        if resource.kind == state.DATASET and not resource.id:
            undecided = undecided or (UNDECIDED, STATE, "captures a dataset that no recorded call made")
        elif resource.kind == state.VARIABLE and not _is_seen_constant(resource, recording):
            reason = f"reads the variable{name}, and it is unknown whether it changes while training runs"
            undecided = undecided or (UNDECIDED, STATE, f"{reason}: workers keep its value from the beginning")
        elif resource.kind not in _TRAVELS:
            undecided = undecided or (UNDECIDED, STATE, f"reads a {resource.kind}{name}, whose kind is unknown")
    return undecided


def _is_seen_constant(resource: CapturedResource, recording: Recording | None) -> bool:
    """Whether the variable was compared at the beginning of two epochs or more, and was the same."""
    seen = _state_of(resource, recording)
    return seen is not None and seen.is_compared and seen.epochs >= 2 and seen.change is None


def _state_of(resource: CapturedResource, recording: Recording | None) -> ObservedState | None:
    states = recording.state if recording is not None else None
    return next((item for item in states or () if resource.id and item.id == resource.id), None)


def conditions_of(call: Call, recording: Recording | None) -> Iterator[str]:
    """Yield what has to hold for the function of a call to do the same on workers, or what it does there, as clauses."""
    function = call.function
    if function is None:
        return
    for resource in function.resources:
        if resource.kind == state.VARIABLE and _is_seen_constant(resource, recording):
            name = f" `{resource.name}`" if resource.name else ""
            seen = _state_of(resource, recording)
            epochs = seen.epochs if seen is not None else 0
            yield (
                f"the variable{name} keeps its value while training runs, as workers read the one from the beginning "
                f"(it was the same at the beginning of {epochs} epochs)"
            )
    if any(op_effects.effect_of(op) in _HARMLESS_EFFECTS for op in function.stateful_ops or ()):
        yield f"what `{function.name or call.method}` prints appears in the logs of the workers"
