"""Datasets of every kind, made again by replay: the same elements as the script's own, also with edits that keep them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE
from advisor.model.edits import Code, InsertAfter, SetArgument
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import TWIN
from tests.recorded import Recorded
from tests.replay.dataset_kinds import KINDS, chain, random_map

pytestmark = pytest.mark.tensorflow
PREFETCH = (("", Code("tf.data.AUTOTUNE")),)


def digests(dataset: Any) -> list[tuple[bytes, ...]]:
    stream = collect(dataset, Bounds(500, 20.0), python_seed=1)
    assert not stream.error
    return stream.rows


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_kind_of_dataset_gives_its_elements_again(
    make: Callable[[Any, Path], Any], recorded: Recorded, tmp_path: Path
) -> None:
    import tensorflow as tf

    dataset = make(tf, tmp_path)
    root = getattr(dataset, ID_ATTRIBUTE)
    again = recorded.replay(dataset, seeding=TWIN)
    edited = recorded.replay(dataset, InsertAfter(root, "prefetch", PREFETCH), seeding=TWIN)
    assert again.element_spec == dataset.element_spec
    wanted = digests(again)
    assert wanted
    assert digests(edited) == wanted
    if make is not random_map and make is not chain:
        assert digests(recorded.replay(dataset)) == digests(dataset)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_map_takes_an_argument_wherever_it_stands(
    make: Callable[[Any, Path], Any], recorded: Recorded, tmp_path: Path
) -> None:
    import tensorflow as tf

    dataset = make(tf, tmp_path)
    maps = [c for c in recorded.recorder.calls() if c.method == "map" and c.made_by is None]
    if not maps:
        pytest.skip("no map")
    edits = [SetArgument(call.id, "num_parallel_calls", 2) for call in maps]
    edited, work = recorded.replaying(dataset, *edits, seeding=TWIN)
    if make is not random_map:  # two at once draw the numbers in any order
        assert digests(edited) == digests(recorded.replay(dataset, seeding=TWIN))
    calls = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert {calls[call.id].arguments["num_parallel_calls"] for call in maps} == {2}


def test_a_dataset_from_tfds(recorded: Recorded, tmp_path: Path) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")
    import numpy as np

    class Tiny(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")
        url_infos: ClassVar[dict[str, Any]] = {}  # nothing is downloaded

        def _info(self) -> Any:
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({"x": np.int64}))

        def _split_generators(self, dl_manager: Any) -> Any:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Any:
            yield from ((i, {"x": i}) for i in range(10))

    tfds.core.utils.gcs_utils._is_gcs_disabled = True
    recorded.recorder.is_open = False
    builder = Tiny(data_dir=str(tmp_path))
    builder.download_and_prepare()
    recorded.recorder.is_open = True
    dataset = builder.as_dataset(split="train", shuffle_files=True).map(lambda row: row["x"] + 1)
    edited = recorded.replay(
        dataset,
        SetArgument(recorded.call("map").id, "num_parallel_calls", 2),
        InsertAfter(recorded.call("map").id, "cache"),
    )
    assert digests(edited) == digests(dataset) != []
