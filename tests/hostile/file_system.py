"""What stands where a profile should: folders, pipes, sockets, devices, links, what may not be read."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
from pathlib import Path

from tests.hostile.case import CASES, Case, Make, case, pipeline, written

DATA = Path(__file__).parents[1] / "data"


@case(2, "There is no")
def nothing_there(folder: Path) -> Path:
    return folder / "nowhere.xplane.pb"


@case(2, "contains no profile")
def empty_folder(folder: Path) -> Path:
    return folder


@case(2, "contains no profile")
def folder_named_like_a_profile(folder: Path) -> Path:
    (folder / "worker.xplane.pb").mkdir()
    return folder / "worker.xplane.pb"


@case(2, "contains no profile")
def folders_in_place_of_profiles(folder: Path) -> Path:
    (folder / "plugins/profile/2026_01_01_00_00_00/worker.xplane.pb").mkdir(parents=True)
    return folder


@case(2, "before 2.3")
def summaries_of_tensorflow_2_1(folder: Path) -> Path:
    run = folder / "plugins/profile/2020_01_01_00_00_00"
    run.mkdir(parents=True)
    (run / "local.trace.json.gz").write_bytes(gzip.compress(b"{}"))
    (run / "local.input_pipeline.pb").write_bytes(b"")
    return folder


@case(2, "a named pipe")
def named_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "worker.xplane.pb")
    return folder / "worker.xplane.pb"


@case(2, "a socket")
def unix_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s.pb"))
    return folder / "s.pb"


@case(2, "a device")
def endless_device(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to("/dev/zero")
    return folder / "worker.xplane.pb"


@case(2, "a device")
def empty_device(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to("/dev/null")
    return folder / "worker.xplane.pb"


@case(2, "There is no")
def symlink_loop(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to(folder / "worker.xplane.pb")
    return folder / "worker.xplane.pb"


@case(2, "There is no")
def dangling_symlink(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to(folder / "gone")
    return folder / "worker.xplane.pb"


@case(0)
def folder_that_contains_itself(folder: Path) -> Path:
    (folder / "plugins").mkdir()
    (folder / "plugins/profile").symlink_to(folder / "plugins")
    pipeline().write(folder / "plugins/2026_01_01_00_00_00/worker.xplane.pb")
    return folder


@case(2, "too long")
def path_that_is_too_long(folder: Path) -> Path:
    return folder / ("x" * 300 + ".xplane.pb")


@case(2, "larger than 2 GiB")
def sparse_file_of_three_gigabytes(folder: Path) -> Path:
    with (folder / "worker.xplane.pb").open("wb") as file:
        file.truncate(3 << 30)
    return folder / "worker.xplane.pb"


@case(0, "is not a profile")
def one_damaged_host_of_two(folder: Path) -> Path:
    run = folder / "plugins/profile/2026_01_01_00_00_00"
    pipeline().write(run / "good.xplane.pb")
    written(run, b"no profile", "bad.xplane.pb")
    return folder


@case(0)
def five_hundred_runs(folder: Path) -> Path:
    for number in range(500):
        pipeline(2).write(folder / f"plugins/profile/2026_01_01_00_{number // 60:02}_{number % 60:02}/h.xplane.pb")
    return folder


# ------------------------------------------------------------------------------------------------- what may not be read
RUN = "plugins/profile/2026_01_01_00_00_00"


def closed(place: str, target: str) -> Make:
    """A logdir in which nobody may open `place`; TARGET is `target`."""

    def make(folder: Path) -> Path:
        pipeline().write(folder / "logs" / RUN / "worker.xplane.pb")
        if place.endswith(".json"):
            (folder / place).touch()
        (folder / place).chmod(0)
        return folder / target

    return make


for title, place, target in (
    ("file_without_permission", f"logs/{RUN}/worker.xplane.pb", f"logs/{RUN}/worker.xplane.pb"),
    ("logdir_without_permission", "logs", "logs"),
    ("file_in_a_folder_without_permission", "logs", f"logs/{RUN}/worker.xplane.pb"),
    ("run_without_permission", f"logs/{RUN}", f"logs/{RUN}"),
    ("recording_without_permission", "logs/recording.json", "logs"),
):
    CASES[title] = Case(closed(place, target), 2, "Permission denied", is_strangers=True)


def closed_run(folder: Path) -> Path:
    pipeline().write(folder / RUN / "worker.xplane.pb")
    (folder / RUN).chmod(0)
    return folder


CASES["run_without_permission_in_a_logdir"] = Case(closed_run, 2, "Permission denied", is_strangers=True)


def closed_profile_of_a_run(folder: Path) -> Path:
    """A run folder of ours whose recording may be read and whose profile may not."""
    run = shutil.copytree(DATA / "keras_fit", folder / "run")
    (run / "plugins").chmod(0)
    return run


CASES["own_run_whose_profile_may_not_be_read"] = Case(
    closed_profile_of_a_run, 2, "/plugins: Permission denied; make it readable", is_strangers=True
)


@case(2, "is missing: the script was profiled")
def own_run_whose_profile_was_deleted(folder: Path) -> Path:
    run = shutil.copytree(DATA / "keras_fit", folder / "run")
    shutil.rmtree(run / "plugins")
    return run
