"""cpu-budget-mismatch: autotuning counts on more cores than the process may use."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    Safety,
    SetOption,
    consumed_call,
    is_editable,
    place,
    upstream_calls,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, options, pipeline, prefetch, silent, source

OPTION = "autotune.cpu_budget"


@dataclass(frozen=True)
class CpuBudgetMismatch(Rule):
    """tf.data's autotuning has a budget of more cores than the process may use.

    ## Why it is slow
    Autotuning gives out parallel calls until its budget of cores is used up. With a budget beyond the cores that there are, it
    starts more calls than can run; they take turns, hold an element each in memory, and take cores from the training step.

    ## What the fix does
    It removes the line that sets the budget, so that tf.data looks at the machine. Elements and order stay the same. Where the
    script sets none (in a container with a CPU quota tf.data counts the machine's cores, which it may not use), the rule advises
    to set `options.autotune.cpu_budget` to the cores of the quota. Nothing was faster by it where it was measured (two cores,
    budget 128: docs/decisions/0010), so the change is shown and never applied.

    ## When not to
    When most parallel calls wait for something outside (a server, a network disk): then more of them than cores are right.

    ## What tf.data already does
    Its default is the number of cores that the process may be scheduled on, by CPU affinity. It does not look at quotas.
    """

    max_budget_ratio: float = 2.0
    """Budget over usable cores up to which nothing is said. Up to two calls per core hide each other's short waits."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding if the budget is far beyond the cores and something is tuned by it."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None:
            return
        budget = pipeline.root.parameters.get("cpu_budget")
        is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
        tuned = [it for it in pipeline.iterators if it.is_autotuned and it.parallelism is not None]
        if not is_number or not isinstance(budget, int | float) or not tuned:
            return
        if budget <= self.max_budget_ratio * host.cores:
            return
        consumed = consumed_call(analysis, pipeline)
        chain = upstream_calls(analysis, consumed) if consumed else ()
        call = next((each for each in chain if each.options.get(OPTION) is not None), None)
        most = max(it.parallelism or 1 for it in tuned)
        where = f", set at {place(call)}," if call else ""
        yield self.finding(
            f"Remove {OPTION}" if call else f"Set options.{OPTION} = {max(1, round(host.cores))}",
            f"tf.data's budget of {budget:g} cores{where} is {budget / host.cores:.1f} times the {host.cores:g} cores "
            f"that the process may use; it runs up to {most} parallel calls of one transformation.",
            call=call,
            fix=Fix((SetOption(call.id, OPTION, None),), Safety.EXACT, is_auto=False, is_provable=False)
            if call is not None and is_editable(call)
            else None,
            evidence=(
                Evidence("cpu_budget", float(budget), "cores"),
                Evidence("usable_cores", host.cores, "cores"),
                Evidence("parallelism", most, "calls"),
            ),
        )


_SET = options(autotune__cpu_budget=128)

EXAMPLES = (
    fires(
        pipeline(
            source(), map_("decode", ms=5, calls=AUTOTUNE), _SET, batch(16), consumer_ms=2, cores=4, cpu_budget=128
        ),
        fixed="options = tf.data.Options()\nds = ds.with_options(options)",
    ),
    fires(
        pipeline(source(), map_("decode", ms=5), batch(16), prefetch(), consumer_ms=2, cores=2, cpu_budget=64),
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(16), prefetch(), consumer_ms=2, cores=4),
        because="the budget is that of the machine",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=4), prefetch(4), consumer_ms=2, cores=4, cpu_budget=128),
        because="nothing is tuned",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(16), prefetch(), consumer_ms=2, cores=4, cpu_budget=6),
        because="the budget is a little above the cores only",
    ),
)
