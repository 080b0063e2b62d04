"""The grammar of long names."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.profile.long_names import (
    PREFIXES,
    LongName,
    LongNameNode,
    is_iterator_name,
    parse_long_name,
    strip_indices,
)

TYPES = st.one_of(
    st.sampled_from(["Root", "Model", "Prefetch", "ParallelMapV2", "ForeverRepeat", "TensorSlice", "MemoryCacheImpl"]),
    st.text(st.characters(exclude_characters="[]:", exclude_categories=["Cs"]), min_size=1, max_size=12),
)
INDICES = st.none() | st.integers(0, 10**9)
LONG_NAMES = st.builds(
    LongName,
    st.lists(st.builds(LongNameNode, TYPES, INDICES), min_size=1, max_size=8).map(tuple),
    st.sampled_from(PREFIXES),
)


@given(LONG_NAMES)
def test_a_name_survives_parsing(name):
    assert parse_long_name(str(name)) == name
    assert is_iterator_name(str(name))


@given(LONG_NAMES)
def test_stripping_takes_off_all_indices_and_nothing_else(name):
    once = strip_indices(str(name))
    assert strip_indices(once) == once
    parsed = parse_long_name(once)
    assert [node.type for node in parsed.nodes] == [node.type for node in name.nodes]
    assert all(node.index is None for node in parsed.nodes)
    assert parsed.type == name.type


@given(LONG_NAMES, TYPES, INDICES)
def test_parent_undoes_the_step_to_a_child(parent, child_type, slot):
    """A child's name is its parent's with the child's slot on the parent's node."""
    own = LongName((*parent.nodes[:-1], LongNameNode(parent.type)), parent.prefix)
    child = LongName((*parent.nodes[:-1], LongNameNode(parent.type, slot), LongNameNode(child_type)), parent.prefix)
    assert child.parent == own


@given(st.text())
@example("Iterator::")
@example("Iterator::::")
@example("Iterator::Root::")
@example("Iterator::Root[")
@example("Iterator::Root[-1]::Map")
@example("Iterator::Root[01]::Map")
@example("Iterator::Root[٣]::Map")
@example("Iterator::Root\n")
@example("MakeIterator::MapDataset")
@example("void Iterator::kernel<int>[0]::f")
def test_any_text_is_parsed_or_left_alone(text):
    parsed = parse_long_name(text)
    if parsed is None:
        assert strip_indices(text) == text
    else:
        assert str(parsed) == text


@pytest.mark.parametrize(
    ("name", "nodes", "stripped"),
    [
        ("Iterator::Root", ["Root"], "Iterator::Root"),
        (
            "Iterator::Model::ParallelMapV2::Zip[0]::FlatMap::TensorSlice",
            ["Model", "ParallelMapV2", "Zip[0]", "FlatMap", "TensorSlice"],
            "Iterator::Model::ParallelMapV2::Zip::FlatMap::TensorSlice",
        ),
        (
            "ReduceIterator::Root::Prefetch::Scan::MapAndBatch::Range",
            ["Root", "Prefetch", "Scan", "MapAndBatch", "Range"],
            "ReduceIterator::Root::Prefetch::Scan::MapAndBatch::Range",
        ),
        (
            "Iterator::Root::ParallelInterleaveV4[99]::Map::Range",
            ["Root", "ParallelInterleaveV4[99]", "Map", "Range"],
            "Iterator::Root::ParallelInterleaveV4::Map::Range",
        ),
    ],
)
def test_real_names_are_parsed_and_stripped(name, nodes, stripped):
    assert list(map(str, parse_long_name(name).nodes)) == nodes
    assert strip_indices(name) == stripped


@pytest.mark.parametrize(
    "name", ["Iterator", "Iterators::Root", "MakeIterator::MapDataset", "Root", "iterator::Root", ""]
)
def test_other_names_are_no_long_names(name):
    assert parse_long_name(name) is None
    assert not is_iterator_name(name)


def test_root_has_no_parent():
    assert parse_long_name("Iterator::Root").parent is None
