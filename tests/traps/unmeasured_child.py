"""The child process of a proof (`advisor/prove/trial/runs/proof_child.py`), whose A/B measurement says `faster` without
measuring.

In: what that child takes.  Out: what it gives; elements are compared as ever.
"""

from __future__ import annotations

import functools
import runpy
import sys
from pathlib import Path


def _bootstrap() -> None:
    sys.path.pop(0)  # this folder
    import advisor
    from advisor.model.outcome import Interval
    from advisor.prove.trial import trial_runner
    from advisor.prove.trial.ab_benchmark import Measurement
    from advisor.prove.trial.ab_side import Plan

    def says_faster(*args: object, **kwargs: object) -> Measurement:
        return Measurement("faster", Interval(2.0, 1.9, 2.1), rate_before=1e-3, rate_after=2e-3, turns=6)

    for name in ("measure", "Plan"):
        if not hasattr(trial_runner, name):
            raise RuntimeError(f"advisor.prove.trial.trial_runner.{name} is gone: unmeasured_child.py has to follow.")
    trial_runner.measure = says_faster
    trial_runner.Plan = functools.partial(Plan, warmup_s=0.3)
    child = Path(advisor.__file__).parent / "prove" / "trial" / "runs" / "proof_child.py"
    sys.path.insert(0, str(child.parent))  # the child expects its own folder there, and takes it away
    runpy.run_path(str(child), run_name="__main__")


if __name__ == "__main__":
    _bootstrap()
