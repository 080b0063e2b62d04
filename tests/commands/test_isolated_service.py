"""`advisor offload --service` with dispatcher and workers in networks of their own, as on other machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.commands.isolated_service import SERVICES
from tests.commands.offload_scripts import WAITING_SCRIPT

REPOSITORY = Path(__file__).parents[2]
COUNTED = """
    with open("{runs}", "a") as runs:
        runs.write("run\\n")
    """

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of `advisor offload`, for each of `SERVICES`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks"))
        from running_service import may_isolate
    if not may_isolate():
        pytest.skip(
            "Processes cannot get networks of their own here: the kernel refuses, or there is no `unshare` or `ip`."
        )
    folder = tmp_path_factory.mktemp("services")
    script = folder / "train.py"
    script.write_text(textwrap.dedent(COUNTED.format(runs=folder / "runs") + WAITING_SCRIPT))
    command = [sys.executable, "-m", "tests.commands.isolated_service", str(script), str(folder)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    assert done.returncode == 0, done.stderr
    services: dict[str, Any] = json.loads(done.stdout)
    assert set(services) == set(SERVICES)
    return services


def test_a_worker_that_says_localhost_cannot_be_reached_and_nothing_is_run(answers: dict[str, Any]) -> None:
    local = answers["local"]
    assert (local["code"], local["result"], local["runs"]) == (2, None, 0), local
    error = " ".join(local["errors"].split())
    assert (
        f"None of the workers of the dispatcher at {local['dispatcher'].removeprefix('grpc://')} can be reached"
        in error
    )
    assert "(localhost:5001)" in error and "--address HOST:PORT` as the trainer sees them" in error
    assert "Nothing was run." in error and "Traceback" not in error


def test_workers_at_addresses_of_their_own_are_proved(answers: dict[str, Any]) -> None:
    right = answers["right"]
    assert right["code"] == 0, right
    measurement, proof = right["result"]["measurement"], right["result"]["proof"]
    assert (
        measurement["same_elements"] is True and measurement["service_elements"] == measurement["local_elements"] == 128
    )
    assert (proof["verdict"], proof["workers"], proof["lost_workers"]) == ("faster", 2, []), proof
    assert proof["step_speedup"]["low"] > 1
    assert "cannot be reached" not in str(right["result"]["notes"])


def test_one_of_two_that_says_localhost_is_named(answers: dict[str, Any]) -> None:
    mixed = answers["mixed"]
    notes = " ".join(mixed["result"]["notes"])
    assert "1 of 2 registered workers cannot be reached from here (localhost:5001)" in notes, mixed
    assert mixed["result"]["proof"]["workers"] == 1, mixed
