"""Find what slows a TensorFlow input pipeline, on which line, and what to change; measure the change before it is used.

Out of process, from a script or a saved run::

    import advisor

    report = advisor.analyze_script("train.py", ["--epochs", "1"])
    report = advisor.analyze_run("run/")  # a run folder, logdir or .xplane.pb file; needs no TensorFlow
    print(report.analysis.verdict.sentence)

In the current process::

    report = advisor.analyze_dataset(dataset)
    report = advisor.analyze_function(train, [dataset])
    dataset = advisor.optimize(dataset)  # unchanged unless a change is measured to be faster

From inside a training program::

    advisor.install()  # above the datasets, so that the report knows their lines
    model.fit(dataset, callbacks=[advisor.AdvisorCallback("logs")])
    with advisor.watch("logs") as run:
        train(dataset)
    advisor.uninstall()

Importing this package imports neither TensorFlow nor any other dependency, and patches nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from advisor.model.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor._analyze_functions import analyze, analyze_dataset, analyze_function, analyze_run, analyze_script
    from advisor.capture.in_process import Installed
    from advisor.model.errors import AdvisorError, ScriptFailed
    from advisor.model.finding import Finding, Fix, Safety
    from advisor.model.outcome import Report
    from advisor.workflows.keras_callback import AdvisorCallback
    from advisor.workflows.watch import watch

__all__ = [
    "AdvisorCallback",
    "AdvisorError",
    "Finding",
    "Fix",
    "Report",
    "Safety",
    "ScriptFailed",
    "__version__",
    "analyze",
    "analyze_dataset",
    "analyze_function",
    "analyze_run",
    "analyze_script",
    "install",
    "optimize",
    "uninstall",
    "watch",
]

_LAZY = {
    "AdvisorCallback": "advisor.workflows.keras_callback",
    "AdvisorError": "advisor.model.errors",
    "Finding": "advisor.model.finding",
    "Fix": "advisor.model.finding",
    "Report": "advisor.model.outcome",
    "Safety": "advisor.model.finding",
    "ScriptFailed": "advisor.model.errors",
    "analyze": "advisor._analyze_functions",
    "analyze_dataset": "advisor._analyze_functions",
    "analyze_function": "advisor._analyze_functions",
    "analyze_run": "advisor._analyze_functions",
    "analyze_script": "advisor._analyze_functions",
    "watch": "advisor.workflows.watch",
}
"""Exported names and the modules that define them, imported on first access (PEP 562)."""

_DatasetT = TypeVar("_DatasetT")


def optimize(
    dataset: _DatasetT,
    allow: str | Sequence[str] = (),
    *,
    budget: str | float = "5min",
    rules: Sequence[str | Path] = (),
    only: Sequence[str] = (),
) -> _DatasetT:
    """Return the dataset with the changes that are measured to be faster, in the current process and on its own data.

    The changes are those of `advisor fix`. The elements of each are compared with those of the unchanged dataset.

    The dataset is rebuilt from the object, so it does not matter when this package was imported. Parts that cannot be rebuilt
    (padded batches, parallel interleaves, generators) are kept as they are, and only what follows them is changed;
    `report.proof.notes` names them. Lines are known of datasets made after `install`; others are reported at the line
    that calls `optimize`.

    The random state of Python, NumPy and TensorFlow is restored afterwards, and so are the variables, random generators and
    mutable tables that the dataset's functions use. Python code of the pipeline (`py_function`, generators) runs during the
    trials, and its other effects cannot be undone; `report.proof.notes` says so.

    Args:
        dataset: A `tf.data.Dataset`.
        allow: What changes may do to the data in addition to `exact`: `rerandomized`, `reordered`, `numerics`; one or several.
        budget: Time for everything: a number of seconds, or text such as `"2min"`.
        rules: Folders with additional rules.
        only: Ids of the rules whose fixes are tried. Default: all.

    Returns:
        The faster dataset, or the same object if no change is faster. Its attribute `report` holds the `Report`.

    Raises:
        AdvisorError: The argument is not a `tf.data.Dataset`, the call is inside a `tf.function`, the dataset's functions have
            effects that cannot be undone (files, queues), or `allow` or `budget` is invalid.

    Example:
        >>> import advisor
        >>> import tensorflow as tf
        >>> dataset = tf.data.Dataset.range(1_000_000).batch(1000).cache().prefetch(tf.data.AUTOTUNE)
        >>> faster = advisor.optimize(dataset, budget="20s", only=["missing-prefetch"])
        >>> faster is dataset
        True
        >>> faster.report.proof.verdict
        'nothing'
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
    optimized: _DatasetT = optimize(dataset, levels, seconds, tuple(Path(folder) for folder in rules), tuple(only))
    return optimized


def install() -> Installed:
    """Record the calls that make datasets from now on, so that reports of `watch` and `AdvisorCallback` know their lines.

    This replaces public functions of TensorFlow and Keras with wrappers that behave the same. `uninstall` restores the original
    functions. Calls are counted: `uninstall` must be called as often as `install`.

    Does nothing in a script that is run by `advisor analyze` or `advisor fix`.

    Returns:
        A context manager that calls `uninstall` at the end of a `with` block. Using it is optional.

    Example:
        >>> import advisor
        >>> import tensorflow as tf
        >>> original = tf.data.Dataset.map
        >>> with advisor.install():
        ...     tf.data.Dataset.map is original
        False
        >>> tf.data.Dataset.map is original
        True
    """
    from advisor.capture import in_process

    return in_process.install()


def uninstall() -> None:
    """Restore the original functions of TensorFlow and Keras, once it has been called as often as `install`.

    During a watch they are restored at its end. Does nothing without an earlier `install`.

    Example:
        >>> import advisor
        >>> installed = advisor.install()
        >>> advisor.uninstall()
    """
    from advisor.capture import in_process

    in_process.uninstall()


def __getattr__(name: str) -> object:
    """Import an exported type or function on first access."""
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
