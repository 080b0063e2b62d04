"""How many elements an epoch has, and what they take: from cardinalities, finished epochs, or the sizes of the files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.recording import Recording, ScriptExit, StepSeries
from advisor.model.settings import Settings
from advisor.predict import cache_bytes, elements_per_epoch, steps_per_epoch
from advisor.testing import batch, filter_, interleave, map_, pipeline, shuffle, source, unknown_size

TEXT, RECORD = 200, 1_000
"""Bytes of an element of a text or record file, as tf.data's model counts them: 24 more than its contents."""


def made(*stages, **machine):
    analysis = pipeline(*stages, consumer_ms=5, **machine).analysis
    return analysis, analysis.main, {call.method: call for call in analysis.calls}


def in_keras(analysis, *, epochs: int, steps: int, **keras):
    """The same pipeline, consumed by Keras' `fit`, which has finished so many epochs."""
    consumer = replace(analysis.main.consumer, kind="keras.fit", finished_epochs=epochs, finished_steps=steps)
    recording = Recording(
        "train.py", analysis.host, ScriptExit("stopped"), calls=analysis.calls, steps=(StepSeries(consumer.id),)
    )
    recording = replace(recording, keras=keras)
    pipelines = (replace(analysis.main, consumer=consumer),)
    return replace(analysis, pipelines=pipelines, recording=recording, keras=keras)


@pytest.mark.parametrize(("kind", "bytes", "in_file"), [("TextLine", TEXT, 177), ("TFRecord", RECORD, 992)])
def test_files_of_known_size_hold_so_many_records(kind, bytes, in_file):
    """A line has one byte beside its contents, a TFRecord sixteen."""
    analysis, main, calls = made(
        unknown_size(source(kind, bytes=bytes), file_bytes=20_000 * in_file), map_("decode", ms=1, bytes=50), batch(10)
    )
    assert elements_per_epoch(analysis, main, calls["map"]) == pytest.approx(20_000, rel=0.01)
    assert cache_bytes(analysis, main, calls["map"]) == pytest.approx(1_000_000, rel=0.01)
    assert elements_per_epoch(analysis, main, calls["batch"]) == pytest.approx(2_000, rel=0.01)


def test_compressed_files_say_nothing_of_their_records():
    analysis, main, calls = made(
        unknown_size(source(bytes=RECORD, compression_type="GZIP"), file_bytes=1 << 20), map_("decode", ms=1), batch(8)
    )
    assert elements_per_epoch(analysis, main, calls["map"]) is None


def test_files_of_unknown_size_say_nothing():
    analysis, main, calls = made(unknown_size(source(bytes=RECORD)), map_("decode", ms=1), batch(8))
    assert elements_per_epoch(analysis, main, calls["map"]) is None
    assert cache_bytes(analysis, main, calls["map"]) is None


def test_a_finished_epoch_says_more_than_sizes():
    """What was seen comes first: a filter, a `take` or a shard may leave less than the files hold."""
    analysis, _, calls = made(
        unknown_size(source(bytes=RECORD), file_bytes=992 * 20_000), map_("decode", ms=1), batch(10)
    )
    seen = in_keras(analysis, epochs=2, steps=600, epochs_wanted=5)
    assert steps_per_epoch(seen, seen.main) == 300
    assert elements_per_epoch(seen, seen.main, calls["map"]) == 3_000


def test_one_step_of_keras_may_take_several_batches():
    analysis, *_ = made(unknown_size(source()), map_("decode", ms=1), batch(10))
    seen = in_keras(analysis, epochs=1, steps=40, steps_per_execution=8)
    assert steps_per_epoch(seen, seen.main) == 320


def test_keras_that_finished_no_epoch_says_nothing():
    """Its iterators are not its epochs: it makes some for its own purposes."""
    analysis, *_ = made(unknown_size(source()), map_("decode", ms=1), batch(10), epochs=3)
    seen = in_keras(analysis, epochs=0, steps=0)
    assert steps_per_epoch(seen, seen.main) is None


def test_a_cache_of_lines_is_proposed_where_their_files_are_known():
    """So that `advisor fix` tries it: without a size it would have to be asked for."""
    stages = map_("to_word_ids", ms=2, bytes=210), shuffle(2000), batch(64)
    for file_bytes, is_auto in ((8 << 20, True), (None, False)):
        analysis = pipeline(
            unknown_size(source("TextLine", bytes=TEXT), file_bytes=file_bytes), *stages, consumer_ms=5, epochs=3
        ).analysis
        report = run_rules(analysis, load_rules([], Settings()), Settings())
        finding = next(finding for finding in report.findings if finding.rule == "repeated-work")
        assert finding.fix.is_auto is is_auto


def test_records_of_an_interleave_are_those_of_the_files_that_were_listed():
    listed = replace(source("ListFiles", elements=8, bytes=60), file_bytes=992 * 4_000)
    analysis, main, calls = made(
        listed, interleave(unknown_size(source(bytes=RECORD))), map_("decode", ms=1), batch(10)
    )
    assert elements_per_epoch(analysis, main, calls["map"]) == pytest.approx(4_000, rel=0.01)


def test_what_a_filter_drops_is_not_kept():
    analysis, main, calls = made(
        unknown_size(source(bytes=RECORD), file_bytes=992 * 4_000), filter_("is_good", ms=0.1, keep=0.5), batch(10)
    )
    assert elements_per_epoch(analysis, main, calls["filter"]) == pytest.approx(2_000, rel=0.01)
