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


RESIZED = op_line(9, "image = tf.image.resize(image, (9, 9))", "ResizeBilinear", 0.1)
SLICED = op_line(9, "image = image[:16, :16]", "StridedSlice", 0.1)
SHAPE_READ = op_line(9, "height = tf.shape(image)[0]", "StridedSlice", 0.1)


def hot(text: str, *ops: str) -> LineCost:
    return LineCost(CodeLine("/train.py", 3, "decode", text), 8 * 10**8, 0.8, ops)


@pytest.mark.parametrize(
    ("kind", "line", "later"),
    [
        ("decode_and_crop_jpeg", DECODE, op_line(9, "image = tf.image.random_crop(image, [9, 9, 3])", "Slice", 0.1)),
        ("dct_method=", DECODE, None),
        ("ratio=2, 4 or 8", DECODE, RESIZED),
        ("tf.io.decode_raw", hot("numbers = tf.strings.to_number(words)", "StringToNumber"), None),
        ("tf.io.decode_raw", hot("row = tf.io.decode_csv(line, DEFAULTS)", "DecodeCSV"), None),
        ("antialias=False", hot("x = tf.image.resize(x, (9, 9), antialias=True)", "ScaleAndTranslate"), None),
        ("cast after it", hot("x = tf.cast(x, tf.float32)", "Cast"), SLICED),
        ("cast after it", hot("x = tf.cast(x, tf.float32) / 255.0", "RealDiv", "Cast"), RESIZED),
        ("cast after it", hot("x = tf.image.convert_image_dtype(x, tf.float32)", "Mul", "Cast"), SLICED),
        ("cast after it", hot("x = tf.cast(x, tf.float32)[:16, :16]", "Cast", "StridedSlice"), None),
        ("tf.cast does the work of image.astype", python_line("image.astype", "numpy"), None),
        ("tf.image.rgb_to_grayscale", python_line("cv2.cvtColor", "cv2"), None),
    ],
)
def test_each_kind_of_advice_is_given_where_it_applies(kind: str, line: LineCost, later: LineCost | None) -> None:
    assert kind in advice(line, *([] if later is None else [later]))


@pytest.mark.parametrize(
    ("kind", "line", "later"),
    [
        ("crop", DECODE, SLICED),  # nothing says that it is a crop
        ("dct_method", hot('x = tf.io.decode_jpeg(data, dct_method="INTEGER_FAST")', "DecodeJpeg"), None),
        ("dct_method", hot("x = tf.io.decode_jpeg(", "DecodeJpeg"), None),  # the next lines may set it
        ("dct_method", hot("x = tf.io.decode_png(data)", "DecodePng"), None),
        ("ratio", hot("x = tf.io.decode_jpeg(data, ratio=4)", "DecodeJpeg"), RESIZED),
        ("ratio", hot("x = tf.io.decode_jpeg(", "DecodeJpeg"), RESIZED),
        ("ratio", DECODE, None),
        ("decode_raw", hot("text = tf.strings.lower(text)", "StringLower"), None),
        ("decode_raw", python_line("words.split", "mylib"), None),
        ("antialias", hot("x = tf.image.resize(x, (9, 9))", "ResizeBilinear"), None),
        ("antialias", hot('x = tf.image.resize(x, (9, 9), "lanczos3")', "ScaleAndTranslate"), None),
        ("antialias", hot("x = tf.image.resize(", "ScaleAndTranslate"), None),
        ("antialias", hot('x = tf.image.resize(x, (9, 9), "lanczos3", antialias=False)', "ScaleAndTranslate"), None),
        ("cast", hot("x = tf.cast(x, tf.float32)", "Cast"), None),
        ("cast", hot("x = tf.cast(x, tf.float32)", "Cast"), SHAPE_READ),
        ("cast", hot("x = tf.cast(x[:16, :16], tf.float32)", "Cast", "StridedSlice"), None),
        ("cast", hot("x = tf.cast(parse(x)['image'][:16], tf.float32)", "Cast", "StridedSlice"), None),
        ("cast", hot("x = tf.matmul(tf.cast(x, tf.float32), y)", "MatMul", "Cast"), SLICED),
        ("tf.", python_line("self.flip", "mylib"), None),
    ],
)
def test_each_kind_of_advice_is_left_out_where_it_does_not_apply(
    kind: str, line: LineCost, later: LineCost | None
) -> None:
    assert kind not in advice(line, *([] if later is None else [later]))


def test_an_unknown_call_gets_no_advice() -> None:
    assert advice(python_line("np.polyfit", "numpy")) == ""
    assert advice(python_line("resize", "mylib")) == ""


def test_a_line_that_nobody_waits_for_gets_no_advice() -> None:
    assert advice(DECODE, blame=0.02) == ""
    assert advice(op_line(3, "image = tf.io.decode_jpeg(data)", "DecodeJpeg", 0.1)) == ""
