"""`advisor offload`: move the input pipeline of a script to tf.data service.

In: a script or a saved run, and options.  Out: the result as text and JSON; with --files, the files of the service; with
--write, those and the changed script.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.output import EXIT_MATCHED, console_for_people, progress_bar, write_json
from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    json_option,
    out_option,
    read_duration,
    request_of,
    run_options,
    target_argument,
)
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.model.offload_result import Offload
    from advisor.workflows.analyze import Request
    from advisor.workflows.offload import OffloadResult

DEFAULT_BUDGET = "10min"
FOLDER = "tfdata-service"
"""Where --write puts the files of the service: a folder beside the script."""
_BYTES_PER_GIGABIT = 1e9 / 8
FAIL_ON = ("refused", "undecided", "no-gain")


@click.command(
    "offload",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Move a pipeline to tf.data service.",
)
@target_argument("SCRIPT")
@click.option(
    "--write", is_flag=True, help="Write the files, and the change into the source; --undo restores the source."
)
@click.option("--undo", is_flag=True, help="Revert the last --write of the source; nothing is run.")
@click.option(
    "--files", type=click.Path(path_type=Path), metavar="DIR", help="Write server.py, Dockerfile and manifests there."
)
@click.option(
    "--budget", callback=read_duration, default=DEFAULT_BUDGET, show_default=True, metavar="T",
    help="Time limit for the whole command.",
)  # fmt: skip
@click.option(
    "--sharding", type=click.Choice(("dynamic", "off")), default="dynamic", show_default=True,
    help="Each element once over all workers, or all elements from each worker.",
)  # fmt: skip
@click.option(
    "--worker-cores", type=click.FloatRange(min=0, min_open=True), metavar="N",
    help="Cores of a worker (default: as many as here).",
)  # fmt: skip
@click.option(
    "--network", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True, metavar="GBIT",
    help="Link of the training host, in Gbit/s.",
)  # fmt: skip
@click.option("--address", metavar="grpc://HOST:PORT", help="Dispatcher, as it is written into the source.")
@click.option(
    "--service", metavar="grpc://HOST:PORT",
    help="Dispatcher of a running service: prove the script with it, and start no workers here.",
)  # fmt: skip
@click.option("--no-measurement", is_flag=True, help="Start no workers; judge the recording only.")
@click.option("--fail-on", multiple=True, type=click.Choice(FAIL_ON), help="Exit with 1 if this is the result.")
@json_option
@out_option
@run_options
@click.option("--quiet", is_flag=True, help="Print neither report nor progress.")
@click.option("--show-output", is_flag=True, help="Show the script's output on stderr.")
def command(target: str, args: tuple[str, ...], write: bool, undo: bool, files: Path | None, budget: float, sharding: str,
            worker_cores: float | None, network: float, address: str | None, service: str | None, no_measurement: bool,
            fail_on: tuple[str, ...], json_path: str | None, quiet: bool, **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Say whether the input pipeline of SCRIPT can move to other machines, how many it takes, and make the files for them.

    SCRIPT is a script, `-m MODULE`, or a saved run, of which only the recording is judged; the arguments after a script are
    passed to it. Real dispatcher and worker processes of tf.data service run its pipeline here; with --service, those that you
    run elsewhere do, and the script is run alternately with its own pipeline and with theirs. No file is written without --files
    or --write.
    """
    from advisor.offload.sizing import Machines
    from advisor.prove.budget import check_budget
    from advisor.workflows.analyze import load
    from advisor.workflows.offload import OffloadRequest, announcement, offload

    if undo:
        return _undo(target, args, write, quiet)
    _check_json(json_path)
    request = request_of(target, args, options)
    asked = OffloadRequest(
        request,
        budget,
        sharding,
        Machines(worker_cores, network * _BYTES_PER_GIGABIT),
        is_measured=not (no_measurement or request.is_saved_run),
        is_to_be_written=write,
        are_files_wanted=(write and service is None) or files is not None,
    )
    if service is not None:
        _check_service(request, address, no_measurement)
        asked = replace(asked, service=_checked("--service", service))
    if address is not None:
        asked = replace(asked, address=_checked("--address", address))
    if write and not asked.is_measured:
        raise click.UsageError("--write needs the measurement; without it, --files DIR writes the files.")
    folder = files or (_folder_of(request) if write and service is None else None)
    if folder is not None:
        from advisor.workflows.offload_files import check_folder

        check_folder(folder)
    check_budget(budget)
    rules, settings = load(request)
    if not (quiet or request.is_saved_run):
        click.echo(announcement(asked), err=True)
    with progress_bar(quiet or request.show_output, budget) as on_progress:
        result = offload(asked, rules, settings, on_progress)
    outcome, problem = _write(result, request, folder, write)
    _emit_json(outcome, json_path)
    if not quiet:
        from advisor.report.offload_text import print_offload

        print_offload(outcome, console_for_people(to_stderr=json_path == "-"))
        if outcome.changed_files:
            click.echo(
                f"To revert: advisor offload --undo {target if target != '-m' else outcome.run_folder}", err=True
            )
    if request.out is None and not request.is_saved_run:
        from advisor.commands.runs import say_pruned
        from advisor.workflows.stored_runs import prune

        say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    if problem is not None:  # raised only now, so that the result, which took minutes, is shown first
        raise problem
    return EXIT_MATCHED if set(fail_on) & _results(outcome) else 0


