"""Times passes over the pipelines of several variants of a script, by turns in one process.

    python passes.py TURNS SECONDS BRIEF FOLDER/NAME.py ...

In: scripts that define `dataset()`.  Out: one JSON list per script on stdout: seconds of each pass, the first one left out. After
TURNS turns, all but the first BRIEF scripts alternate further until SECONDS more have passed, but at most `MAX_TURNS` times:
ratios of passes of 0.1 s differed by a tenth between runs of seven turns.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import workload

MAX_TURNS = 61


def dataset_of(script: Path) -> Any:
    """Import the script under a name of its own and build its dataset."""
    spec = importlib.util.spec_from_file_location(f"{script.parent.name}_{script.stem}", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dataset()


def seconds_of_a_pass(data: Any) -> float:
    """Train on every batch once. The time to destroy the iterator, which depends on AUTOTUNE's clock, is left out."""
    start = time.perf_counter()
    iterator = iter(data)
    for batch in iterator:
        workload.step(batch)
    return time.perf_counter() - start


def main(turns: int, seconds: float, brief: int, scripts: list[Path]) -> None:
    """Run and print."""
    pipelines = [dataset_of(script) for script in scripts]
    for data in pipelines:
        seconds_of_a_pass(data)  # traces the functions, and fills caches
    times: list[list[float]] = [[] for _ in pipelines]
    shuffled = random.Random(0)
    began = 0.0
    for turn in range(MAX_TURNS):
        if turn == turns:
            began = time.perf_counter()
        if turn >= turns and time.perf_counter() - began >= seconds:
            break
        order = list(range(brief if turn >= turns else 0, len(pipelines)))
        shuffled.shuffle(order)
        for index in order:
            times[index].append(seconds_of_a_pass(pipelines[index]))
    print(json.dumps(times))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), [Path(name) for name in sys.argv[4:]])
