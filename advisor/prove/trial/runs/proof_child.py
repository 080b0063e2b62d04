"""The child process of a proof: run the script up to its first element, then serve requests.

In: the path of a request (JSON) in `argv[1]`, two inherited pipes.  Out: replies as JSON lines; the script's own exit code.

Run by path, for the reasons given in `advisor/capture/child.py`.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    from pathlib import Path

    from advisor.prove.trial.runs.proof_run import run_proof

    sys.path.pop(0)
    sys.exit(run_proof(Path(sys.argv[1]).read_text("utf-8")))


if __name__ == "__main__":
    _bootstrap()
