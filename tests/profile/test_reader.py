"""Events of every kind become columns; iterators become facts."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model.trace import EventKind
from advisor.profile import events, read_trace
from advisor.profile.iterators import IteratorTable
from tests.profile.made_profile import ProfileBuilder, Ref, Signed

BIG_ID = 16284188431313437225
"""A real iterator id of TensorFlow 2.21: above 2^63."""
ROOT_ID = 9212746144290552997


@pytest.fixture
def profile():
    return ProfileBuilder()


@pytest.fixture
def read(tmp_path):
    def read_host(profile: ProfileBuilder):
        (host,) = read_trace(profile.write(tmp_path / "worker.xplane.pb")).hosts
        return host

    return read_host


def rows(host, thread=0):
    """(kind, label, key, link) of a thread's events."""
    thread = host.threads[thread]
    labels = [host.labels[label] for label in thread.label.tolist()]
    return list(
        zip(map(EventKind, thread.kind.tolist()), labels, thread.key.tolist(), thread.link.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "display_name", "stats", "expected"),
    [
        (
            "Iterator::Root::Prefetch",
            "Iterator::Prefetch",
            {"id": BIG_ID, "parent_id": ROOT_ID},
            (EventKind.ITERATOR, "Iterator::Root::Prefetch", BIG_ID, ROOT_ID),
        ),
        ("ReduceIterator::Root", "", {"id": BIG_ID}, (EventKind.ITERATOR, "ReduceIterator::Root", BIG_ID, 0)),
        ("SingleElementIterator::BatchV2", "", {"id": 7}, (EventKind.ITERATOR, "SingleElementIterator::BatchV2", 7, 0)),
        ("PrefetchProduce", "", {"element_id": 5}, (EventKind.PRODUCE, "Prefetch", 5, 0)),
        ("ParallelMapConsume", "", {"element_id": 5}, (EventKind.CONSUME, "ParallelMap", 5, 0)),
        (
            "ParallelInterleaveProduce",
            "",
            {"input_element_id": 12, "element_id": 12 << 32},
            (EventKind.PRODUCE, "ParallelInterleave", 12 << 32, 12),
        ),
        (
            "ParallelInterleaveInitializeInput",
            "",
            {"input_element_id": 12},
            (EventKind.PRODUCE, "ParallelInterleaveInitializeInput", 0, 12),
        ),
        (
            "ParallelInterleaveConsume",
            "",
            {"element_id": Signed(2**64 - 1)},
            (EventKind.CONSUME, "ParallelInterleave", 2**64 - 1, 0),
        ),
        (
            "InstantiatedCapturedFunction::RunAsync",
            "",
            {"id": Signed(2**63 + 9)},
            (EventKind.FUNCTION, "InstantiatedCapturedFunction::RunAsync", 0, 2**63 + 9),
        ),
        ("FunctionRun", "", {"id": 3, "_r": 1, "_pt": 2, "_p": BIG_ID}, (EventKind.FUNCTION, "FunctionRun", BIG_ID, 3)),
        (
            "ExecutorState::Process",
            "",
            {"id": 3, "_ct": 2, "_c": BIG_ID},
            (EventKind.EXECUTOR, "ExecutorState::Process", BIG_ID, 3),
        ),
        (
            "ExecutorDoneCallback",
            "",
            {"id": 3, "_ct": 2, "_c": BIG_ID},
            (EventKind.EXECUTOR, "ExecutorDoneCallback", BIG_ID, 3),
        ),
        ("IteratorGetNextOp::DoCompute", "", {"id": 3}, (EventKind.GET_NEXT, "IteratorGetNextOp::DoCompute", 0, 3)),
        (
            "IteratorGetNextAsOptionalOp::DoCompute",
            "",
            {"id": 3},
            (EventKind.GET_NEXT, "IteratorGetNextAsOptionalOp::DoCompute", 0, 3),
        ),
        ("GetNextFromShard1", "", {"shard_num": 1}, (EventKind.GET_NEXT, "GetNextFromShard1", 0, 0)),
        ("map/decode/DecodeJpeg:DecodeJpeg", "DecodeJpeg", {}, (EventKind.OP, "DecodeJpeg", 1, 0)),
        ("train", "", {"step_num": 4, "_r": 1}, (EventKind.STEP, "train", 4, 0)),
        ("my step:b", "b", {"step_num": 4}, (EventKind.STEP, "my step:b", 4, 0)),
        ("tf.function-graph_building", "", {}, (EventKind.TRACING, "tf.function-graph_building", 0, 0)),
        ("CpuCompiler::RunBackend", "", {}, (EventKind.TRACING, "CpuCompiler::RunBackend", 0, 0)),
        ("step", "", {"tf_function_call": Ref("traced-nonXla")}, (EventKind.TRACING, "step", 0, 0)),
    ],
)
def test_an_event_has_the_kind_that_its_name_tells(profile, read, name, display_name, stats, expected):
    profile.host.line().event(name, 1, 2, display_name, **stats)
    assert rows(read(profile)) == [expected]


