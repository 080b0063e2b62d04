"""The random numbers of a replay: TensorFlow's eager state as it was before a recorded call, or a twin's.

In: the kept seeds of a call.  Out: a context in which ops made get the seeds that they are to have.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

from advisor.capture.instrument.replay_log import Seeds

AS_RECORDED, TWIN, OTHER = "as recorded", "twin", "other"
_TWIN_SEED, _OTHER_SEED = 20_177, 40_961
"""Any two numbers do."""


@contextlib.contextmanager
def eager_seeds(seeding: str, seeds: Seeds, call_id: str) -> Iterator[None]:
    """TensorFlow's eager random state as it was before that call (or the twin's), and back again."""
    try:
        from tensorflow.python.eager import context as eager

        context = eager.context()
        before = context._seed, getattr(context, "_rng", None)  # there is none before the first `set_seed`
    except (ImportError, AttributeError):
        yield
        return
    if seeding == OTHER:
        context._seed, context._rng = _OTHER_SEED, random.Random(f"other {call_id}")
    elif seeds.global_seed is not None:
        generator = random.Random()
        generator.setstate(seeds.generator_state)
        context._seed, context._rng = seeds.global_seed, generator
    elif seeding == TWIN:
        context._seed, context._rng = _TWIN_SEED, random.Random(call_id)
    else:
        context._seed = None
    try:
        yield
    finally:
        context._seed, context._rng = before
