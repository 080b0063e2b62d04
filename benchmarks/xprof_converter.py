"""Measures XProf's own converter (C++) for the input-pipeline page, in a Python that has `xprof` installed.

In: an interpreter, profile files.  Out: seconds (without imports) and peak bytes (with imports) of a fresh process.

    python -m venv xprof && xprof/bin/pip install xprof            # a separate environment; then --xprof xprof/bin/python

The converter stores intermediate results next to the profiles and reads them the next time, so each run gets copies.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOOL = "input_pipeline_analyzer"
_TASK = """
import importlib.metadata, json, pathlib, re, resource, sys, time
from xprof.convert import raw_to_tool_data
start = time.perf_counter()
data, _ = raw_to_tool_data.xspace_to_tool_data(sys.argv[2:], sys.argv[1], {})
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
status = pathlib.Path("/proc/self/status")
if status.exists():  # ru_maxrss starts with the memory of the process that started this one
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024
print(json.dumps({"seconds": seconds, "peak_bytes": peak,
                  "answer_bytes": len(data or b""), "version": importlib.metadata.version("xprof")}))
"""


def convert(python: Path, profiles: Sequence[Path]) -> dict[str, Any]:
    """`seconds`, `peak_bytes`, `answer_bytes` and `version`.

    Raises:
        SystemExit: If the converter fails; with its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "plugins/profile/run"
        run.mkdir(parents=True)
        copies = [shutil.copy(path, run / path.name) for path in profiles]
        done = subprocess.run([python, "-c", _TASK, TOOL, *copies], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"XProf's converter failed.\n{done.stderr[-2000:]}")
    converted: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not converted["answer_bytes"]:
        sys.exit(f"XProf's converter gave nothing.\n{done.stderr[-2000:]}")
    return converted
