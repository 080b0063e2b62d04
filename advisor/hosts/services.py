"""Which tf.data service workers produce the elements of which consumers.

In: the pipelines of each host.  Out: `Services`, which can be merged, and sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from advisor.hosts.differences import chain_of, short_chain
from advisor.model.catalog import base_type
from advisor.model.pipeline import Pipeline
from advisor.model.units import format_rate, format_share
from advisor.profile.profile_files import few

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
    consumers: tuple[tuple[int, float], ...] = ()
    """(place of the host, share of its wait) of the first `MAX_CONSUMERS` consumers."""
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
            (*self.consumers, *later.consumers)[:MAX_CONSUMERS],
            self.num_consumers + later.num_consumers,
        )


def services_of(place: int, pipelines: Sequence[Pipeline]) -> Services:
    """Return the service as one host shows it."""
    workers = [p for p in pipelines if p.serves_elements]
    rates = [Fraction(p.elements_per_s) for p in workers if p.span_ns]
    consumers = tuple(
        (place, sum(it.blame_share for it in p.iterators if base_type(it.name) == "DataService"))
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
        for place, share in services.consumers
    ]
    if services.num_consumers > len(sentences):
        sentences.append(f"The same holds for {services.num_consumers - len(sentences)} more consumers.")
    return tuple(sentences)
