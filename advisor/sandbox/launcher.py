"""Starts a run: dies with the parent, enters the private view of the disk, then executes the command in this very process.

In: the path of a plan (JSON) in `argv[1]`, the command behind it.  Out: `outcome.json` in the plan's folder; the command's own
exit code. Run by path and isolated (`-I -S`), so that no file of the user's folder can stand in for the standard library's.
"""

import sys


def _bootstrap() -> None:
    own_folder = __file__.rpartition("/")[0]
    sys.path.insert(0, own_folder.rsplit("advisor", 1)[0])
    from advisor.sandbox.launch_steps import launch

    launch(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    _bootstrap()
