"""The order of the phases; no other file knows it.

In: a `Request`: a script to watch, or a saved run.  Out: a `Report`, and report.json in the run folder.

    load_rules -> capture -> read_trace -> analyse -> run_rules -> report       (rules first: their mistakes cost no run)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote, reading
from advisor.model.regular_files import is_regular, read_regular
from advisor.model.run_folder import (
    RECORDING_NAME,
    has_profile,
    is_saved_run,
    new_run_folder,
    run_folder_of,
    why_no_profile,
    write_whole,
)
from advisor.model.settings import Settings, load_settings, without_named_rules
from advisor.sandbox.temporary import temporary_folder

if TYPE_CHECKING:
    from advisor.capture.request import CaptureRequest, Progress
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.recording import Recording
    from advisor.workflows.stored_runs import StoredRun

OnProgress = Callable[["Progress"], None]


_BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """What of a saved run is read, and whose calls its iterators are."""

    run: str | None = None
    """One of several runs of a logdir; None: the newest."""
    hosts: tuple[str, ...] = ()
    """Some of its hosts; empty: all."""
    source: Path | None = None
    """A script whose calls are laid beside the iterators of a profile without a recording."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be analysed, and how. Exactly one of `path` and `module` is set."""

    path: Path | None = None
    """A script, a run folder, a logdir or a `.xplane.pb` file."""
    module: str | None = None
    """Run as `python -m module`."""
    args: tuple[str, ...] = ()
    """The script's own."""
    out: Path | None = None
    """A script's run folder (None: a new one below the user's state folder); a saved run's place for report.json."""
    rule_directories: tuple[Path, ...] = ()
    allow: tuple[str, ...] = ()
    """Safety levels beyond `exact` that fixes may have; empty: as the settings say. So are the three below, if None."""
    steps: int | None = None
    """Steps to profile."""
    warmup: int | None = None
    """Steps before the window."""
    seconds: float | None = None
    """Longest window."""
    to_end: bool = False
    """Let the script run on after the window."""
    show_output: bool = False
    """Pass the script's output through to stderr."""
    in_place: bool = False
    """Let the script write to the real files; a run that goes to its end does so anyway."""
    with_ceiling: bool = False
    """Run the script a second time on its first element repeated, to measure the ceiling."""
    choice: Choice = Choice()
    """Of a saved run."""
    deadline: float | None = None
    """Instant of `time.monotonic` at which the script is stopped and `OutOfTime` is raised; None: never."""
    is_only_read: bool = False
    """No code of the current folder is run; a saved run is only read anyway."""

    @property
    def is_saved_run(self) -> bool:
        """Whether there is something to read, and no script to run."""
        return self.path is not None and (is_remote(self.path) or is_saved_run(self.path))


def load(request: Request) -> tuple[list[LoadedRule], Settings]:
    """The rules to ask and the settings: those of the script's folder (for a saved run the current one), options over them.

    The rule folders that settings name are as trusted as the script, which is run as well. For a saved run they are not loaded.

    Raises AdvisorError for a target that does not exist, and for mistakes in settings and rule files.
    """
    from advisor.engine import load_rules

    if request.path is not None and not is_remote(request.path) and not request.path.exists():
        raise AdvisorError(f"There is no {request.path}; give a script, a run folder, a logdir or a .xplane.pb file.")
    is_script = request.path is not None and not request.is_saved_run
    if is_script and request.path is not None and not (request.path.is_dir() or is_regular(request.path)):
        raise AdvisorError(f"{request.path} is not a regular file: give a script, a run folder or a profile.")
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


def analyze(request: Request, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress) -> Report:
    """The report on the script or the saved run; report.json is written into the run folder.

    Raises AdvisorError (nothing could be done) or ScriptFailed (the script failed before anything was measured). If the
    capture fails, Ctrl-C included, a run folder that was not there before is gone again; a finished capture is kept.
    """
    if request.is_saved_run and request.path is not None:
        return _analyze_saved_run(request, request.path, rules, settings, on_progress)
    return _analyze_script(request, rules, settings, on_progress)


def analyze_run(
    path: Path,
    rules: Sequence[LoadedRule],
    settings: Settings,
    choice: Choice = Choice(),
    on_progress: OnProgress = lambda progress: None,
) -> Report:
    """The report on a saved run: a run folder of ours, a logdir that holds some, or any logdir or `.xplane.pb` (no calls known).

    Writes nothing. Raises AdvisorError when there is no profile to read.
    """
    from advisor.capture.request import Progress
    from advisor.engine import run_rules
    from advisor.graph.recorded_calls import limit_calls
    from advisor.hosts import analyse_and_draw
    from advisor.profile import find_profiles, told_choice
    from advisor.statistics import add_statistics

    own = read_recording(path)
    if own is not None and not has_profile(path):
        from advisor.graph import analyse

        if own.window is not None and own.calls and not own.unprofiled:
            raise AdvisorError(why_no_profile(path))
        return _with_folder(run_rules(analyse(None, limit_calls(own), own.target), rules, settings), path)
    found = find_profiles(path, choice.run, choice.hosts)
    folder = run_folder_of(found.paths[0] if is_remote(path) else found.paths[0].absolute())
    recorded = read_recording(folder) if folder else None
    recording = limit_calls(recorded) if recorded else None
    target = recording.target if recording else str(path)
    warnings = told_choice(found, path, choice.run)
    if own is not None and folder is None:
        warnings = (
            *warnings,
            f"{RECORDING_NAME} belongs to an older run than {found.run}, so no lines are known of it.",
        )
    analysis, timeline = analyse_and_draw(found, recording, target, warnings, _host_progress(on_progress))
    if choice.source is not None:
        from advisor.graph.inferred_calls import infer_calls
        from advisor.graph.source_alignment import align_source

        analysis = infer_calls(align_source(analysis, choice.source), has_source=True)
    elif recording is None:
        from advisor.graph.inferred_calls import infer_calls

        analysis = infer_calls(analysis)
    if len(found.paths) > 1:  # the files are read a second time: a bar that stands at its end would look stuck
        on_progress(Progress("analysing", text="the profiler's figures"))
    analysis = add_statistics(analysis, found.paths)
    report = run_rules(analysis, rules, settings)
    report = replace(report, timeline=timeline)
    return _with_folder(report, folder) if folder and not is_remote(path) else report


