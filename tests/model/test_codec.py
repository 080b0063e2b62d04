"""Dataclasses survive the way through JSON; damaged files become one sentence."""

from __future__ import annotations

import pytest

from advisor.model.calls import Call, Site
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError
from advisor.model.recording import Host, Recording, ScriptExit, StepSeries

HOST = Host("box", 1.5, 4, 1 << 33, 1 << 32)


def test_a_recording_comes_back_equal():
    call = Call(
        "tfadv_1", "map", Site("train.py", 4, 7, 4, 20), ("tfadv_0",), {"n": 1, "x": 0.5, "flag": True, "f": None}
    )
    recording = Recording(
        "train.py é", HOST, ScriptExit("stopped"), calls=(call,), steps=(StepSeries("c0", (1, 2), (), (2, 3)),)
    )
    assert decode(encode(recording), Recording) == recording


def test_fields_of_a_later_version_are_passed_over():
    data = encode(HOST).replace(b"{", b'{"something_new":[1],', 1)
    assert decode(data, Host) == HOST


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"target": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
        encode(HOST),
        b'{"target":"x","host":{"hostname":1},"script_exit":{"kind":"x"}}',
    ],
)
def test_hostile_files_are_one_sentence(data):
    with pytest.raises(AdvisorError, match=r"^run/recording\.json is damaged") as error:
        decode(data, Recording, "run/recording.json")
    assert "\n" not in str(error.value)
