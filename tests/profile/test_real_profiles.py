"""Profiles of other people's training jobs, from TensorFlow 2.3 to 2.5 and others; beside the checkout, not in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.model.errors import AdvisorError
from advisor.model.trace import EventKind
from advisor.profile import marked_steps, read_trace
from advisor.profile.long_names import parse_long_name

PROFILES = Path(__file__).parents[2] / "../shared/profiles"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PROFILES.is_dir(), reason="no real profiles beside the checkout"),
]

WITH_PIPELINE = (
    "cpu-tf23-mirrored",
    "cpu-tf23-synchronous",
    "gpu-tf24-many-kernels",
    "gpu-tf24-multi-gpu",
    "gpu-tf24-no-libcupti",
    "gpu-tf24-prefetch",
    "gpu-tf24-truncated",
    "gpu-tf25-mirrored",
    "gpu-tf25-mixed-precision",
)
WITHOUT_PIPELINE = ("gpu-jax-no-tfdata", "tpu-inference-no-tfdata")


def host_of(folder: str):
    (host,) = read_trace(PROFILES / folder).hosts
    return host


def iterator_events(host):
    return [(thread, row) for thread in host.threads for row in np.flatnonzero(thread.kind == EventKind.ITERATOR)]


@pytest.mark.parametrize("folder", WITH_PIPELINE)
def test_iterators_form_trees(folder):
    host = host_of(folder)
    assert host.iterators
    assert 0 not in host.iterators
    for facts in host.iterators.values():
        assert facts.parent_id == 0 or facts.parent_id in host.iterators
        assert facts.num_calls > 0
        assert str(parse_long_name(facts.long_name)) == facts.long_name
    assert sum(facts.num_calls for facts in host.iterators.values()) == len(iterator_events(host))


@pytest.mark.parametrize("folder", WITH_PIPELINE)
def test_parent_events_name_the_parent(folder):
    """An iterator's parent id and its long name tell the same story, but for the Impl iterators of a cache."""
    iterators = host_of(folder).iterators
    compared = [facts for facts in iterators.values() if facts.parent_id and "Cache" not in facts.long_name]
    assert compared
    for facts in compared:
        parent = parse_long_name(facts.long_name).parent
        assert parent is not None
        assert str(parent.without_indices()) == str(
            parse_long_name(iterators[facts.parent_id].long_name).without_indices()
        )


@pytest.mark.parametrize("folder", WITH_PIPELINE + WITHOUT_PIPELINE)
def test_columns_are_sorted_and_of_one_length(folder):
    threads = host_of(folder).threads
    assert threads
    for thread in threads:
        columns = (thread.start_ns, thread.end_ns, thread.kind, thread.label, thread.key, thread.link)
        assert {len(column) for column in columns} == {len(thread)}
        assert (thread.end_ns >= thread.start_ns).all()
        assert (np.diff(thread.start_ns) >= 0).all()
        assert (thread.start_ns >= 0).all()


@pytest.mark.parametrize("folder", WITHOUT_PIPELINE)
def test_profiles_without_tf_data(folder):
    host = host_of(folder)
    assert host.iterators == {}
    assert host.threads
    assert host.start_unix_ns is not None


def test_a_synchronous_pipeline_is_one_chain_of_iterators():
    host = host_of("cpu-tf23-synchronous")
    assert len(iterator_events(host)) == 258
    chain = sorted(host.iterators.values(), key=lambda facts: len(facts.long_name))
    assert [parse_long_name(facts.long_name).type for facts in chain] == [
        "Model",
        "BatchV2",
        "ShuffleAndRepeat",
        "TensorSlice",
    ]
    assert chain[1].parameters["batch_size"] == 128
    assert chain[1].parameters["drop_remainder"] is False
    assert [facts.parent_id for facts in chain] == [0, *(facts.id for facts in chain[:-1])]
    assert any(facts.id > 2**63 for facts in chain), "ids are unsigned: signed ones would be negative"
    assert marked_steps(host) == ()
    assert "" in {thread.name for thread in host.threads}, "threads have no names on Windows"


def test_all_gpus_have_planes():
    host = host_of("gpu-tf24-multi-gpu")
    gpus = [plane for plane in host.planes if plane.name.startswith("/device:GPU:")]
    assert len(gpus) == 8
    assert sum(plane.num_events > 1000 for plane in gpus) == 2


def test_an_error_of_libcupti_is_kept():
    host = host_of("gpu-tf24-no-libcupti")
    (error,) = host.errors
    assert "libcupti" in error
    assert [(plane.name, plane.num_events) for plane in host.planes] == [("/device:GPU:0", 0)]


def test_all_host_events_beside_many_kernels_are_read():
    assert host_of("gpu-tf24-many-kernels").num_events == 7043


def test_iterators_of_a_truncated_profile_are_read():
    names = {facts.long_name for facts in host_of("gpu-tf24-truncated").iterators.values()}
    assert names == {"Iterator::Model", "Iterator::Model::ParallelMapV2"}


def test_a_corrupt_profile_is_one_sentence():
    with pytest.raises(AdvisorError) as raised:
        read_trace(PROFILES / "corrupt-utf8")
    assert "worker.xplane.pb" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_chrome_traces_are_no_profiles():
    with pytest.raises(AdvisorError, match="contains no profile"):
        read_trace(PROFILES / "tf1-timelines")
    with pytest.raises(AdvisorError, match="is not a profile"):
        read_trace(next((PROFILES / "tf1-timelines").glob("*.json")))