def test_the_key_of_an_op_is_its_name(profile, read):
    line = profile.host.line()
    for start, name in enumerate(["a/Mul:Mul", "b/Mul:Mul", "a/Mul:Mul", "model:0/Add:Add"]):
        line.event(name, 10 * start, 10 * start + 2, name.rpartition(":")[2])
    host = read(profile)
    keys = host.threads[0].key.tolist()
    assert [host.op_names[key - 1] for key in keys] == ["a/Mul", "b/Mul", "a/Mul", "model:0/Add"]


@pytest.mark.parametrize(
    ("name", "display_name", "stats"),
    [
        ("void IteratorBase<float>::Iterator::kernel", "", {"id": 1}),
        ("MakeIterator::MapDataset", "", {}),
        ("ReduceDatasetOp::DoCompute", "", {"id": 1}),
        ("ThreadpoolListener::StartRegion", "", {"_ct": 15, "_c": 1}),
        ("MemoryAllocation", "", {"bytes_allocated": 1}),
        ("SessionRun", "", {"_r": 1}),
        ("step", "", {"tf_function_call": Ref("notTraced-nonXla")}),
        ("unknown", "", {}),
        (b"\xff\xfe", "", {}),
    ],
)
def test_other_events_are_counted_and_dropped(profile, read, name, display_name, stats):
    profile.host.line().event(name, 1, 2, display_name, **stats)
    host = read(profile)
    assert len(host.threads[0]) == 0
    assert host.num_events == 1


def test_a_trace_and_a_function_of_one_name(profile, read):
    """Both have the same metadata in a real file: each event is judged by its own stats."""
    line = profile.host.line()
    line.event("train_step", 0, 9, _r=1, step_num=1).event("train_step", 1, 8, tf_function_call=Ref("traced-nonXla"))
    line.event("train_step", 10, 19, _r=1, step_num=2).event(
        "train_step", 11, 18, tf_function_call=Ref("notTraced-nonXla")
    )
    assert [(kind, key) for kind, _, key, _ in rows(read(profile))] == [
        (EventKind.STEP, 1),
        (EventKind.TRACING, 0),
        (EventKind.STEP, 2),
    ]


def test_times_are_nanoseconds_sorted_by_start_longer_first(profile, read):
    line = profile.host.line(timestamp_ns=7000)
    line.event("b:B", 2, 3, "B").event("inner:I", 1, 2, "I").event("outer:O", 1, 5, "O").event(
        "last:L", 5.0004, 5.0016, "L"
    )
    host = read(profile)
    (thread,) = host.threads
    assert [host.labels[label] for label in thread.label] == ["O", "I", "B", "L"]
    assert thread.start_ns.tolist() == [8000, 8000, 9000, 12000]
    assert thread.end_ns.tolist() == [12000, 9000, 10000, 12001]
    assert (thread.start_ns.dtype, thread.kind.dtype, thread.label.dtype) == (np.int64, np.uint8, np.int32)
    assert (thread.key.dtype, thread.link.dtype) == (np.uint64, np.uint64)


def test_events_that_are_sums_over_many_have_no_time_and_no_row(profile, read):
    from advisor.profile.xspace import message_class

    line = profile.host.line().event("a:A", 0, 1, "A")
    number = profile.host.event_number("a:A", "A")
    line.message.events.append(message_class("XEvent")(metadata_id=number, num_occurrences=9).SerializeToString())
    assert len(read(profile).threads[0]) == 1


def test_slices_make_no_difference(profile, read, monkeypatch):
    line = profile.host.line()
    for call in range(25):
        line.event("Iterator::Root", call * 10, call * 10 + 5, id=BIG_ID, buffered_elements=call, parallelism=call)
    whole = read(profile)
    monkeypatch.setattr(events, "SLICE", 4)
    sliced = read(profile)
    assert sliced.iterators == whole.iterators
    assert sliced.threads[0].start_ns.tolist() == whole.threads[0].start_ns.tolist()


