"""Entry point of the child process, which runs the script as `python script.py args...` would, with the hooks installed.

In: a request as JSON in `argv[1]`, an inherited pipe for progress.  Out: the files of the run folder; the script's exit code.

The parent starts this file by its path and not with `-m`. So no module in the user's folder can shadow the advisor's or the
standard library's modules during start-up, and the script sees no traces of `-m`.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)  # the folder of this file; its modules must not be importable as top-level modules
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    from advisor.capture.session import run_session

    sys.path.pop(0)
    sys.exit(run_session(sys.argv[1]))


if __name__ == "__main__":
    _bootstrap()
