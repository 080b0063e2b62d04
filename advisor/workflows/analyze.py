"""The phases of `advisor analyze`.

In: a `Request`: a script to profile, or a saved run.  Out: a `Report`, and report.json in the run folder.

    load_rules -> capture -> read_trace -> analyse -> run_rules -> report       (rules first: errors in them cost no run)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote
from advisor.model.regular_files import is_regular
from advisor.model.run_folder import (
    RECORDING_NAME,
    has_profile,
    is_saved_run,
    new_run_folder,
    run_folder_of,
    why_no_profile,
)
from advisor.model.settings import Settings, load_settings, without_named_rules
from advisor.workflows.saved_recording import read_recording

if TYPE_CHECKING:
    from advisor.capture.request import CaptureRequest, Progress
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.workflows.stored_runs import StoredRun

OnProgress = Callable[["Progress"], None]
Capture = Callable[["CaptureRequest", OnProgress], Path]
"""Runs and profiles a script, as `advisor.capture.launch.capture`."""


_BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """Selects part of a saved run, and the script that built its pipelines."""

    run: str | None = None
    """Name of a run in a logdir with several; None for the newest."""
    hosts: tuple[str, ...] = ()
    """Hosts to read; empty for all."""
    source: Path | None = None
    """Script whose calls are matched to the iterators of a profile without a recording."""
    files: tuple[Path, ...] = ()
    """Exactly these profile files, one per host; empty: those that are found in the path."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to analyse, and how. At most one of `path` and `module` is set."""

    path: Path | None = None
    """A script, a run folder, a logdir or a `.xplane.pb` file."""
    module: str | None = None
    """Module to run as `python -m module`."""
    args: tuple[str, ...] = ()
    """The script's arguments."""
    out: Path | None = None
    """For a script, its run folder (None for a new one in the state folder); for a saved run, where report.json goes."""
    rule_directories: tuple[Path, ...] = ()
    allow: tuple[str, ...] = ()
    """Permitted safety levels of fixes beyond `exact`. If empty (or None for the next three), the settings apply."""
    steps: int | None = None
    """Steps to profile."""
    warmup: int | None = None
    """Steps before the window."""
    seconds: float | None = None
    """Longest window in seconds."""
    to_end: bool = False
    """Let the script continue after the window."""
    show_output: bool = False
    """Pass the script's output through to stderr."""
    in_place: bool = False
    """Let the script write to the real files; implied by `to_end`."""
    with_ceiling: bool = False
    """Run the script a second time with its first element repeated, to measure the ceiling."""
    with_headroom: bool = False
    """Run the script a second time up to its first element and read its pipeline without training, to measure the headroom."""
    choice: Choice = Choice()
    """Part of a saved run to read."""
    deadline: float | None = None
    """Time of `time.monotonic` at which the script is stopped and `OutOfTime` is raised; None for no limit."""
    engine: str | None = None
    """Where the hosts of a saved run are analysed: `dask://HOST:PORT`; None: on this machine."""
    is_only_read: bool = False
    """Run no code from the current folder; implied for a saved run."""

    @property
    def is_saved_run(self) -> bool:
        """Whether the target is read rather than run."""
        return self.path is not None and (is_remote(self.path) or is_saved_run(self.path))


def load(request: Request) -> tuple[list[LoadedRule], Settings]:
    """Load the rules and the settings of the script's folder (for a saved run, the current folder), overridden by options.

    Rule folders named in the settings are as trusted as the script, which is run as well. For a saved run they are not loaded.

    Raises:
        AdvisorError: The target does not exist, or the settings or a rule file are invalid.
    """
    from advisor.engine import load_rules

    if request.path is not None and not is_remote(request.path) and not request.path.exists():
        raise AdvisorError(f"There is no {request.path}; name a script, a run folder, a logdir or a .xplane.pb file.")
    is_script = request.path is not None and not request.is_saved_run
    if is_script and request.path is not None and not (request.path.is_dir() or is_regular(request.path)):
        raise AdvisorError(f"{request.path} is not a regular file: name a script, a run folder or a profile.")
    settings = load_settings(request.path.parent if is_script and request.path else Path.cwd())
    if request.is_saved_run or request.is_only_read:
        settings = without_named_rules(settings, request.rule_directories)
    settings = replace(
        settings,
        allow=request.allow or settings.allow,
        steps=settings.steps if request.steps is None else request.steps,
        warmup=settings.warmup if request.warmup is None else request.warmup,
        seconds=settings.seconds if request.seconds is None else request.seconds,
    )
    return load_rules(request.rule_directories, settings), settings


