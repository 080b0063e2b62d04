"""Logdirs of several origins, and a real TensorBoard that shows them."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.collecting import free_port
from tests.hosts.made_hosts import RUN, write_hosts

DATA = Path(__file__).parents[1] / "data"
OTHERS = Path(__file__).parents[2] / "../shared/profiles"
NAME = "tfdata_advisor"
TAB = "tf.data"
RUN_OF = {"keras_fit": "keras_fit/2026_11_21_05_22_17", "zip_filter": "zip_filter/2026_11_21_05_24_51"}
"""Recorded run folder -> the name of its run in a logdir."""
_PATIENCE_S = 90
_PROGRAM = "from tensorboard import main; main.run_main()"


def recorded(name: str, logdir: Path, at: str = "") -> Path:
    """Put a run folder of the advisor into a logdir."""
    return Path(shutil.copytree(DATA / name, logdir / (at or name), ignore=shutil.ignore_patterns("report.*")))


def unpacked(folder: Path) -> Path:
    """Unpack the profiles below a folder: XProf reads no .gz."""
    for profile in folder.rglob("*.xplane.pb.gz"):
        profile.with_suffix("").write_bytes(gzip.decompress(profile.read_bytes()))
        profile.unlink()
    return folder


def foreign(logdir: Path, at: str = "job", hosts: int = 1) -> Path:
    """Put a profile without a recording into a logdir."""
    write_hosts(logdir / at, {f"host{number}": 300.0 + number for number in range(hosts)})
    return logdir / at / RUN


def broken(logdir: Path, at: str = "broken") -> Path:
    """Put a file into a logdir that is called a profile, and is none."""
    folder = logdir / at / "plugins/profile/2026_03_03_00_00_00"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(b"this is not a profile" * 100)
    return folder


@dataclass(frozen=True)
class Served:
    """A running TensorBoard."""

    url: str
    log: Path

    def get(self, path: str) -> bytes:
        """The body of a response."""
        with urllib.request.urlopen(self.url + path, timeout=_PATIENCE_S) as response:
            return bytes(response.read())


@contextlib.contextmanager
def tensorboard(logdir: Path, folder: Path, before: str = "", python: str = sys.executable) -> Iterator[Served]:
    """Run TensorBoard on a free port of the loopback interface.

    Args:
        logdir: Its logdir.
        folder: Where its log is kept.
        before: Python code that its process runs first.
        python: The interpreter of the environment that it is installed in.
    """
    port = free_port()
    log = folder / f"tensorboard-{port}.log"
    command = [
        python,
        "-c",
        f"{before}\n{_PROGRAM}",
        "--logdir",
        str(logdir),
        "--port",
        str(port),
        "--load_fast",
        "false",
    ]
    served = Served(f"http://localhost:{port}/", log)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            cwd=folder,
        )
        try:
            start = time.monotonic()
            while True:
                with contextlib.suppress(OSError):
                    served.get("data/plugins_listing")
                    break
                assert process.poll() is None and time.monotonic() - start < _PATIENCE_S, log.read_text()
                time.sleep(0.1)
            yield served
        finally:
            process.terminate()
            process.wait()