def _results(outcome: Offload) -> set[str]:
    """Return the values of `--fail-on` that the result matches."""
    results = {outcome.movability.verdict}
    is_useless = outcome.sizing is not None and outcome.sizing.verdict == "no gain"
    if is_useless or (outcome.proof is not None and outcome.proof.verdict != "faster"):
        results.add("no-gain")
    return results


def _write(
    result: OffloadResult, request: Request, folder: Path | None, is_source_changed: bool
) -> tuple[Offload, AdvisorError | None]:
    """Write what was asked for.

    Returns:
        The result with the names of the files, and the error if something was asked for but not written.
    """
    from advisor.offload.decision import why_not_written
    from advisor.workflows.offload_files import write_files

    outcome = result.offload
    refusal = (
        why_not_written(outcome.movability, outcome.sizing, outcome.diff, outcome.proof) if is_source_changed else ""
    )
    if refusal:
        return outcome, AdvisorError(refusal)
    try:
        if folder is not None and result.texts:
            outcome = replace(outcome, files=tuple(str(path) for path in write_files(folder, result.texts)))
        if is_source_changed:
            from advisor.rewrite.apply.write import write_patch

            changed = write_patch(result.patch, Path(outcome.run_folder), request.path)
            outcome = replace(outcome, changed_files=tuple(str(path) for path in changed))
    except AdvisorError as error:
        return outcome, error
    return outcome, None


def _undo(target: str, args: tuple[str, ...], write: bool, quiet: bool) -> int:
    from advisor.rewrite.apply.undo import undo

    if write:
        raise click.UsageError("--write and --undo are mutually exclusive.")
    if target == "-m":
        raise click.UsageError("--undo takes the script's file or the run folder, not a module's name.")
    if args:
        raise click.UsageError(f"--undo takes no script arguments, as nothing is run (got {args[0]}).")
    for path in undo(Path(target)):
        if not quiet:
            click.echo(f"Restored {path}.")
    return 0


def _folder_of(request: Request) -> Path:
    return (Path.cwd() if request.path is None else request.path.parent) / FOLDER


def _check_service(request: Request, address: str | None, no_measurement: bool) -> None:
    """Check what goes together with --service.

    Raises:
        UsageError: It needs the script, or another option contradicts it.
    """
    if request.is_saved_run:
        raise click.UsageError("--service needs the script, which it runs; a saved run can only be judged.")
    if address is not None:
        raise click.UsageError("--service is the address that is written into the source, so --address is not needed.")
    if no_measurement:
        raise click.UsageError("--service and --no-measurement are mutually exclusive.")


def _checked(option: str, address: str) -> str:
    """Return the dispatcher's address.

    Raises:
        UsageError: It is not `grpc://HOST:PORT`.
    """
    protocol, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if protocol != "grpc" or not host or not port.isdecimal() or any(c.isspace() or c in "\"'\\" for c in rest):
        raise click.UsageError(f"{option} {address} is not of the form grpc://HOST:PORT.")
    return address


def _check_json(json_path: str | None) -> None:
    if json_path not in (None, "-"):
        from advisor.model.outputs import check_output
        from advisor.model.own_files import FileKind

        check_output("--json", Path(json_path or ""), FileKind.OFFLOAD)


def _emit_json(outcome: Offload, json_path: str | None) -> None:
    from advisor.model.own_files import FileKind
    from advisor.report.offload_json import offload_to_bytes

    write_json(json_path, FileKind.OFFLOAD, lambda: offload_to_bytes(outcome))
