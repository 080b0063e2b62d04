"""A process that outlives the tool by a moment: where the tool is killed, it ends the runs and removes the temporary folders.

In: the tool's process id, the runs' marker and the folder for temporary files in `argv`.  Out: nothing. The tool ends it at its
own regular end. It has a session of its own, so that Ctrl-C and Ctrl-\\ in the terminal do not reach it.
"""

import sys


def _bootstrap() -> None:
    own_folder = __file__.rpartition("/")[0]
    sys.path.insert(0, own_folder.rsplit("advisor", 1)[0])
    from advisor.sandbox.guarding import stand_guard

    stand_guard(int(sys.argv[1]), sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    _bootstrap()
