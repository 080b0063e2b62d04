"""Sets TensorFlow's eager random state for a replay.

In: the kept seeds of a call.  Out: a context manager in which new ops get the seeds of the chosen kind.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

from advisor.capture.instrument.replay_log import Seeds
from advisor.replay.seedings import OTHER, TWIN

_TWIN_SEED, _OTHER_SEED = 20_177, 40_961
"""Arbitrary fixed seeds."""


@contextlib.contextmanager
def global_seed_unset(seed: int) -> Iterator[None]:
    """Unset TensorFlow's global seed within the block if it is this one; seeds that the script has set stay."""
    try:
        from tensorflow.python.eager import context as eager

        context = eager.context()
        is_unset = context._seed == seed
    except (ImportError, AttributeError):
        yield
        return
    if is_unset:
        context._seed = None
    try:
        yield
    finally:
        if is_unset and context._seed is None:
            context._seed = seed


@contextlib.contextmanager
def eager_seeds(seeding: str, seeds: Seeds, call_id: str) -> Iterator[None]:
    """Set TensorFlow's eager random state within the block.

    Args:
        seeding: `AS_RECORDED`: the state before the recorded call. `TWIN`: the same if the script sets a global seed, otherwise a
            state that depends only on `call_id`. `OTHER`: a different state that depends only on `call_id`.
        seeds: State before the recorded call.
        call_id: Id of the call.
    """
    try:
        from tensorflow.python.eager import context as eager

        context = eager.context()
        before = context._seed, getattr(context, "_rng", None)  # `_rng` does not exist before the first `set_seed`
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
