"""tfdata-advisor: says what slows a tf.data input pipeline, on which line, what to change, and proves it.

import advisor
report = advisor.analyze("train.py")             # runs the script under watch
report = advisor.analyze("run/")                 # a saved run: run folder, logdir or .xplane.pb file; no TensorFlow
report = advisor.analyze(dataset)                # a dataset alone, in this process
print(report.analysis.verdict.sentence)

dataset = advisor.optimize(dataset)              # what is proved faster, else the dataset as it is; says why in .report

From inside a training program:

advisor.install()                                # above the datasets, so that the report knows their lines
model.fit(..., callbacks=[advisor.AdvisorCallback("logs")])
with advisor.watch("logs") as run: ...
advisor.uninstall()                              # TensorFlow's own functions are back
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from advisor.model.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from advisor.capture.in_process import Installed
    from advisor.model.outcome import Report
    from advisor.workflows.keras_callback import AdvisorCallback
    from advisor.workflows.watch import watch

__all__ = ["AdvisorCallback", "__version__", "analyze", "install", "optimize", "uninstall", "watch"]

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
    in_place: bool = False,
) -> Report:
    """Analyse a script, a saved run, a function that trains, or a dataset; settings of `[tool.advisor]` apply.

    `target` is a script (run in a child process with `args`), a run folder, a logdir or a `.xplane.pb` file (or a URL of
    one), as for `advisor analyze`. `out` is the script's run folder (default: a new one below the user's state folder), `rules`
    are folders of more rules; `steps`, `warmup`, `seconds` (of the window), `to_end`, `ceiling` and `in_place` are the options of
    the same names. What a script that is stopped early writes is thrown away, unless `in_place`.

    A function is called with `args` in this process and watched until it returns (`out`, `steps` and `warmup` hold for it). A
    `tf.data.Dataset` is read as fast as it goes, by a consumer that does nothing else: the report says what limits the pipeline,
    not whether a training would notice.

    Raises `advisor.model.errors.AdvisorError` with one sentence when that is not possible and
    `advisor.model.errors.ScriptFailed` when the
    script failed before anything was measured. What a function raises comes through.
    """
    from pathlib import Path

    from advisor.model.locations import locate
    from advisor.workflows.analyze import Request, analyze, load, make_room

    folders = tuple(Path(folder) for folder in rules)
    if not isinstance(target, str | Path):
        from advisor.workflows.optimize import analyze_dataset, analyze_function, is_dataset

        if is_dataset(target):
            return analyze_dataset(target, folders)
        return analyze_function(target, args, out, warmup, steps)
    request = Request(
        path=locate(target) if isinstance(target, str) else target,
        args=tuple(str(arg) for arg in args),
        out=None if out is None else Path(out),
        rule_directories=folders,
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        to_end=to_end,
        with_ceiling=ceiling,
        in_place=in_place,
    )
    loaded, settings = load(request)
    report = analyze(request, loaded, settings, on_progress=lambda progress: None)
    make_room(request, settings)
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
    Lines are known for datasets made after `advisor.install()`; others are reported at the line that calls `optimize`.

    The random state of Python, NumPy and TensorFlow is afterwards as it was before, and so are the variables, random generators
    and mutable tables that the dataset's functions use. Python code of the pipeline (`py_function`, generators) runs during the
    trials; `report.proof.notes` says so, for what such code changes elsewhere cannot be put back.

    Raises `advisor.model.errors.AdvisorError` for anything that is no `tf.data.Dataset`, inside a `tf.function`, and for a
    dataset
    whose functions change something that cannot be put back (files, queues).
    """
    from pathlib import Path

    from advisor.model.errors import AdvisorError
    from advisor.model.units import parse_seconds
    from advisor.workflows.optimize import optimize

    try:
        seconds = parse_seconds(str(budget))
    except ValueError as error:
        raise AdvisorError(f"budget: {error}.") from None
    levels = (allow,) if isinstance(allow, str) else tuple(allow)
    optimized: Dataset = optimize(dataset, levels, seconds, tuple(Path(folder) for folder in rules), tuple(only))
    return optimized


def install() -> Installed:
    """Record the calls that make datasets from now on, so that reports of `watch` and `AdvisorCallback` know their lines.

    This replaces public functions of TensorFlow and Keras by wrappers that behave the same; importing the advisor replaces
    nothing. `uninstall` puts the original functions back. Calls are counted: as many calls of `uninstall` as of `install` are
    needed. The result can be used in a `with` statement, which uninstalls at its end.

    Does nothing in a script that `advisor analyze` or `advisor fix` runs.
    """
    from advisor.capture import in_process

    return in_process.install()


def uninstall() -> None:
    """Put the original functions of TensorFlow and Keras back, once it was called as often as `install`.

    During a watch they come back at its end. Does nothing without an earlier `install`.
    """
    from advisor.capture import in_process

    in_process.uninstall()


def __getattr__(name: str) -> object:
    """`watch` and `AdvisorCallback`, loaded when asked for."""
    if name == "AdvisorCallback":
        from advisor.workflows.keras_callback import AdvisorCallback

        return AdvisorCallback
    if name == "watch":
        from advisor.workflows.watch import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
