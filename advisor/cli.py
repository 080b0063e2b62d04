"""Entry point of the `advisor` command.

In: the command line.  Out: the report on stdout, everything else on stderr, and an exit code:

    0    success
    1    success, and --fail-on matched, or `check`: a budget is exceeded
    2    failure; one sentence on stderr names the problem, the place and the action to take
    3    the script failed before anything was measured
    4    `fix`: --fail-on matched, and the changes are proved on the pipeline alone
    130  interrupted (143: terminated by SIGTERM)
    141  the reader of the output closed the pipe (`| head`)

Importing this module imports click and nothing heavier, so that `advisor --help` responds at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from advisor.model.errors import AdvisorError
from advisor.model.termination import Terminated, raising_when_terminated
from advisor.model.text import one_line, printable
from advisor.model.version import __version__

COMMANDS = (
    "analyze",
    "capture",
    "check",
    "compare",
    "doctor",
    "explain",
    "export",
    "fix",
    "offload",
    "prove",
    "rules",
    "runs",
    "skill",
    "watch",
)
"""Names of the commands. Each is `command` in `advisor/commands/<name>.py`, imported on first use."""
EXIT_FAILED = 2
EXIT_INTERRUPTED = 130
EXIT_SIGNALLED = 128
"""Added to the signal's number, the convention of shells."""
MAX_MESSAGE = 2_000
"""Longest error message, in characters."""
EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE, as other tools exit when the reader of their output closes the pipe. Never 0 or 1: CI gates interpret those."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: Arguments without the program's name; None for those of this process.

    Returns:
        The exit code, as listed in the module docstring.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # the terminal's encoding may lack characters of a file name
            stream.reconfigure(errors="backslashreplace")
    try:
        with raising_when_terminated():
            code = advisor.main(args=args, prog_name="advisor", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_FAILED)
    except AdvisorError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        cause = error.__cause__ if isinstance(error, click.Abort) else error  # click turns both into Abort
        if isinstance(cause, Terminated):
            return _fail("Terminated.", EXIT_SIGNALLED + cause.number)
        return _fail("Interrupted.", EXIT_INTERRUPTED)
    except (
        _ReaderLeft,
        BrokenPipeError,
    ):  # `| head`: stdout goes to /dev/null so that Python does not report the broken pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_BROKEN_PIPE
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return _fail(f"The operating system refused{where}: {error.strerror or error}.", EXIT_FAILED)
    except Exception as error:  # a bug must not exit with 1, which means that --fail-on matched
        import traceback

        traceback.print_exc()
        return _fail(
            f"This is a bug in advisor {__version__} ({type(error).__name__}), not in your script.", EXIT_FAILED
        )


class _ReaderLeft(Exception):
    """The reader of the output has closed the pipe."""


class _Commands(click.Group):
    """Command group that imports a command's module on first use."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. On a broken pipe click would exit with 1, so the error is replaced."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderLeft from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"advisor.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="advisor %(version)s")
def advisor() -> None:
    """Find what slows a tf.data input pipeline, on which line, and what to change."""


def _fail(message: str, code: int) -> int:
    line = printable(one_line(message))
    if len(line) > MAX_MESSAGE:  # an error may quote a line of a generated file
        line = f"{line[:MAX_MESSAGE]}... ({len(line) - MAX_MESSAGE:,} more characters)"
    with contextlib.suppress(OSError):
        click.echo(f"error: {line}", err=True)
    return code
