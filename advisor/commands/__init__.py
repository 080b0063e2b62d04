"""One module per command: `advisor/commands/<name>.py` defines `command`, a click command; `advisor/cli.py` lists the names.

In: options and arguments.  Out: an exit code.

The modules import click and nothing heavier; a command imports the rest when it runs. Shared modules:

    script_target.py   the target and its arguments, the options of a run, and the `Request` built from them
    output.py          the console, progress, the JSON report, `--fail-on`
"""
