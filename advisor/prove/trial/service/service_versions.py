"""Asks the workers of a running service which TensorFlow they are.

In: the dispatcher's address.  Out: a sentence if a worker runs another TensorFlow than this process, else an empty text.

tf.data service does not say. So every worker is sent a dataset whose only element is a graph that the worker itself writes down:
TensorFlow notes the version of its graphs in it, which grows with every release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.model.units import format_many


def probe(address: str) -> Any:  # noqa: ANN401
    """Return a dataset with one element from each worker, for `graph_version`."""
    import tensorflow as tf

    def written_by_the_worker(_: Any) -> Any:  # noqa: ANN401
        inner = tf.data.Dataset.range(1)
        return tf.raw_ops.DatasetToGraphV2(input_dataset=inner._variant_tensor, external_state_policy=1)

    dataset = tf.data.Dataset.range(1).map(written_by_the_worker)
    return dataset.apply(tf.data.experimental.service.distribute("parallel_epochs", address))


def graph_version(element: Any) -> int:  # noqa: ANN401
    """Return the version of the TensorFlow that made an element of `probe`."""
    import tensorflow as tf

    return int(tf.compat.v1.GraphDef.FromString(element.numpy()).versions.producer)


def own_version() -> tuple[int, str]:
    """Return the version of this process's graphs, and its release."""
    import tensorflow as tf

    return int(tf.version.GRAPH_DEF_VERSION), str(tf.version.VERSION)


def difference(workers: Sequence[int], own: int, release: str) -> str:
    """Return in one sentence that workers run another TensorFlow; empty if none does.

    Args:
        workers: The graph version of each worker that answered.
        own: That of the training.
        release: The TensorFlow release of the training.
    """
    others = [version for version in workers if version != own]
    if not others:
        return ""
    ages = {version < own for version in others}
    which = {frozenset({True}): "an older", frozenset({False}): "a newer"}.get(frozenset(ages), "another")
    verb = "runs" if len(others) == 1 else "run"
    return (
        f"{len(others)} of {format_many(len(workers), 'worker')} {verb} {which} TensorFlow than the training ({release}): graphs "
        f"of one release need not load in another one, so start all workers with {release}."
    )
