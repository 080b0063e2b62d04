"""autotune-ram: tf.data's RAM budget exceeds the memory available to the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes
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
from advisor.testing import batch, fires, map_, options, pipeline, prefetch, silent, source

OPTION = "autotune.ram_budget"
MIB = 1 << 20


@dataclass(frozen=True)
class AutotuneRam(Rule):
    """The RAM budget of tf.data's autotuning exceeds the memory available to the process.

    ## Why it is slow
    Autotuning enlarges buffers up to its RAM budget. If the budget exceeds the available memory, buffers can grow until
    the machine swaps or the container is killed.

    ## What the fix does
    It removes the line that sets the budget, so that tf.data uses its default of half the free memory. Elements and
    order stay the same. If the script sets no budget (in a container, tf.data may see the memory of the whole machine),
    the recommendation is to set `options.autotune.ram_budget` to half the container's memory. The benefit is a run that
    completes rather than a faster one, so there is no speedup to prove: the change is shown but never applied.

    ## When not to
    When elements are small, because buffers will then never approach the budget. A finding requires either a budget set
    by the script or elements large enough to matter.

    ## What tf.data already does
    Its default budget is half the free memory reported by the operating system.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 1.0
    """Ratio of the budget to the usable memory. Up to this ratio the budget limits the buffers as intended."""
    min_element_bytes: int = MIB
    """Bytes per element (batch) from which buffers can fill the memory, if the script does not set a budget itself."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the budget exceeds the usable memory and a tuned buffer could use it."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None:
            return
        budget = pipeline.root.parameters.get("ram_budget_megabytes")
        tuned = [it for it in pipeline.iterators if it.is_autotuned]
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not tuned:
            return
        bytes_ = int(budget * MIB)
        if bytes_ <= self.max_memory_share * host.memory_bytes:
            return
        consumed = consumed_call(analysis, pipeline)
        chain = upstream_calls(analysis, consumed) if consumed else ()
        call = next((upstream for upstream in chain if upstream.options.get(OPTION) is not None), None)
        largest = max((it.element_bytes or 0 for it in tuned), default=0)
        if call is None and largest < self.min_element_bytes:
            return
        where = f", set at {place(call)}," if call else ""
        yield self.finding(
            f"Remove {OPTION}" if call else f"Set options.{OPTION} to {format_bytes(host.memory_bytes // 2)}",
            f"tf.data's RAM budget of {format_bytes(bytes_)}{where} exceeds the {format_bytes(host.memory_bytes)} "
            "available to the process, so its buffers may take all of it.",
            call=call,
            fix=Fix((SetOption(call.id, OPTION, None),), Safety.EXACT, is_auto=False, is_provable=False)
            if call is not None and is_editable(call)
            else None,
            evidence=(
                Evidence("ram_budget", bytes_, "bytes"),
                Evidence("memory", host.memory_bytes, "bytes"),
                Evidence("largest_element", largest, "bytes"),
            ),
        )


EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("decode", ms=5, bytes=600_000),
            options(autotune__ram_budget=1 << 42),
            batch(16),
            consumer_ms=2,
            ram_budget_megabytes=1 << 22,
        ),
        fixed="options = tf.data.Options()\nds = ds.with_options(options)",
    ),
    fires(
        pipeline(
            source(),
            map_("decode", ms=5, bytes=600_000),
            batch(16),
            prefetch(),
            consumer_ms=2,
            ram_budget_megabytes=100_000,
        ),
    ),
    silent(
        pipeline(
            source(),
            map_("decode", ms=5, bytes=600_000),
            batch(16),
            prefetch(),
            consumer_ms=2,
            ram_budget_megabytes=8_000,
        ),
        because="the budget is half the memory",
    ),
    silent(
        pipeline(
            source(), map_("parse", ms=5, bytes=600), batch(16), prefetch(), consumer_ms=2, ram_budget_megabytes=100_000
        ),
        because="the elements are too small to fill the budget, and the script does not set one",
    ),
)
