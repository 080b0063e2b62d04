"""Profiles in S3 and in Google Cloud Storage, read by the workers of a Dask cluster. The stores are servers of this machine.

Skipped where the packages of the stores are not installed; `make stores` makes an environment with them.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from advisor.hosts import analyse_and_draw
from advisor.model.locations import locate
from advisor.profile import find_profiles
from tests.hosts.dask_cluster import cluster
from tests.hosts.made_hosts import write_hosts

pytestmark = pytest.mark.long

START_S = 60
WAITS = {f"host-{number:03}": 600 if number == 3 else 100 for number in range(6)}


@contextmanager
def serving(module: str, *options: str, port: int) -> Iterator[str]:
    """Run the server of a store, and yield its address."""
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", module, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_S
        while not answers(address):
            assert process.poll() is None and time.monotonic() < deadline, "the store did not start"
            time.sleep(0.2)
        yield address
    finally:
        process.kill()
        process.wait()


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=2)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def analysed_on_a_cluster(url: str, folder: Path):
    with cluster(folder, 2) as started:
        return analyse_and_draw(find_profiles(locate(url)), None, "run", engine=started.engine)[0]


def assert_all_hosts(analysis) -> None:
    assert {row.hostname for row in analysis.hosts.hosts} == set(WAITS)
    (straggler,) = analysis.hosts.stragglers
    assert straggler.startswith("host-003 is a straggler: its steps wait 600 us for input")
    assert analysis.warnings == ()


@pytest.mark.skipif(
    not (importlib.util.find_spec("s3fs") and importlib.util.find_spec("moto")), reason="needs make stores"
)
def test_s3(tmp_path, monkeypatch):
    port = free_port()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with serving("moto.server", "-H", "127.0.0.1", "-p", str(port), port=port) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        import s3fs

        store = s3fs.S3FileSystem()
        store.mkdir("profiles")
        store.put(str(write_hosts(tmp_path / "logs", WAITS)), "profiles/logs", recursive=True)
        assert_all_hosts(analysed_on_a_cluster("s3://profiles/logs", tmp_path))


@pytest.mark.skipif(
    not (importlib.util.find_spec("gcsfs") and importlib.util.find_spec("gcp_storage_emulator")),
    reason="needs make stores",
)
def test_google_cloud_storage(tmp_path, monkeypatch):
    port = free_port()
    options = ("start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=profiles")
    with serving("gcp_storage_emulator", *options, port=port) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("FSSPEC_GCS_TOKEN", "anon")  # no search for credentials
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # the server knows one type of bucket
        import gcsfs

        store = gcsfs.GCSFileSystem(token="anon")
        store.put(str(write_hosts(tmp_path / "logs", WAITS)), "profiles/logs", recursive=True)
        assert_all_hosts(analysed_on_a_cluster("gs://profiles/logs", tmp_path))
