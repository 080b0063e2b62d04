"""Datasets made again from the object alone; `advisor.optimize` and `advisor.analyze` in the program's own process."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model.errors import AdvisorError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def cases(tf):
    base = tf.data.Dataset.range(40)
    records = tf.data.Dataset.from_tensor_slices({"x": np.arange(24.0).reshape(12, 2), "name": [b"a"] * 12})
    yield "chain", base.map(lambda x: x * 2).filter(lambda x: x % 3 > 0).batch(4, drop_remainder=True).prefetch(2)
    yield "parallel", base.map(lambda x: x + 1, num_parallel_calls=2).batch(3, num_parallel_calls=2)
    yield "nested", records.shuffle(5, seed=3, reshuffle_each_iteration=False).repeat(2).take(20).skip(1)
    yield "interleave", base.interleave(lambda x: tf.data.Dataset.range(x, x + 2), cycle_length=3, block_length=2)
    yield "flat_map", base.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(2)).unique()
    yield "zip", tf.data.Dataset.zip({"a": base, "b": (base.map(lambda x: -x), base)}).shard(2, 1)
    yield "concatenate", base.take(3).concatenate(base.take(2)).cache()
    yield "options", base.with_options(tf.data.Options()).enumerate().ignore_errors()
    yield "padded", base.padded_batch(4).map(lambda x: x + 1)
    yield (
        "generator",
        tf.data.Dataset.from_generator(lambda: iter(range(7)), output_signature=tf.TensorSpec([], tf.int32)).batch(2),
    )
    yield (
        "parallel interleave",
        base.interleave(lambda x: tf.data.Dataset.range(2), num_parallel_calls=2).map(lambda x: x + 1),
    )


def elements(dataset):
    return [repr(element) for element in dataset.as_numpy_iterator()]


def made_again(dataset):
    from advisor.replay.rebuild import rebuild

    warnings = []
    rebuilt = rebuild(dataset, None, lambda call_id: None, warnings.append)
    assert warnings == []
    return rebuilt


def test_dataset_made_again_has_the_same_elements(tf):
    for name, dataset in cases(tf):
        rebuilt = made_again(dataset)
        assert elements(rebuilt.dataset) == elements(dataset), name
        assert rebuilt.dataset.element_spec == dataset.element_spec, name
        assert rebuilt.call_id is not None, name


def test_what_cannot_be_made_again_is_named_and_what_stands_behind_it_is_not_lost(tf):
    made = {name: made_again(dataset) for name, dataset in cases(tf)}
    assert made["padded"].opaque == ["PaddedBatchDataset"]
    assert made["parallel interleave"].opaque == ["ParallelInterleaveDataset"]
    assert [call.method for call in made["padded"].recorder.calls()] == ["PaddedBatchDataset", "map"]
    assert [call.method for call in made["generator"].recorder.calls()] == ["from_generator", "batch"]
    assert [call.method for call in made["chain"].recorder.calls()] == ["range", "map", "filter", "batch", "prefetch"]
    assert made["chain"].opaque == []


def test_public_api_and_the_users_dataset_are_left_as_they_were(tf):
    api = {name: getattr(tf.data.Dataset, name) for name in ("map", "batch", "range", "from_tensor_slices")}
    constructor = tf.data.TFRecordDataset.__init__
    source = tf.data.Dataset.range(3)
    before = dict(source.__dict__)
    made_again(source.batch(2))
    assert {name: getattr(tf.data.Dataset, name) for name in api} == api
    assert tf.data.TFRecordDataset.__init__ is constructor
    assert source.__dict__ == before


def slow(tf):
    def work(x):
        for _ in range(4):
            x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
        return tf.reduce_mean(x)

    return work


@pytest.mark.long
@pytest.mark.timed
def test_optimize_gives_the_same_elements_faster(tf, validate):
    import json

    import advisor
    from advisor.report.report_json import report_to_bytes

    dataset = tf.data.Dataset.from_tensor_slices(tf.ones([32, 192, 192])).map(slow(tf)).batch(4)
    made = advisor.optimize(dataset, budget="60s", only=("repeated-work",))
    assert made is not dataset
    assert elements(made) == elements(dataset)
    data = json.loads(report_to_bytes(made.report))
    validate(data)
    assert data["proof"]["verdict"] == "faster"
    applied = [fix for fix in data["fixes"] if fix["applied"]]
    assert [fix["rule"] for fix in applied] == ["repeated-work"]
    assert all(fix["safety_seen"] == "exact" for fix in applied)
    assert data["comparison"]["pipeline"]["low"] > 1
    assert applied[0]["site"]["file"] == __file__
    assert not hasattr(dataset, "report")


@pytest.mark.long
def test_nothing_faster_gives_the_very_same_object(tf):
    import advisor

    dataset = tf.data.Dataset.range(1_000_000).batch(1000).cache().prefetch(tf.data.AUTOTUNE)
    made = advisor.optimize(dataset, budget=30)
    assert made is dataset
    assert made.report.proof.verdict in ("nothing", "same")
    assert not any(fix.is_applied for fix in made.report.fixes)


@pytest.mark.long
def test_analyze_takes_a_dataset_and_a_function(tf):
    import advisor

    dataset = tf.data.Dataset.from_tensor_slices(tf.ones([32, 192, 192])).map(slow(tf)).batch(4).repeat()
    report = advisor.analyze(dataset)
    assert report.analysis.verdict.is_input_bound
    bottleneck = report.analysis.main.iterator(report.analysis.main.bottleneck.iterator_id)
    assert bottleneck.main_call.method == "map"
    assert bottleneck.main_call.function.name == "work"


def test_what_is_no_dataset_is_told(tf):
    import advisor

    with pytest.raises(AdvisorError, match=r"takes a tf\.data\.Dataset here, not a list"):
        advisor.optimize([1, 2])
    with pytest.raises(AdvisorError, match="not a int"):
        advisor.analyze(3)
    with pytest.raises(AdvisorError, match="allow accepts"):
        advisor.optimize(tf.data.Dataset.range(3), "changes")
    with pytest.raises(AdvisorError, match="budget"):
        advisor.optimize(tf.data.Dataset.range(3), budget="soon")

    @tf.function
    def inside():
        advisor.optimize(tf.data.Dataset.range(3))

    with pytest.raises(AdvisorError, match=r"outside of a tf\.function"):
        inside()
