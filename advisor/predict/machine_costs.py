"""The costs of the machine that predictions use: as measured on the machine of the run, else built in.

In: an `Analysis`.  Out: `MachineCosts`. Nothing is measured here: the values travel with the run, so that a run gives the same
predictions wherever it is analysed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.host.calibration.prediction import HANDOFF_OVERHEAD_NS, OP_START_NS
from advisor.host.calibration.stored import BUILT_IN, plausible
from advisor.model.calibration import Calibration
from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Costs in effect for one run; see `Calibration` for their meaning."""

    next_ns: float
    next_here_ns: float
    component_ns: float
    handoff_ns: tuple[float, float, float]
    """Maximum, typical, minimum."""
    copied_bytes_per_ns: float
    small_read_ns: float
    op_start_ns: tuple[float, float]
    """Typical, maximum."""
    page_cache_bytes_per_ns: float | None
    """None if it was not measured; nothing is assumed then."""
    uncalibrated: frozenset[str]
    """Names of the costs above that are built in."""

    def mark(self, prediction: Prediction, *names: str) -> Prediction:
        """Return the prediction with the costs among `names` that it was computed with although they are built in.

        Args:
            prediction: A prediction; marks that it has already stay.
            *names: Names of fields of this class that it was computed with.
        """
        marks = dict.fromkeys((*prediction.uncalibrated, *(name for name in names if name in self.uncalibrated)))
        return replace(prediction, uncalibrated=tuple(marks))


def machine_costs(analysis: Analysis) -> MachineCosts:
    """Return the costs in effect for a run. Implausible ones, as in a run folder that was tampered with, are ignored."""
    measured = plausible((analysis.host.calibration if analysis.host is not None else None) or Calibration())
    missing: set[str] = set()

    def cost(name: str) -> float:
        value: float | None = getattr(measured, name)
        if value is None:
            missing.add(name)
            value = getattr(BUILT_IN, name)
        assert value is not None
        return value

    typical_ns, start_ns = cost("handoff_ns"), cost("op_start_ns")
    scale = typical_ns / HANDOFF_OVERHEAD_NS.value[1]
    most_ns, _, least_ns = HANDOFF_OVERHEAD_NS.value
    return MachineCosts(
        next_ns=cost("next_ns"),
        next_here_ns=cost("next_here_ns"),
        component_ns=cost("component_ns"),
        handoff_ns=(scale * most_ns, typical_ns, scale * least_ns),
        copied_bytes_per_ns=cost("copied_bytes_per_ns"),
        small_read_ns=cost("small_read_ns"),
        op_start_ns=(start_ns, start_ns * OP_START_NS.value[1] / OP_START_NS.value[0]),
        page_cache_bytes_per_ns=measured.page_cache_bytes_per_ns,
        uncalibrated=frozenset(missing),
    )
