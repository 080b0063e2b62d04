"""Changes of known truth, as elements show them: two texts of a script, each held in a process of its own."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from advisor.capture.request import START_SEED, CaptureRequest
from advisor.model.change_proof import DIFFERENT, EQUAL, UNKNOWN
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts.change_verdict import judge_data
from advisor.prove.texts.compare_texts import CONTROL_SEED, TextComparer, TextComparison
from advisor.prove.texts.held_text import HeldText

pytestmark = pytest.mark.tensorflow
UNSEEDED = """
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    images = rng.random((240, 8, 8, 1), dtype=np.float32)
    labels = np.arange(240) % 10
    noise = tf.random.uniform((240,))

    def prepare(image, label):
        return tf.image.resize(image, (12, 12)) / 3.0, label

    def flip(image, label):
        return tf.image.random_flip_left_right(image), label

    everything = tf.data.Dataset.from_tensor_slices((images, labels))
    train = everything.take(200).map(prepare).shuffle(200).map(flip).batch(16)
    valid = everything.skip(200).map(prepare).batch(8)
    for epoch in range(1000):
        for image, label in train:
            pass
        for image, label in valid:
            pass
    """
SEEDED = UNSEEDED.replace(".shuffle(200)", ".shuffle(200, seed=7)").replace(
    "rng = np", "tf.random.set_seed(1)\n    rng = np"
)
TIMED = UNSEEDED.replace("default_rng(0)", "default_rng()")
"""Its data differ in each run."""

Compare = Callable[[str, str], tuple[TextComparison, str]]


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], HeldText]]:
    """Hold a text at its first element; unchanged texts are held once for all tests."""
    folder = tmp_path_factory.mktemp("texts")
    script = folder / "train.py"
    script.write_text("raise SystemExit('the text on the disk is never run')\n")
    kept: dict[tuple[str, int], HeldText] = {}
    with contextlib.ExitStack() as stack:

        def hold(text: str, seed: int, until: contextlib.ExitStack | None = None) -> HeldText:
            key = text, seed
            if key not in kept or until is not None:
                overlay = folder / f"text{len(list(folder.glob('text*')))}.py"
                overlay.write_text(textwrap.dedent(text))
                request = CaptureRequest(folder / overlay.stem, script, overlay=((script, overlay),), start_seed=seed)
                session = ProofSession(request, None, 3000.0, lambda progress: None)
                text_held = HeldText((until or stack).enter_context(session))
                if until is not None:
                    return text_held
                kept[key] = text_held
            return kept[key]

        yield hold  # type: ignore[misc]


@pytest.fixture
def compare(held: Callable[..., HeldText]) -> Iterator[Compare]:
    """Compare two texts and return what is known about their data."""
    with contextlib.ExitStack() as stack:

        def compared(before: str, after: str) -> tuple[TextComparison, str]:
            one, two = held(before, START_SEED), held(after, START_SEED, stack)
            comparison = TextComparer(one, two, lambda: held(before, CONTROL_SEED)).compare()
            return comparison, judge_data(comparison.datasets, (), one.is_seeded, comparison.unknown).state

        yield compared


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


REWRITTEN = changed(
    UNSEEDED,
    ("everything = tf.data.Dataset.from_tensor_slices((images, labels))", "everything = None"),
    (
        "train = everything.take(200).map(prepare).shuffle(200).map(flip).batch(16)",
        """
    parts = tf.data.Dataset.from_tensor_slices(images[:200]), tf.data.Dataset.from_tensor_slices(labels[:200])
    train = tf.data.Dataset.zip(parts).shuffle(200)
    train = train.map(lambda image, label: flip(*prepare(image, label)), num_parallel_calls=1).batch(16).prefetch(2)""",
    ),
    (
        "valid = everything.skip(200)",
        "valid = tf.data.Dataset.from_tensor_slices((images[200:], labels[200:]))",
    ),
)
EQUAL_CHANGES = {
    "renamed": (UNSEEDED, (("prepare", "decode"), ("everything", "source"))),
    "a cache before what is random": (UNSEEDED, (("take(200).map(prepare)", "take(200).map(prepare).cache()"),)),
    "a parallel map": (UNSEEDED, (("map(prepare)", "map(prepare, num_parallel_calls=tf.data.AUTOTUNE)"),)),
    "a prefetch": (UNSEEDED, ((".batch(16)", ".batch(16).prefetch(tf.data.AUTOTUNE)"),)),
    "a prefetch with seeds": (SEEDED, ((".batch(16)", ".batch(16).prefetch(tf.data.AUTOTUNE)"),)),
    "another draw before the pipeline": (UNSEEDED, (("rng = np", "tf.random.uniform(())\n    rng = np"),)),
}
DIFFERENT_CHANGES = {
    "off-by-one batch": (UNSEEDED, ((".batch(16)", ".batch(15)"),)),
    "dropped remainder": (UNSEEDED, ((".batch(16)", ".batch(16, drop_remainder=True)"),)),
    "label shift": (UNSEEDED, (("/ 3.0, label", "/ 3.0, label + 1"),)),
    "other resize method": (UNSEEDED, (("(12, 12))", "(12, 12), method='nearest')"),)),
    "reshuffled validation": (UNSEEDED, (("skip(200).map(prepare)", "skip(200).map(prepare).shuffle(40)"),)),
    "float16 cast": (
        UNSEEDED,
        (
            (
                "tf.image.resize(image, (12, 12))",
                "tf.cast(tf.cast(tf.image.resize(image, (12, 12)), tf.float16), tf.float32)",
            ),
        ),
    ),
    "cached augmentation": (UNSEEDED, ((".map(flip)", ".map(flip).cache()"),)),
    "seed change": (SEEDED, (("seed=7", "seed=8"),)),
    "duplicated epoch": (UNSEEDED, ((".batch(16)", ".repeat(2).batch(16)"),)),
    "leaked split": (UNSEEDED, (("everything.skip(200)", "everything.skip(192)"),)),
    "last digits": (UNSEEDED, (("/ 3.0", "* (1.0 / 3.0)"),)),
}


def some_in_ci(names: Iterable[str], *chosen: str) -> list[Any]:
    """All names; those that are not chosen only in `make test-all`."""
    return [pytest.param(name, marks=[] if name in chosen else [pytest.mark.slow]) for name in names]


@pytest.mark.long
def test_an_equal_change(compare: Compare) -> None:
    text, pairs = EQUAL_CHANGES["renamed"]
    comparison, state = compare(text, changed(text, *pairs))
    assert state == EQUAL, comparison
    assert [dataset.elements for dataset in comparison.datasets] == [13, 5]
    assert all(dataset.difference is None for dataset in comparison.datasets)


@pytest.mark.long
@pytest.mark.parametrize("name", some_in_ci(EQUAL_CHANGES, "a cache before what is random", "a parallel map"))
def test_changes_that_keep_the_data(name: str, compare: Compare) -> None:
    text, pairs = EQUAL_CHANGES[name]
    comparison, state = compare(text, changed(text, *pairs))
    assert state == EQUAL, comparison


@pytest.mark.long
def test_a_pipeline_that_is_rewritten_entirely(compare: Compare) -> None:
    comparison, state = compare(UNSEEDED, REWRITTEN)
    assert state == EQUAL, comparison


@pytest.mark.long
def test_a_label_shift_is_found_and_shown(compare: Compare) -> None:
    text, pairs = DIFFERENT_CHANGES["label shift"]
    comparison, state = compare(text, changed(text, *pairs))
    assert state == DIFFERENT, comparison
    training = comparison.datasets[0]
    assert training.difference is not None
    assert (training.difference.element, training.difference.component) == (0, 1)
    assert int(training.difference.after) == int(training.difference.before) + 1


@pytest.mark.long
@pytest.mark.parametrize("name", some_in_ci(DIFFERENT_CHANGES, "cached augmentation", "leaked split"))
def test_changes_of_the_data(name: str, compare: Compare) -> None:
    text, pairs = DIFFERENT_CHANGES[name]
    comparison, state = compare(text, changed(text, *pairs))
    assert state == DIFFERENT, comparison


@pytest.mark.long
def test_last_digits_are_numerics(compare: Compare) -> None:
    text, pairs = DIFFERENT_CHANGES["last digits"]
    comparison, _ = compare(text, changed(text, *pairs))
    assert comparison.datasets[0].safety == "numerics"


@pytest.mark.long
@pytest.mark.slow
def test_a_script_whose_data_differ_in_each_run_gives_no_verdict(compare: Compare) -> None:
    comparison, state = compare(TIMED, changed(TIMED, (".batch(16)", ".batch(16).prefetch(1)")))
    assert state == UNKNOWN, comparison
    assert "Two runs of the unchanged script" in comparison.datasets[0].note


@pytest.mark.slow
def test_an_order_that_differs_in_each_run_is_no_effect_of_the_change(compare: Compare) -> None:
    """Drawn before the pipeline, and by a seed of the shuffle."""
    anew = "np.random.default_rng().permutation(240)"
    ordered = changed(
        UNSEEDED,
        ("np.arange(240) % 10", f"{anew} % 10"),
        (".shuffle(200).map(flip)", ""),
        ("rng.random((240", "np.ones((240"),
    )
    shuffled = changed(SEEDED, ("seed=7", f"seed=int({anew}[0])"))
    for text in (ordered, shuffled):
        comparison, state = compare(text, changed(text, (".batch(16)", ".batch(16).prefetch(1)")))
        assert state == UNKNOWN, comparison
        assert "Two runs of the unchanged script" in comparison.datasets[0].note


@pytest.mark.long
def test_a_pipeline_that_fails_with_the_change(compare: Compare) -> None:
    after = changed(
        UNSEEDED, ("/ 3.0, label", "/ 3.0, tf.debugging.check_numerics(tf.cast(label, tf.float32) / 0.0, 'no')")
    )
    comparison, state = compare(UNSEEDED, after)
    assert state == DIFFERENT, comparison
