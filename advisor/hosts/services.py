"""Which tf.data service workers produce the elements of which consumers.

In: the pipelines of each host.  Out: `Services`, which can be merged, sentences, and the side that is the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from advisor.graph.verdict import MODERATE_WAIT_SHARE
from advisor.hosts.differences import chain_of, short_chain
from advisor.model.catalog import FILE_SOURCES, base_type
from advisor.model.pipeline import Pipeline
from advisor.model.run_hosts import CLIENT, STORAGE, TRAINER, WORKERS, ServiceBottleneck
from advisor.model.units import format_rate, format_share
from advisor.profile.profile_files import few

_MOST = 0.5
"""Share above which "most of" a wait or of a time is meant: more than half."""
MAX_CONSUMERS = 100
"""Maximum number of consumers that get a sentence."""


@dataclass(frozen=True, slots=True)
class Services:
    """The workers and consumers of a tf.data service."""

    chains: dict[tuple[str, ...], str] = field(default_factory=dict)
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
    for worker in workers:
        if worker.bottleneck:
            name = worker.iterator(worker.bottleneck.iterator_id).name
            slowest[name] = slowest.get(name, 0) + 1
    return Services(
        chains={tuple(it.name for it in p.iterators): chain_of(p) for p in workers},
        slowest=slowest,
        rates=sum(rates, Fraction()),
        num_rates=len(rates),
        busy=sum((Fraction(p.wait_share) for p in workers if p.span_ns), Fraction()),
        num_reading=sum(map(_reads, workers)),
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
    if len(services.chains) > 1:
        return (
            f"The tf.data service workers {listed} run {len(services.chains)} different pipelines: their profiles do not show "
            "which worker serves which consumer.",
        )
    slowest = max(services.slowest, key=lambda name: services.slowest[name], default=None)  # the first of several
    behind = f", most of whose time goes to {slowest}" if slowest is not None else ""
    mean = float(services.rates) / services.num_rates if services.num_rates else 0.0
    rate = f", {format_rate(mean)} each" if services.num_rates else ""
    chain = short_chain(next(iter(services.chains.values())))
    sentences = [
        f"{names[place]} gets its elements from the tf.data service workers ({listed}; {format_share(share)} of its wait"
        f" is for them): {chain}{rate}{behind}."
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
    if not services.consumers or not services.num_rates or len(services.chains) > 1:
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
    if busy < _MOST:
        sentence = (
            f"The client's connection is the limit: {waits}, but the workers' pipelines are busy during only "
            f"{format_share(busy)} of the time, because their elements wait until they are fetched. Send smaller elements "
            "(uint8 instead of float32) or larger batches, and compare `compression` None and AUTO; more workers would not help."
        )
        return ServiceBottleneck(CLIENT, sentence)
    slowest = max(services.slowest, key=lambda name: services.slowest[name], default="")
    where = f", most of whose time goes to {slowest}" if slowest else ""
    busy_text = f"{waits}, and the workers' pipelines are busy during {format_share(busy)} of the time{where}"
    if 2 * services.num_reading > services.num_rates:
        sentence = (
            f"The workers' storage is the limit: {busy_text}, which reads files. Read more files at the same time "
            "(`interleave` with num_parallel_calls) or from faster storage; more workers help only if the storage serves them."
        )
        return ServiceBottleneck(STORAGE, sentence)
    sentence = f"The workers' pipeline is the limit: {busy_text}. A faster pipeline or more workers help."
    return ServiceBottleneck(WORKERS, sentence)


def _reads(worker: Pipeline) -> bool:
    """Whether the bottleneck of a worker's pipeline reads files."""
    if worker.bottleneck is None:
        return False
    slowest = worker.iterator(worker.bottleneck.iterator_id)
    return base_type(slowest.name) in FILE_SOURCES or any(op.op == "ReadFile" for op in slowest.ops[:1])
