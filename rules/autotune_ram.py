"""autotune-ram: autotuning may buffer more than the memory that the process has."""

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
    """tf.data's autotuning has a RAM budget beyond the memory that the process may use.

    ## Why it is slow
    Autotuning enlarges buffers as long as its RAM budget allows. With a budget beyond the memory that there is, nothing stops
    them before the machine swaps or the container is killed.

    ## What the fix does
    It removes the line that sets the budget, so that tf.data takes a half of the memory it finds. Elements and order stay the
    same. Where the script sets none (in a container tf.data may find the machine's memory, not the container's), the rule advises
    to set `options.autotune.ram_budget` to a half of the container's. What is gained is that the run comes to its end, which
    is no speed that could be proved: the change is shown and never applied.

    ## When not to
    When the elements are small: then no buffer will ever come near the budget. The rule speaks only where the script sets the
    budget, or the elements are large enough to matter.

    ## What tf.data already does
    Its default is a half of the free memory that the operating system reports.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 1.0
    """Budget over usable memory up to which nothing is said: below that, the budget does what it is for."""
    min_element_bytes: int = MIB
    """Bytes of an element (a batch) from which on buffers can fill memory, where the script sets no budget itself."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding if the budget is more than there is and a tuned buffer could use it."""
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
        call = next((each for each in chain if each.options.get(OPTION) is not None), None)
        largest = max((it.element_bytes or 0 for it in tuned), default=0)
        if call is None and largest < self.min_element_bytes:
            return
        where = f", set at {place(call)}," if call else ""
        yield self.finding(
            f"Remove {OPTION}" if call else f"Set options.{OPTION} to {format_bytes(host.memory_bytes // 2)}",
            f"tf.data's RAM budget of {format_bytes(bytes_)}{where} is more than the {format_bytes(host.memory_bytes)} that the "
            "process may use, so nothing stops its buffers from taking all of it.",
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
        because="it is a half of the memory",
    ),
    silent(
        pipeline(
            source(), map_("parse", ms=5, bytes=600), batch(16), prefetch(), consumer_ms=2, ram_budget_megabytes=100_000
        ),
        because="the elements are too small to fill it, and the script sets nothing",
    ),
)
