"""Describes the calls of the held script as a `CallGraph`, to check that the patched text makes the calls that were proved.

In: the recorder with its replay log.  Out: `CallGraph`; its ids are those of the first run if they are known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from advisor.capture.instrument.dataset_ids import is_dataset
from advisor.capture.instrument.graph_identity import spec_identity, traced_identity
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.call_graph import CallGraph, CallIdentity
from advisor.model.calls import Call
from advisor.model.edits import Edit, MoveAfter, SetFunction, SplitFlatMap, SplitFunction, SplitMap, Vectorize
from advisor.prove.trial.sibling_datasets import sibling_datasets
from advisor.replay.edited import first_id, rest_id
from advisor.replay.replay import CannotReplay, Replay
from advisor.rewrite.shared_calls import spread


def recorded_graph(
    recorder: Recorder,
    consumer: str,
    consumption: int = 0,
    first_ids: Mapping[str, str] | None = None,
    edits: tuple[Edit, ...] = (),
    count: int | None = None,
) -> CallGraph:
    """Return the calls of a run.

    Args:
        recorder: A recorder with a replay log.
        consumer: This run's id of the call whose dataset is consumed.
        consumption: Number of the consumption at which the script is held, from 1.
        first_ids: This run's ids -> those of the first run; None or empty if they are the same.
        edits: The kept edits, for the functions that they wrap.
        count: Number of calls to return, the first ones; None: all so far.
    """
    assert recorder.replay_log is not None
    known = recorder.calls()[:count]
    made = {call.id for call in known}
    # The calls that a public method makes internally follow from its arguments.
    calls = sorted((call for call in known if call.made_by not in made), key=_number)
    names = {call.id: call.id for call in calls}
    if first_ids:
        names = {call.id: first_ids.get(call.id, f"again_{call.id}") for call in calls}
    identities = [_identity(recorder, call, names) for call in calls]
    names |= {half(call_id): half(known_as) for call_id, known_as in names.items() for half in (rest_id, first_id)}
    wrapped = {names[id_]: graphs for id_, graphs in _wrapped(recorder, consumer, edits).items() if id_ in names}
    return CallGraph(tuple(identities), names.get(consumer, consumer), consumption, wrapped)


def _wrapped(recorder: Recorder, consumer: str, edits: tuple[Edit, ...]) -> dict[str, tuple[str, str]]:
    """What `CallGraph.wrapped` holds, by this run's ids; empty where the datasets cannot be made again with the edits."""
    calls = {call.id: call for call in recorder.calls()}

    def is_wrapping(edit: Edit) -> bool:
        return isinstance(edit, Vectorize | SetFunction | SplitFunction) or (
            isinstance(edit, MoveAfter) and _moves_out(edit, calls)
        )

    if not any(map(is_wrapping, edits)):
        return {}
    edits = spread(edits, calls)
    wanted = {edit.call_id for edit in edits if is_wrapping(edit)}
    wanted |= {rest_id(edit.call_id) for edit in edits if isinstance(edit, SplitMap)}
    wanted |= {first_id(edit.call_id) for edit in edits if isinstance(edit, SplitFlatMap)}
    graphs: dict[str, tuple[str, str]] = {}
    others = sibling_datasets(recorder, consumer, edits)
    for call_id, its_edits in ((consumer, edits), *((other.call_id, other.edits) for other in others)):
        with contextlib.suppress(CannotReplay):
            work = Replay(recorder, its_edits)
            work.dataset(call_id)
            for built in work.built:
                if built.id in wanted and built.input is not None:
                    graphs[built.id] = traced_identity(built.dataset), spec_identity([built.input])
    return graphs


def _moves_out(edit: MoveAfter, calls: Mapping[str, Call]) -> bool:
    """Whether a call leaves a function, which changes the name of a function that is written in its arguments."""
    call, after = calls.get(edit.call_id), calls.get(edit.after_id)
    return call is not None and after is not None and call.nested_in != after.nested_in


def _number(call: Call) -> int:
    """Sort key for the order in which calls began: they are stored as they end, an outer call after those of its function."""
    digits = call.id.rpartition("_")[2]
    return int(digits) if digits.isdecimal() else 0


def _identity(recorder: Recorder, call: Call, names: Mapping[str, str]) -> CallIdentity:
    logged = recorder.replay_log.calls.get(call.id) if recorder.replay_log is not None else None
    arguments, given = (
        ({}, ()) if recorder.replay_log is None else recorder.replay_log.identities.get(call.id, ({}, ()))
    )
    options = {name: repr(value) for name, value in call.options.items()}
    if call.method == "with_options":
        arguments, given = {}, ()
    traced = input_spec = ""
    with contextlib.suppress(Exception):  # uses private parts of TensorFlow; without them less is compared
        if logged is not None:
            traced, input_spec = traced_identity(logged.dataset), _input_spec(logged)
    return CallIdentity(
        id=names[call.id],
        method=call.method,
        inputs=tuple(names.get(call_id, call_id) for call_id in call.inputs),
        arguments=arguments,
        given=given,
        options=options,
        traced=traced,
        input_spec=input_spec,
        outer=None if call.nested_in is None else names.get(call.nested_in, call.nested_in),
        line=call.site.line if call.site is not None else None,
    )


def _input_spec(logged: LoggedCall) -> str:
    values = [*logged.args, *logged.kwargs.values()]
    return spec_identity(value for value in values if is_dataset(value) and value is not logged.dataset)
