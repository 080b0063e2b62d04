"""What a profile lacks, told by its planes: no host events, empty or idle devices, and how to mend each.

In: a `HostTrace`.  Out: sentences for the report; none for a profile that has everything.
"""

from __future__ import annotations

from advisor.model.trace import HostTrace

IDLE_SHARE = 0.01
"""A device with fewer events than this share of the busiest one's takes no part in the work: copies at start-up leave some."""
_DEVICE = "/device:"
_NO_HOST = (
    "The profile holds device events alone, so nothing is known of the input pipeline: profile again with host tracing"
    " (ProfilerOptions(host_tracer_level=2), the default)."
)
_EMPTY = (
    "{names} left no event: no op ran there inside the window, or its activity could not be traced (device_tracer_level=1,"
    " CUPTI and the permission to use it are needed)."
)


def missing_parts(host: HostTrace) -> tuple[str, ...]:
    """Sentences about what the profile does not hold. A device that the profiler itself reports an error of is left to that."""
    devices = [plane for plane in host.planes if plane.name.startswith((f"{_DEVICE}GPU", f"{_DEVICE}TPU"))]
    said = []
    if not any(len(thread) for thread in host.threads) and any(plane.num_events for plane in devices):
        said.append(_NO_HOST)
    most = max((plane.num_events for plane in devices), default=0)
    if devices and not most and not host.errors:
        said.append(_EMPTY.format(names=", ".join(plane.name for plane in devices)))
    busy = [plane for plane in devices if plane.num_events > IDLE_SHARE * most]
    if 0 < len(busy) < len(devices):
        said.append(
            f"Of {len(devices)} devices {len(busy)} took part in the work ({', '.join(plane.name for plane in busy)});"
            " the others were idle in the window."
        )
    return tuple(said)
