"""Makes the recorded runs beside this file: each script of scripts/ captured for a short window.

    python tests/data/make.py [NAME...]

Paths are cut down to `scripts/NAME.py` and the host's name to `host`, so that a run says nothing of the machine it was made on.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest

HERE = Path(__file__).parent
STEPS = 25


def make(script: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = capture(CaptureRequest(out=Path(folder) / "run", script=script, steps=STEPS, seconds=0.6), lambda _: None)
        profile = next(run.glob("plugins/profile/*/*.xplane.pb"))
        target = HERE / script.stem
        shutil.rmtree(target, ignore_errors=True)
        place = target / "plugins" / "profile" / profile.parent.name
        place.mkdir(parents=True)
        data = profile.read_bytes()
        with gzip.GzipFile(place / "host.xplane.pb.gz", "wb", mtime=0) as file:
            file.write(data)
        text = (run / "recording.json").read_text()
        for long, short in ((str(HERE) + "/", ""), (str(HERE), "."), (sys.prefix, "venv")):
            text = text.replace(long, short)
        recording = json.loads(text)
        recording["host"]["hostname"] = "host"
        recording["cwd"] = "."
        (target / "recording.json").write_text(json.dumps(recording, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    for path in sorted((HERE / "scripts").glob("*.py")):
        if len(sys.argv) < 2 or path.stem in sys.argv[1:]:
            print(path.stem, flush=True)
            make(path)
