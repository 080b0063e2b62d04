"""The messages of real workers (TensorFlow 2.21): their causes, and the calls that they are about."""

from __future__ import annotations

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.offload_result import FILES, OP, PYTHON, SERVICE, Objection
from advisor.offload.worker_errors import objection_of
from advisor.prove.trial.elements.streams import tensorflow_message

FILE = "NotFoundError: /data/a.tfrecord; No such file or directory"
IN_FUNCTION = (
    "NotFoundError: Error in user-defined function passed to MapDataset:1 transformation with iterator: "
    "Iterator::Root::ParallelMapV2::ParallelMapV2: /data/a.png; No such file or directory"
)
DENIED = "PermissionDeniedError: /data/a.tfrecord; Permission denied"
CALLBACK = "ValueError: Could not find callback with key=pyfunc_1 in the registry"
UNKNOWN_OP = (
    "NotFoundError: Op type not registered 'ZeroOut' in binary running on worker-0. Make sure the Op is registered"
)
OTHER = "UnimplementedError: Cannot create split providers for dataset of type CSVDatasetV2"


def call(name: str, method: str, line: int | None, *inputs: str, nested_in: str | None = None, **ops: int) -> Call:
    facts = FunctionFacts("f", None, bool(ops), ops=ops, python_ops=tuple(op for op in ops if "PyFunc" in op))
    site = None if line is None else Site("train.py", line, 1, line, 9)
    return Call(name, method, site, inputs, nested_in=nested_in, function=facts if ops else None)


RECORDS = call("c1", "TFRecordDataset", 3)
LISTED = call("c1", "list_files", 3)
INTERLEAVED = call("c2", "interleave", 4, "c1", TFRecordDatasetV2=1)
INSIDE = call("c3", "TFRecordDataset", 2, nested_in="c2")
DECODED = call("c4", "map", 5, "c1", ReadFile=1, DecodeJpeg=1)
PYTHON_MAP = call("c5", "map", 6, "c1", EagerPyFunc=1)
CUSTOM = call("c6", "map", 7, "c1", ZeroOut=1)
PLACE = call("c9", "batch", 9, "c1")


def found(error: str, *calls: Call) -> Objection:
    return objection_of(error, PLACE, (PLACE, *calls))


@pytest.mark.parametrize(
    ("error", "calls", "cause", "method", "line"),
    [
        (FILE, (RECORDS,), FILES, "TFRecordDataset", 3),
        (DENIED, (RECORDS,), FILES, "TFRecordDataset", 3),
        (FILE, (INTERLEAVED, INSIDE, LISTED), FILES, "TFRecordDataset", 2),
        (IN_FUNCTION, (DECODED, LISTED), FILES, "map", 5),
        (CALLBACK, (CUSTOM, PYTHON_MAP), PYTHON, "map", 6),
        (CALLBACK, (call("c1", "from_generator", 8),), PYTHON, "from_generator", 8),
        (UNKNOWN_OP, (CUSTOM, DECODED), OP, "map", 7),
        (OTHER, (CUSTOM, DECODED), SERVICE, "batch", 9),
        ("NotFoundError: Key image not found in the parsed example", (DECODED,), SERVICE, "batch", 9),
    ],
)
def test_the_cause_and_the_line(error: str, calls: tuple[Call, ...], cause: str, method: str, line: int) -> None:
    objection = found(error, *calls)
    assert objection.site is not None
    assert (objection.cause, objection.method, objection.site.line) == (cause, method, line)
    assert objection.reason == f"fails on a worker process: {error}"


def test_of_several_reading_calls_the_one_whose_path_is_in_the_message() -> None:
    one, other = (
        Call(name, "TFRecordDataset", Site("train.py", line, 1, line, 9), arguments={"filenames": path})
        for name, line, path in (("c1", 3, "/data/a.tfrecord"), ("c2", 4, "/data/b.tfrecord"))
    )
    assert found(FILE, one, other).call_id == "c1"
    assert found(FILE.replace("a.tf", "c.tf"), one, other).call_id == PLACE.id  # neither is blamed by guess


def test_a_call_of_a_library_is_named_at_the_line_of_the_script() -> None:
    objection = found(FILE, INTERLEAVED, call("c3", "TFRecordDataset", None, nested_in="c2"))
    assert objection.site == INTERLEAVED.site


def test_what_the_service_puts_before_a_message_is_left_out() -> None:
    """A long path after it would be cut off, and with it the cause."""
    wrapped = (
        "{{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} Failed "
        "to get element from worker localhost:43459: Failed to get an element, with a nonretryable error: Failed to get element: "
    )
    path = f"/{'d' * 90}/a.png"
    error = RuntimeError(
        f"{wrapped}{path}; No such file or directory\n\t [[{{{{node ReadFile}}}}]] [Op:IteratorGetNext] name: "
    )
    assert tensorflow_message(error) == f"RuntimeError: {path}; No such file or directory"
