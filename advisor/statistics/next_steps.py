"""Recommends next steps, as the profiler guide does, based on the measurements.

In: the mean step and the device facts.  Out: sentences, most important first.

Thresholds are XProf's (`op_stats_to_input_pipeline_analysis.cc`, `op_stats_to_overview_page.cc`).
"""

from __future__ import annotations

from advisor.model.profile_statistics import Breakdown, DeviceFacts, InputStatistics
from advisor.model.units import format_share
from advisor.model.wait_shares import MODERATE_WAIT_SHARE

# Shares, 0 to 1. A sentence is given from the share on.
LAUNCH_SHARE, OTHER_SHARE, COMMUNICATION_SHARE = 0.03, 0.03, 0.03
"""Of the step time: launching kernels, other host work, communication."""
OUTPUT_SHARE = 0.05
"""Of the step time, copying results to the host."""
LOW_PRECISION_SHARE = 0.10
"""Of the device's computing in 16 bits; below this share, mixed precision is recommended."""
EAGER_SHARE = 0.10
"""Of the ops' time, run eagerly."""
COMPILE_SHARE = 0.05
"""Of the step time, tracing and compiling."""
TENSOR_CORES_SINCE = 7.0
"""Compute capability of the first GPUs with tensor cores (Volta)."""


def next_steps(step: Breakdown, facts: DeviceFacts, inputs: InputStatistics | None) -> tuple[str, ...]:
    """Return at most one sentence per cause, largest cause first.

    Args:
        step: Breakdown of the profiled steps' time.
        facts: What the devices of the run are and did.
        inputs: Statistics of the input pipeline; None if there is none, so that no wait for input is named.
    """
    whole = step.total_ns
    advice: list[tuple[float, str]] = []

    def advise(share: float | None, least: float, sentence: str) -> None:
        if share is not None and share >= least:
            advice.append((share, sentence.format(share=format_share(share))))

    def of_step(time_ns: int) -> float:
        return time_ns / whole if whole else 0.0

    has_device = facts.num_devices > 0
    advise(
        of_step(step.input_ns - step.to_device_ns) if inputs else None,
        MODERATE_WAIT_SHARE,
        "{share} of the profiled steps' time is spent waiting for input: look at the bottleneck of the input pipeline first.",
    )
    advise(
        of_step(step.to_device_ns),
        MODERATE_WAIT_SHARE,
        "{share} of the step time goes to copies to the device while nothing computes: prefetch to the device, send smaller"
        " types (uint8) and convert there.",
    )
    advise(
        of_step(step.kernel_launch_ns),
        LAUNCH_SHARE,
        "{share} of the step time goes to launching kernels while the device waits: fewer and larger ones can help (XLA, larger"
        " batches, several steps per call), and TF_GPU_THREAD_MODE=gpu_private where tf.data takes the cores.",
    )
    advise(
        of_step(step.compile_ns),
        COMPILE_SHARE,
        "{share} of the step time is tracing and compiling: keep shapes and Python arguments of tf.functions the same.",
    )
    advise(
        of_step(step.device_communication_ns),
        COMMUNICATION_SHARE,
        "{share} of the step time is communication between devices: look at the collectives in the timeline.",
    )
    advise(
        of_step(step.output_ns),
        OUTPUT_SHARE,
        "{share} of the step time goes to copies from the device: fetch results less often.",
    )
    advise(
        of_step(step.other_ns) if has_device else None,
        OTHER_SHARE,
        "{share} of the step time is untraced, mostly Python: several steps per call can help.",
    )
    advise(
        facts.eager_share,
        EAGER_SHARE,
        "{share} of the ops' time ran eagerly: wrap the step in a tf.function.",
    )
    advice.sort(key=lambda pair: -pair[0])
    sentences = [sentence for _, sentence in advice]
    if _could_use_16_bit(facts):
        sentences.append(
            f"{format_share(facts.compute_16bit_share or 0.0)} of the device's computing is 16 bit, on a device with tensor"
            " cores: mixed precision may help."
        )
    if not sentences and whole:
        if step.device_compute_ns > whole / 2:
            sentences.append(
                "The device computes most of the time: look at the ops and kernels with the largest self time."
            )
        elif step.host_compute_ns > whole / 2:
            sentences.append("The host computes most of the time: look at the ops with the largest self time.")
    return tuple(sentences)


def _could_use_16_bit(facts: DeviceFacts) -> bool:
    return (
        facts.compute_capability is not None
        and facts.compute_capability >= TENSOR_CORES_SINCE
        and facts.compute_16bit_share is not None
        and facts.compute_16bit_share < LOW_PRECISION_SHARE
        and facts.tensor_core_eligible_ns > 0
    )
