"""Runs scripts in processes forked from one that has imported TensorFlow: the import takes longer than most of the scripts.

    python tests/traps/forking.py

In: a JSON object a line on stdin: `script` and `seconds`.  Out: a JSON object a line on stdout: `ok` and the script's `output`.

TensorFlow is only imported before the fork, it starts no thread of its own until the script uses it. Run by path with the Python
whose TensorFlow is to be used.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path


def main() -> None:
    """Serve until stdin ends."""
    sys.path.pop(0)  # this folder
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(Path(request["script"]), request["seconds"])), flush=True)


def run(script: Path, seconds: float) -> dict[str, object]:
    """Run the script in its own folder and process."""
    log = script.with_suffix(".log")
    child = os.fork()
    if child == 0:
        _become(script, log)
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"ok": False, "output": f"It did not end within {seconds:.0f} s."}
        time.sleep(0.05)
    return {"ok": status == 0, "output": log.read_text("utf-8", errors="replace")}


def _become(script: Path, log: Path) -> None:
    """Never returns."""
    code = 1
    try:
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(script.parent)
        sys.argv = [str(script)]
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
