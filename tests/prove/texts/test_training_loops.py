"""A change of the number of epochs is noticed, though elements are compared within a few passes."""

from __future__ import annotations

import pytest

from advisor.model.calls import Call, Site
from advisor.model.recording import Consumer, Loop
from advisor.prove.texts.training_loops import later_datasets, loop_difference


class Run:
    """The parts of a recording that are looked at."""

    def __init__(self, loops=(), keras=(), datasets=1, identities=("a", "a", "b", "b")):
        self.consumers = (Consumer("c0", "c3", "for", None, is_main=True, loops=loops, datasets=datasets),)
        self.keras = dict(keras)
        lines = (4, 4, 5, 5)
        self.calls = tuple(
            Call(f"c{number}", "map", Site("train.py", line, 1, line, 9), (f"c{number - 2}",), identity=identity)
            for number, (line, identity) in enumerate(zip(lines, identities, strict=True))
        )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (Run((Loop(3),)), Run((Loop(3),)), ""),
        (Run((Loop(3),)), Run((Loop(6),)), "6 passes instead of 3"),
        (Run((Loop(None),)), Run((Loop(6),)), ""),
        (Run(None), Run((Loop(6),)), ""),
        (Run((Loop(3), Loop(2))), Run((Loop(3), Loop(4))), "4 passes instead of 2"),
        (Run((), {"epochs": 2}), Run((), {"epochs": 4}), "epochs=4 instead of 2"),
        (Run((), {"steps_per_epoch": None}), Run((), {"steps_per_epoch": 4}), ""),
    ],
)
def test_loops(before, after, said):
    difference = loop_difference(before, after)
    assert said in difference if said else not difference


def test_later_datasets_were_not_compared():
    assert later_datasets(Run()) == ""
    assert later_datasets(Run(datasets=2)) == "", "they are made of the same arguments and functions"
    assert "first epoch" in later_datasets(Run(datasets=2, identities=("a", "a", "b", "c")))
    assert "first epoch" in later_datasets(Run(datasets=2, identities=("", "", "b", "b")))
