"""One module per command: `advisor/commands/<name>.py` defines `command`, a click command; `advisor/cli.py` lists the names.

In: options and arguments.  Out: an exit code.

The modules import click and nothing heavier; what a command needs is imported when it runs. What commands share:

    script_target.py   the target and its arguments, the options of a run, and the `Request` made of them
    output.py          the console, progress, the JSON report, `--fail-on`
"""
