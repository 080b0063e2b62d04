"""A real Dask cluster for tests; the benchmark uses the same one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from local_cluster import Cluster, cluster

__all__ = ["Cluster", "cluster"]
