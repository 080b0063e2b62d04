"""Which tf.data service workers produce the elements of which consumers.

In: the pipelines of each host.  Out: `Services`, which can be merged, sentences, and the side that is the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from advisor.host.calibration.hosts import BUSY_SHARE
from advisor.hosts.differences import chain_of, from_sources, short_chain
from advisor.model.catalog import FILE_SOURCES, base_type
from advisor.model.pipeline import Iterator, Pipeline
from advisor.model.run_hosts import CLIENT, STORAGE, TRAINER, WORKERS, ServiceBottleneck
from advisor.model.units import format_rate, format_share
from advisor.model.wait_shares import MODERATE_WAIT_SHARE
from advisor.profile.profile_files import few

_MOST = 0.5
"""Share above which "most of" a wait or of a time is meant: more than half."""
MAX_CONSUMERS = 100
"""Maximum number of consumers that get a sentence."""
_Shape = tuple[tuple[int, str], ...]
"""(depth, type) of the iterators of a pipeline, the root first."""


@dataclass(frozen=True, slots=True)
class Services:
    """The workers and consumers of a tf.data service."""

    chains: dict[_Shape, str] = field(default_factory=dict)
    """Iterators of the workers' pipelines -> the same as a chain."""
    slowest: dict[str, int] = field(default_factory=dict)
    """Bottleneck of workers -> number of their pipelines."""
    rates: Fraction = Fraction()
    """Sum of the workers' rates in elements/s; exact, so that it does not depend on the order of the hosts."""
    num_rates: int = 0
    busy: Fraction = Fraction()
    """Sum of the shares of the time that the workers' threads wait for their own pipeline; the rest of the time, elements wait
    for the client."""
    num_reading: int = 0
    """Number of the workers' pipelines whose bottleneck reads files."""
    num_waiting: int = 0
    """Number of those of them whose bottleneck was seen to wait for the storage."""
    consumers: tuple[tuple[int, float, float], ...] = ()
    """(place of the host, share of its wait, share of its steps that it waits) of the first `MAX_CONSUMERS` consumers."""
    num_consumers: int = 0

    def plus(self, later: Services) -> Services:
        """Return the service of these hosts and later ones."""
        slowest = dict(self.slowest)
        for name, count in later.slowest.items():
            slowest[name] = slowest.get(name, 0) + count
        return Services(
            {**self.chains, **later.chains},
            slowest,
            self.rates + later.rates,
            self.num_rates + later.num_rates,
            self.busy + later.busy,
            self.num_reading + later.num_reading,
            self.num_waiting + later.num_waiting,
            (*self.consumers, *later.consumers)[:MAX_CONSUMERS],
            self.num_consumers + later.num_consumers,
        )


def services_of(place: int, pipelines: Sequence[Pipeline]) -> Services:
    """Return the service as one host shows it."""
    workers = [p for p in pipelines if p.serves_elements]
    rates = [Fraction(p.elements_per_s) for p in workers if p.span_ns]
    consumers = tuple(
        (place, sum(it.blame_share for it in p.iterators if base_type(it.name) == "DataService"), p.wait_share)
        for p in pipelines
        if any(base_type(it.name) == "DataService" for it in p.iterators)
    )
    slowest: dict[str, int] = {}
    worst = [worker.iterator(worker.bottleneck.iterator_id) for worker in workers if worker.bottleneck]
    for it in worst:
        slowest[it.name] = slowest.get(it.name, 0) + 1
    return Services(
        chains={_shape_of(p): chain_of(p) for p in workers},
        slowest=slowest,
        rates=sum(rates, Fraction()),
        num_rates=len(rates),
        busy=sum((Fraction(p.wait_share) for p in workers if p.span_ns), Fraction()),
        num_reading=sum(map(_reads, worst)),
        num_waiting=sum(map(_waits_for_storage, worst)),
        consumers=consumers[:MAX_CONSUMERS],
        num_consumers=len(consumers),
    )


def service_sentences(services: Services, names: Mapping[int, str], workers: Sequence[str]) -> tuple[str, ...]:
    """Describe which workers produce the elements for the consumers, if it is unambiguous.

    Args:
        services: The service of all hosts.
        names: Place -> name of the host.
        workers: Names of the hosts that run a worker.
    """
    if not services.chains or not services.consumers:
        return ()
    listed = few(sorted(set(workers)))
    shapes = _whole(services.chains)
    if len(shapes) > 1:
        return (
            f"The tf.data service workers {listed} run {len(shapes)} different pipelines: their profiles do not show "
            "which worker serves which consumer.",
        )
    slowest = max(services.slowest, key=lambda name: services.slowest[name], default=None)  # the first of several
    cause = f", most of whose time goes to {slowest}" if slowest is not None else ""
    mean = float(services.rates) / services.num_rates if services.num_rates else 0.0
    rate = f", {format_rate(mean)} each" if services.num_rates else ""
    chain = short_chain(services.chains[shapes[0]])
    sentences = [
        f"{names[place]} gets its elements from the tf.data service workers ({listed}; {format_share(share)} of its wait"
        f" is for them): {chain}{rate}{cause}."
        for place, share, _ in services.consumers
    ]
    if services.num_consumers > len(sentences):
        sentences.append(f"The same holds for {services.num_consumers - len(sentences)} more consumers.")
    return tuple(sentences)


