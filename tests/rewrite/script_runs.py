"""Runs of real scripts whose calls are recorded, again with another text, and replayed."""

from __future__ import annotations

import linecache
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.patch import Patch, patch_for
from tests.recorded import Recorded


def run(script: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run a script as `python script` does; its datasets."""
    before = set(sys.modules)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(script.parent))
        patched.setattr(sys, "dont_write_bytecode", True)
        names = runpy.run_path(str(script), run_name="__main__")
    for name in set(sys.modules) - before:
        if str(script.parent) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    return list(names["datasets"]) if "datasets" in names else [names["ds"]]


def recorded_again(recorded: Recorded, script: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], CallGraph]:
    """Another run of a script: its datasets and its calls, which are recorded beside those of the first."""
    recorder = recorded.recorder
    before, kept = dict(recorder._calls), recorder.replay_log
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    linecache.clearcache()  # AutoGraph reads lambdas as they are written
    try:
        datasets = run(script, monkeypatch)
        return datasets, recorded_graph(recorder, call_id_of(datasets[0]))
    finally:
        recorder.is_open, recorder.replay_log = False, kept
        recorder._calls.clear()
        recorder._calls.update(before)


def replayed(recorded: Recorded, dataset: Any, edits: Sequence[Edit], calls: dict[str, Call]) -> Any:
    """The recorded dataset with those of the edits that concern it."""
    inner = recorded.recorder.replay_log.inner
    upstream: set[str] = set()
    todo = [call_id_of(dataset)]
    while todo:
        current = todo.pop()
        if current is None or current in upstream:
            continue
        upstream.add(current)
        call = calls.get(current)
        todo += [*(call.inputs if call is not None else ()), *(call_id for call_id, _ in inner.get(current, ()))]
    return recorded.replay(dataset, *[edit for edit in edits if edit.call_id in upstream])


def assert_written_as_proved(
    recorded: Recorded,
    script: Path,
    dataset: Any,
    edits: Sequence[Edit],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Assert that edits keep the elements, that they write `text`, and that this makes the dataset that was compared.

    Args:
        recorded: The recording of the script, which ran.
        script: The script, which is overwritten.
        dataset: Its dataset.
        edits: Edits of exact fixes.
        text: The whole script after the edits.
        monkeypatch: For the second run.
    """
    calls = {call.id: call for call in recorded.recorder.calls()}
    recorded.recorder.is_open = False
    id_ = str(call_id_of(dataset))
    judgement = Equivalence(recorded.recorder, id_, Bounds(400, 10.0), script.parent).judge(edits)
    assert (str(judgement.seen), judgement.undecided) == ("exact", "")
    again = replayed(recorded, dataset, edits, calls)
    assert again.element_spec == dataset.element_spec
    expected = elements(again)
    patch = patch_for(edits, calls, script.parent)
    assert isinstance(patch, Patch), patch
    old, new = patch.files[script.resolve()]
    assert new.decode() == text
    proved = edited_graph(recorded_graph(recorded.recorder, id_, edits=edits), edits)
    script.write_bytes(new)
    (patched,), graph = recorded_again(recorded, script, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(old, new)) is None
    assert elements(patched) == expected


def elements(dataset: Any) -> list[Any]:
    import numpy as np
    import tensorflow as tf

    return [[np.asarray(leaf).tolist() for leaf in tf.nest.flatten(element)] for element in dataset]
