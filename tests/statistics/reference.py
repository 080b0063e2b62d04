"""What TensorFlow's own tools said about a profile, from the files that they saved beside it.

In: a file such as `colab.tensorflow_stats.pb`.  Out: its message. Only the fields that the tests read are described;
their numbers are those of XProf's public `.proto` files.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

PROFILES = Path(__file__).parents[2] / "../shared/profiles"
MANY_KERNELS = PROFILES / "gpu-tf24-many-kernels"

_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    # field: (number, type); a type in capitals is a message of this table, `*` means repeated
    "OpRecord": {
        "host_or_device": (2, "string"),
        "op_type": (3, "string"),
        "op_name": (4, "string"),
        "occurrences": (5, "int64"),
        "total_time_in_us": (6, "double"),
        "total_self_time_in_us": (8, "double"),
        "device_share": (10, "double"),
        "device_cumulative_share": (11, "double"),
        "host_share": (12, "double"),
        "host_cumulative_share": (13, "double"),
        "is_eager": (18, "bool"),
    },
    "OpTable": {"records": (1, "*OpRecord")},
    "OpStats": {"with_idle": (4, "OpTable"), "without_idle": (5, "OpTable")},
    "Kernel": {
        "name": (1, "string"),
        "total_duration_ns": (7, "uint64"),
        "min_duration_ns": (8, "uint64"),
        "max_duration_ns": (9, "uint64"),
        "is_kernel_using_tensor_core": (10, "bool"),
        "is_op_tensor_core_eligible": (11, "bool"),
        "op_name": (12, "string"),
        "occurrences": (13, "uint32"),
    },
    "Kernels": {"reports": (1, "*Kernel")},
    "InputOp": {
        "op_name": (1, "string"),
        "count": (2, "uint64"),
        "time_in_ms": (3, "double"),
        "time_in_percent": (4, "double"),
        "self_time_in_ms": (5, "double"),
        "self_time_in_percent": (6, "double"),
        "category": (7, "string"),
    },
    "HostTime": {
        "demanded_file_read_us": (1, "double"),
        "advanced_file_read_us": (2, "double"),
        "preprocessing_us": (3, "double"),
        "enqueue_us": (4, "double"),
        "other_us": (5, "double"),
    },
    "Step": {
        "step_time_ms": (2, "double"),
        "unknown_time_ms": (3, "double"),
        "output_ms": (5, "double"),
        "device_compute_ms": (6, "double"),
        "device_to_device_ms": (7, "double"),
        "host_compute_ms": (8, "double"),
        "host_prepare_ms": (9, "double"),
        "host_compile_ms": (10, "double"),
        "host_wait_input_ms": (11, "double"),
        "host_to_device_ms": (12, "double"),
        "device_collectives_ms": (13, "double"),
    },
    "AnyStep": {"value": (2, "Step")},
    "Input": {"steps": (4, "*AnyStep"), "host_time": (5, "HostTime"), "ops": (6, "*InputOp")},
    "TopOp": {
        "name": (1, "string"),
        "category": (2, "string"),
        "self_time_fraction": (3, "double"),
        "cumulative_time_fraction": (4, "double"),
        "is_op_tensorcore_eligible": (6, "bool"),
    },
    "OverviewAnalysis": {
        "top_ops": (4, "*TopOp"),
        "device_compute_16bit_percent": (9, "double"),
        "device_compute_32bit_percent": (10, "double"),
        "host_tf_op_percent": (11, "double"),
        "device_tf_op_percent": (12, "double"),
        "host_op_time_eager_percent": (14, "double"),
        "device_op_time_eager_percent": (15, "double"),
    },
    "RunEnvironment": {"host_count": (1, "int32"), "device_type": (4, "string"), "device_core_count": (5, "int32")},
    "Overview": {"analysis": (3, "OverviewAnalysis"), "environment": (6, "RunEnvironment")},
}


def read_reference(name: str, message: str) -> Any:
    """The saved answer `name` about the profile in `MANY_KERNELS`."""
    (file,) = MANY_KERNELS.glob(f"plugins/profile/*/*.{name}")
    return _class(message).FromString(file.read_bytes())


@cache
def _class(message: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"reference.{message}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(name="reference.proto", package="reference", syntax="proto3")
    field_type = descriptor_pb2.FieldDescriptorProto
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            is_repeated, kind = kind.startswith("*"), kind.removeprefix("*")
            field = described.field.add(name=name, number=number)
            field.label = field_type.LABEL_REPEATED if is_repeated else field_type.LABEL_OPTIONAL
            if kind in _MESSAGES:
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".reference.{kind}"
            else:
                field.type = getattr(field_type, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
