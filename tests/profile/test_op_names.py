from __future__ import annotations

import pytest

from advisor.profile.op_names import is_op_name, parse_op_name, xla_type


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("model/conv2d/Conv2D:Conv2D", ("model/conv2d/Conv2D", "Conv2D")),
        ("IteratorGetNext/_4:_Recv", ("IteratorGetNext/_4", "_Recv")),
        ("a-0-TransposeNHWCToNCHW-LayoutOptimizer:Transpose", ("a-0-TransposeNHWCToNCHW-LayoutOptimizer", "Transpose")),
        ("jit(f)/dot_general:dot_general", ("jit(f)/dot_general", "dot_general")),
        ("f/dot_general:dot_general", ("f/dot_general", "dot_general")),
        ("XlaModule:", None),
        ("Iterator::Root", None),
        ("EagerLocalExecute: Relu", None),
        ("nothing", None),
        (":Add", None),
        ("", None),
    ],
)
def test_names_of_ops_are_told_from_others(name, parts):
    assert parse_op_name(name) == parts
    assert is_op_name(name) == (parts is not None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fusion.12", "fusion"),
        ("%copy-start.2", "copy-start"),
        ("all-reduce", "all-reduce"),
        ("fusion.3.remat2.clone", "fusion"),
        ("wrapped_tanh", "wrapped_tanh"),
        (".7", ".7"),
        ("12", "12"),
    ],
)
def test_types_of_xla_ops(name, kind):
    assert xla_type(name) == kind
