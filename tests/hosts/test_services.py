"""On which side of a tf.data service the bottleneck is, from real captures: whole ones, and one whose times are changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.hosts import analyse_path
from advisor.hosts.differences import chain_of, difference_sentences, differences_of
from advisor.hosts.services import Services, service_bottleneck, service_sentences, services_of
from advisor.model.catalog import base_type
from advisor.model.pipeline import Iterator, OpCost, Pipeline

DATA = Path(__file__).parent / "data"
SERVICE = DATA / "service"
NAMES = {0: "trainer", 1: "worker"}


@pytest.fixture(scope="module")
def pipelines() -> tuple[Pipeline, Pipeline]:
    """Those of the trainer and of the worker."""
    pipelines = analyse_path(SERVICE, None, "run").pipelines
    consumer = next(p for p in pipelines if any(base_type(it.name) == "DataService" for it in p.iterators))
    return consumer, next(p for p in pipelines if p.serves_elements)


def waiting(pipeline: Pipeline, share: float) -> Pipeline:
    return replace(pipeline, wait_ns=round(share * pipeline.span_ns))


def blamed(pipeline: Pipeline, share: float) -> Pipeline:
    """The trainer, of whose wait that share is for the service."""
    service = next(it for it in pipeline.iterators if base_type(it.name) == "DataService")

    def with_share(it: Iterator) -> Iterator:
        return replace(it, blame_share=share if it is service else 0.0)

    return replace(pipeline, iterators=tuple(map(with_share, pipeline.iterators)))


def limit_of(consumer: Pipeline, *workers: Pipeline):
    services = services_of(0, [consumer])
    for worker in workers:
        services = services.plus(services_of(1, [worker]))
    return service_bottleneck(services, NAMES)


def test_a_trainer_that_does_not_wait_is_the_limit(pipelines):
    consumer, worker = pipelines
    limit = limit_of(waiting(consumer, 0.02), waiting(worker, 0.9))
    assert limit.side == "trainer" and "2 % of a step" in limit.sentence


def test_a_trainer_that_prepares_the_elements_itself_is_the_limit(pipelines):
    consumer, worker = pipelines
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.1), waiting(worker, 0.9))
    assert limit.side == "trainer" and "before" in limit.sentence


def test_workers_whose_elements_are_not_fetched_show_a_slow_client(pipelines):
    consumer, worker = pipelines
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(worker, 0.2), waiting(worker, 0.3))
    assert limit.side == "client" and "only 25 % of the time" in limit.sentence


def test_busy_workers_are_the_limit(pipelines):
    consumer, worker = pipelines
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(worker, 0.97))
    assert limit.side == "workers" and "most of whose time goes to MapAndBatch" in limit.sentence


def reading(worker: Pipeline, refill_share: float, name: str = "TFRecord") -> Pipeline:
    """The worker with a reader as its bottleneck; that share of its time goes to few long calls."""
    slowest = worker.iterator(worker.bottleneck.iterator_id)
    changed = replace(slowest, name=name, self_ns=1_000_000_000, refill_ns=round(refill_share * 1e9))
    return replace(worker, iterators=tuple(changed if it is slowest else it for it in worker.iterators))


def test_readers_that_wait_in_few_calls_wait_for_their_storage(pipelines):
    consumer, worker = pipelines
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(reading(worker, 0.8), 0.97))
    assert limit.side == "storage" and "TFRecord" in limit.sentence


def test_readers_whose_calls_take_equally_long_may_also_unpack(pipelines):
    consumer, worker = pipelines
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(reading(worker, 0.2), 0.97))
    assert limit.side == "workers" and "does not tell whether it unpacks records or waits" in limit.sentence
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(reading(worker, 0.8, "Sleep"), 0.97))
    assert limit.side == "workers" and "reads files" not in limit.sentence


@pytest.mark.parametrize(("read_ms", "side"), [(60, "storage"), (40, "workers")])
def test_functions_read_files_if_most_of_their_time_goes_to_it(pipelines, read_ms, side):
    consumer, worker = pipelines
    slowest = worker.iterator(worker.bottleneck.iterator_id)
    ops = (OpCost("ReadFile", 9, read_ms * 1_000_000), OpCost("DecodeJpeg", 9, (100 - read_ms) * 1_000_000))
    iterators = tuple(replace(it, ops=ops) if it is slowest else it for it in worker.iterators)
    limit = limit_of(blamed(waiting(consumer, 0.6), 0.9), waiting(replace(worker, iterators=iterators), 0.97))
    assert limit.side == side


@pytest.mark.parametrize(
    ("case", "side", "words"), [("unzip", "workers", "unpacks records"), ("slow_link", "client", "elements wait")]
)
def test_captures_of_planted_causes(case, side, words):
    hosts = analyse_path(DATA / case, None, "run").hosts
    assert hosts.service_bottleneck.side == side and words in hosts.service_bottleneck.sentence
    assert "(worker-0, worker-1;" in hosts.services[0]


def tree(*names_and_parents: tuple[str, str | None]) -> Pipeline:
    """A worker's pipeline of iterators with these names and names of their consumers."""
    iterators = tuple(Iterator(name, parent, name.rstrip("0123456789"), name) for name, parent in names_and_parents)
    return Pipeline("p0", "worker", iterators, serves_elements=True, wait_ns=99, span_ns=100, num_elements=9)


ROOT = (("Root", None), ("Interleave", "Root"))
FILES, RECORDS = ("TensorSlice", "Interleave"), ("TFRecord", "Interleave")


def test_the_order_in_which_inputs_ran_first_makes_no_other_pipeline(pipelines):
    one, other = tree(*ROOT, FILES, RECORDS), tree(*ROOT, RECORDS, FILES)
    assert chain_of(one) == chain_of(other)
    assert limit_of(blamed(waiting(pipelines[0], 0.6), 0.9), one, other).side == "workers"
    trainers = [differences_of(place, replace(p, serves_elements=False)) for place, p in enumerate((one, other))]
    assert not difference_sentences(trainers[0].plus(trainers[1]), NAMES)


def test_a_worker_whose_inputs_did_not_run_in_its_window_runs_the_same_pipeline(pipelines):
    consumer = blamed(waiting(pipelines[0], 0.6), 0.9)
    whole, part = tree(*ROOT, FILES, RECORDS), tree(*ROOT, RECORDS)
    assert limit_of(consumer, whole, part).side == limit_of(consumer, part, whole).side == "workers"
    services = services_of(0, [consumer]).plus(services_of(1, [part])).plus(services_of(2, [whole]))
    assert "TFRecord -> TensorSlice -> Interleave" in service_sentences(services, NAMES, ["worker"])[0]
    for different in (
        tree(("Root", None), ("Batch", "Root"), ("TFRecord", "Batch")),
        tree(*ROOT, ("Range", "Interleave")),
    ):
        assert limit_of(consumer, whole, different) is None


def test_nothing_is_said_without_both_sides(pipelines):
    consumer, worker = pipelines
    assert limit_of(consumer) is None
    assert service_bottleneck(services_of(1, [worker]), NAMES) is None
    assert service_bottleneck(Services(), NAMES) is None
