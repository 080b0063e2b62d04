"""The child process: watch a script while it runs as `python script.py args...` would run it.

In: a request as JSON in `argv[1]`, an inherited pipe for progress.  Out: the run folder's files; the script's own exit code.

Run by path, not with `-m`: then no file of the user's folder can stand in for ours or for the standard library's while we
set up, and nothing of `-m` is left behind for the script to see.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)  # this file's folder; its modules must not be importable by their bare names
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    import json

    from advisor.capture.session import run_session

    sys.path.pop(0)
    sys.exit(run_session(json.loads(sys.argv[1])))


if __name__ == "__main__":
    _bootstrap()
