"""Predictions against numbers worked out by hand, and laws that hold for every pipeline."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.graph import analyse
from advisor.host.calibration.prediction import BESIDE_INPUT
from advisor.model.calls import Call
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis, Iterator, Pipeline, StepStats, Verdict
from advisor.model.recording import Accelerator, Consumer, Host, Recording, ScriptExit, StepSeries
from advisor.model.window_readings import Usage
from advisor.predict import core_use, overlap_factors, predict_speedup
from advisor.predict.capacity import CoreUse
from advisor.predict.demand import demands
from advisor.profile import read_trace

PROFILES = Path(__file__).parents[3] / "shared" / "profiles"
MS = 1_000_000
STEPS = 100


def iterator(number: int, name: str, parent: int | None, blame: float, busy_ms: float = 0, **more) -> Iterator:
    """An iterator whose blame share is `blame` and which works `busy_ms` in each step."""
    return Iterator(
        f"p0.{number}",
        None if parent is None else f"p0.{parent}",
        name,
        name,
        blame_share=blame,
        busy_ns=round(busy_ms * MS * STEPS),
        is_async=name.startswith(("Prefetch", "Parallel", "MapAndBatch")),
        **more,
    )


def analysis(
    *iterators: Iterator,
    consumer_ms: float,
    wait_ms: float,
    cores: float = 1000,
    busy_cores: float = 0,
    gil_wait: float | None = 0.0,
    spread: float = 0.0,
) -> Analysis:
    step = round((consumer_ms + wait_ms) * MS)
    half = round(step * spread)
    steps = StepStats(STEPS, step, step, step, step - half, step + half)
    pipeline = Pipeline(
        "p0", "host", iterators, is_main=True, steps=steps, wait_ns=round(wait_ms * MS * STEPS), span_ns=step * STEPS
    )
    share = wait_ms / (consumer_ms + wait_ms)
    verdict = Verdict(True, share, 1 / (1 - share) if share < 1 else None, steps, "pipeline", "")
    usage = Usage(step * STEPS, round(busy_cores * step * STEPS), gil_wait_share=gil_wait)
    return Analysis("train.py", verdict, (pipeline,), host=Host("h", cores, 1000, 1, 1), usage=usage)


def predict(made: Analysis, cost: dict[str, float], work: dict[str, float] | None = None):
    assert made.main is not None
    return predict_speedup(made, made.main, cost, work or {})


SERIAL = (iterator(0, "Root", None, 0.0), iterator(1, "Map", 0, 0.75, 60), iterator(2, "Range", 1, 0.25, 20))
"""In the consumer's thread: 20 ms of consumer, 60 ms of map, 20 ms of source make a step of 100 ms."""

BEHIND = (
    iterator(0, "Root", None, 0.0),
    iterator(1, "Prefetch", 0, 0.0),
    iterator(2, "Map", 1, 0.75, 75),
    iterator(3, "TFRecord", 2, 0.25, 25),
)
"""Behind a prefetch: 100 ms of production hide 20 ms of consumer."""


def test_in_the_consumers_thread_costs_add_up():
    made = analysis(*SERIAL, consumer_ms=20, wait_ms=80)
    prediction = predict(made, {"p0.1": 0.25})
    assert prediction.value == pytest.approx(100 / (20 + 15 + 20))


def test_behind_a_buffer_production_shrinks_as_a_whole_and_hides_behind_the_consumer():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80)
    prediction = predict(made, {"p0.2": 0.2})
    assert prediction.value == pytest.approx(100 / 40)  # 100 ms x (0.75 x 0.2 + 0.25)
    # The other bound: only the wait shrinks, 20 + 80 x 0.4 = 52 ms; 0.3 of the gain is the model's own uncertainty.
    assert prediction.low == pytest.approx(1 + (100 / 52 - 1) * 0.7)
    assert prediction.high == pytest.approx(1 + (100 / 40 - 1) * 1.3)


