"""cpu-budget-mismatch: autotuning assumes more cores than the process may use."""

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
    """The CPU budget of tf.data's autotuning exceeds the number of cores available to the process.

    ## Why it is slow
    Autotuning assigns parallel calls until its CPU budget is used up. If the budget exceeds the available cores, it
    starts more calls than can run at once. They compete for the cores, each holds an element in memory, and they take
    cores away from the training step.

    ## What the fix does
    It removes the line that sets the budget, so that tf.data uses the number of cores. Elements and order stay the
    same. If the script sets no budget (in a container with a CPU quota, tf.data counts the cores of the machine), the
    recommendation is to set `options.autotune.cpu_budget` to the quota. The change brought no speedup where it was
    measured (two cores, budget 128: docs/decisions/0010), so it is shown but never applied.

    ## When not to
    When most parallel calls wait for an external resource, such as a server or a network disk. More calls than cores
    are then appropriate.

    ## What tf.data already does
    Its default budget is the number of cores in the CPU affinity mask of the process. It ignores CPU quotas.
    """

    max_budget_ratio: float = 2.0
    """Ratio of the budget to the usable cores. Up to two calls per core can hide each other's short waits."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the budget far exceeds the cores and applies to a tuned transformation."""
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
        call = next((upstream for upstream in chain if upstream.options.get(OPTION) is not None), None)
        most = max(it.parallelism or 1 for it in tuned)
        where = f", set at {place(call)}," if call else ""
        yield self.finding(
            f"Remove {OPTION}" if call else f"Set options.{OPTION} = {max(1, round(host.cores))}",
            f"tf.data's budget of {budget:g} cores{where} is {budget / host.cores:.1f} times the {host.cores:g} cores "
            f"available to the process. It runs up to {most} parallel calls of one transformation.",
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
        because="the budget matches the machine",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=4), prefetch(4), consumer_ms=2, cores=4, cpu_budget=128),
        because="nothing is tuned",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(16), prefetch(), consumer_ms=2, cores=4, cpu_budget=6),
        because="the budget exceeds the cores only slightly",
    ),
)
