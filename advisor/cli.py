"""The command `advisor`: options in, exit code out.

In: the command line.  Out: the report on stdout, everything else on stderr, and an exit code:

    0  analysed            1  analysed, and --fail-on matched       2  could not: one sentence says what, where, what to do
    3  the script failed before anything was measured               130  interrupted (143: by SIGTERM)
    4  `fix`: --fail-on matched, and the changes are proved on the pipeline alone
                                                                    141  the reader of the output left (`| head`)

Importing this module imports click and nothing heavier: `advisor --help` has to feel instant.
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
from advisor.model.version import __version__

COMMANDS = (
    "analyze",
    "capture",
    "compare",
    "explain",
    "export",
    "fix",
    "rules",
    "runs",
)
"""Each is the `command` of `advisor/commands/<name>.py`, imported when it is asked for."""
EXIT_FAILED = 2
EXIT_INTERRUPTED = 130
EXIT_SIGNALLED = 128
"""And the signal's number, as shells say it."""
MAX_MESSAGE = 2_000
"""Characters of an error."""
EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE: what other tools end with when the reader of their output leaves. Never 0 or 1, which a gate would read."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. `args`: without the program's name; None: those of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal's encoding lacks is no reason to fail
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
        ended = error.__cause__ if isinstance(error, click.Abort) else error  # click makes an Abort of both
        if isinstance(ended, Terminated):
            return _fail("Terminated.", EXIT_SIGNALLED + ended.number)
        return _fail("Interrupted.", EXIT_INTERRUPTED)
    except (
        _ReaderLeft,
        BrokenPipeError,
    ):  # the reader of the pipe has left (`| head`); Python must not complain at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_BROKEN_PIPE
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return _fail(f"The system said no{where}: {error.strerror or error}.", EXIT_FAILED)
    except Exception as error:  # a mistake of ours must not end with 1, which says that --fail-on matched
        import traceback

        traceback.print_exc()
        return _fail(
            f"This is a bug in advisor {__version__} ({type(error).__name__}), not in your script.", EXIT_FAILED
        )


class _ReaderLeft(Exception):
    """Nobody reads the output any more."""


class _Commands(click.Group):
    """The group imports a command's module when it needs it."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Click would end the process with 1 when the reader of a pipe has left."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderLeft from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"advisor.commands.{cmd_name}").command
        assert isinstance(found, click.Command)
        return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="advisor %(version)s")
def advisor() -> None:
    """Say what slows a tf.data input pipeline, on which line, and what to change."""


def _fail(message: str, code: int) -> int:
    line = "".join(map(_visible, " ".join(message.split())))
    if len(line) > MAX_MESSAGE:  # an error that quotes a line of a generated file
        line = f"{line[:MAX_MESSAGE]}... ({len(line) - MAX_MESSAGE:,} more characters)"
    with contextlib.suppress(OSError):
        click.echo(f"error: {line}", err=True)
    return code


def _visible(char: str) -> str:
    """Names of files may hold what steers a terminal: it shows as an escape."""
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
