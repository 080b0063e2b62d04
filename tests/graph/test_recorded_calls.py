"""Recorded calls: cycles are refused, many are bounded, and looking them up does not go through all of them again."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.graph import analyse
from advisor.graph.recorded_calls import MAX_ANALYSED_CALLS, check_calls, limit_calls
from advisor.model.calls import Call
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Recording
from advisor.predict.structure import linear_chain, nested_calls, upstream_calls
from advisor.workflows.saved_recording import read_recording

RUN = Path(__file__).parents[1] / "data" / "keras_fit"


@pytest.fixture
def recording():
    return decode((RUN / "recording.json").read_bytes(), Recording)


def chain(count: int) -> list[Call]:
    return [Call(f"x{n}", "map", None, inputs=(f"x{n - 1}",) if n else ()) for n in range(count)]


@pytest.mark.parametrize(
    "links",
    [
        {"a": {"inputs": ("b",)}, "b": {"inputs": ("a",)}},
        {"a": {"inputs": ("a",)}},
        {"a": {"nested_in": "b"}, "b": {"made_by": "a"}},
        {"z": {"inputs": ("a",)}, "a": {"inputs": ("c",)}, "b": {"inputs": ("a",)}, "c": {"inputs": ("b",)}},
    ],
)
def test_a_cycle_is_refused(tmp_path, recording, links):
    calls = tuple(Call(name, "map", None, **given) for name, given in links.items())
    (tmp_path / "recording.json").write_bytes(encode(replace(recording, calls=(*recording.calls, *calls))))
    with pytest.raises(AdvisorError, match=r"recording\.json is damaged: call . is "):
        read_recording(tmp_path)


@pytest.mark.long
def test_real_recordings_and_long_chains_have_no_cycle(recording):
    for run in RUN.parent.glob("*/recording.json"):
        check_calls(decode(run.read_bytes(), Recording), str(run))
    check_calls(replace(recording, calls=tuple(chain(50_000))), "recording.json")
    check_calls(replace(recording, calls=tuple(reversed(chain(50_000)))), "recording.json")


@pytest.mark.long
def test_of_many_calls_those_nearest_to_the_consumer_are_kept(recording):
    call_id = next(consumer.call_id for consumer in recording.consumers if consumer.is_main)
    many = limit_calls(replace(recording, calls=(*chain(100_000), *recording.calls)))
    assert len(many.calls) == MAX_ANALYSED_CALLS
    kept = {call.id for call in many.calls}
    assert call_id in kept
    needed = {call.id for call in upstream_calls(analyse(None, recording, "x"), _call(recording, call_id))}
    assert needed <= kept
    (warning,) = set(many.warnings) - set(recording.warnings)
    assert f"the {MAX_ANALYSED_CALLS} nearest to the consumed datasets are analysed" in warning
    assert warning.startswith(f"{100_000 + len(recording.calls):,} dataset calls were recorded")


def test_few_calls_are_all_kept(recording):
    assert limit_calls(recording) is recording


def test_structure_goes_through_all_calls_once(recording):
    class Counted(tuple):
        times = 0

        def __iter__(self):
            Counted.times += 1
            return super().__iter__()

    calls = Counted(
        (*chain(200), *(Call(f"n{n}", "map", None, nested_in=f"n{n - 1}" if n else "x0") for n in range(200)))
    )
    analysis = replace(analyse(None, recording, "x"), calls=calls)
    before = Counted.times
    for call in tuple.__iter__(calls):
        upstream_calls(analysis, call)
        linear_chain(analysis, call)
        nested_calls(analysis, call)
    assert [call.id for call in nested_calls(analysis, calls[0])] == [f"n{n}" for n in range(200)]
    assert [call.id for call in linear_chain(analysis, calls[199])] == [f"x{n}" for n in range(199, -1, -1)]
    assert Counted.times - before <= 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "recording.json")
    with pytest.raises(AdvisorError, match="not a regular file"):
        read_recording(tmp_path)


def test_the_calls_of_a_saved_run_are_bounded(tmp_path, recording):
    from advisor.model.settings import Settings
    from advisor.workflows.analyze import analyze_run

    shutil.copytree(RUN, tmp_path / "run")
    content = json.loads((RUN / "recording.json").read_text())
    content["calls"] += [json.loads(encode(call)) for call in chain(2 * MAX_ANALYSED_CALLS)]
    (tmp_path / "run" / "recording.json").write_text(json.dumps(content))
    report = analyze_run(tmp_path / "run", (), Settings())
    assert len(report.analysis.calls) == MAX_ANALYSED_CALLS
    assert any("dataset calls were recorded" in warning for warning in report.analysis.warnings)
    assert [it.calls for it in report.analysis.main.iterators] == [
        it.calls for it in analyze_run(RUN, (), Settings()).analysis.main.iterators
    ]


def _call(recording: Recording, call_id: str | None) -> Call:
    return next(call for call in recording.calls if call.id == call_id)
