"""offload: a device waits for input that this host alone cannot produce fast enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.model.units import format_many, format_rate
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, cache_places, core_use, last_editable_call
from advisor.testing import AUTOTUNE, batch, cpu, fires, gpu, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class Offload(Rule):
    """All cores of the host prepare input, and the device still waits for it.

    ## Why it is slow
    Feeding the device at full speed takes more computation than the cores can do. No amount of parallelism or buffering
    and no other order of transformations changes this, and nothing can be cached.

    ## What the fix does
    tf.data service runs the pipeline on other machines: a dispatcher, workers, and as the last transformation
    `.apply(tf.data.experimental.service.distribute("distributed_epoch", "grpc://dispatcher:5000"))`. The number of
    machines like this one is the throughput that the device could consume divided by the throughput of this host.
    Because the order of elements changes and the machines must be available, this is advice only. `advisor offload` says
    whether the pipeline can move and measures how many workers it takes.

    ## When not to
    When no other machine is available. Reduce the work instead (store decoded or smaller elements, use cheaper ops).
    When training runs on the CPU without an accelerator, nothing is reported.

    ## What tf.data already does
    It uses all cores of its own host, but never those of another.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition; as in `host-saturated`. With more, the rules on parallelism apply."""
    min_own_share: float = 0.8
    """Share of the usable cores used by the process itself; as in `host-saturated`."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the cores feed an accelerator, are all busy, and no cache is possible."""
        main, host, facts = analysis.main, analysis.host, analysis.device
        if main is None or main.steps is None or not main.span_ns or main.wait_share >= 1:
            return
        use = core_use(analysis, main)
        has_accelerator = bool(host and host.accelerators) or (
            facts is not None and facts.num_devices > 0 and facts.device_type in ("GPU", "TPU")
        )
        if (
            not has_accelerator
            or use is None
            or not use.is_full(self.min_free_cores, self.min_own_share, self.min_speedup)
        ):
            return
        if any(
            not candidate.obstacles and candidate.prediction.value >= self.min_speedup
            for candidate in cache_places(analysis, main)
        ):
            return
        made = main.elements_per_s
        wanted = made / (1 - main.wait_share)
        machines = math.ceil(wanted / made)
        yield self.finding(
            "Prepare input on more machines (tf.data service)",
            f"All cores prepare input ({use.sentence}), and nothing can be cached. They produce {format_rate(made)}; "
            f"without waiting, training would consume {format_rate(wanted)}, which takes "
            f"{format_many(machines, 'machine')} like this one.",
            call=last_editable_call(analysis, main),
            evidence=(
                Evidence("made", made, "elements/s"),
                Evidence("wanted", wanted, "elements/s"),
                Evidence("machines", machines),
                Evidence("free_cores", use.free, "cores"),
            ),
        )


_BUSY = (source(), map_("augment", ms=5, random=True, calls=AUTOTUNE), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_BUSY, consumer_ms=5, cores=4, device=gpu())),
    fires(pipeline(*_BUSY, consumer_ms=10, cores=8, epochs=3, device=gpu())),
    silent(
        pipeline(*_BUSY, consumer_ms=5, cores=4, device=cpu()),
        because="training runs on the same cores and benefits from less work instead",
    ),
    silent(
        pipeline(
            source(), map_("augment", ms=5, random=True, calls=2), batch(32), prefetch(), consumer_ms=5, device=gpu()
        ),
        because="cores are free on this host",
    ),
    silent(
        pipeline(
            source(),
            map_("decode", ms=5, calls=AUTOTUNE),
            batch(32),
            prefetch(),
            consumer_ms=5,
            cores=4,
            epochs=5,
            device=gpu(),
        ),
        because="the decoded elements can be cached",
    ),
)
