"""Real captures of TF 2.21 (tests/data): the right line is named, blame adds up, and what tf.data did is seen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from advisor.graph import analyse
from advisor.model.codec import decode
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.recording import Recording
from advisor.model.window_readings import BufferLevels
from advisor.profile import read_trace

DATA = Path(__file__).parents[1] / "data"
RUNS = sorted(path.parent.name for path in DATA.glob("*/recording.json"))
GUILTY = [name for name in RUNS if "# <- bottleneck" in (DATA / "scripts" / f"{name}.py").read_text()]


@cache
def analysis_of(name: str) -> Analysis:
    folder = DATA / name
    recording = decode((folder / "recording.json").read_bytes(), Recording)
    return analyse(read_trace(folder), recording, name)


def main_of(name: str) -> Pipeline:
    main = analysis_of(name).main
    assert main is not None
    return main


def marked_line(name: str) -> int:
    lines = (DATA / "scripts" / f"{name}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# <- bottleneck" in line)


@pytest.mark.parametrize("name", RUNS)
def test_blame_adds_up_to_the_measured_wait(name: str) -> None:
    main = main_of(name)
    assert main.wait_ns > 0
    assert sum(it.blame_ns for it in main.iterators) == pytest.approx(main.wait_ns, rel=0.05)
    assert sum(it.blame_share for it in main.iterators) == pytest.approx(1)


@pytest.mark.parametrize("name", [name for name in GUILTY if name != "mirrored"])
def test_the_bottleneck_is_the_marked_line(name: str) -> None:
    main = main_of(name)
    assert main.bottleneck is not None
    call = main.iterator(main.bottleneck.iterator_id).main_call
    assert call is not None
    assert call.site is not None
    assert (Path(call.site.file).name, call.site.line) == (f"{name}.py", marked_line(name))


def test_a_map_inside_an_interleave_is_told_from_the_interleave() -> None:
    main = main_of("interleave_map")
    assert main.bottleneck is not None
    guilty = main.iterator(main.bottleneck.iterator_id)
    assert (guilty.name, guilty.instances) == ("Map", 4)
    assert guilty.calls[0].nested_in is not None


def test_model_bound_run_has_no_bottleneck_and_no_wait() -> None:
    verdict = analysis_of("model_bound").verdict
    assert not verdict.is_input_bound
    assert verdict.limit == "model"


def test_the_verdict_on_keras_says_how_full_the_last_buffer_was() -> None:
    """Keras fetches inside its step function, so Python does not see the wait."""
    folder = DATA / "keras_fit"
    recording = decode((folder / "recording.json").read_bytes(), Recording)
    assert recording.window is not None and not recording.buffers, "of an earlier version"
    times = range(recording.window.start_ns, recording.window.end_ns, 4_000_000)
    count = len(times)
    levels = BufferLevels(
        recording.consumers[0].id,
        "MapAndBatch",
        is_at_steps=True,
        time_ns=tuple(times),
        steps=tuple(range(195, 195 + count)),
        elements_taken=tuple(range(195, 195 + count)),
        elements=(0,) * count,
        capacity=(2,) * count,
    )
    verdict = analyse(read_trace(folder), replace(recording, buffers=(levels,)), "keras_fit").verdict
    assert verdict.is_input_bound
    assert f"The buffer of MapAndBatch was empty at {count} of {count} steps." in verdict.sentence
    assert verdict.buffer is not None and (verdict.buffer.full, verdict.buffer.empty) == (0, count)
    assert analysis_of("keras_fit").verdict.buffer is None


def test_the_loop_in_a_tf_function_is_the_consumer_not_part_of_the_pipeline() -> None:
    main = main_of("tf_function_loop")
    assert [it.name for it in main.iterators] == ["MapAndBatch", "Range"]
    assert main.steps is not None
    assert main.steps.count > 20


def test_devices_of_a_strategy_are_one_pipeline_and_their_wait_counts_once() -> None:
    main = main_of("mirrored")
    assert [it.name for it in main.iterators] == [
        "Root", "Prefetch", "Generator", "Root", "Prefetch", "Rebatch", "MapAndBatch", "Range",
    ]  # fmt: skip
    assert main.iterators[0].instances == 2
    assert 0 < main.wait_share < 1
    assert main.steps is not None
    assert main.steps.count == 24


def test_fused_calls_and_injected_prefetch_are_told() -> None:
    (fused,) = main_of("keras_fit").already_done
    assert fused.startswith("fused map (keras_fit.py:16) and batch (keras_fit.py:17) into one MapAndBatch")
    assert main_of("interleave_map").already_done[0].startswith("put a prefetch buffer")
    assert [it.injected_by_tensorflow for it in main_of("interleave_map").iterators[:3]] == [True, True, False]


def test_python_time_is_seen_inside_the_generator() -> None:
    generator = next(it for it in main_of("generator").iterators if it.name == "Generator")
    assert 0.5 * generator.function_ns < generator.python_ns <= generator.function_ns
