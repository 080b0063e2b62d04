"""straggler: one host's pipeline holds all the others up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule
from advisor.testing import batch, fires, pipeline, prefetch, silent, source, waiting_hosts


@dataclass(frozen=True)
class Straggler(Rule):
    """Of several hosts, one waits far longer for its input than the others.

    ## Why it is slow
    Where each step ends with an exchange between the hosts (gradients), all of them wait for the slowest one. One
    slow disk, one busy machine or one host with larger files sets the pace of all.

    ## What the fix does
    Look at that host: its pipeline's bottleneck is named, and the report says what is set otherwise there than on the
    others (cores, parallelism, files). Where hosts read different files, give all of them equally much (shard by
    file, then within files). A tf.data service shares the work among machines as they come. It is advice only.

    ## When not to
    When hosts train by themselves and nobody waits for the slow one; the report says whether they step together.

    ## What tf.data already does
    It tunes each host's pipeline by itself and knows nothing of the others.
    """

    needs_input_bound: ClassVar[bool] = False

    min_step_share: float = 0.05
    """Share of the host's step that it waits beyond the median host. XProf's threshold of input-boundness. That a
    host is far from the others at all is tested before (`advisor.hosts`: 3.5 robust deviations)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each host whose wait stands out."""
        if analysis.hosts is None:
            return
        for host in analysis.hosts.hosts:
            if not host.is_straggler or not host.step_median_ns:
                continue
            share = min(1.0, host.excess_wait_ns / host.step_median_ns)
            if share < self.min_step_share:
                continue
            behind = f", behind {host.bottleneck}" if host.bottleneck else ""
            together = (
                " All hosts' steps take equally long, so all lose that time." if analysis.hosts.do_step_together else ""
            )
            yield self.finding(
                f"Look at the input pipeline of {host.hostname}",
                f"{host.hostname} waits {format_ns(host.wait_per_step_ns or 0)} of a step for its input{behind}: "
                f"{format_ns(host.excess_wait_ns)} more than on the median of {len(analysis.hosts.hosts)} "
                f"hosts.{together}",
                evidence=(
                    Evidence("excess_wait", host.excess_wait_ns, "ns"),
                    Evidence("excess_step_share", share, "share"),
                    Evidence("hosts", len(analysis.hosts.hosts)),
                ),
            )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(
        pipeline(*_STAGES, consumer_ms=100, hosts=waiting_hosts("worker2", worker0=1, worker1=2, worker2=40, worker3=1))
    ),
    fires(pipeline(*_STAGES, consumer_ms=100, hosts=waiting_hosts("worker1", worker0=0, worker1=20))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, hosts=waiting_hosts(worker0=40, worker1=41, worker2=39)),
        because="all hosts wait equally long: the pipeline is slow, no host is",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, hosts=waiting_hosts("worker1", worker0=0, worker1=2)),
        because="2 % of a step are not worth a search",
    ),
    silent(pipeline(*_STAGES, consumer_ms=100), because="there is one host"),
)
