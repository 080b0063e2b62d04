"""straggler: the pipeline of one host slows down all the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule
from advisor.testing import batch, fires, pipeline, prefetch, silent, source, waiting_hosts


@dataclass(frozen=True)
class Straggler(Rule):
    """One of several hosts waits far longer for its input than the others.

    ## Why it is slow
    If each step ends with an exchange between the hosts (gradients), all of them wait for the slowest. A single slow
    disk, busy machine or host with larger files limits the speed of all.

    ## What the fix does
    Look at the named host: the finding contains the bottleneck of its pipeline, and the report lists the settings that
    differ from the other hosts (cores, parallelism, files). If hosts read different files, give each the same amount of
    data (shard by file, then within files). A tf.data service distributes the work dynamically. This is advice only.

    ## When not to
    When hosts train independently and none waits for the slow one; the report shows whether their steps are
    synchronous.

    ## What tf.data already does
    It tunes the pipeline of each host separately, without information about the others.
    """

    needs_input_bound: ClassVar[bool] = False

    min_step_share: float = 0.05
    """Share of the host's step that it waits longer than the median host. XProf's threshold for input-bound programs.
    Whether a host is an outlier at all is tested separately (`advisor.hosts`: 3.5 robust deviations)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each host with an outlying wait."""
        if analysis.hosts is None:
            return
        for host in analysis.hosts.hosts:
            if not host.is_straggler or not host.step_median_ns:
                continue
            share = min(1.0, host.excess_wait_ns / host.step_median_ns)
            if share < self.min_step_share:
                continue
            bottleneck = f", mainly for {host.bottleneck}" if host.bottleneck else ""
            together = (
                " The steps of all hosts take equally long, so all of them lose this time."
                if analysis.hosts.do_step_together
                else ""
            )
            yield self.finding(
                f"Look at the input pipeline of {host.hostname}",
                f"{host.hostname} waits {format_ns(host.wait_per_step_ns or 0)} per step for its input{bottleneck}: "
                f"{format_ns(host.excess_wait_ns)} more than the median of {len(analysis.hosts.hosts)} "
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
        because="all hosts wait equally long: the pipeline is slow, not a single host",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, hosts=waiting_hosts("worker1", worker0=0, worker1=2)),
        because="the difference is only 2 % of a step",
    ),
    silent(pipeline(*_STAGES, consumer_ms=100), because="there is only one host"),
)
