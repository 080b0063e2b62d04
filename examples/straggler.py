"""straggler: of three workers one prepares its input several times slower than the others.

The script starts three workers, profiles all of them at the same time with `advisor capture` and
analyses the run with `advisor analyze`. The marked call takes longer on one of them.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=60.0, help="how long a worker runs at most")
parser.add_argument("--first-port", type=int, default=6110)
parser.add_argument("--rounds", type=int, help="one worker: how often its map sorts (left out: start all)")
parser.add_argument("--port", type=int, help="one worker: its profiler server's")
args = parser.parse_args()


def train(port, rounds):
    import time

    import tensorflow as tf

    def prepare(index):
        signal = tf.random.normal((128, 128)) + tf.cast(index, tf.float32)
        for _ in range(rounds):
            signal = tf.sort(signal, axis=0)
        return signal

    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(prepare, num_parallel_calls=1)  # <- straggler
    dataset = dataset.batch(8).prefetch(2)
    tf.profiler.experimental.server.start(port)
    print("ready", flush=True)
    end = time.monotonic() + args.seconds
    for batch in dataset:
        time.sleep(0.02)  # training, on a device of its own
        if time.monotonic() > end:
            return


def main():
    ports = range(args.first_port, args.first_port + 3)
    command = [sys.executable, __file__, "--seconds", str(args.seconds)]
    workers = [
        subprocess.Popen(
            [*command, "--port", str(port), "--rounds", str(rounds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for port, rounds in zip(ports, (1, 1, 40))
    ]
    try:
        for each in workers:
            each.stdout.readline()
        addresses = ",".join(f"grpc://localhost:{port}" for port in ports)
        with tempfile.TemporaryDirectory() as folder:
            run = str(Path(folder) / "run")
            subprocess.run([sys.executable, "-m", "advisor", "capture", addresses, "--out", run], check=True)
    finally:
        for each in workers:
            each.kill()


if args.rounds is None:
    main()
else:
    train(args.port, args.rounds)