def analyze(
    request: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    on_progress: OnProgress,
    capture: Capture | None = None,
) -> Report:
    """Analyse a script or a saved run, and write report.json into the run folder.

    If the capture fails or is interrupted, a newly created run folder is removed; a finished capture is kept.

    Args:
        request: The target.
        rules: The rules to ask.
        settings: The settings, as returned by `load`.
        on_progress: Called with progress messages.
        capture: Runs and profiles the script; None: `advisor.capture.launch.capture`.

    Raises:
        AdvisorError: The target cannot be analysed.
        ScriptFailed: The script failed before anything was measured.
    """
    if request.is_saved_run and request.path is not None:
        return _analyze_saved_run(request, request.path, rules, settings, on_progress)
    return _analyze_script(request, rules, settings, on_progress, capture)


def analyze_run(
    path: Path,
    rules: Sequence[LoadedRule],
    settings: Settings,
    choice: Choice = Choice(),
    on_progress: OnProgress = lambda progress: None,
    engine: str | None = None,
) -> Report:
    """Analyse a saved run without writing anything.

    Args:
        path: A run folder, a logdir, or a `.xplane.pb` file. Only run folders have recorded calls.
        rules: The rules to ask.
        settings: The settings.
        choice: Part of the run to read.
        on_progress: Called with progress messages.
        engine: The scheduler of a Dask cluster that analyses the hosts, as `dask://HOST:PORT`; None: this machine.

    Raises:
        AdvisorError: There is no profile to read, or the cluster cannot be used.
    """
    from advisor.engine import run_rules
    from advisor.graph.recorded_calls import limit_calls
    from advisor.hosts import analyse_and_draw
    from advisor.profile import ProfileFiles, choice_notes, find_profiles

    own = read_recording(path)
    if own is not None and not has_profile(path):
        from advisor.graph import analyse

        if own.window is not None and own.calls and not own.unprofiled:
            raise AdvisorError(why_no_profile(path))
        if engine is not None:
            raise AdvisorError(f"--engine is for runs of several hosts, and {path} has no profile: leave it out.")
        return _with_folder(run_rules(analyse(None, limit_calls(own), own.target), rules, settings), path)
    profiles = ProfileFiles(choice.files) if choice.files else find_profiles(path, choice.run, choice.hosts)
    folder = run_folder_of(profiles.paths[0] if is_remote(path) else profiles.paths[0].absolute())
    recorded = read_recording(folder) if folder else None
    recording = limit_calls(recorded) if recorded else None
    target = recording.target if recording else str(path)
    warnings = choice_notes(profiles, path, choice.run)
    if own is not None and folder is None:
        warnings = (
            *warnings,
            f"{RECORDING_NAME} belongs to an older run than {profiles.run}, so its source lines are unknown.",
        )
    show = _host_progress(on_progress)
    analysis, timeline = analyse_and_draw(profiles, recording, target, warnings, show, engine)
    if choice.source is not None:
        from advisor.graph.inferred_calls import infer_calls
        from advisor.graph.source_alignment import align_source

        analysis = infer_calls(align_source(analysis, choice.source), has_source=True)
    elif recording is None:
        from advisor.graph.inferred_calls import infer_calls

        analysis = infer_calls(analysis)
    report = run_rules(analysis, rules, settings)
    report = replace(report, timeline=timeline)
    return _with_folder(report, folder) if folder and not is_remote(path) else report


def _with_folder(report: Report, path: Path) -> Report:
    return replace(report, run_folder=str(path.resolve()))


def _host_progress(on_progress: OnProgress) -> Callable[[int, int], None]:
    """Show the hosts done as a bar; nothing for a single host."""
    from advisor.capture.request import Progress
    from advisor.model.units import format_bar, format_count

    def show(done: int, total: int) -> None:
        if total > 1:
            bar = format_bar(done / total, _BAR_WIDTH).ljust(_BAR_WIDTH, "-")
            on_progress(Progress("analysing", text=f"{bar} {format_count(done)}/{format_count(total)} hosts"))
        if 1 < total == done:  # some files are read a second time, and a full progress bar would look stuck
            on_progress(Progress("analysing", text="timeline"))

    return show


