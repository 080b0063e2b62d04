"""The edits of a move, as they are written into a script."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from advisor.model.offload_result import Repair
from advisor.model.pipeline import Analysis
from advisor.offload.legality import judge
from advisor.offload.repairs import distribute_edit, edits_with_distribute
from advisor.rewrite.patch import Patch, patch_for
from advisor.testing import autoshard, batch, map_, padded_batch, pipeline, prefetch, source, take
from advisor.testing.simulated_script import Stage
from tests.in_one_line import in_one_line

ADDRESS = "grpc://tfdata-dispatcher:5000"
DISTRIBUTE = f'.apply(tf.data.experimental.service.distribute("distributed_epoch", "{ADDRESS}"))'


def written(folder: Path, *stages: Stage, compression: str = "AUTO", policy: str = "dynamic") -> str:
    """The script with the change."""
    made = pipeline(*stages, consumer_ms=5)
    path = folder / "train.py"
    path.write_text(made.source)
    calls = tuple(
        dataclasses.replace(call, site=dataclasses.replace(call.site, file=str(path))) for call in made.analysis.calls
    )
    analysis: Analysis = made.analysis
    movability = judge(analysis, policy)
    edits = edits_with_distribute(movability, distribute_edit(movability.after_id, policy, ADDRESS, compression))
    patch = patch_for(edits, {call.id: call for call in calls}, folder)
    assert isinstance(patch, Patch), patch
    return in_one_line(patch.files[path.resolve()][1].decode())


def test_distribute_follows_the_batch_and_a_prefetch_follows_it(tmp_path: Path) -> None:
    text = written(tmp_path, source(), map_("decode", ms=5), batch(32))
    assert f".batch(32){DISTRIBUTE}.prefetch(tf.data.AUTOTUNE)\n" in text


def test_an_existing_prefetch_stays_behind(tmp_path: Path) -> None:
    text = written(tmp_path, source(), map_("decode", ms=5), batch(32), prefetch())
    assert f".batch(32){DISTRIBUTE}\n" in text and text.count("prefetch") == 1


def test_a_take_moves_behind_the_batch_and_counts_batches(tmp_path: Path) -> None:
    text = written(tmp_path, source(), map_("decode", ms=5), take(320), batch(32), prefetch())
    assert ".take(320)" not in text
    assert text.index(".batch(32)") < text.index(DISTRIBUTE) < text.index(".take(10)") < text.index("prefetch")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compression": "none"}, f'"distributed_epoch", "{ADDRESS}", compression=None))'),
        ({"policy": "off"}, f'"parallel_epochs", "{ADDRESS}"))'),
    ],
)
def test_arguments_of_distribute(tmp_path: Path, options: dict[str, str], expected: str) -> None:
    assert expected in written(tmp_path, source(), map_("decode", ms=5), batch(32), **options)


@pytest.mark.parametrize(("others", "sentence"), [(1, "Another process runs this"), (3, "3 other processes run this")])
def test_trainers_side_by_side_may_share_the_work_of_the_workers(others: int, sentence: str) -> None:
    made = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, is_finished=True).analysis
    assert made.recording is not None and not sharing(made)
    (repair,) = sharing(dataclasses.replace(made, recording=dataclasses.replace(made.recording, other_runs=others)))
    assert repair.text.startswith(sentence) and not repair.edits


def sharing(analysis: Analysis) -> list[Repair]:
    """What is proposed for several trainers."""
    return [repair for repair in judge(analysis).repairs if "CrossTrainerCache" in repair.code]


def test_replicas_in_one_process_share_no_job() -> None:
    """`MirroredStrategy`: one iterator feeds all of them, and there is no index of a consumer."""
    assert not joint(padded_batch(8, 4096))


@pytest.mark.parametrize(("batches", "expected"), [(padded_batch(8, 4096), "consumer_index"), (batch(8), "job_name")])
def test_processes_of_one_training_share_a_job(batches: Stage, expected: str) -> None:
    (repair,) = joint(batches, autoshard(2))
    assert expected in repair.code
    assert (".repeat().group_by_window(" in repair.code) == (expected == "consumer_index")
    assert ("repeated without end" in repair.text) == (expected == "consumer_index")
    assert ("a name of its own" in repair.text) == (expected == "job_name")


def joint(*stages: Stage) -> list[Repair]:
    """What is proposed for replicas that read one job."""
    made = pipeline(source(), map_("decode", ms=5), *stages, consumer_ms=5).analysis
    main = made.main
    assert main is not None and main.consumer is not None
    replicas = dataclasses.replace(main, consumer=dataclasses.replace(main.consumer, kind="distributed"))
    made = dataclasses.replace(
        made, pipelines=tuple(replicas if pipeline is main else pipeline for pipeline in made.pipelines)
    )
    return [repair for repair in judge(made).repairs if "job_name" in repair.code]
