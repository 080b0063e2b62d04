"""Judges whether a transformation means the same if several workers run it, each on a part of the source.

In: a recorded call of the chain.  Out: an `Objection`, or None; conditions as clauses. Its function is judged in
`advisor.offload.functions`.

With dynamic sharding, each worker runs the whole pipeline on those parts (files, or elements of the source) that the dispatcher
gives it. A transformation that looks at single elements does the same there; one that counts elements counts those of its worker.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.model.calls import INFINITE_CARDINALITY, Call
from advisor.model.offload_result import COUNTS, FILES, OFF, PYTHON, REFUSED, SOURCE, STATE, UNDECIDED, Objection

PASSIVE = frozenset({"prefetch", "with_options"})
"""What may follow `distribute` as well as precede it."""
BATCHES = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "bucket_by_sequence_length"})
_ANYWHERE = frozenset({
    "apply", "cache", "concatenate", "filter", "flat_map", "interleave", "ignore_errors", "map", "prefetch", "rebatch",
    "repeat", "shuffle", "unbatch", "with_options",
}) | BATCHES  # fmt: skip
"""Transformations that do the same on each part of the data; for batches see `conditions_of`."""
_SPLITTABLE = frozenset({
    "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset", "from_list", "from_tensor_slices",
    "from_tensors", "list_files", "range",
})  # fmt: skip
"""Sources that the dispatcher divides: by element, or by file."""
_UNDIVIDED = frozenset({"CsvDataset"})
"""Sources that it refuses to divide. Tried on TF 2.21: `Cannot create split providers`, for several files, too."""
_COUNTING = {
    "enumerate": "numbers the elements, which every worker would do for its own",
    "scan": "carries state from one element to the next, of which every worker would have its own",
    "shard": "selects elements by their number, which every worker would count for itself",
    "skip": "skips elements, which every worker would do for its own part",
    "take": "counts elements, which every worker would do for its own part",
    "take_while": "ends at an element, which every worker would look for in its own part",
    "unique": "drops elements that occurred before, which every worker would know of its own part only",
    "window": "groups neighbouring elements, and every worker would have other neighbours",
    "group_by_window": "groups elements, and every worker would have groups of its own",
    "pad_to_cardinality": "counts elements, which every worker would do for its own part",
}
_PAIRING = frozenset({"zip", "choose_from_datasets"})
_INSIDE = _ANYWHERE | _SPLITTABLE | _UNDIVIDED | _PAIRING | {*_COUNTING, "load", "random", "sample_from_datasets"}
"""What a function may make: one call of it runs on one worker as a whole."""
_COUNTED_CLASSES = frozenset({"_AssertCardinalityDataset"})
OVERLAP = (
    "passes overlap: a worker may begin a pass before another one has ended the last, so that no number of steps is exactly one "
    "pass; in the whole stream each element comes as often as before"
)
"""What a `repeat` on the workers means."""
_DEVICE_CLASSES = frozenset({"_CopyToDeviceDataset", "_MapOnGpuDataset"})
_TRANSPARENT_CLASSES = frozenset({"_OptionsDataset", "DatasetV1Adapter", "_NestedVariant"})


def objection_to(call: Call, is_endless: bool, policy: str) -> Objection | None:
    """Return why a transformation must not run on several workers, or may not; None if nothing speaks against it.

    Args:
        call: A call of the chain, not one that a function makes.
        is_endless: Whether its input never ends.
        policy: The sharding policy.
    """
    objection = _objection(call, is_endless, policy)
    if objection is None:
        return None
    verdict, cause, reason = objection
    return Objection(verdict, cause, call.method, reason, call.site, call.id)


def objection_inside(call: Call, outer: Call) -> Objection | None:
    """Return why a call that the function of `outer` makes must not run on a worker; None if nothing speaks against it."""
    if "enerator" in call.method:
        reason = "runs a Python generator of this process, which worker processes do not have"
        return Objection(REFUSED, PYTHON, outer.method, reason, outer.site, outer.id)
    if call.method == "cache" and _writes_cache(call):
        return Objection(REFUSED, FILES, outer.method, _CACHE_FILE, outer.site, outer.id)
    if call.method == "snapshot":
        return Objection(REFUSED, FILES, outer.method, _SNAPSHOT, outer.site, outer.id)
    unknown = [name for name in call.unrecorded if name not in _TRANSPARENT_CLASSES | _COUNTED_CLASSES]
    if unknown or call.method not in _INSIDE:
        reason = f"makes a dataset in its function ({[*unknown, call.method][0]}) that is not known to work on a worker"
        return Objection(UNDECIDED, SOURCE, outer.method, reason, outer.site, outer.id)
    return None


_SNAPSHOT = "writes a snapshot, which several workers would write at once"
_CACHE_FILE = "writes a cache file, which several workers would write at once"


_CANNOT_DIVIDE = (
    "cannot be divided among workers (`Cannot create split providers`); an `interleave` over file names can"
)


def _objection(call: Call, is_endless: bool, policy: str) -> tuple[str, str, str] | None:
    method = call.method
    if "enerator" in method:
        return REFUSED, PYTHON, "runs a Python generator of this process, which worker processes do not have"
    if _COUNTED_CLASSES & set(call.unrecorded) and policy != OFF:
        return (
            REFUSED,
            COUNTS,
            "asserts a number of elements, which every worker would compare with that of its own part",
        )
    if _DEVICE_CLASSES & set(call.unrecorded):
        return REFUSED, STATE, "copies elements to a device, which belongs to the process of the training"
    unknown = [name for name in call.unrecorded if name not in _TRANSPARENT_CLASSES | _COUNTED_CLASSES]
    if unknown:
        return UNDECIDED, SOURCE, f"takes its elements from a {unknown[0]}, which is not known to work on a worker"
    if method == "cache":
        return (REFUSED, FILES, _CACHE_FILE) if _writes_cache(call) else None
    if method == "snapshot":
        return REFUSED, FILES, _SNAPSHOT
    if method in _COUNTING:
        return None if policy == OFF else (REFUSED, COUNTS, _COUNTING[method])  # OFF: every worker has all of the data
    if method in BATCHES and policy != OFF and not is_endless and call.arguments.get("drop_remainder") is True:
        return (
            REFUSED,
            COUNTS,
            "drops the last incomplete batch of a pass (drop_remainder=True), which every worker would do",
        )
    if method in _ANYWHERE or method in _SPLITTABLE:
        return None
    if policy == OFF and method in ("load", "sample_from_datasets", *_UNDIVIDED, *_PAIRING):
        return None
    if method in _UNDIVIDED:
        return REFUSED, SOURCE, _CANNOT_DIVIDE
    if method in _PAIRING:
        return UNDECIDED, COUNTS, "pairs elements of several sources, which workers may receive in different parts"
    return UNDECIDED, SOURCE, "is not known to be divisible among workers"


def _writes_cache(call: Call) -> bool:
    return call.arguments.get("filename") not in ("", None)


def conditions_of(call: Call, is_endless: bool, policy: str) -> Iterator[str]:
    """Yield what the call does on several workers that it does not do in one process, as clauses.

    Args:
        call: The call that moves to the workers.
        is_endless: Whether its input never ends, so that no pass ends with an incomplete batch.
        policy: How the data is shared: `dynamic` (each element once over all workers) or `off` (all elements from each worker).
    """
    if policy == OFF:
        return
    if call.method in BATCHES and not is_endless:
        yield f"each worker ends a pass with an incomplete batch of its own, so that a pass may have more steps ({call.method})"
    if call.method == "cache":
        yield "each worker caches the part of the data that it receives in the first pass, in its own memory"
    if call.method == "shuffle":
        yield "each worker shuffles its own part of the data"
    if call.method == "repeat":
        yield OVERLAP


def is_endless(call: Call) -> bool:
    """Whether the dataset of a call never ends."""
    return call.cardinality == INFINITE_CARDINALITY or (
        call.method == "repeat" and call.arguments.get("count") in (None, -1)
    )