@pytest.mark.parametrize("written_as", [int, Signed], ids=["uint64", "int64"])
def test_iterators_have_the_parameters_of_their_stats(profile, read, written_as):
    stats = {
        "id": written_as(BIG_ID),
        "parent_id": written_as(ROOT_ID),
        "name": Ref("tfadv_3"),
        "shapes": Ref("[?,2]"),
        "types": "float",
        "autotune": Ref("true"),
        "deterministic": "false",
        "ratio": 0.5,
    }
    profile.host.line("worker").event("Iterator::Root::Map", 10, 12, **stats, parallelism=4, buffered_elements=8)
    profile.host.line("other").event("Iterator::Root::Map", 0, 1, **stats, parallelism=1, buffered_elements=1)
    profile.host.line("root").event("Iterator::Root", 0, 1, id=ROOT_ID)
    iterators = read(profile).iterators
    assert sorted(iterators) == [ROOT_ID, BIG_ID]
    facts = iterators[BIG_ID]
    assert (facts.id, facts.parent_id, facts.long_name) == (BIG_ID, ROOT_ID, "Iterator::Root::Map")
    assert (facts.dataset_name, facts.shapes, facts.types, facts.num_calls) == ("tfadv_3", "[?,2]", "float", 2)
    assert facts.parameters == {
        "autotune": True,
        "deterministic": False,
        "ratio": 0.5,
        "parallelism": 4,
        "buffered_elements": 8,
    }, "the values of the last call in time, not in the file"
    assert facts.buffered_elements_mean == 4.5
    assert iterators[ROOT_ID].parent_id == 0
    assert iterators[ROOT_ID].buffered_elements_mean is None


def test_planes_without_host_threads_are_counted(profile, read):
    gpu = profile.plane("/device:GPU:0")
    gpu.line("Stream").event("void Iterator::kernel", 0, 1).event("kernel", 1, 2)
    gpu.line("Steps")
    host = read(profile)
    assert [(plane.name, plane.num_lines, plane.num_events) for plane in host.planes] == [("/device:GPU:0", 2, 2)]
    assert host.threads == ()
    assert host.num_events == 2


def test_clock_of_a_current_file_is_relative(profile, read):
    profile.start_unix_ns(1795236804831007257)
    profile.host.line(timestamp_ns=7128).event("a:A", 0, 1, "A")
    host = read(profile)
    assert host.start_unix_ns == 1795236804831007257
    assert host.threads[0].start_ns.tolist() == [7128]


def test_clock_of_a_file_without_environment_is_unknown(profile, read):
    profile.host.line(timestamp_ns=7128).event("a:A", 0, 1, "A")
    assert read(profile).start_unix_ns is None


def test_absolute_timestamps_become_relative(profile, read):
    profile.host.line(timestamp_ns=1795236804831007257).event("a:A", 0, 1, "A")
    profile.host.line(timestamp_ns=1795236804831007357).event("a:A", 0, 1, "A")
    host = read(profile)
    assert host.start_unix_ns == 1795236804831007257
    assert [thread.start_ns.tolist() for thread in host.threads] == [[0], [100]]


def test_a_thread_is_named_by_its_line(profile, read):
    profile.host.line("tf_data_iterator_resource/77")
    profile.host.line("", display_name=b"shown")
    profile.host.line("")
    assert [thread.name for thread in read(profile).threads] == ["tf_data_iterator_resource/77", "shown", ""]


def test_control_characters_of_messages_show_as_escapes(profile, read):
    profile.message.errors.append(b"worker: no \x1b[31mlibcupti\r\n")
    profile.message.warnings.append(b"dropped\x00 events \xff")
    assert read(profile).errors == ("worker: no \\x1b[31mlibcupti", "dropped\\x00 events �")


def test_names_with_broken_utf8_do_not_stop_the_read(profile, read):
    profile.host.line().event(b"Iterator::Root::\xff", 0, 1, id=1, name=b"caf\xe9")
    host = read(profile)
    assert host.labels == ("Iterator::Root::�",)
    assert host.iterators[1].dataset_name == "caf�"


def test_unnamed_stats_and_events_are_ignored(profile, read):
    from advisor.profile.xspace import message_class

    line = profile.host.line().event("Iterator::Root", 0, 1, id=1)
    line.message.events.append(message_class("XEvent")(metadata_id=999, duration_ps=5).SerializeToString())
    profile.host.message.stat_metadata[50].id = 50
    host = read(profile)
    assert len(host.threads[0]) == 1
    assert host.num_events == 2


def test_a_call_without_id_is_kept_but_is_no_iterators(profile, read):
    profile.host.line().event("Iterator::Root", 0, 1)
    host = read(profile)
    assert rows(host) == [(EventKind.ITERATOR, "Iterator::Root", 0, 0)]
    assert host.iterators == {}


def test_a_parameter_that_one_call_could_not_tell_is_known_from_another():
    table = IteratorTable()
    table.keep(7, 10, 0, "Iterator::Root::ParallelMapV2", {"parallelism": 4, "autotune": True})
    table.keep(7, 20, 0, "Iterator::Root::ParallelMapV2", {"parallelism": "unavailable", "autotune": True})
    assert table.facts([])[7].parameters == {"parallelism": 4, "autotune": True}
    table.keep(7, 30, 0, "Iterator::Root::ParallelMapV2", {"parallelism": 2, "autotune": True})
    assert table.facts([])[7].parameters["parallelism"] == 2
