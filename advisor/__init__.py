"""tfdata-advisor: says what slows a tf.data input pipeline, on which line, what to change, and proves it.

import advisor
report = advisor.analyze("train.py")             # runs the script under watch
report = advisor.analyze("run/")                 # a saved run: run folder, logdir or .xplane.pb file; no TensorFlow
report = advisor.analyze(dataset)                # a dataset alone, in this process
print(report.analysis.verdict.sentence)

dataset = advisor.optimize(dataset)              # what is proved faster, else the dataset as it is; says why in .report

From inside a training program; import the name before the datasets are made, so that the report knows their lines:

from advisor import AdvisorCallback              # model.fit(..., callbacks=[AdvisorCallback("logs")])
from advisor import watch                        # with watch("logs") as run: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from advisor.model.outcome import Report
    from advisor.watching import AdvisorCallback, watch

__all__ = ["AdvisorCallback", "__version__", "analyze", "optimize", "watch"]
__version__ = "0.1.0"

Dataset = TypeVar("Dataset")


def analyze(
    target: str | Path | object | Callable[..., object],
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    steps: int | None = None,
    warmup: int | None = None,
    seconds: float | None = None,
    to_end: bool = False,
    ceiling: bool = False,
) -> Report:
    """Analyse a script, a saved run, a function that trains, or a dataset; settings of `[tool.advisor]` apply.

    `target` is a script (run in a child process with `args`), a run folder, a logdir or a `.xplane.pb` file (or a URL of
    one), as for `advisor analyze`. `out` is the script's run folder (default: a new one below the user's state folder), `rules`
    are folders of more rules; `steps`, `warmup`, `seconds` (of the window), `to_end` and `ceiling` are the options of the same
    names.

    A function is called with `args` in this process and watched until it returns (`out`, `steps` and `warmup` hold for it). A
    `tf.data.Dataset` is read as fast as it goes, by a consumer that does nothing else: the report says what limits the pipeline,
    not whether a training would notice.

    Raises `advisor.errors.AdvisorError` with one sentence when that is not possible, `advisor.errors.ScriptFailed` when the
    script failed before anything was measured. What a function raises comes through.
    """
    from pathlib import Path

    from advisor import phases
    from advisor.locations import locate

    folders = tuple(Path(folder) for folder in rules)
    if not isinstance(target, str | Path):
        from advisor import optimizing

        if optimizing.is_dataset(target):
            return optimizing.analyze_dataset(target, folders)
        return optimizing.analyze_function(target, args, out, warmup, steps)
    request = phases.Request(
        path=locate(target) if isinstance(target, str) else target,
        args=tuple(str(arg) for arg in args),
        out=None if out is None else Path(out),
        rule_directories=folders,
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        to_end=to_end,
        with_ceiling=ceiling,
    )
    loaded, settings = phases.load(request)
    report = phases.analyze(request, loaded, settings, on_progress=lambda progress: None)
    phases.make_room(request, settings)
    return report


def optimize(
    dataset: Dataset,
    allow: str | Sequence[str] = (),
    *,
    budget: str | float = "5min",
    rules: Sequence[str | Path] = (),
    only: Sequence[str] = (),
) -> Dataset:
    """The dataset with the changes that are measured to be faster, in this process, on its own data; it has a `.report`.

    The changes are those of `advisor fix`, each compared element by element with the dataset as it is. Nothing faster: the very
    same object comes back. `allow` names what changes may do to the data beyond `exact`: `rerandomized`, `reordered`,
    `numerics`. `budget` is the time for everything, seconds or a text such as `"2min"`; `rules` are folders of more rules,
    `only` the ids of the rules whose fixes are tried.

    It does not matter when the advisor was imported: the dataset is made again from the object. What cannot be (padded batches,
    parallel interleaves, generators) is used as it is, and only what stands behind it is changed; `report.proof.notes` names it.
    Lines are known for datasets made after `from advisor import watch`, others are told as made where `optimize` is called.

    Raises `advisor.errors.AdvisorError` for anything that is no `tf.data.Dataset`, and inside a `tf.function`.
    """
    from pathlib import Path

    from advisor import optimizing
    from advisor.errors import AdvisorError
    from advisor.units import parse_seconds

    try:
        seconds = parse_seconds(str(budget))
    except ValueError as error:
        raise AdvisorError(f"budget: {error}.") from None
    levels = (allow,) if isinstance(allow, str) else tuple(allow)
    optimized: Dataset = optimizing.optimize(
        dataset, levels, seconds, tuple(Path(folder) for folder in rules), tuple(only)
    )
    return optimized


def __getattr__(name: str) -> object:
    """`watch` and `AdvisorCallback`, loaded when asked for: from then on the calls that make datasets are recorded."""
    if name in ("AdvisorCallback", "watch"):
        from advisor import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
