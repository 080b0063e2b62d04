"""Costly lines get advice if a cheaper way is known, and only if the consumer waits for them."""

from __future__ import annotations

import pytest

from advisor.graph.line_advice import advise
from advisor.model.calls import CodeLine
from advisor.model.pipeline import Iterator, LineCost, Pipeline


def op_line(number: int, text: str, op: str, share: float) -> LineCost:
    return LineCost(CodeLine("/train.py", number, "decode", text), round(share * 1e9), share, (op,))


def python_line(callee: str, library: str) -> LineCost:
    return LineCost(
        CodeLine("/train.py", 9, "f", f"x = {callee}(x)"), 10**9, 0.9, samples=90, library=library, callee=callee
    )


def advice(*lines: LineCost, blame: float = 0.9) -> str:
    pipeline = Pipeline("p0", "h", (Iterator("p0.0", None, "Map", "Iterator::Map", blame_share=blame, lines=lines),))
    return advise(pipeline).iterators[0].lines[0].advice


DECODE = op_line(3, "image = tf.io.decode_jpeg(data)", "DecodeJpeg", 0.8)


def test_a_decoded_image_that_is_cropped() -> None:
    crop = op_line(4, "image = tf.image.crop_to_bounding_box(image, 0, 0, 9, 9)", "Slice", 0.1)
    assert "tf.io.decode_and_crop_jpeg" in advice(DECODE, crop)


def test_a_decoded_image_that_is_resized() -> None:
    text = advice(DECODE, op_line(4, "image = tf.image.resize(image, (9, 9))", "ResizeBilinear", 0.1))
    assert "ratio=2" in text
    assert "other pixel values" in text
    assert "decode_and_crop_jpeg" not in text


def test_an_image_that_was_cropped_before_is_not_cropped_while_it_is_decoded() -> None:
    assert "crop" not in advice(DECODE, op_line(2, "part = crop(text)", "Slice", 0.1))


@pytest.mark.parametrize(
    ("callee", "library", "replacement"),
    [
        ("np.sort", "numpy", "tf.sort"),
        ("img.resize", "PIL", "tf.image.resize"),
        ("cv2.imdecode", "cv2", "tf.io.decode_image"),
        ("zlib.decompress", "zlib", "tf.io.decode_compressed"),
        ("float", "", "tf.io.decode_raw"),
    ],
)
def test_a_python_call_with_an_op_that_does_the_same(callee: str, library: str, replacement: str) -> None:
    assert replacement in advice(python_line(callee, library))


def test_an_unknown_call_gets_no_advice() -> None:
    assert advice(python_line("np.polyfit", "numpy")) == ""
    assert advice(python_line("resize", "mylib")) == ""


def test_a_line_that_nobody_waits_for_gets_no_advice() -> None:
    assert advice(DECODE, blame=0.02) == ""
    assert advice(op_line(3, "image = tf.io.decode_jpeg(data)", "DecodeJpeg", 0.1)) == ""
