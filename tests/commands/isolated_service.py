"""Asks `advisor offload` about services whose processes have networks of their own, like machines on one switch.

    python -m tests.commands.isolated_service SCRIPT FOLDER

In: a script, and an empty folder.  Out: one JSON object; for each service, what the command printed. Needs `may_isolate`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
INSIDE = "inside"
LOCAL = "localhost:%port%"
"""What a worker of TensorFlow tells its clients by default."""
SERVICES = {"local": (LOCAL,), "right": ("", ""), "mixed": ("", LOCAL)}
"""Name of a service -> the addresses of its workers; empty: the one in their network."""


def main() -> None:
    """Enter a network of its own, and ask about each service."""
    sys.path.insert(0, str(BENCHMARKS))
    from running_service import inside_own_network, prepare_own_network

    if sys.argv[-1] != INSIDE:
        inside_own_network(["-m", "tests.commands.isolated_service", *sys.argv[1:], INSIDE])
    prepare_own_network()
    script, folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps({name: asked(name, script, folder) for name in SERVICES}))


def asked(name: str, script: str, folder: Path) -> dict[str, Any]:
    """Start a service, and return what `advisor offload` says about it."""
    from running_service import RunningService

    own = folder / name
    own.mkdir()
    with RunningService(own, is_isolated=True) as service:
        service.start_dispatcher()
        for address in SERVICES[name]:
            service.start_worker(address=address)
        command = [sys.executable, "-m", "advisor", "offload", "--service", service.address, "--json", "-", script]
        done = subprocess.run(command, capture_output=True, text=True)
        return {
            "dispatcher": service.address,
            "code": done.returncode,
            "errors": done.stderr,
            "result": json.loads(done.stdout) if done.stdout else None,
            "runs": (folder / "runs").read_text().count("\n") if (folder / "runs").exists() else 0,
        }


if __name__ == "__main__":
    main()
