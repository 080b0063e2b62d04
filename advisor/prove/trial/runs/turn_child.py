"""The child process of a run in turns (`turn_run`).

In: a request as JSON in `argv[1]`, two inherited pipes.  Out: the files of the run folder; the script's exit code.

Run by path, for the reasons given in `advisor/capture/child.py`.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    from advisor.prove.trial.runs.turn_run import run_in_turns

    sys.path.pop(0)
    sys.exit(run_in_turns(sys.argv[1]))


if __name__ == "__main__":
    _bootstrap()
