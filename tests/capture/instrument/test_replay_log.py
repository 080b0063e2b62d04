"""Whether calls that are kept for a replay would be other calls if they were made now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.replay_log import NO_SEEDS, LoggedCall, ReplayLog


def make(*args: object) -> None:
    """Stands for a call of TensorFlow; only its arguments matter here."""


def log_of(*args: object, method: str = "map", original: Callable[..., Any] = make) -> ReplayLog:
    log = ReplayLog()
    log.end(LoggedCall("tfadv_1", method, original, args, {}, False, None, None, NO_SEEDS))
    return log


def test_a_list_of_files_that_was_sorted_since() -> None:
    files = ["b", "a"]
    log = log_of(files, method="TFRecordDataset")
    assert not log.has_changed_arguments()
    files.sort()
    assert log.has_changed_arguments()


def test_a_value_that_a_function_reads() -> None:
    scale = 1.0

    def scaled(x: float) -> float:
        return x * scale

    log = log_of(scaled)
    assert not log.has_changed_arguments()
    scale = 0.5
    assert log.has_changed_arguments()


def test_an_attribute_that_a_method_reads() -> None:
    class Augmentation:
        strength = 1.0
        calls = 0

        def __init__(self) -> None:
            self.strength = 1.0
            self.unused = 0

        def apply(self, x: float) -> float:
            return x * self.strength

    augmentation = Augmentation()
    log = log_of(augmentation.apply)
    augmentation.unused = 1
    assert not log.has_changed_arguments()
    augmentation.strength = 0.5
    assert log.has_changed_arguments()


def test_data_were_copied_by_the_call() -> None:
    data = [1, 2, 3]
    log = log_of(data, method="from_tensor_slices")
    data.append(4)
    assert not log.has_changed_arguments()


def test_arguments_that_cannot_be_described_count_as_changed() -> None:
    class Odd:
        @property
        def shape(self) -> None:
            raise RuntimeError

        dtype = shape

    def fails(x: object) -> None:
        """Its argument cannot be looked at."""

    assert log_of(Odd(), original=fails).has_changed_arguments()
