"""Runs the demo and pastes its report into README.md, so that the one shown there is always a real one.

In: README.md with the two marker comments.  Out: the same with what `advisor analyze examples/flowers_like.py` printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- report: pasted by make readme -->", "<!-- end of report -->"
COMMAND = ["advisor", "analyze", "examples/flowers_like.py"]


def main() -> None:
    """Replace what stands between the markers."""
    done = subprocess.run(
        [sys.executable, "-m", *COMMAND],
        cwd=README.parent,
        env={**os.environ, "COLUMNS": "110"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("Run folder:"))
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    block = f"{BEGIN}\n```console\n$ {' '.join(COMMAND)}\n{report}\n```\n{END}"
    README.write_text(before + block + after, "utf-8")


if __name__ == "__main__":
    main()
