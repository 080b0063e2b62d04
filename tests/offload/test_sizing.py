"""How many workers, and when more of them do not help."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.offload_result import MOVABLE, Movability, ServiceMeasurement, ServiceRate
from advisor.offload.legality import judge
from advisor.offload.sizing import Machines, faster, size, speedup_at
from advisor.testing import batch, map_, pipeline, prefetch, repeat, source, take

FAST = ServiceRate("AUTO", 20.0, 10.0, 9.0, 11.0, client_cpu_s=0.001, dispatcher_cpu_s=0.0, elements=100, seconds=5.0)
MEASURED = ServiceMeasurement(rates=(FAST,), element_bytes=1e6, local_elements_per_s=18.0, local_cpu_s=0.09)


def sized(measured: ServiceMeasurement = MEASURED, machines: Machines | None = None, **changes):
    """A training that consumes 200 batches per second at most, and gets fewer."""
    analysis = pipeline(
        source(), repeat(), map_("decode", ms=5), batch(32), prefetch(), consumer_ms=5, cores=4
    ).analysis
    return size(analysis, dataclasses.replace(judge(analysis), **changes), measured, machines or Machines())


def test_workers_are_the_wanted_rate_over_the_rate_of_a_worker_with_a_range():
    sizing = sized()
    assert sizing.verdict == "workers" and sizing.limit == ""
    assert sizing.wanted_per_s == pytest.approx(200, rel=0.05)
    assert sizing.worker_per_s == pytest.approx(40)
    assert sizing.workers in (5, 6)
    assert sizing.workers_low <= sizing.workers <= sizing.workers_high and sizing.workers_high > sizing.workers_low
    assert f"It takes {sizing.workers} workers" in sizing.sentence


def test_more_cores_per_worker_take_fewer_workers():
    assert sized(machines=Machines(worker_cores=32)).workers == 1


def test_the_network_is_named_when_it_is_the_limit():
    sizing = sized(dataclasses.replace(MEASURED, element_bytes=20e6))
    assert sizing.limit == "network" and "10 Gbit/s" in sizing.sentence
    assert sizing.reachable_per_s < sizing.wanted_per_s
    wide = sized(dataclasses.replace(MEASURED, element_bytes=20e6), Machines(network_bytes_per_s=12.5e9))
    assert wide.limit == ""


def test_nothing_is_gained_if_the_network_already_carries_what_the_host_makes():
    sizing = sized(dataclasses.replace(MEASURED, element_bytes=500e6))
    assert (sizing.verdict, sizing.limit, sizing.workers) == ("no gain", "network", None)


def test_the_client_is_named_when_receiving_takes_its_cores():
    slow = dataclasses.replace(FAST, client_cpu_s=0.04)
    sizing = sized(dataclasses.replace(MEASURED, rates=(slow,)))
    assert sizing.limit == "client" and "CPU time" in sizing.sentence


def test_the_dispatcher_is_named_when_it_hands_out_single_elements():
    busy = dataclasses.replace(FAST, dispatcher_cpu_s=0.01)
    sizing = sized(dataclasses.replace(MEASURED, rates=(busy,)))
    assert sizing.limit == "dispatcher" and "every part of the source" in sizing.sentence
    assert sizing.reachable_per_s == pytest.approx(100)


def test_a_training_that_does_not_wait_needs_no_workers():
    analysis = pipeline(source(), map_("decode", ms=0.01), batch(32), prefetch(), consumer_ms=100, cores=8).analysis
    sizing = size(analysis, judge(analysis), MEASURED, Machines())
    assert (sizing.verdict, sizing.limit) == ("no gain", "model")
    assert sizing.sentence.startswith("More workers will not help: the model")


def test_a_source_with_few_parts_limits_the_workers():
    sizing = sized(max_workers=2)
    assert (sizing.workers, sizing.limit) == (2, "source")
    assert "only 2 parts" in sizing.sentence


def test_batches_made_here_count_as_many_elements_from_the_workers():
    analysis = pipeline(
        source(), map_("decode", ms=5), take(321), batch(32), prefetch(), consumer_ms=5, cores=4
    ).analysis
    movability = judge(analysis)
    assert movability.after_method == "map"
    sizing = size(analysis, movability, dataclasses.replace(MEASURED, element_bytes=1e3), Machines())
    assert sizing.wanted_per_s == pytest.approx(32 * 200, rel=0.05)


def test_the_default_compression_wins_unless_the_other_takes_less():
    same = dataclasses.replace(FAST, compression="none")
    assert faster((FAST, same)).compression == "AUTO"
    cheap = dataclasses.replace(same, elements_per_core_s=20.0)
    assert faster((FAST, cheap)).compression == "none"


def test_without_a_measurement_the_number_is_unknown():
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, cores=4).analysis
    sizing = size(analysis, Movability(MOVABLE, ""), ServiceMeasurement(), Machines())
    assert sizing.verdict == "unknown" and sizing.workers is None


def test_the_cost_of_the_service_is_said():
    assert any("the CPU time of the local pipeline" in note for note in sized().notes)


def test_a_worker_that_leaves_the_cores_idle_waits_and_more_cores_do_not_help():
    waiting = dataclasses.replace(
        FAST, elements_per_core_s=400.0, elements_per_core_s_low=300.0, elements_per_core_s_high=500.0
    )
    measured = dataclasses.replace(MEASURED, rates=(waiting,))
    sizing = sized(measured)
    assert sizing.worker_per_s == 20.0 and sizing.workers == 10
    assert (sizing.workers_low, sizing.workers_high) == (10, 10)
    assert sized(measured, Machines(worker_cores=32)).workers == 10
    assert any("waits for something else" in note for note in sizing.notes)
    assert not any("waits for something else" in note for note in sized().notes)


def test_what_a_service_promises_ends_at_the_rate_of_the_training():
    analysis = pipeline(
        source(), repeat(), map_("decode", ms=5), batch(32), prefetch(), consumer_ms=5, cores=4
    ).analysis
    movability = judge(analysis)
    now = analysis.main.elements_per_s
    assert speedup_at(analysis, movability, 2 * now) == pytest.approx(2)
    most = speedup_at(analysis, movability, 1e9)
    assert most == pytest.approx(1 / (1 - analysis.main.wait_share))
    assert speedup_at(dataclasses.replace(analysis, pipelines=()), movability, 5.0) is None
