"""Classes of protobuf messages of TensorFlow's gRPC services, made from the few fields that are used.

In: names, numbers and types of fields.  Out: message classes. The services' own `.proto` files belong to TensorFlow, which is
not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Fields = Mapping[str, Sequence[tuple[str, int, str]]]
"""Message -> (name, number, type) of its fields. The type is that of protobuf, a message of the same mapping, or either of them
after `repeated `."""
_REPEATED = "repeated "


def message_classes(package: str, fields: Fields) -> Mapping[str, Any]:
    """Return the class of each message by its name; protobuf makes them at run time.

    Args:
        package: A name of our own, so that the messages do not collide with those of TensorFlow.
        fields: All messages of the package.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message_name, members in fields.items():
        message = file.message_type.add(name=message_name)
        for field_name, number, kind in members:
            label = field.LABEL_REPEATED if kind.startswith(_REPEATED) else field.LABEL_OPTIONAL
            kind = kind.removeprefix(_REPEATED)
            added = message.field.add(name=field_name, number=number, label=label)
            if kind in fields:
                added.type, added.type_name = field.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                added.type = field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in fields}
    return {name: message_factory.GetMessageClass(kind) for name, kind in descriptors.items()}