def test_no_step_is_shorter_than_the_consumers_own_time():
    prediction = predict(analysis(*BEHIND, consumer_ms=20, wait_ms=80), {"p0.2": 0.0, "p0.3": 0.0})
    assert prediction.value == pytest.approx(5.0)
    assert prediction.high == pytest.approx(5.0)  # the work goes on elsewhere
    kept = dict.fromkeys(("p0.2", "p0.3"), 0.0)
    without = predict(analysis(*BEHIND, consumer_ms=20, wait_ms=80, busy_cores=1), kept, kept)
    assert without.value == pytest.approx(5.0)
    assert without.high == pytest.approx(10.0)  # beside a pipeline it may have been half as fast as it can be
    gpu = analysis(*BEHIND, consumer_ms=20, wait_ms=80)
    gpu = dataclasses.replace(gpu, host=dataclasses.replace(gpu.host, accelerators=(Accelerator("GPU", "a"),)))
    assert predict(gpu, kept, kept).high == pytest.approx(5.0)


def test_removed_work_shortens_the_step_of_a_consumer_on_the_same_cores():
    shared = analysis(*BEHIND, consumer_ms=50, wait_ms=50, cores=1, busy_cores=1)  # 1.5 cores are wanted, 1 is there
    nothing = dict.fromkeys(("p0.2", "p0.3"), 0.0)
    prediction = predict(shared, nothing, nothing)
    # All 100 ms of input are 2/3 of the CPU time; without them the consumer's 50 ms wait less for the core, at best not at all.
    assert prediction.value == pytest.approx(1 / (0.5 * (1 - 2 / 3 * 1 / 3)))
    assert prediction.high <= 3.0 * BESIDE_INPUT.value
    parallel = predict(shared, nothing)  # the same work elsewhere frees nothing, and there is no other core
    assert parallel.value == 1.0
    device = dataclasses.replace(shared.host, accelerators=(Accelerator("GPU", "a"),))
    alone = predict(dataclasses.replace(shared, host=device), nothing, nothing)
    assert alone.value == pytest.approx(2.0) and alone.high == pytest.approx(2.0)


def test_a_measured_ceiling_bounds_the_prediction():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80)
    made = dataclasses.replace(
        made, verdict=dataclasses.replace(made.verdict, max_speedup=2.0, is_ceiling_measured=True)
    )
    prediction = predict(made, {"p0.2": 0.0, "p0.3": 0.0})
    assert (prediction.value, prediction.high) == (2.0, 2.0)


def test_the_next_slowest_stage_sets_the_pace():
    stages = (
        iterator(0, "Root", None, 0.0),
        iterator(1, "ParallelMapV2", 0, 1.0, 400, parallelism=4),
        iterator(2, "MapAndBatch", 1, 0.0, 50, parallelism=1),
    )
    prediction = predict(analysis(*stages, consumer_ms=10, wait_ms=90), {"p0.1": 0.1})
    assert prediction.value == pytest.approx(2.0)  # MapAndBatch works 50 of 100 ms on its one thread


def test_all_cores_bound_what_parallel_calls_can_give_but_not_what_a_cache_saves():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=2, busy_cores=1.2)
    assert predict(made, {"p0.2": 0.1}).value == pytest.approx(1 / 0.6)  # 1.2 of 2 cores are busy
    saved = predict(made, {"p0.2": 0.0}, {"p0.2": 0.0})  # 75 ms of work less: 0.45 of 2 cores remain
    assert saved.value == pytest.approx(1 / 0.25)  # 25 ms of source remain in 100 ms


def test_pythons_lock_bounds_parallel_calls_unless_the_python_code_sleeps():
    python = (
        iterator(0, "Root", None, 0.0),
        iterator(1, "MapAndBatch", 0, 1.0, 100, parallelism=1, python_ns=80 * MS * STEPS),
    )
    computing = analysis(*python, consumer_ms=10, wait_ms=90, busy_cores=1.1)
    assert predict(computing, {"p0.1": 0.1}).value == pytest.approx(1 / 0.8)
    sleeping = analysis(*python, consumer_ms=10, wait_ms=90, busy_cores=0.3)
    assert predict(sleeping, {"p0.1": 0.1}).value == pytest.approx(10.0)
    contended = analysis(*python, consumer_ms=10, wait_ms=90, busy_cores=0.3, gil_wait=0.3)
    assert predict(contended, {"p0.1": 0.1}).value == pytest.approx(1 / 0.8)


