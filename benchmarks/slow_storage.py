"""Makes the files below one folder slow to read for the processes that are started, by a small library that is preloaded.

In: a folder and the microseconds that each read takes longer.  Out: environment variables. Needs Linux and a C compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_storage.c")


def why_not() -> str:
    """Say why storage cannot be made slow here; empty if it can."""
    if sys.platform != "linux":
        return "Storage cannot be made slow here: LD_PRELOAD needs Linux."
    return "" if _compiler() else "Storage cannot be made slow here: there is no C compiler (gcc or cc)."


def slow_storage(folder: Path, read_us: int, build: Path) -> dict[str, str]:
    """Compile the library into the folder `build`, and return the environment of processes that read `folder` slowly.

    Raises:
        RuntimeError: There is no compiler, or it fails.
    """
    problem = why_not()
    if problem:
        raise RuntimeError(problem)
    library = build / "slow_storage.so"
    command = [_compiler(), "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{SOURCE.name} cannot be compiled: {done.stderr[-500:]}")
    preloaded = " ".join(filter(None, (str(library), os.environ.get("LD_PRELOAD", ""))))
    return {"LD_PRELOAD": preloaded, "SLOW_STORAGE_FOLDER": str(folder.resolve()), "SLOW_STORAGE_US": str(read_us)}


def _compiler() -> str:
    return shutil.which("gcc") or shutil.which("cc") or ""
