"""Reports what a profile lacks (host events, device events) and how to fix it.

In: a `HostTrace`.  Out: sentences for the report; none for a complete profile.
"""

from __future__ import annotations

import re

from advisor.host.calibration.analysis import IDLE_DEVICE_SHARE
from advisor.model.trace import HostTrace

_DEVICE = "/device:"
_NO_HOST = (
    "The profile contains only device events, so the input pipeline is unknown: profile again with host tracing"
    " (ProfilerOptions(host_tracer_level=2), the default)."
)
_EMPTY = (
    "{names} recorded no events: no op ran there inside the window, or its activity could not be traced (this needs"
    " device_tracer_level=1, CUPTI and the permission to use it)."
)
_JAX = (
    "The profile was taken with JAX's profiler, which does not record tf.data. To see a tf.data pipeline, take the profile with"
    " tf.profiler.experimental.start(logdir)."
)
_FIXES: tuple[tuple[re.Pattern[str], str], ...] = (
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
        "allow profiling of the virtual GPU on its host (vGPU) and capture again",
    ),
    (
        re.compile("libcupti|CUPTI could not be loaded", re.IGNORECASE),
        "put CUDA's extras/CUPTI/lib64 on LD_LIBRARY_PATH and capture again",
    ),
)
"""Known errors of the profiler and how to fix them. Source: CUPTI's error codes and TensorFlow's messages."""


def explain_profiler_error(text: str) -> str:
    """Return the profiler's error message, with a fix appended if the error is known."""
    for pattern, fix in _FIXES:
        if pattern.search(text):
            return f"{text} - GPU activity is missing: {fix}."
    return text


def missing_parts(host: HostTrace) -> tuple[str, ...]:
    """Describe what the profile lacks. Devices without events are not reported if the profiler itself reported an error."""
    devices = [plane for plane in host.planes if plane.name.startswith((f"{_DEVICE}GPU", f"{_DEVICE}TPU"))]
    sentences = []
    # the threads lack most of the host's events, so count by difference
    on_host = host.num_events - sum(plane.num_events for plane in host.planes)
    if not on_host and any(plane.num_events for plane in devices):
        sentences.append(_NO_HOST)
    if host.is_jax and not host.iterators:
        sentences.append(_JAX)
    most = max((plane.num_events for plane in devices), default=0)
    if devices and not most and not host.errors:
        sentences.append(_EMPTY.format(names=", ".join(plane.name for plane in devices)))
    busy = [plane for plane in devices if plane.num_events > IDLE_DEVICE_SHARE.value * most]
    if 0 < len(busy) < len(devices):
        sentences.append(
            f"Only {len(busy)} of {len(devices)} devices did work ({', '.join(plane.name for plane in busy)});"
            " the others were idle in the window."
        )
    return tuple(sentences)
