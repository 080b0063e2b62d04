"""What a rule must report for a simulated pipeline: `fires` and `silent`, for the `EXAMPLES` of a rule file.

In: a `SimulatedPipeline`.  Out: an `Example`, which `advisor.engine.examples` checks.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.testing.simulated_run import SimulatedPipeline


@dataclass(frozen=True, slots=True)
class Example:
    """A pipeline and the expected result of one rule."""

    pipeline: SimulatedPipeline
    is_finding: bool
    fixed: str | None = None
    """Text that the script must contain after the fix; None if the rule gives advice only or the fix is not checked."""
    because: str = ""
    """Silent examples: why there is nothing to report."""
    note: str | None = None
    """Text that one of the rule's notes must contain."""


def fires(made: SimulatedPipeline, fixed: str | None = None, note: str | None = None) -> Example:
    """An example for which the rule must report a finding.

    Args:
        made: The simulated run.
        fixed: Text that the script must contain after the fix is applied.
        note: Text that one of the rule's notes must contain.
    """
    return Example(made, is_finding=True, fixed=fixed, note=note)


def silent(made: SimulatedPipeline, because: str, note: str | None = None) -> Example:
    """An example for which the rule must not report a finding: a near miss of one that fires.

    Args:
        made: The simulated run.
        because: Why there is nothing to report; shown on the rule's page.
        note: Text that one of the rule's notes must contain.
    """
    return Example(made, is_finding=False, because=because, note=note)
