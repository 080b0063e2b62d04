from __future__ import annotations

import json

import msgspec
import pytest

from advisor.model.finding import Code, InsertAfter, MoveAfter, Remove, SetArgument, SetOption
from advisor.prove.trial.messages import edits_from_json, edits_to_json

EDITS = (
    SetArgument("c1", "num_parallel_calls", Code("tf.data.AUTOTUNE")),
    SetArgument("c1", "drop_remainder", True),
    InsertAfter("c1", "shuffle", (("", 64), ("seed", None), ("name", "s"))),
    Remove("c1"),
    MoveAfter("c1", "c2"),
    SetOption("c1", "autotune.enabled", 0.5),
)


def test_edits_survive_the_pipe():
    sent = json.dumps(edits_to_json(EDITS))
    received = edits_from_json(json.loads(sent))
    assert received == EDITS
    assert received[1].value is True


@pytest.mark.parametrize(
    "damaged", [{"edit": "Remove"}, {"edit": "Remove", "call_id": 3}, {"edit": "Explode", "call_id": "c1"}]
)
def test_what_is_no_edit_is_refused(damaged):
    with pytest.raises((KeyError, msgspec.ValidationError)):
        edits_from_json([damaged])
