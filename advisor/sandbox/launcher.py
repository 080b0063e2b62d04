"""Entry point of the launcher, which enters the private view of the disk and executes the command in the same process.

In: the path of a plan (JSON) in `argv[1]`, followed by the command.  Out: `outcome.json` in the plan's folder; the exit code of
the command. The parent starts this file by its path and isolated (`-I -S`), so that no module in the user's folder can shadow a
module of the standard library.
"""

import sys


def _bootstrap() -> None:
    own_folder = __file__.rpartition("/")[0]
    sys.path.insert(0, own_folder.rsplit("advisor", 1)[0])
    from advisor.sandbox.launch_steps import launch

    launch(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    _bootstrap()
