"""What tf.data did by itself, and what the profile does not show, in words."""

from __future__ import annotations

import pytest

from advisor.graph.analysis import analyse_host
from advisor.graph.critical_path import find_bottleneck
from advisor.graph.node_calls import already_done
from advisor.model.calls import Call, Site
from advisor.model.pipeline import Iterator, Pipeline
from tests.graph.simulated import Profile

AUTOMATIC = Call("tfadv_2", "map", Site("/home/me/train.py", 148, 5, 148, 20))
BUFFERED = Call("tfadv_3", "prefetch", Site("/home/me/train.py", 149, 5, 149, 20))


def iterator(number: int, name: str, *calls: Call, **more: object) -> Iterator:
    return Iterator(f"p0.{number}", None, name, f"Iterator::Root::{name}", calls=calls, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "limit"), [(1, "up to 1 element"), (8, "up to 8 elements")])
def test_one_element_is_no_plural(size: int, limit: str) -> None:
    injected = iterator(1, "Prefetch", injected_by_tensorflow=True, buffer_size=size)
    tuned = iterator(1, "Prefetch", BUFFERED, is_autotuned=True, buffer_size=size)
    assert already_done([injected]) == (f"put a prefetch buffer of {limit} at the end of the pipeline",)
    assert already_done([tuned]) == (f"tunes the buffer of prefetch (train.py:149), now {limit}",)


def test_two_branches_of_the_same_calls_are_told_once() -> None:
    branches = [iterator(number, "ParallelMapV2", AUTOMATIC) for number in (1, 2)]
    assert already_done(branches) == ("runs map (train.py:148) in parallel (ParallelMapV2)",)


def test_branches_for_which_autotune_chose_different_numbers_are_told_once() -> None:
    branches = [
        iterator(number, "ParallelMapV2", AUTOMATIC, is_autotuned=True, parallelism=number) for number in (4, 2, 4)
    ]
    other = Call("tfadv_4", "map", Site("/home/me/train.py", 150, 5, 150, 20))
    branches.append(iterator(9, "ParallelMapV2", other, is_autotuned=True, parallelism=9))
    assert already_done(branches) == (
        "runs map (train.py:148) in parallel (ParallelMapV2, AUTOTUNE chose 2 and 4)",
        "runs map (train.py:150) in parallel (ParallelMapV2, AUTOTUNE chose 9)",
    )


def test_the_bottleneck_has_the_wait_of_all_iterators_of_its_call() -> None:
    """Two branches with a third of the wait each are more than another call with 34 %."""
    other = Call("tfadv_4", "map", Site("/home/me/train.py", 150, 5, 150, 20))
    iterators = [
        iterator(1, "Map", AUTOMATIC, blame_ns=33, blame_share=0.33),
        iterator(2, "Map", AUTOMATIC, blame_ns=33, blame_share=0.33),
        iterator(3, "Map", other, blame_ns=34, blame_share=0.34),
    ]
    bottleneck = find_bottleneck(iterators, {}, None, None)
    assert bottleneck is not None
    assert (bottleneck.iterator_id, bottleneck.blame_share) == ("p0.1", pytest.approx(0.66))


def cut_off(name: str) -> Pipeline:
    """A pipeline whose last recorded iterator is of this type: what feeds it did not run."""
    profile = Profile()
    root = profile.iterator(1, "Iterator::Root")
    inner = profile.iterator(2, f"Iterator::Root::{name}", root)
    for step in range(5):
        profile.call("consumer", root, step * 100, step * 100 + 10)
        profile.call("consumer", inner, step * 100 + 1, step * 100 + 9)
    (pipeline,) = analyse_host(profile.host(), None).pipelines
    return pipeline


def test_a_shuffle_whose_buffer_held_the_rest_is_not_reported_as_cut_off() -> None:
    (note,) = cut_off("Shuffle").notes
    assert note == (
        "The input of Shuffle did not run inside the profile, as its buffer held all elements that were left: Shuffle is the "
        "last recorded iterator, not the source."
    )
    (note,) = cut_off("BatchV2").notes
    assert note.startswith("The input of BatchV2 did not run inside the profile: BatchV2 is the last")
