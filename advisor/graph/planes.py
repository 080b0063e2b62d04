"""What a profile lacks, told by its planes: no host events, empty or idle devices, and how to mend each.

In: a `HostTrace`.  Out: sentences for the report; none for a profile that has everything.
"""

from __future__ import annotations

import re

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
_JAX = (
    "The profile was taken with JAX's profiler, which does not see tf.data: a program that reads its data through tf.data shows"
    " that in a profile taken with tf.profiler.experimental.start(logdir)."
)
_REMEDIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile("INSUFFICIENT_PRIVILEGES|insufficient privilege", re.IGNORECASE),
        "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0, and capture again",
    ),
    (
        re.compile("MULTIPLE_SUBSCRIBERS", re.IGNORECASE),
        "end the other profiler of this process or GPU (nsys, nvprof, DCGM) and capture again",
    ),
    (
        re.compile("VIRTUALIZED_DEVICE_NOT_SUPPORTED", re.IGNORECASE),
        "profiling has to be allowed for the virtual GPU on its host (vGPU) before the capture",
    ),
    (
        re.compile("libcupti|CUPTI could not be loaded", re.IGNORECASE),
        "put CUDA's extras/CUPTI/lib64 on LD_LIBRARY_PATH and capture again",
    ),
)
"""The profiler's own errors that are known, and what mends each. Source: CUPTI's error codes, and TensorFlow's texts."""


def explain_profiler_error(text: str) -> str:
    """The profiler's own error, with what to do about the ones that are known."""
    for pattern, remedy in _REMEDIES:
        if pattern.search(text):
            return f"{text} - GPU activity is missing: {remedy}."
    return text


def missing_parts(host: HostTrace) -> tuple[str, ...]:
    """Sentences about what the profile does not hold. A device that the profiler itself reports an error of is left to that."""
    devices = [plane for plane in host.planes if plane.name.startswith((f"{_DEVICE}GPU", f"{_DEVICE}TPU"))]
    said = []
    # most of the host's events are of no use and not in the threads
    on_host = host.num_events - sum(plane.num_events for plane in host.planes)
    if not on_host and any(plane.num_events for plane in devices):
        said.append(_NO_HOST)
    if host.is_jax and not host.iterators:
        said.append(_JAX)
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
