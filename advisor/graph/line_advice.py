"""Advice for the costly lines of the functions that the consumer waits for.

In: the main pipeline's lines.  Out: the same lines with a sentence where a cheaper way is known.

It names the change and what it does to the values, but no gain: none is known before it was measured on the user's data. Nothing
is said about lines of pipelines that keep up with their consumer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.analysis import ADVISED_BLAME, ADVISED_LINE_SHARE
from advisor.model.pipeline import Iterator, LineCost, Pipeline

_CLOSE = "; values may differ slightly at edges and by rounding, so compare them"
_NUMPY = {
    "sort": "tf.sort",
    "argsort": "tf.argsort",
    "clip": "tf.clip_by_value",
    "pad": "tf.pad",
    "flip": "tf.reverse",
    "fliplr": "tf.image.flip_left_right",
    "flipud": "tf.image.flip_up_down",
    "rot90": "tf.image.rot90",
    "dot": "tf.linalg.matmul",
    "matmul": "tf.linalg.matmul",
    "einsum": "tf.einsum",
    "concatenate": "tf.concat",
    "stack": "tf.stack",
    "where": "tf.where",
    "mean": "tf.reduce_mean",
    "sum": "tf.reduce_sum",
    "std": "tf.math.reduce_std",
    "cumsum": "tf.cumsum",
    "bincount": "tf.math.bincount",
    "unique": "tf.unique",
    "histogram": "tf.histogram_fixed_width",
    "transpose": "tf.transpose",
    "astype": "tf.cast",
    "frombuffer": "tf.io.decode_raw",
    "fft": "tf.signal.fft",
    "rfft": "tf.signal.rfft",
    "fft2": "tf.signal.fft2d",
}
_IMAGES = {
    "open": "tf.io.decode_image",
    "imread": "tf.io.decode_image",
    "imdecode": "tf.io.decode_image",
    "resize": "tf.image.resize",
    "thumbnail": "tf.image.resize",
    "crop": "tf.image.crop_to_bounding_box",
    "flip": "tf.image.flip_left_right or tf.image.flip_up_down",
    "mirror": "tf.image.flip_left_right",
    "transpose": "tf.image.flip_left_right, tf.image.flip_up_down or tf.image.rot90",
    "cvtColor": "tf.image.rgb_to_grayscale, or tf.reverse in the last dimension,",
    "copyMakeBorder": "tf.pad",
    "rotate": "tf.raw_ops.ImageProjectiveTransformV3",
    "warpAffine": "tf.raw_ops.ImageProjectiveTransformV3",
    "GaussianBlur": "tf.nn.depthwise_conv2d",
}
_OTHERS = {
    ("zlib", "decompress"): "tf.io.decode_compressed",
    ("gzip", "decompress"): "tf.io.decode_compressed",
    ("base64", "urlsafe_b64decode"): "tf.io.decode_base64",
}
_TEXT_CALLS = frozenset({"loadtxt", "genfromtxt", "fromstring", "loads", "split", "float", "int"})
_TEXT_OPS = frozenset({"StringToNumber", "DecodeCSV", "StringSplitV2"})
_RESIZE = re.compile(r"Resize\w+|ScaleAndTranslate")
_CROP = re.compile(r"Slice|StridedSlice")
_SMOOTH = re.compile(r"lanczos|gaussian|mitchell", re.IGNORECASE)
"""Methods for which `tf.image.resize` takes the slower kernel with and without antialiasing."""
_CASTS = frozenset({"cast", "convert_image_dtype"})
_SCALING_OPS = frozenset({"Cast", "Mul", "RealDiv"})
"""`tf.cast(image, tf.float32) / 255`, `tf.image.convert_image_dtype`."""
_STORE_BINARY = (
    "Parsing text is repeated in every epoch: store the numbers in binary form once and read them with tf.io.decode_raw or "
    "tf.io.parse_tensor."
)


@dataclass(frozen=True, slots=True)
class _Context:
    line: LineCost
    later_ops: frozenset[str]
    """Types of the ops on this and later lines of the same function."""
    later_text: str
    following: tuple[LineCost, ...]
    """The later lines."""

    @property
    def has_whole_call(self) -> bool:
        """Whether the line shows all arguments of its calls, instead of leaving them to the next lines."""
        text = self.line.at.text
        return text.count("(") == text.count(")")


def advise(pipeline: Pipeline) -> Pipeline:
    """Add advice to the lines of the iterators that cause the wait of an input-bound consumer."""
    return replace(pipeline, iterators=tuple(_advised(iterator) for iterator in pipeline.iterators))


def _advised(iterator: Iterator) -> Iterator:
    if iterator.blame_share < ADVISED_BLAME.value or not iterator.lines:
        return iterator
    lines = tuple(
        replace(line, advice=_advice(line, iterator.lines)) if line.share >= ADVISED_LINE_SHARE.value else line
        for line in iterator.lines
    )
    return replace(iterator, lines=lines)


def _advice(line: LineCost, lines: Sequence[LineCost]) -> str:
    later = [
        other
        for other in lines
        if other.at.file == line.at.file and other.at.function == line.at.function and other.at.line >= line.at.line
    ]
    context = _Context(
        line,
        frozenset(op for other in later for op in other.ops),
        "\n".join(other.at.text for other in later),
        tuple(other for other in later if other.at.line > line.at.line),
    )
    return next((text for check in _CHECKS if (text := check(context))), "")


def _jpeg(context: _Context) -> str:
    if context.line.ops[:1] != ("DecodeJpeg",):
        return ""
    text = context.line.at.text
    hints = []
    if "crop" in context.later_text.lower() and any(map(_CROP.fullmatch, context.later_ops)):
        hints.append("if only a part of the image is used, tf.io.decode_and_crop_jpeg decodes no more than that part")
    if context.has_whole_call and "ratio=" not in text and any(map(_RESIZE.fullmatch, context.later_ops)):
        hints.append(
            "the image is resized afterwards: if it becomes much smaller, ratio=2, 4 or 8 decodes it at a fraction of its "
            "size (other pixel values)"
        )
    if context.has_whole_call and "dct_method" not in text:
        hints.append('dct_method="INTEGER_FAST" decodes with less exact arithmetic (pixel values change slightly)')
    joined = "; ".join(hints)
    first = joined[:1] if joined.startswith("dct_method") else joined[:1].upper()  # a name stays as it is written
    return f"{first}{joined[1:]}." if joined else ""


def _antialias(context: _Context) -> str:
    text = context.line.at.text
    is_smooth_only = "antialias" not in text and (not context.has_whole_call or bool(_SMOOTH.search(text)))
    if "ScaleAndTranslate" not in context.line.ops[:1] or is_smooth_only or "antialias=False" in text:
        return ""
    return (
        "antialias=True takes a slower kernel; antialias=False gives other pixel values, with artefacts if the image becomes "
        "much smaller."
    )


def _text(context: _Context) -> str:
    line = context.line
    is_text = bool(line.ops[:1]) and line.ops[0] in _TEXT_OPS
    name = line.callee.rpartition(".")[2]
    if line.samples is not None and name in _TEXT_CALLS and line.library in ("", "numpy", "json"):
        is_text = True
    return _STORE_BINARY if is_text else ""


def _cast(context: _Context) -> str:
    ops = context.line.ops
    if "Cast" not in ops[:2] or not (ops[0] == "Cast" or _SCALING_OPS.issuperset(ops)):
        return ""
    if any(_RESIZE.fullmatch(op) for line in context.following for op in line.ops):
        caveat = " tf.image.resize takes integers, too; values may differ by rounding."
    elif _is_sliced(context):
        caveat = ""
    else:
        return ""
    return f"What follows makes the tensor smaller: cast after it, so that fewer values are converted.{caveat}"


def _is_sliced(context: _Context) -> bool:
    """Whether a part of the result is taken afterwards; a line that reads a shape takes a part of that instead."""
    if any(_CROP.fullmatch(op) and "shape" not in line.at.text for line in context.following for op in line.ops):
        return True
    try:
        tree = ast.parse(context.line.at.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    subscripts = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    names = {
        node.attr for subscript in subscripts for node in ast.walk(subscript.value) if isinstance(node, ast.Attribute)
    }
    return bool(names & _CASTS) and any(map(_CROP.fullmatch, context.line.ops))


def _replaced_call(context: _Context) -> str:
    line = context.line
    if line.samples is None:
        return ""
    name = line.callee.rpartition(".")[2]
    if line.library == "numpy" and name in _NUMPY:
        return _instead(line.callee, _NUMPY[name])
    if line.library in ("PIL", "cv2") and name in _IMAGES:
        return _instead(line.callee, _IMAGES[name], _CLOSE)
    replacement = _OTHERS.get((line.library, name))
    return _instead(line.callee, replacement) if replacement else ""


def _instead(callee: str, replacement: str, caveat: str = "") -> str:
    return f"{replacement} does the work of {callee} without Python, in parallel with other elements{caveat}."


_CHECKS: tuple[Callable[[_Context], str], ...] = (_jpeg, _antialias, _text, _cast, _replaced_call)
