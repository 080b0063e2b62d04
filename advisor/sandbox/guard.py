"""Entry point of the guard process, which ends the runs and removes the temporary folders if the advisor is killed.

In: the advisor's process id, the runs' marker and the folder for temporary files in `argv`.  Out: nothing. The advisor ends the
guard when it exits normally. The guard has its own session, so that keyboard signals of the terminal do not reach it.
"""

import sys


def _bootstrap() -> None:
    own_folder = __file__.rpartition("/")[0]
    sys.path.insert(0, own_folder.rsplit("advisor", 1)[0])
    from advisor.sandbox.guarding import run_guard

    run_guard(int(sys.argv[1]), sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    _bootstrap()