def test_the_spread_of_step_times_widens_the_range():
    narrow = predict(analysis(*BEHIND, consumer_ms=20, wait_ms=80), {"p0.2": 0.2})
    wide = predict(analysis(*BEHIND, consumer_ms=20, wait_ms=80, spread=0.2), {"p0.2": 0.2})
    assert wide.low < narrow.low and wide.high > narrow.high and wide.value == narrow.value


def test_a_prefetch_makes_a_step_as_long_as_the_slower_of_both():
    made = analysis(*SERIAL, consumer_ms=40, wait_ms=60)
    assert predict(made, overlap_factors(made.main)).value == pytest.approx(100 / 60)
    made = analysis(*SERIAL, consumer_ms=70, wait_ms=30)
    assert predict(made, overlap_factors(made.main)).value == pytest.approx(100 / 70)


def test_nothing_is_predicted_from_nothing():
    assert predict(analysis(*SERIAL, consumer_ms=20, wait_ms=0), {"p0.1": 0.0}) is None
    unblamed = tuple(dataclasses.replace(it, blame_share=0.0) for it in SERIAL)
    assert predict(analysis(*unblamed, consumer_ms=20, wait_ms=80), {"p0.1": 0.0}) is None


def test_cores_without_a_recording_are_tf_datas_own_budget():
    root = dataclasses.replace(SERIAL[0], parameters={"cpu_budget": 4})
    made = analysis(root, *SERIAL[1:], consumer_ms=20, wait_ms=80)
    made = dataclasses.replace(made, host=None, usage=None)
    use = core_use(made, made.main)
    assert use is not None
    assert (use.usable, use.own, use.free) == (4, pytest.approx(0.8), pytest.approx(3.2))


def test_cores_used_by_other_processes_may_or_may_not_be_available():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=4, busy_cores=1)
    host = dataclasses.replace(made.host, cores_installed=4)
    usage = dataclasses.replace(made.usage, host_cpu_busy_share=0.75)
    shared = dataclasses.replace(made, host=host, usage=usage)
    use = core_use(shared, shared.main)
    assert (use.own, use.others, use.free) == (1, 2, 2)
    assert use.sentence == "the process uses 1.0 and others 2.0 of 4 cores"
    alone, crowded = predict(made, {"p0.2": 0.0}), predict(shared, {"p0.2": 0.0})
    assert crowded.value == pytest.approx(3.0)  # 1 core's work in the 3 cores that are left if others give a half
    assert crowded.low == pytest.approx(1 + (2 - 1) * 0.7)  # in 2, if others keep what they have
    assert crowded.high == alone.high


def test_what_others_use_does_not_count_where_the_process_has_its_own_part_of_the_machine():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=4, busy_cores=1)
    made = dataclasses.replace(made, usage=dataclasses.replace(made.usage, host_cpu_busy_share=0.9))
    assert core_use(made, made.main).others == 0


@st.composite
def analyses(draw) -> Analysis:
    names = draw(
        st.lists(st.sampled_from(["Map", "Prefetch", "ParallelMapV2", "MapAndBatch", "Batch"]), min_size=1, max_size=6)
    )
    weights = draw(st.lists(st.floats(0, 10), min_size=len(names), max_size=len(names)).filter(lambda w: sum(w) > 0.01))
    nodes = [iterator(0, "Root", None, 0.0)]
    for number, (name, weight) in enumerate(zip(names, weights, strict=True), start=1):
        nodes.append(
            iterator(
                number,
                name,
                number - 1,
                weight / sum(weights),
                draw(st.floats(0, 300)),
                parallelism=draw(st.integers(1, 8)),
                python_ns=draw(st.integers(0, 100)) * MS,
            )
        )
    return analysis(
        *nodes,
        consumer_ms=draw(st.floats(0.1, 100)),
        wait_ms=draw(st.floats(0.1, 100)),
        cores=draw(st.floats(0.5, 64)),
        busy_cores=draw(st.floats(0, 64)),
        gil_wait=draw(st.sampled_from([None, 0.0, 0.9])),
        spread=draw(st.floats(0, 0.3)),
    )


