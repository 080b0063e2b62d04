"""The child process of a timed run that also checks its text (`checked_run`).

In: a request as JSON in `argv[1]`, an inherited pipe for progress.  Out: the files of the run folder; the script's exit code.

Run by path, for the reasons given in `advisor/capture/child.py`.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    from advisor.prove.trial.runs.checked_run import run_checked

    sys.path.pop(0)
    sys.exit(run_checked(sys.argv[1]))


if __name__ == "__main__":
    _bootstrap()
