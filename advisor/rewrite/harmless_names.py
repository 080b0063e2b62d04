"""Lists the names whose use has no effect other than its result: constants, types, methods, and TensorFlow's ops while traced.

`pure_code` refuses every other name.
"""

from __future__ import annotations

CONSTANTS = frozenset({"False", "None", "True", "Ellipsis"})
TYPES = frozenset({"bool", "float", "int", "str"})
"""Built-in names that code may read."""
TEXT_METHODS = frozenset({"format", "join"})
LIST_METHODS = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})
TENSOR_METHODS = frozenset({"as_list", "get_shape", "set_shape"})
"""Methods of texts, of containers that the code has made, and of tensors while they are traced."""
_TRACED_MODULES = frozenset({
    "audio", "bitwise", "dtypes", "image", "linalg", "math", "nn", "ragged", "sets", "signal", "sparse", "strings",
})  # fmt: skip
"""Modules of TensorFlow whose functions are ops, with no effect on Python while they are traced."""
_NO_OPS = frozenset({
    "control_dependencies", "custom_gradient", "device", "function", "get_logger", "init_scope", "load_library",
    "load_op_library", "name_scope", "variable_creator_scope",
})  # fmt: skip
"""What lies beside the ops in the module itself and has an effect on Python."""
_TRACED_PREFIXES = (
    "data.Dataset.", "data.FixedLengthRecordDataset", "data.TFRecordDataset", "data.TextLineDataset", "debugging.assert",
    "io.decode_", "io.encode_", "io.extract_jpeg_shape", "io.is_jpeg", "io.matching_files", "io.parse_", "io.read_file",
    "io.serialize_tensor", "random.categorical", "random.gamma", "random.normal", "random.shuffle", "random.stateless_",
    "random.truncated_normal", "random.uniform",
)  # fmt: skip
"""How the names of such functions begin in modules that also hold others."""
PARTIAL = "functools.partial"


def is_op(path: str) -> bool:
    """Whether a function, given its full name, is one of TensorFlow's ops: all that it does is in the graph."""
    name = path.removeprefix("tensorflow.")
    if name == path:
        return False
    module, _, rest = name.partition(".")
    if not rest:
        return module.islower() and module not in _NO_OPS
    return module in _TRACED_MODULES or name.startswith(_TRACED_PREFIXES)
