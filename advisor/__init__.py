"""tfdata-advisor: says what slows a tf.data input pipeline, on which line, what to change, and proves it.

import advisor
report = advisor.analyze("train.py")             # runs the script under watch
report = advisor.analyze("run/")                 # a saved run: run folder, logdir or .xplane.pb file; no TensorFlow
print(report.analysis.verdict.sentence)

From inside a training program; import the name before the datasets are made, so that the report knows their lines:

from advisor import AdvisorCallback              # model.fit(..., callbacks=[AdvisorCallback("logs")])
from advisor import watch                        # with watch("logs") as run: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.model.outcome import Report
    from advisor.watching import AdvisorCallback, watch

__all__ = ["AdvisorCallback", "__version__", "analyze", "watch"]
__version__ = "0.1.0"


def analyze(
    target: str | Path,
    args: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    steps: int | None = None,
    warmup: int | None = None,
    seconds: float | None = None,
    to_end: bool = False,
    ceiling: bool = False,
) -> Report:
    """Analyse a script or a saved run, as `advisor analyze` does; settings of `[tool.advisor]` apply.

    `target` is a script (run in a child process with `args`), a run folder, a logdir or a `.xplane.pb` file. `out` is the
    script's run folder (default: a new one below the user's state folder), `rules` are folders of more rules; `steps`,
    `warmup`, `seconds` (of the window), `to_end` and `ceiling` are the options of the same names.

    Raises `advisor.errors.AdvisorError` with one sentence when that is not possible, `advisor.errors.ScriptFailed` when the
    script failed before anything was measured.
    """
    from pathlib import Path

    from advisor import phases

    request = phases.Request(
        path=Path(target),
        args=tuple(args),
        out=None if out is None else Path(out),
        rule_directories=tuple(Path(folder) for folder in rules),
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        to_end=to_end,
        with_ceiling=ceiling,
    )
    loaded, settings = phases.load(request)
    return phases.analyze(request, loaded, settings, on_progress=lambda progress: None)


def __getattr__(name: str) -> object:
    """`watch` and `AdvisorCallback`, loaded when asked for: from then on the calls that make datasets are recorded."""
    if name in ("AdvisorCallback", "watch"):
        from advisor import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