FACTORS = st.lists(st.floats(0, 1), min_size=7, max_size=7)


@given(analyses(), FACTORS, FACTORS)
def test_predictions_stay_between_one_and_the_ceiling(made, cost, work):
    ids = [it.id for it in made.main.iterators]
    prediction = predict(made, dict(zip(ids, cost, strict=False)), dict(zip(ids, work, strict=False)))
    assert 1 <= prediction.low <= prediction.value <= prediction.high
    own = demands(made, made.main)
    most = own.step_ns / own.consumer_ns
    assert prediction.value <= most * (1 + 1e-9) and prediction.high <= BESIDE_INPUT.value * most * (1 + 1e-9)
    if own.core_share == 1:  # nobody waited for a core, so the consumer's own time is what it is
        assert prediction.value <= made.verdict.max_speedup * (1 + 1e-4)


@given(analyses(), FACTORS, FACTORS, st.integers(0, 6), st.floats(0, 1))
def test_a_cheaper_iterator_is_never_predicted_to_slow_the_step(made, cost, work, which, less):
    ids = [it.id for it in made.main.iterators]
    before = dict(zip(ids, cost, strict=False))
    after = dict(zip(ids, [c * less if i == which else c for i, c in enumerate(cost)], strict=False))
    works = dict(zip(ids, work, strict=False))
    assert predict(made, after, works).value >= predict(made, before, works).value * (1 - 1e-9)


@given(analyses())
def test_no_change_is_no_gain(made):
    prediction = predict(made, {})
    assert (prediction.value, prediction.low) == (pytest.approx(1.0), pytest.approx(1.0))
    assert isinstance(made.main, Pipeline)


def alone(made: Analysis, steps_per_epoch: int | None = None) -> Analysis:
    """The same pipeline without its training, read in epochs of so many steps."""
    consumer = Consumer("c0", None, "for", None, iterators=2 if steps_per_epoch else 1, is_main=True)
    times = tuple(range(steps_per_epoch or 0))
    recording = Recording(
        "train.py",
        made.host,
        ScriptExit("stopped"),
        steps=(StepSeries("c0", times),),
        is_pipeline_alone=True,
    )
    pipelines = tuple(dataclasses.replace(pipeline, consumer=consumer) for pipeline in made.pipelines)
    return dataclasses.replace(made, recording=recording, pipelines=pipelines)


def cached(map_ms: float, batch_ms: float, cost: float = 0.0) -> tuple[Analysis, dict[str, float]]:
    """A pipeline alone whose maps would no longer run."""
    whole = map_ms + batch_ms
    made = analysis(
        iterator(0, "Root", None, 0),
        iterator(1, "Prefetch", 0, 0),
        iterator(2, "BatchV2", 1, batch_ms / whole, batch_ms),
        iterator(3, "Map", 2, map_ms / whole, map_ms, function_ns=round(map_ms * MS * STEPS)),
        consumer_ms=0,
        wait_ms=whole,
        busy_cores=1,
    )
    return made, {"p0.3": cost}


def test_remaining_work_costs_half_when_all_other_work_is_removed():
    made, gone = cached(map_ms=99, batch_ms=1)
    prediction = predict(made, gone, gone)
    assert prediction.value == pytest.approx(200, rel=0.02)
    assert prediction.low < 100 * 0.71 and prediction.high > 250


def test_remaining_work_costs_the_same_when_work_is_only_parallelised():
    made, spread = cached(map_ms=99, batch_ms=1, cost=0.5)
    assert predict(made, spread).value == pytest.approx(100 / 50.5, rel=0.01)


