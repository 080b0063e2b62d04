"""On which side of a tf.data service the bottleneck is, from real captures of a trainer and a worker with changed times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.hosts import analyse_path
from advisor.hosts.services import Services, service_bottleneck, services_of
from advisor.model.catalog import base_type
from advisor.model.pipeline import Iterator, Pipeline

SERVICE = Path(__file__).parent / "data/service"
NAMES = {0: "trainer", 1: "worker"}


@pytest.fixture(scope="module")
def pipelines() -> tuple[Pipeline, Pipeline]:
    """Those of the trainer and of the worker."""
    found = analyse_path(SERVICE, None, "run").pipelines
    consumer = next(p for p in found if any(base_type(it.name) == "DataService" for it in p.iterators))
    return consumer, next(p for p in found if p.serves_elements)


def waiting(pipeline: Pipeline, share: float) -> Pipeline:
    return replace(pipeline, wait_ns=round(share * pipeline.span_ns))


def blamed(pipeline: Pipeline, share: float) -> Pipeline:
    """The trainer, of whose wait that share is for the service."""
    service = next(it for it in pipeline.iterators if base_type(it.name) == "DataService")

    def with_share(it: Iterator) -> Iterator:
        return replace(it, blame_share=share if it is service else 0.0)

    return replace(pipeline, iterators=tuple(map(with_share, pipeline.iterators)))


def found(consumer: Pipeline, *workers: Pipeline):
    services = services_of(0, [consumer])
    for worker in workers:
        services = services.plus(services_of(1, [worker]))
    return service_bottleneck(services, NAMES)


def test_a_trainer_that_does_not_wait_is_the_limit(pipelines):
    consumer, worker = pipelines
    limit = found(waiting(consumer, 0.02), waiting(worker, 0.9))
    assert limit.side == "trainer" and "2 % of a step" in limit.sentence


def test_a_trainer_that_prepares_the_elements_itself_is_the_limit(pipelines):
    consumer, worker = pipelines
    limit = found(blamed(waiting(consumer, 0.6), 0.1), waiting(worker, 0.9))
    assert limit.side == "trainer" and "before" in limit.sentence


def test_workers_whose_elements_are_not_fetched_show_a_slow_client(pipelines):
    consumer, worker = pipelines
    limit = found(blamed(waiting(consumer, 0.6), 0.9), waiting(worker, 0.2), waiting(worker, 0.3))
    assert limit.side == "client" and "only 25 % of the time" in limit.sentence


def test_busy_workers_are_the_limit(pipelines):
    consumer, worker = pipelines
    limit = found(blamed(waiting(consumer, 0.6), 0.9), waiting(worker, 0.97))
    assert limit.side == "workers" and "most of whose time goes to MapAndBatch" in limit.sentence


def test_busy_workers_that_read_files_wait_for_their_storage(pipelines):
    consumer, worker = pipelines
    slowest = worker.bottleneck.iterator_id
    reading = replace(
        worker,
        iterators=tuple(replace(it, name="TFRecord") if it.id == slowest else it for it in worker.iterators),
    )
    limit = found(blamed(waiting(consumer, 0.6), 0.9), waiting(reading, 0.97))
    assert limit.side == "storage" and "TFRecord" in limit.sentence


def test_nothing_is_said_without_both_sides(pipelines):
    consumer, worker = pipelines
    assert found(consumer) is None
    assert service_bottleneck(services_of(1, [worker]), NAMES) is None
    assert service_bottleneck(Services(), NAMES) is None
    other = replace(worker, iterators=worker.iterators[:1], bottleneck=None)
    assert found(consumer, worker, other) is None, "workers of different pipelines"
