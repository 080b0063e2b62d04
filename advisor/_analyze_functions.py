"""The functions of the public Python API that return a report: `analyze_*` and `analyze`, which calls the one that fits.

They are imported as `advisor.analyze_script` and so on. Everything heavier than the standard library is imported when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from advisor.model.outcome import Report
    from advisor.workflows.analyze import Request


class _Dataset(Protocol):
    """What tells a `tf.data.Dataset` from a path or a function, for type checkers that see no TensorFlow."""

    @property
    def element_spec(self) -> Any: ...  # noqa: ANN401


def analyze_script(
    path: str | Path,
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    steps: int | None = None,
    warmup: int | None = None,
    seconds: float | None = None,
    to_end: bool = False,
    ceiling: bool = False,
    headroom: bool = False,
    in_place: bool = False,
) -> Report:
    """Run a training script in a child process, profile a short steady part of it, and report what slows its input.

    The settings in `[tool.advisor]` of the script's folder apply; arguments override them. Files that the script writes are
    discarded if it is stopped after the measurement, unless `in_place` or `to_end` is set.

    Args:
        path: The script, or a folder with a `__main__.py`.
        args: The script's own command-line arguments.
        out: The run folder to write: an empty folder or one with an earlier run. Default: a new one in the user's state folder.
        rules: Folders with additional rules.
        steps: Number of training steps to profile. Default: until the figures are stable.
        warmup: Number of steps before the measurement starts. Default: until the step time is steady.
        seconds: Longest duration of the profile, in seconds.
        to_end: Let the script run to its end instead of stopping it after the measurement.
        ceiling: Run the script a second time on its first batch repeated, to measure the maximum possible speedup.
        headroom: Run the script a second time up to its first batch and read its pipeline without training, to measure how fast
            the pipeline could go.
        in_place: Let the script write to the real files.

    Returns:
        The report. It is also in the run folder (`report.run_folder`) as `report.json` and `report.html`.

    Raises:
        AdvisorError: The path does not exist or is a saved run, a setting or rule is invalid, or nothing could be measured.
        ScriptFailed: The script failed before anything was measured.
        TypeError: `args` is a single string.

    Example:
        >>> import advisor
        >>> report = advisor.analyze_script("train.py", ["--batch-size", 32], out="run", steps=20)
        >>> report.analysis.verdict.is_input_bound
        True
    """
    from pathlib import Path

    from advisor.model.errors import AdvisorError
    from advisor.workflows.analyze import Request

    if isinstance(args, str):
        raise TypeError("args must be a sequence of arguments, not a string; shlex.split splits a command line.")
    request = Request(
        path=_located(path),
        args=tuple(str(arg) for arg in args),
        out=None if out is None else Path(out),
        rule_directories=tuple(Path(folder) for folder in rules),
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        to_end=to_end,
        with_ceiling=ceiling,
        with_headroom=headroom,
        in_place=in_place,
    )
    if request.is_saved_run and _exists(request):
        raise AdvisorError(f"{path} is a saved run, not a script: call advisor.analyze_run.")
    return _analyzed(request)


def analyze_run(
    path: str | Path,
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    run: str | None = None,
    hosts: Sequence[str] = (),
    source: str | Path | None = None,
    engine: str | None = None,
) -> Report:
    """Report what a saved run shows. Runs no script and needs no TensorFlow.

    The settings in `[tool.advisor]` of the current folder apply, except that rule folders named there are not loaded.

    Args:
        path: A run folder, a TensorBoard or XProf logdir, or a `.xplane.pb` file; a path or a URL (`gs://`, `s3://`, `https://`).
        out: A folder to write `report.json` and `report.html` to. Default: the run folder, or nowhere if `path` is not a run
            folder of this package.
        rules: Folders with additional rules.
        run: The name of one run of a logdir that holds several. Default: the newest.
        hosts: The names of the hosts to read. Default: all.
        source: The script that was profiled. Its calls are matched to a profile that was recorded without this package.
        engine: The scheduler of a Dask cluster, as `dask://HOST:PORT`, whose workers analyse the hosts of a run with several.
            Default: this machine. Needs the extra `tfdata-advisor[cluster]`.

    Returns:
        The report.

    Raises:
        AdvisorError: The path does not exist, is a script, or holds no readable profile, or the cluster cannot be used.

    Example:
        >>> import advisor
        >>> report = advisor.analyze_run("run")
        >>> report.analysis.verdict.is_input_bound
        True
        >>> report.findings[0].rule
        'serial-map'
    """
    from pathlib import Path

    from advisor.model.errors import AdvisorError
    from advisor.workflows.analyze import Choice, Request

    request = Request(
        path=_located(path),
        out=None if out is None else Path(out),
        rule_directories=tuple(Path(folder) for folder in rules),
        choice=Choice(run, tuple(hosts), None if source is None else Path(source)),
        engine=engine,
    )
    if not request.is_saved_run and _exists(request):
        raise AdvisorError(f"{path} is a script, not a saved run: call advisor.analyze_script.")
    return _analyzed(request)


def analyze_dataset(dataset: _Dataset, *, rules: Sequence[str | Path] = ()) -> Report:
    """Report what limits a dataset on its own, in the current process.

    The dataset is read as fast as possible by a consumer that does nothing else, for at most 60 seconds. The report therefore
    names the pipeline's own bottleneck; whether a training would wait for it is not known. Random state, variables and
    tables are restored afterwards, as for `optimize`.

    Args:
        dataset: A `tf.data.Dataset`.
        rules: Folders with additional rules.

    Returns:
        The report. Its `run_folder` is empty.

    Raises:
        AdvisorError: The argument is not a `tf.data.Dataset`, the call is inside a `tf.function`, or the dataset's functions
            have effects that cannot be undone (files, queues).

    Example:
        >>> import advisor
        >>> import tensorflow as tf
        >>> dataset = tf.data.Dataset.range(10_000).map(lambda x: tf.reduce_sum(tf.random.uniform([50_000])))
        >>> report = advisor.analyze_dataset(dataset)
        >>> report.analysis.main.bottleneck is not None
        True
    """
    from pathlib import Path

    from advisor.workflows.optimize import analyze_dataset

    return analyze_dataset(dataset, tuple(Path(folder) for folder in rules))


def analyze_function(
    function: Callable[..., object],
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    steps: int | None = None,
    warmup: int | None = None,
) -> Report:
    """Call a function that trains, in the current process, and report what slows its input.

    The function runs to its end. Lines are known of datasets that it makes and of those made after `install`.

    Args:
        function: The function to call.
        args: Its positional arguments.
        out: A logdir; a new run folder is made in it. Default: the user's state folder.
        steps: Number of training steps to profile. Default: until the figures are stable.
        warmup: Number of steps before the measurement starts. Default: until the step time is steady.

    Returns:
        The report.

    Raises:
        AdvisorError: The argument cannot be called, the logdir cannot be written, or nothing could be measured.
        Exception: Whatever the function raises.

    Example:
        >>> import advisor
        >>> import tensorflow as tf
        >>> def train(dataset):
        ...     for batch in dataset:
        ...         tf.reduce_mean(tf.cast(batch, tf.float32))
        >>> dataset = tf.data.Dataset.range(10_000).batch(32)
        >>> report = advisor.analyze_function(train, [dataset], out="logs", steps=20, warmup=10)
        >>> report.analysis.main.steps.count
        20
    """
    from advisor.workflows.optimize import analyze_function

    return analyze_function(function, args, out, warmup, steps)


@overload
def analyze(
    target: str | Path,
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    steps: int | None = None,
    warmup: int | None = None,
    seconds: float | None = None,
    to_end: bool = False,
    ceiling: bool = False,
    headroom: bool = False,
    in_place: bool = False,
) -> Report: ...
@overload
def analyze(
    target: str | Path,
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    run: str | None = None,
    hosts: Sequence[str] = (),
    source: str | Path | None = None,
    engine: str | None = None,
) -> Report: ...
@overload
def analyze(target: _Dataset, *, rules: Sequence[str | Path] = ()) -> Report: ...
@overload
def analyze(
    target: Callable[..., object],
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    steps: int | None = None,
    warmup: int | None = None,
) -> Report: ...


def analyze(
    target: object,
    args: Sequence[object] = (),
    *,
    out: str | Path | None = None,
    rules: Sequence[str | Path] = (),
    steps: int | None = None,
    warmup: int | None = None,
    seconds: float | None = None,
    to_end: bool = False,
    ceiling: bool = False,
    headroom: bool = False,
    in_place: bool = False,
    run: str | None = None,
    hosts: Sequence[str] = (),
    source: str | Path | None = None,
    engine: str | None = None,
) -> Report:
    """Call the `analyze_*` function that fits the target.

    Args:
        target: A script (`analyze_script`), a saved run (`analyze_run`), a `tf.data.Dataset` (`analyze_dataset`) or a function
            (`analyze_function`).
        args: See `analyze_script` and `analyze_function`.
        out: See `analyze_script`, `analyze_run` and `analyze_function`.
        rules: See `analyze_script`, `analyze_run` and `analyze_dataset`.
        steps: See `analyze_script` and `analyze_function`.
        warmup: See `analyze_script` and `analyze_function`.
        seconds: See `analyze_script`.
        to_end: See `analyze_script`.
        ceiling: See `analyze_script`.
        headroom: See `analyze_script`.
        in_place: See `analyze_script`.
        run: See `analyze_run`.
        hosts: See `analyze_run`.
        source: See `analyze_run`.
        engine: See `analyze_run`.

    Returns:
        The report.

    Raises:
        AdvisorError: As for the function that is called, or because none fits the target.
        ScriptFailed: The script failed before anything was measured.
        TypeError: An argument does not apply to the target.

    Example:
        >>> import advisor
        >>> advisor.analyze("run").analysis.verdict.is_input_bound
        True
        >>> advisor.analyze("run", steps=20)
        Traceback (most recent call last):
        TypeError: advisor.analyze: 'steps' does not apply to a saved run.
    """
    from inspect import signature

    options = {
        "args": args, "out": out, "rules": rules, "steps": steps, "warmup": warmup, "seconds": seconds, "to_end": to_end,
        "ceiling": ceiling, "headroom": headroom, "in_place": in_place, "run": run, "hosts": hosts, "source": source,
        "engine": engine,
    }  # fmt: skip
    function, kind = _function_for(target)
    given = {name: value for name, value in options.items() if _is_given(value)}
    for name in given.keys() - signature(function).parameters.keys():
        raise TypeError(f"advisor.analyze: {name!r} does not apply to {kind}.")
    report: Report = function(target, **given)
    return report


def _located(path: str | Path) -> Path:
    from advisor.model.locations import locate

    return locate(path) if isinstance(path, str) else path


def _exists(request: Request) -> bool:
    """Whether the path is there; remote paths are only looked at when they are read."""
    from advisor.model.locations import is_remote

    return request.path is not None and (is_remote(request.path) or request.path.exists())


def _analyzed(request: Request) -> Report:
    from advisor.workflows.analyze import analyze, load, make_room

    loaded, settings = load(request)
    report = analyze(request, loaded, settings, on_progress=lambda progress: None)
    make_room(request, settings)
    return report


def _function_for(target: object) -> tuple[Callable[..., Report], str]:
    """The `analyze_*` function for a target, and what messages call such a target."""
    from pathlib import Path

    from advisor.model.errors import AdvisorError
    from advisor.workflows.analyze import Request

    if isinstance(target, str | Path):
        is_saved_run = Request(path=_located(target)).is_saved_run
        return (analyze_run, "a saved run") if is_saved_run else (analyze_script, "a script")
    from advisor.capture.instrument.dataset_ids import is_dataset

    if is_dataset(target):
        return analyze_dataset, "a dataset"
    if callable(target):
        return analyze_function, "a function"
    raise AdvisorError(f"advisor.analyze takes a path, a tf.data.Dataset or a function, not a {type(target).__name__}.")


def _is_given(value: object) -> bool:
    """Whether an argument differs from its default. 0 does, although it equals False."""
    return not (value is None or value is False or value == () or value == [])
