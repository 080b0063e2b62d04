"""A run of many hosts, made of real captures of one pipeline at three settings.

In: a number of hosts.  Out: a logdir, and what was planted in it.

Every host is one of a few copies of the quick capture, with its own name; the times of each copy are stretched by up to 2 %, so
that hosts differ. Some hosts are the slow capture (stragglers: each element takes `SLOWER` times as long to produce), and some
have another configuration (two parallel calls instead of one).
"""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from advisor.profile.file_content import read_profile
from advisor.profile.profile_files import find_profiles
from advisor.profile.xspace import message_class, parse_events, parse_xspace

SLOWER = 4
COPIES = 16
"""Stretched copies of each capture; with more hosts, several have the same times."""
HOSTS_PER_STRAGGLER = 256
HOSTS_PER_OTHER = 16
CAPTURE = """
import sys, time
import tensorflow as tf

def work(x):
    image = tf.ones((64, 64)) * tf.cast(x, tf.float32)
    for _ in range(int(sys.argv[2])):
        image = tf.matmul(image, image) * 0.001
    return tf.reduce_sum(image)

dataset = tf.data.Dataset.range(10**9).shuffle(256).map(work, num_parallel_calls=int(sys.argv[3])).batch(8).prefetch(2)
iterator = iter(dataset)
for _ in range(20):
    next(iterator)
tf.profiler.experimental.start(
    sys.argv[1],
    tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0),
)
for _ in range(100):
    next(iterator)
    time.sleep(0.004)
tf.profiler.experimental.stop()
"""


@dataclass(frozen=True)
class Captures:
    """The captures that hosts are made of."""

    quick: Path
    slow: Path
    other: Path | None = None
    """Another configuration; None: no host has one."""


@dataclass(frozen=True)
class Planted:
    """What a run contains."""

    stragglers: tuple[str, ...]
    others: tuple[str, ...]
    """Hosts with another configuration."""
    sizes: tuple[int, ...]
    """Bytes of each file."""


def capture(folder: Path, work: int = 1, parallel: int = 1) -> Path:
    """Profile a small pipeline with the installed TensorFlow.

    Args:
        folder: The logdir to write.
        work: Matrix products per element, relative to the quick capture.
        parallel: Parallel calls of its map.
    """
    done = subprocess.run(
        [sys.executable, "-c", CAPTURE, folder, str(40 * work), str(parallel)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"the capture failed; give --quick and --slow instead.\n{done.stderr[-2000:]}")
    return folder


def make_hosts(logdir: Path, captures: Captures, number: int, dice: random.Random) -> Planted:
    """Write the hosts' profiles."""
    run = logdir / "plugins/profile/2026_01_01_00_00_00"
    run.mkdir(parents=True)
    copies = {
        name: [_stretched(path, 1 + dice.uniform(-0.02, 0.02)) for _ in range(min(COPIES, number))]
        for name, path in (("quick", captures.quick), ("slow", captures.slow), ("other", captures.other))
        if path is not None
    }
    step = max(1, number // (1 + number // HOSTS_PER_STRAGGLER))
    slow = set(range(step // 2 + (number == 2), number, step))
    other = set(range(3, number, HOSTS_PER_OTHER)) - slow if captures.other is not None else set()
    sizes = []
    for place in range(number):
        kind = "slow" if place in slow else "other" if place in other else "quick"
        host = _name(place)
        data = copies[kind][place % len(copies[kind])] + _hostname_field(host)
        sizes.append((run / f"{host}.xplane.pb").write_bytes(data))
    return Planted(tuple(map(_name, sorted(slow))), tuple(map(_name, sorted(other))), tuple(sizes))


def _name(place: int) -> str:
    return f"host-{place:04}"


def _hostname_field(host: str) -> bytes:
    """The name of a host as a message of its own, which is added to another one by appending its bytes."""
    data: bytes = message_class("XSpace")(hostnames=[host.encode()]).SerializeToString()
    return data


def _stretched(logdir: Path, factor: float) -> bytes:
    """A profile without the name of its host, with all times scaled."""
    space = parse_xspace(read_profile(find_profiles(logdir).paths[0]))
    for plane in space.planes:
        for line in plane.lines:
            events = parse_events(list(line.events))
            for event in events:
                event.offset_ps, event.duration_ps = round(event.offset_ps * factor), round(event.duration_ps * factor)
            del line.events[:]
            line.events.extend(event.SerializeToString() for event in events)
    data: bytes = message_class("XSpace")(
        planes=space.planes, errors=space.errors, warnings=space.warnings
    ).SerializeToString()
    return data
