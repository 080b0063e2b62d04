"""Folding iterators into nodes: epochs, slots, branches, cut-off windows, loops and broken files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.graph.nodes import Forest, fold
from tests.graph.simulated import Profile


def types(profile: Profile) -> list[list[str]]:
    return types_of(fold(profile.host()))


def types_of(forest: Forest) -> list[list[str]]:
    return [[node.type for node in forest.upstream(root)] for root in forest.roots]


def chain(profile: Profile, first_id: int, *nodes: tuple[str, str]) -> None:
    name, parent = "Iterator", 0
    for offset, (type_, dataset_name) in enumerate(nodes):
        name += f"::{type_}"
        parent = profile.iterator(first_id + offset, name, parent, dataset_name)


def test_slots_of_an_interleave_are_one_node() -> None:
    profile = Profile()
    chain(profile, 1, ("Root", "c2"), ("ParallelInterleaveV4", "c2"))
    for slot in range(3):
        name = f"Iterator::Root::ParallelInterleaveV4[{slot}]::Map"
        profile.iterator(10 + slot, name, 2, "c1")
        profile.iterator(20 + slot, name + "::TFRecord", 10 + slot, "c0")
    profile.iterator(30, "Iterator::Root::ParallelInterleaveV4::TensorSlice", 2, "files")
    forest = fold(profile.host())
    assert types_of(forest) == [["Root", "ParallelInterleaveV4", "Map", "TFRecord", "TensorSlice"]]
    folded = {node.type: node for node in forest.nodes}
    assert len(folded["Map"].facts) == 3
    assert folded["Map"].long_name == "Iterator::Root::ParallelInterleaveV4::Map"


def test_branches_of_a_zip_stay_apart_even_without_names() -> None:
    profile = Profile()
    chain(profile, 1, ("Model", ""), ("Zip", ""))
    for branch in range(2):
        profile.iterator(10 + branch, f"Iterator::Model::Zip[{branch}]::Map", 2)
        profile.iterator(20 + branch, f"Iterator::Model::Zip[{branch}]::Map::Range", 10 + branch)
    assert types(profile) == [["Model", "Zip", "Map", "Range", "Map", "Range"]]


def test_an_epoch_that_the_window_cut_short_is_the_same_pipeline() -> None:
    profile = Profile()
    full = (("Root", "c3"), ("BatchV2", "c3"), ("Map", "c2"), ("MemoryCache", "c1"), ("TFRecord", "c0"))
    chain(profile, 1, *full)
    chain(profile, 11, *full[:4])  # a later epoch, read from the cache
    chain(profile, 21, *full[:3])  # one of which only the top ran in the window
    assert types(profile) == [["Root", "BatchV2", "Map", "MemoryCache", "TFRecord"]]


def test_two_pipelines_with_the_same_injected_prefetch_stay_apart() -> None:
    profile = Profile()
    injected = "inject/prefetch_BatchDatasetV2/_12"
    chain(profile, 1, ("Root", injected), ("Prefetch", injected), ("BatchV2", "train"))
    chain(profile, 11, ("Root", injected), ("Prefetch", injected), ("BatchV2", "validation"))
    assert len(types(profile)) == 2


def test_a_loop_over_a_dataset_in_a_tf_function_ends_at_its_scan() -> None:
    profile = Profile()
    name, parent = "ReduceIterator", 0
    for offset, (type_, dataset_name) in enumerate(
        [("Root", "inject/prefetch_ScanDataset/_11"), ("Prefetch", "inject/prefetch_ScanDataset/_11"),
         ("Scan", "loop"), ("BatchV2", "c1"), ("Range", "c0")]
    ):  # fmt: skip
        name += f"::{type_}"
        parent = profile.iterator(1 + offset, name, parent, dataset_name)
    assert types_of(fold(profile.host(), frozenset({"loop"}))) == [["BatchV2", "Range"]]
    assert types(profile)[0][:3] == ["Root", "Prefetch", "Scan"]


def test_an_iterator_whose_parent_made_no_call_joins_the_parents_twin() -> None:
    profile = Profile()
    chain(profile, 1, ("Root", "c2"), ("ParallelInterleaveV4", "c2"))
    profile.iterator(10, "Iterator::Root::ParallelInterleaveV4[0]::Map", 2, "c1")
    profile.iterator(11, "Iterator::Root::ParallelInterleaveV4[0]::Map::Range", 10, "c0")
    profile.iterator(12, "Iterator::Root::ParallelInterleaveV4[9]::Map::Range", 999, "c0")  # 999 was cut off
    assert types(profile) == [["Root", "ParallelInterleaveV4", "Map", "Range"]]


def test_what_window_yields_is_one_dataset_and_a_source() -> None:
    profile = Profile()
    chain(profile, 1, ("Root", "c2"), ("FlatMap", "c2"))
    for number in range(50):
        profile.iterator(100 + number, f"Iterator::Root::FlatMap[{number}]::BatchV2", 2, "c3")
        profile.iterator(
            200 + number, f"Iterator::Root::FlatMap[{number}]::BatchV2::Window", 100 + number, f"WindowOp:{number}"
        )
    assert types(profile) == [["Root", "FlatMap", "BatchV2", "Window"]]


def test_a_root_id_that_was_reused_denotes_two_roots() -> None:
    profile = Profile()
    chain(profile, 1, ("Root", "RootDataset:3"), ("BatchV2", "train"))
    profile.iterator(9, "Iterator::Root::MapAndBatch", 1, "evaluation")  # the same id 1, at another time
    assert types(profile) == [["Root", "BatchV2"], ["Root", "MapAndBatch"]]


@given(st.dictionaries(st.integers(1, 30), st.integers(0, 30), max_size=30))
def test_any_parent_links_give_a_forest_that_holds_every_iterator_once(parents: dict[int, int]) -> None:
    profile = Profile()
    for iterator_id, parent in parents.items():
        depth = iterator_id % 4
        profile.iterator(iterator_id, "Iterator" + "::T" * (depth + 1), parent)
    forest = fold(profile.host())
    assert set(forest.node_of_iterator) == set(parents)
    walked = [node.index for root in forest.roots for node in forest.upstream(root)]
    assert sorted(walked) == sorted(node.index for node in forest.nodes)


def test_iterators_that_name_each_other_as_parents_are_told() -> None:
    profile = Profile()
    for iterator_id, parent in ((1, 2), (2, 1), (3, 3), (4, 1)):
        profile.iterator(iterator_id, f"Iterator{'::T' * iterator_id}", parent)
    assert fold(profile.host()).warnings == ["3 iterators name each other as parents; their links are ignored"]


def test_what_is_downstream_of_a_loop_is_removed_although_a_later_epoch_took_the_id_of_its_scan() -> None:
    profile = Profile()
    loop = "ReduceIterator::Root::Prefetch::Scan"
    for root in (1, 11):  # the Scan of the first epoch has the id of the second one's, so its consumers have no input
        profile.iterator(root, "ReduceIterator::Root", 0)
        profile.iterator(root + 1, "ReduceIterator::Root::Prefetch", root)
    profile.iterator(20, loop, 12, "ScanDataset:7")
    profile.iterator(21, f"{loop}::MapAndBatch", 20, "c1")
    profile.iterator(22, f"{loop}::MapAndBatch::Range", 21, "c0")
    assert types(profile) == [["MapAndBatch", "Range"]]


def test_a_reduce_of_another_dataset_stays_beside_a_loop() -> None:
    profile = Profile()
    loop = "ReduceIterator::Root::Prefetch::Scan"
    for root in (1, 11):
        profile.iterator(root, "ReduceIterator::Root", 0)
        profile.iterator(root + 1, "ReduceIterator::Root::Prefetch", root)
    profile.iterator(20, loop, 12, "ScanDataset:7")
    profile.iterator(21, f"{loop}::Range", 20, "c0")
    profile.iterator(30, "ReduceIterator::Root::Prefetch::Map", 2, "c9")
    assert sorted(types(profile)) == [["Range"], ["Root", "Prefetch", "Map"]]
