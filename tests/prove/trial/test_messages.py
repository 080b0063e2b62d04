"""Every message between the halves of a proof arrives as it was sent; anything else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.capture.request import CaptureRequest, Progress, SessionRequest
from advisor.model.call_graph import CallGraph, CallIdentity
from advisor.model.calls import Call, Site
from advisor.model.codec import decode_message, encode_message
from advisor.model.edits import (
    BuildOnce,
    Code,
    Edit,
    InsertAfter,
    MoveAfter,
    Number,
    Remove,
    SetArgument,
    SetFunction,
    SetOption,
    SplitFlatMap,
    SplitMap,
    Vectorize,
    VectorizeParts,
    VectorizeRagged,
    WrapData,
)
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.recording import ScriptExit
from advisor.prove.trial.elements.compared_streams import Passes
from advisor.prove.trial.messages import (
    Calls,
    Ended,
    Failed,
    Profile,
    Profiled,
    ProofRequest,
    Quit,
    ReadCalls,
    Ready,
    Reply,
    Request,
    Tried,
    TryFix,
    edits_from_json,
    edits_to_json,
)
from advisor.prove.trial.text_messages import (
    CachesRead,
    DatasetFacts,
    DatasetTurnTaken,
    Describe,
    Described,
    ElementsWritten,
    Open,
    Opened,
    Prepare,
    Prepared,
    ReadCaches,
    Sample,
    Sampled,
    TakeDatasetTurn,
    WriteElements,
)
from advisor.prove.trial.trial_result import FASTER, Trial

EDITS = (
    SetArgument("c1", "num_parallel_calls", Code("tf.data.AUTOTUNE")),
    SetArgument("c1", "drop_remainder", True),
    InsertAfter("c1", "shuffle", (("", 64), ("seed", None), ("name", "s"))),
    Remove("c1"),
    MoveAfter("c1", "c2"),
    SetOption("c1", "autotune.enabled", 0.5),
    Vectorize("c1"),
    VectorizeParts("c1", "def f_batch(x):\n    return x\n", "f_batch", "def f(x):\n    return x\n", 3),
    VectorizeRagged("c1", 2, (0, 1), "-", 32),
    SetFunction("c1", "lambda window: window"),
    WrapData("c1", "c2", "tf.signal.frame(data, size, 1)", (Number("size", 3),)),
    SplitMap(
        "c1", "def f_1(x):\n    return x\n", "def f_2(x):\n    return x\n", ("x",), "f_1", "f_2", "def f(x):", 3, False
    ),
    SplitFlatMap("c1", "lambda x: x", "lambda x: x", ("x", "y")),
    BuildOnce("c1", Site("train.py", 4, 7, 4, 20)),
)
REQUESTS = (
    TryFix(edits_to_json(EDITS[:1]), edits_to_json(EDITS[3:8]), Safety.REORDERED, None, 2.5),
    Profile(edits_to_json(EDITS[:2]), Path("/runs/edited-1")),
    ReadCalls([]),
    Quit(),
    Describe(),
    Open(1, 200, 1.5, None),
    Open(0, 200, 1.5, Passes(64, True, 2, 12.5)),
    Sample(Path("/tmp/answer1.npz"), "twin", 1, True),
    ReadCaches(),
    WriteElements(Path("/tmp/answer2.npz"), "twin", 3, 1, 1000),
    Prepare(),
    TakeDatasetTurn(),
)
REPLIES = (
    Progress("warming up", 3, 10),
    Ready(("/data/notes.txt", "/data/\udcff")),  # a file name that is not UTF-8
    Tried(Trial(FASTER, Interval(2.0, 1.5, 2.5), 10.0, 20.0, 6, Safety.EXACT, 30)),
    Profiled(),
    Calls(CallGraph((CallIdentity("c1", "map", ("c0",), {"f": "digest"}),), "c1", 2, {"c1": ("a", "b")})),
    Described((DatasetFacts("the dataset of map", "spec", -2, False),), True, 0),
    Opened(Passes(64, False, 2, 12.5)),
    Sampled(False),
    CachesRead((True, False, None)),
    ElementsWritten(True),
    Prepared(None),
    DatasetTurnTaken(12, 0.6),
    Failed("The pipeline has no elements."),
    Ended(ScriptExit("failed", 1, "ValueError: no")),
)


@pytest.mark.parametrize("message", REQUESTS, ids=lambda message: type(message).__name__)
def test_a_request_arrives_as_it_was_sent(message):
    assert decode_message(encode_message(message), Request) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda message: type(message).__name__)
def test_a_reply_arrives_as_it_was_sent(message):
    line = encode_message(message)
    assert decode_message(line, Reply) == message
    assert "\n" not in line


def test_the_first_message_arrives_as_it_was_sent():
    call = Call("c1", "map", Site("train.py", 4, 7, 4, 20), ("c0",), {"n": 1, "x": float("inf"), "flag": True})
    capture = CaptureRequest(Path("/runs/1"), Path("train.py"), args=("--fast",), overlay=((Path("/a"), Path("/b")),))
    message = ProofRequest(SessionRequest(capture, 7), 8, Path("/tmp/files"), call, (call,), None)
    assert decode_message(encode_message(message), ProofRequest) == message


def test_edits_arrive_with_their_kind_and_the_types_of_their_values():
    received = edits_from_json(decode_message(encode_message(ReadCalls(edits_to_json(EDITS))), ReadCalls).edits)
    assert received == EDITS
    assert received[1].value is True


@pytest.mark.parametrize("kind", get_args(Edit), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_kind_of_edit_arrives_whatever_its_fields_hold(kind, data):
    edit = data.draw(st.from_type(kind))
    (received,) = edits_from_json(decode_message(encode_message(ReadCalls(edits_to_json((edit,)))), ReadCalls).edits)
    assert repr(received) == repr(edit)  # with their types: True is no 1, and NaN equals NaN


def test_every_kind_of_edit_has_a_sample():
    assert {type(edit) for edit in EDITS} == set(get_args(Edit))


@pytest.mark.parametrize(
    "damaged", [{"edit": "Remove"}, {"edit": "Remove", "call_id": 3}, {"edit": "Explode", "call_id": "c1"}]
)
def test_anything_but_an_edit_is_refused(damaged):
    with pytest.raises((KeyError, msgspec.ValidationError)):
        edits_from_json([damaged])


@pytest.mark.parametrize(
    "line", [b"", b"\xff\xfe", b"null", b"[]", b"{}", b'{"type": "Explode"}', b'{"type": "Ready"}', b"[" * 100_000]
)
def test_anything_but_a_reply_is_refused(line):
    with pytest.raises(ValueError):
        decode_message(line, Reply)
