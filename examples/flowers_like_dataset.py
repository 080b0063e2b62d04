"""A tensorflow-datasets builder similar to `tf_flowers`: photographs as JPEG with a class label, in TFRecord files.

In: the varied JPEGs of `sample_data`, created on this machine.  Out: `tfds.load("flowers_like", ...)` with the splits `train`
and `validation`. Nothing is downloaded, and tensorflow-datasets is prevented from contacting Google Cloud Storage.
"""

from __future__ import annotations

import sample_data
import tensorflow_datasets as tfds
from absl import logging

tfds.core.utils.gcs_utils._is_gcs_disabled = True
tfds.disable_progress_bar()
logging.set_verbosity(logging.ERROR)  # a warning about the folder that is just being made

TRAIN_EXAMPLES = 3200
VALIDATION_EXAMPLES = 400


class FlowersLike(tfds.core.GeneratorBasedBuilder):
    """Crops of eight photographs, 240 to 500 pixels a side."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First version."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg"),
                    "label": tfds.features.ClassLabel(names=sample_data.CLASS_NAMES),
                }
            ),
            supervised_keys=("image", "label"),
            disable_shuffling=False,
        )

    def _split_generators(self, download_manager):
        return {
            "train": self._generate_examples(TRAIN_EXAMPLES, seed=0),
            "validation": self._generate_examples(VALIDATION_EXAMPLES, seed=1),
        }

    def _generate_examples(self, count, seed):
        for index, (class_name, jpeg) in enumerate(sample_data.varied_jpegs(count, seed)):
            if index % 100 == 0:
                sample_data.show_progress("making photographs", index, count)
            yield index, {"image": jpeg, "label": class_name}
        sample_data.show_progress("making photographs", count, count)
