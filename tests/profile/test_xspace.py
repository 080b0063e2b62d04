"""Our own description of the messages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec

import pytest
from google.protobuf import descriptor_pb2

from advisor.profile.xspace import PACKAGE, message_class

FOLDER = files("advisor.profile")
Field = descriptor_pb2.FieldDescriptorProto


def compiled() -> descriptor_pb2.FileDescriptorProto:
    described = descriptor_pb2.FileDescriptorSet.FromString(FOLDER.joinpath("xplane.binpb").read_bytes())
    (file,) = described.file
    return file


def type_name(field: Field) -> str:
    return field.type_name.rpartition(".")[2] or Field.Type.Name(field.type).removeprefix("TYPE_").lower()


def fields_of(message: descriptor_pb2.DescriptorProto) -> set[tuple[str, str, int]]:
    """(type, name, number) as the .proto writes them."""
    nested = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    fields = set()
    for field in message.field:
        entry = nested.get(field.type_name.rpartition(".")[2])
        if entry is not None:
            text = f"map<{type_name(entry.field[0])}, {type_name(entry.field[1])}>"
        else:
            text = ("repeated " if field.label == Field.LABEL_REPEATED else "") + type_name(field)
        fields.add((text, field.name, field.number))
    return fields


def test_proto_and_binpb_agree():
    source = re.sub(r"//.*", "", FOLDER.joinpath("xplane.proto").read_text())
    assert f"package {compiled().package};" in source
    written = {}
    for name, body in re.findall(r"message (\w+) \{(.*?)\n\}", source, re.DOTALL):
        fields = re.findall(r"((?:repeated )?(?:map<[^>]*>|\w+)) (\w+) = (\d+);", body)
        written[name] = {(kind, field, int(number)) for kind, field, number in fields}
    assert written == {message.name: fields_of(message) for message in compiled().message_type}


def test_binpb_is_what_a_compiler_makes(tmp_path):
    """Exact, where there is a compiler; the test above needs none."""
    if find_spec("grpc_tools") is not None:
        compiler = [sys.executable, "-m", "grpc_tools.protoc"]
    elif shutil.which("protoc"):
        compiler = ["protoc"]
    else:
        pytest.skip("no protobuf compiler here")
    out = tmp_path / "xplane.binpb"
    subprocess.run([*compiler, f"--proto_path={FOLDER}", f"--descriptor_set_out={out}", "xplane.proto"], check=True)
    assert descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0] == compiled()


def test_messages_live_in_a_pool_of_their_own():
    from google.protobuf import descriptor_pool

    assert message_class("XSpace").DESCRIPTOR.full_name == f"{PACKAGE}.XSpace"
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(f"{PACKAGE}.XSpace")


def test_reading_imports_nothing_heavy():
    code = (
        "import sys, advisor.profile\n"
        "print([m for m in ('tensorflow', 'keras', 'networkx', 'rich', 'libcst') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