def _analyze_saved_run(
    request: Request, path: Path, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
) -> Report:
    _check_reports(request.out or path)
    report = analyze_run(path, rules, settings, request.choice, on_progress, request.engine)
    if request.out is not None:
        try:
            request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdvisorError(f"Cannot write to {request.out}: {error.strerror or error}.") from None
        write_reports(report, request.out)
    elif report.run_folder:
        with suppress(AdvisorError):  # a read-only run folder can still be analysed
            write_reports(report, Path(report.run_folder))
    return report


def make_room(request: Request, settings: Settings) -> list[StoredRun]:
    """After a new run in the default location, delete the oldest runs beyond the limits of the settings, and return them."""
    from advisor.workflows.stored_runs import prune

    if request.is_saved_run or request.out is not None:
        return []
    return prune(settings.keep_runs, settings.keep_runs_bytes)


def _check_reports(folder: Path) -> None:
    """Raise AdvisorError if a report in the folder is not a regular file: writing to a named pipe would block forever."""
    from advisor.report.html import REPORT_HTML_NAME
    from advisor.report.report_json import REPORT_NAME

    if is_remote(folder):
        return
    for file in (folder / REPORT_NAME, folder / REPORT_HTML_NAME):
        if file.exists() and not file.is_dir() and not is_regular(file):
            raise AdvisorError(f"{file} is not a regular file: remove it, or name another folder with --out.")


def write_reports(report: Report, folder: Path) -> None:
    """Write report.json and report.html into a run folder.

    Raises:
        AdvisorError: They cannot be written, or would replace files that the advisor did not write.
    """
    from advisor.model.outputs import check_output
    from advisor.model.own_files import FileKind
    from advisor.report.html import REPORT_HTML_NAME, write_html
    from advisor.report.report_json import REPORT_NAME, report_to_dict, write_report

    json_path, html_path = folder / REPORT_NAME, folder / REPORT_HTML_NAME
    check_output("The folder's", json_path, FileKind.REPORT)
    check_output("The folder's", html_path, FileKind.HTML)
    write_report(report, json_path)
    write_html(report_to_dict(report), html_path)


def capture_request_of(request: Request, settings: Settings, folder: Path) -> CaptureRequest:
    """Return how to run and measure the script of a request.

    Args:
        request: The request.
        settings: The settings, as returned by `load`.
        folder: The run folder.
    """
    from advisor.capture.request import CaptureRequest

    return CaptureRequest(
        out=folder,
        script=request.path,
        module=request.module,
        args=request.args,
        steps=settings.steps,
        warmup=settings.warmup,
        seconds=settings.seconds,
        to_end=request.to_end,
        show_output=request.show_output,
        in_place=request.in_place,
        reads_alone=not (request.to_end or request.in_place),
        deadline=request.deadline,
    )


def _analyze_script(
    request: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    on_progress: OnProgress,
    capture: Capture | None,
) -> Report:
    from advisor.capture import launch
    from advisor.capture.request import Progress
    from advisor.workflows.calibrate import calibrate_run
    from advisor.workflows.product_times import with_product_times
    from advisor.workflows.second_runs import measure_ceiling, measure_headroom

    name = (request.module or "module") if request.path is None else request.path.stem
    with new_run_folder(request.out, name) as folder:
        capture_request = capture_request_of(request, settings, folder)
        (capture or launch.capture)(capture_request, on_progress)
        recording = read_recording(folder) if request.with_ceiling or request.with_headroom else None
        if recording is not None and request.with_ceiling:
            recording = measure_ceiling(capture_request, recording, on_progress)
        if recording is not None and request.with_headroom:
            measure_headroom(capture_request, recording, analyze_run, on_progress)
    calibrate_run(folder, request.deadline, on_progress)
    on_progress(Progress("analysing"))
    try:
        report = analyze_run(folder, rules, settings)
        report = with_product_times(report, folder, rules, settings, request.deadline, on_progress)
        write_reports(report, folder)
    except AdvisorError as error:
        raise AdvisorError(f"{error} The run is kept in {folder}.") from None
    return report