def _with_folder(report: Report, path: Path) -> Report:
    return replace(report, run_folder=str(path.resolve()))


def _host_progress(on_progress: OnProgress) -> Callable[[int, int], None]:
    """Hosts done, as a bar; nothing for a single one, which takes no time worth a bar."""
    from advisor.capture.request import Progress
    from advisor.model.units import format_bar, format_count

    def show(done: int, total: int) -> None:
        if total > 1:
            bar = format_bar(done / total, _BAR_WIDTH).ljust(_BAR_WIDTH, "-")
            on_progress(Progress("analysing", text=f"{bar} {format_count(done)}/{format_count(total)} hosts"))

    return show


def read_recording(path: Path) -> Recording | None:
    """What our capture saw, if `path` is a run folder of ours."""
    from advisor.graph.recorded_calls import check_calls
    from advisor.model.codec import decode
    from advisor.model.recording import Recording

    file = path / RECORDING_NAME
    try:
        with reading(file):
            if not file.exists():
                return None
            if not file.is_file():
                raise AdvisorError(f"{file} is not a regular file: give a run folder that `advisor` has written.")
    except OSError as error:  # a folder that must not be searched
        raise AdvisorError(f"{path} cannot be read ({error.strerror}).") from None
    try:
        with reading(file):
            data = file.read_bytes() if is_remote(file) else read_regular(file)
    except OSError as error:
        raise AdvisorError(f"{file} cannot be read ({error.strerror}).") from None
    recording = decode(data, Recording, str(file))
    check_calls(recording, str(file))
    return recording


def _analyze_saved_run(
    request: Request, path: Path, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
) -> Report:
    _check_reports(request.out or path)
    report = analyze_run(path, rules, settings, request.choice, on_progress)
    if request.out is not None:
        try:
            request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdvisorError(f"Cannot write to {request.out}: {error.strerror or error}.") from None
        _write_reports(report, request.out)
    elif report.run_folder:
        with suppress(AdvisorError):  # a run folder that may only be read is no obstacle to reading it
            _write_reports(report, Path(report.run_folder))
    return report


def make_room(request: Request, settings: Settings) -> list[StoredRun]:
    """After a new run in the default place: delete the oldest ones beyond the limits of the settings, and return them."""
    from advisor.workflows.stored_runs import prune

    if request.is_saved_run or request.out is not None:
        return []
    return prune(settings.keep_runs, settings.keep_runs_bytes)


def _check_reports(folder: Path) -> None:
    """Raise AdvisorError if a report in that folder is no regular file: writing into a named pipe would wait for ever."""
    from advisor.report.html import REPORT_HTML_NAME
    from advisor.report.report_json import REPORT_NAME

    if is_remote(folder):
        return
    for file in (folder / REPORT_NAME, folder / REPORT_HTML_NAME):
        if file.exists() and not file.is_dir() and not is_regular(file):
            raise AdvisorError(f"{file} is not a regular file: remove it, or name another folder with --out.")


def _write_reports(report: Report, folder: Path) -> None:
    """report.json and report.html into a run folder.

    Raises AdvisorError when they cannot be written, or would replace files of the same names that are not ours.
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


def _analyze_script(
    request: Request, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
) -> Report:
    from advisor.capture.launch import capture
    from advisor.capture.request import CaptureRequest, Progress

    name = (request.module or "module") if request.path is None else request.path.stem
    with new_run_folder(request.out, name) as folder:
        wish = CaptureRequest(
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
            deadline=request.deadline,
        )
        capture(wish, on_progress)
        if request.with_ceiling:
            _measure_ceiling(wish, on_progress)
    on_progress(Progress("analysing"))
    try:
        report = analyze_run(folder, rules, settings)
        _write_reports(report, folder)
    except AdvisorError as error:
        raise AdvisorError(f"{error} The run itself is kept in {folder}.") from None
    return report


def _measure_ceiling(wish: CaptureRequest, on_progress: OnProgress) -> None:
    """Run the script again on its first element repeated, and keep the step times in the first run's recording."""
    from advisor.capture.launch import capture
    from advisor.model.codec import encode

    recording = read_recording(wish.out)
    if recording is None:
        return
    call_id = next((consumer.call_id for consumer in recording.consumers if consumer.is_main), None)
    step_ns: tuple[int, ...] = ()
    why = "no dataset was consumed whose call is known"
    if call_id is not None:
        with temporary_folder("ceiling") as folder:  # its training is a sham, so it never goes to its end
            second = replace(wish, out=folder / "run", ceiling_for=call_id, to_end=False)
            try:
                capture(second, lambda progress: on_progress(replace(progress, text="ceiling")))
                seen = read_recording(second.out)
                step_ns, why = (seen.ceiling_step_ns if seen else ()), "the second run had no steps"
            except AdvisorError as error:
                why = str(error).rstrip(".")
    if step_ns:
        recording = replace(recording, ceiling_step_ns=step_ns)
    else:
        warning = f"The ceiling could not be measured ({why}): it is estimated as 1 / (1 - wait share)."
        recording = replace(recording, warnings=(*recording.warnings, warning))
    write_whole(wish.out / RECORDING_NAME, encode(recording))
