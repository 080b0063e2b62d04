"""The device side of a simulated run: the facts that `advisor.statistics` would compute.

In: shares of the step and counts. Out: `DeviceFacts` and the tables that rules read. Used by `advisor.testing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.profile_statistics import DeviceFacts, KernelRow, OpRow, OutlierStep, Statistics

STEPS = 25
"""Steps of a simulated profile."""


@dataclass(frozen=True, slots=True)
class SimulatedOp:
    """Ops of one type on the host."""

    type: str
    per_step: float
    us: float
    """Self time of one op, in microseconds."""


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """A device with the figures of a healthy step as defaults. Shares are of the step time unless noted otherwise."""

    kind: str
    compute_capability: float | None = None
    half: float | None = None
    """Share of the device's computation in 16 bit."""
    eligible: float = 0.0
    """Share in kernels of ops that can use tensor cores."""
    off_tensor_cores: float = 0.0
    """Share in such kernels that do not use tensor cores."""
    transposed: float = 0.0
    """Share in kernels that only change the layout of images."""
    kernels: float | None = None
    """Kernels per step."""
    kernel_us: float = 0.0
    """Median kernel duration in microseconds."""
    launch: float | None = None
    idle: float | None = None
    other: float = 0.02
    """Share in which nothing was traced."""
    memory: float | None = None
    """Peak share of the device memory in use."""
    copied: float | None = None
    """Share of copies to the device while it computes nothing."""
    eager_ops: float = 1.0
    """Eager ops per step."""
    eager: float = 0.01
    tracings: int = 0
    compiling: float = 0.0
    compiled: tuple[str, ...] = ()
    is_xla: bool = False
    outliers: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """(duration relative to an ordinary step, ops that ran in it) per outlier."""
    ops: tuple[SimulatedOp, ...] = ()

    def facts(self, step_ns: int) -> DeviceFacts:
        """The facts for steps with a mean duration of `step_ns`."""
        whole = STEPS * step_ns
        return DeviceFacts(
            device_type=self.kind,
            num_devices=0 if self.kind == "CPU" else 1,
            compute_capability=self.compute_capability,
            compute_16bit_share=self.half,
            tensor_core_eligible_ns=round(self.eligible * whole),
            tensor_core_used_ns=round((self.eligible - self.off_tensor_cores) * whole),
            eligible_off_tensor_core_ns=round(self.off_tensor_cores * whole),
            kernel_ns=round(whole * (1 - (self.idle or 0.0))) if self.kernels else 0,
            num_steps=STEPS,
            step_ns=step_ns,
            kernels_per_step=self.kernels,
            median_kernel_ns=round(self.kernel_us * 1000) if self.kernels else None,
            launch_gap_share=self.launch,
            idle_share=self.idle,
            other_share=self.other,
            memory_peak_share=self.memory,
            exposed_to_device_share=self.copied,
            to_device_share=self.copied,
            eager_ops_per_step=self.eager_ops,
            eager_step_share=self.eager,
            num_tracings=self.tracings,
            compile_ns=round(self.compiling * whole),
            compiled_names=self.compiled,
            outliers=tuple(
                OutlierStep("made-up", number, round(times * step_ns), ran)
                for number, (times, ran) in enumerate(self.outliers)
            ),
            has_xla_ops=self.is_xla,
        )

    def statistics(self, step_ns: int) -> Statistics:
        """The facts with the tables of kernels and op types, for steps with a mean duration of `step_ns`."""
        whole = STEPS * step_ns
        kernels = (
            _kernel("gemm", "dense/MatMul", round(self.off_tensor_cores * whole), is_eligible=True),
            _kernel("nchwToNhwc", "conv/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer", round(self.transposed * whole)),
        )
        op_types = tuple(
            OpRow("host", op.type, "", runs, time, time, False, 0.0, 0.0, 0.0, 0.0)
            for op in self.ops
            if (runs := round(op.per_step * STEPS)) and (time := round(runs * op.us * 1000))
        )
        return Statistics(
            op_types=op_types, kernels=tuple(k for k in kernels if k.total_ns) or None, device=self.facts(step_ns)
        )


def _kernel(name: str, op: str, total_ns: int, is_eligible: bool = False) -> KernelRow:
    return KernelRow(name, None, None, None, None, False, is_eligible, op, STEPS, total_ns, 0, total_ns)
