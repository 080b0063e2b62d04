"""Four jobs on this machine, profiled at the same time: on a cluster the addresses are grpc://worker-0:6009,grpc://worker-1:6009,...

python several_workers.py --out logs
"""

import argparse
import subprocess
import sys
from pathlib import Path

arguments = argparse.ArgumentParser()
arguments.add_argument("--out", default="logs")
arguments.add_argument("--workers", type=int, default=4)
arguments.add_argument("--first-port", type=int, default=6010)
arguments = arguments.parse_args()

ports = range(arguments.first_port, arguments.first_port + arguments.workers)
job = Path(__file__).with_name("profiler_server.py")
jobs = [
    subprocess.Popen([sys.executable, job, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for port in ports
]
try:
    for each in jobs:
        each.stdout.readline()  # its profiler server has started
    addresses = ",".join(f"grpc://localhost:{port}" for port in ports)
    subprocess.run(["advisor", "capture", addresses, "--out", arguments.out], check=True)
finally:
    for each in jobs:
        each.kill()