def test_a_pipeline_alone_is_no_faster_than_python_takes_and_epochs_begin():
    made, gone = cached(map_ms=9.999, batch_ms=0.001)
    assert predict(alone(made), gone, gone).value == pytest.approx(10 / 0.09, rel=0.01)
    epochs = predict(alone(made, steps_per_epoch=10), gone, gone).value
    assert epochs == pytest.approx((10 + 0.15) / (0.09 + 0.15), rel=0.01)


def test_each_further_component_costs_a_pipeline_alone_its_share_of_a_next():
    made, gone = cached(map_ms=9.999, batch_ms=0.001)
    made = alone(made)
    call = Call("call", "batch", None, element_spec="(TensorSpec(a), RaggedTensorSpec(b), TensorSpec(c))")
    consumer = dataclasses.replace(made.main.consumer, call_id="call")
    pipelines = (dataclasses.replace(made.main, consumer=consumer),)
    made = dataclasses.replace(made, calls=(call,), pipelines=pipelines)
    assert predict(made, gone, gone).value == pytest.approx(10 / (0.09 + 2 * 0.0055), rel=0.01)


def test_what_a_change_adds_to_each_step_is_no_shorter_step():
    made, gone = cached(map_ms=9.999, batch_ms=0.001)
    prediction = predict_speedup(made, made.main, gone, gone, added_ns=1.0 * MS)
    assert prediction.value == pytest.approx(10.0, rel=0.01)


def without_cpu_time(busy_ms: float):
    """Two cores, and no recording that says how much CPU time was used."""
    root = dataclasses.replace(SERIAL[0], parameters={"cpu_budget": 2})
    busy = dataclasses.replace(SERIAL[1], busy_ns=round(busy_ms * MS * STEPS))
    made = analysis(root, busy, *SERIAL[2:], consumer_ms=20, wait_ms=80)
    return dataclasses.replace(made, host=None, usage=None, recording=None)


def test_no_more_cores_are_used_than_there_are():
    made = without_cpu_time(busy_ms=380)  # of steps of 100 ms
    use = core_use(made, made.main)
    assert (use.usable, use.own, use.free, use.is_measured) == (2, 2, 0, False)
    assert use.sentence == "the pipeline uses at most 2.0 of 2 cores (CPU time was not measured)"


def test_the_sentence_names_no_more_cores_than_there_are():
    """The CPU time of a child counts when it ends, also that from before the window."""
    made = analysis(*SERIAL, consumer_ms=20, wait_ms=80, cores=2, busy_cores=3.5)
    assert core_use(made, made.main).sentence == "the process uses 2.0 of 2 cores"


@pytest.mark.parametrize(
    ("use", "is_full"),
    [
        (CoreUse(2, 1.8), True),
        (CoreUse(2, 1.7), False),
        (CoreUse(64, 61.5), True),  # 2.5 more cores would make it 4 % faster
        (CoreUse(64, 60.0), False),
        (CoreUse(64, 50.0, others=14.0), False),
        (CoreUse(2, 2.0, is_measured=False), False),
    ],
)
def test_cores_are_full_if_the_free_ones_would_not_make_it_faster(use, is_full):
    assert use.is_full(min_free=0.25, min_own_share=0.8, min_speedup=1.05) is is_full


def test_cores_of_unknown_load_are_not_reported_as_busy():
    from advisor.rules.host_saturated import HostSaturated

    assert not list(HostSaturated().check(without_cpu_time(busy_ms=380)))


@pytest.mark.skipif(not PROFILES.is_dir(), reason="the shared profiles are not here")
@pytest.mark.parametrize("run", sorted(path.name for path in PROFILES.glob("*") if path.is_dir()))
def test_real_profiles_use_no_more_cores_than_there_are(run):
    try:
        analysed = analyse(read_trace(PROFILES / run), None, run)
    except AdvisorError:
        pytest.skip("it cannot be analysed")
    uses = [use for pipeline in analysed.pipelines if (use := core_use(analysed, pipeline)) is not None]
    if not uses:
        pytest.skip("nothing in it says what the cores did")
    for use in uses:
        assert use.own <= use.usable and not use.is_measured
