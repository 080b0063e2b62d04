"""What a change would give, hold in memory and do to the data, before anybody has tried it.

In: an `Analysis` and what the change does to the cost of iterators.  Out: `predict_speedup` (operational model), cores and
Python's lock (capacity), bytes (memory), safety (legality), places for a cache (caching).
"""

from advisor.predict.caching import CachePlace, cache_places
from advisor.predict.capacity import CoreUse, core_use, python_share
from advisor.predict.legality import Obstacle, cache_obstacles, parallel_safety
from advisor.predict.memory import cache_bytes, elements_per_epoch
from advisor.predict.operational import asynchronous, overlap_factors, predict_speedup
from advisor.predict.structure import consumed_call, iterators_inside, nested_calls, upstream_calls

__all__ = [
    "CachePlace",
    "CoreUse",
    "Obstacle",
    "asynchronous",
    "cache_bytes",
    "cache_obstacles",
    "cache_places",
    "consumed_call",
    "core_use",
    "elements_per_epoch",
    "iterators_inside",
    "nested_calls",
    "overlap_factors",
    "parallel_safety",
    "predict_speedup",
    "python_share",
    "upstream_calls",
]
