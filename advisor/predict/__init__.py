"""What a change would give, hold in memory and do to the data, before anybody has tried it.

In: an `Analysis` and what the change does to the cost of iterators.  Out: `predict_speedup` (operational model),
`usable_cores` and `idle_cores` (capacity), `cache_bytes` and `elements_per_epoch` (memory), `cache_obstacles` and
`parallel_safety` (legality).
"""

from advisor.predict.capacity import idle_cores, is_python_locked, usable_cores
from advisor.predict.legality import Obstacle, cache_obstacles, nested_calls, parallel_safety, upstream_calls
from advisor.predict.memory import cache_bytes, elements_per_epoch
from advisor.predict.operational import overlap_factor, predict_speedup

__all__ = [
    "Obstacle",
    "cache_bytes",
    "cache_obstacles",
    "elements_per_epoch",
    "idle_cores",
    "is_python_locked",
    "nested_calls",
    "overlap_factor",
    "parallel_safety",
    "predict_speedup",
    "upstream_calls",
    "usable_cores",
]