def service_bottleneck(services: Services, names: Mapping[int, str]) -> ServiceBottleneck | None:
    """Return what limits the consumer that waits most; None if nothing is known of workers or consumers.

    A worker's thread asks its pipeline for the next element as soon as the one before has found a place in a small buffer. If it
    waits for the pipeline nearly all the time, the pipeline is too slow. If not, the buffer is full, and elements wait for the
    client.

    Args:
        services: The service of all hosts.
        names: Place -> name of the host.
    """
    if not services.consumers or not services.num_rates or len(_whole(services.chains)) > 1:
        return None
    place, share, wait = max(services.consumers, key=lambda consumer: consumer[2])
    name, busy = names[place], float(services.busy) / services.num_rates
    waits = f"{name} waits for input during {format_share(wait)} of a step"
    if wait < MODERATE_WAIT_SHARE:
        return ServiceBottleneck(TRAINER, f"The trainer is the limit: {waits}, so more workers would not help.")
    if share < _MOST:
        sentence = (
            f"The trainer's own part of the pipeline is the limit: {waits}, and only {format_share(share)} of that is for "
            "elements of the workers. Move what follows `distribute` before it."
        )
        return ServiceBottleneck(TRAINER, sentence)
    if busy < BUSY_SHARE.value:
        sentence = (
            f"The client's connection is the limit: {waits}, but the workers' pipelines are busy during only "
            f"{format_share(busy)} of the time, because their elements wait until they are fetched. Send smaller elements "
            "(uint8 instead of float32) or larger batches, and compare `compression` None and AUTO; more workers would not help."
        )
        return ServiceBottleneck(CLIENT, sentence)
    slowest = max(services.slowest, key=lambda name: services.slowest[name], default="")
    where = f", most of whose time goes to {slowest}" if slowest else ""
    busy_text = f"{waits}, and the workers' pipelines are busy during {format_share(busy)} of the time{where}"
    if services.num_waiting > _MOST * services.num_rates:
        sentence = (
            f"The workers' storage is the limit: {busy_text}, which reads files. Read more files at the same time "
            "(`interleave` with num_parallel_calls) or from faster storage; more workers help only if the storage serves them."
        )
        return ServiceBottleneck(STORAGE, sentence)
    if services.num_reading > _MOST * services.num_rates:
        sentence = (
            f"The workers' pipeline is the limit: {busy_text}, which reads files. Its profile does not tell whether it unpacks "
            "records or waits for slow storage: if the cores of a worker are idle, it waits. More workers help, unless they wait "
            "for the same storage."
        )
        return ServiceBottleneck(WORKERS, sentence)
    sentence = f"The workers' pipeline is the limit: {busy_text}. A faster pipeline or more workers help."
    return ServiceBottleneck(WORKERS, sentence)


def _shape_of(pipeline: Pipeline) -> _Shape:
    depths: dict[str | None, int] = {}
    for it in pipeline.iterators:
        depths[it.id] = depths.get(it.parent_id, -1) + 1
    return tuple((depths[it.id], it.name) for it in reversed(from_sources(pipeline)))


def _whole(shapes: Iterable[_Shape]) -> list[_Shape]:
    """Return the different pipelines. One that lacks only inputs of another is the same: none of them ran in its window."""
    wholes: list[_Shape] = []
    for shape in sorted(shapes, key=len, reverse=True):
        if not any(_contains(whole, shape) for whole in wholes):
            wholes.append(shape)
    return wholes


def _contains(whole: _Shape, part: _Shape) -> bool:
    """Whether a pipeline becomes `part` if inputs are left out."""
    following = iter(whole)
    for depth, name in part:
        for other_depth, other_name in following:
            if other_depth < depth:  # the consumer has no more inputs
                return False
            if (other_depth, other_name) == (depth, name):
                break
        else:
            return False
    return True


def _reads(slowest: Iterator) -> bool:
    """Whether the bottleneck of a worker's pipeline reads files."""
    return base_type(slowest.name) in FILE_SOURCES or _reads_in_function(slowest)


def _waits_for_storage(slowest: Iterator) -> bool:
    """Whether it was seen that the bottleneck waits for the storage.

    `ReadFile` does nothing else. A reader of records also unpacks and parses. It has waited only if few calls take most of its
    time, those that fill its buffer, and each of them takes longer than unpacking a buffer.
    """
    if base_type(slowest.name) in FILE_SOURCES:
        return (slowest.refill_ns or 0) > _MOST * slowest.self_ns
    return _reads_in_function(slowest)


def _reads_in_function(slowest: Iterator) -> bool:
    """Whether most of the time of the iterator's functions goes to reading whole files."""
    reading = sum(op.total_ns for op in slowest.ops if op.op == "ReadFile")
    return reading > _MOST * sum(op.total_ns for op in slowest.ops)
