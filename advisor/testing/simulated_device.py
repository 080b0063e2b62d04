"""The device side of a made-up run: what `advisor.statistics` would have said of it.

In: shares of the step and counts.  Out: `DeviceFacts` and the tables that rules read. Used by `advisor.testing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.profile_statistics import DeviceFacts, KernelRow, OpRow, OutlierStep, Statistics

STEPS = 25
"""Steps of a made-up profile."""


@dataclass(frozen=True, slots=True)
class SimulatedOp:
    """Ops of one type on the host."""

    type: str
    per_step: float
    us: float
    """Self time of one."""


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """The defaults are those of a healthy step; every share is of the step time unless it says otherwise."""

    kind: str
    compute_capability: float | None = None
    half: float | None = None
    """16-bit share of what devices compute."""
    eligible: float = 0.0
    """In kernels of ops that tensor cores can run."""
    off_tensor_cores: float = 0.0
    """The part of it that ran elsewhere."""
    transposed: float = 0.0
    """In kernels that only change the layout of images."""
    kernels: float | None = None
    """Per step."""
    kernel_us: float = 0.0
    """Median."""
    launch: float | None = None
    idle: float | None = None
    other: float = 0.02
    """Nothing that was traced."""
    memory: float | None = None
    """Of the device's memory."""
    copied: float | None = None
    """Copies to the device while nothing computes."""
    eager_ops: float = 1.0
    """Per step."""
    eager: float = 0.01
    tracings: int = 0
    compiling: float = 0.0
    compiled: tuple[str, ...] = ()
    is_xla: bool = False
    outliers: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """(steps as long as so many ordinary ones, what ran in them)."""
    ops: tuple[SimulatedOp, ...] = ()

    def facts(self, step_ns: int) -> DeviceFacts:
        """`step_ns`: mean step time."""
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
        """The facts with the tables of kernels and op types."""
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
