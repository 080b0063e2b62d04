"""Runs a script as `python SCRIPT ARGS...` and ends as soon as stdin is closed, however its parent died.

In: the script and its arguments in `argv[1:]`, a pipe on stdin whose other end the parent holds.  Out: what the script prints.

Run by path, with `-P`, so that neither this folder nor the current one is on the import path. Importing it does nothing.
"""

import os
import runpy
import sys
import threading


def _end_with_parent() -> None:
    while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
