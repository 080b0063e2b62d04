"""The exception of a script as one line, for a sentence that a person reads."""

from __future__ import annotations

import pytest

from advisor.capture.script_runner import exception_line


class Unprintable(Exception):
    """An exception without a message."""

    def __str__(self):
        raise RuntimeError


KERAS = """Exception encountered when calling Embedding.call().

\x1b[1mInvalid dtype: str\x1b[0m

Arguments received by Embedding.call():
  • inputs=tf.Tensor(shape=(None,), dtype=string)
  • mask=OrderedDict({})"""

SCALE = """Exception encountered when calling Scale.call().

Could not infer the dtype of 'scale'. Error encountered:

Input 'y' of 'Mul' Op has type float32 that does not match type bfloat16 of argument 'x'.

Arguments received by Scale.call():
  • args=('<KerasTensor shape=(2, 2), dtype=bfloat16>',)"""

AUTOGRAPH = """in user code:

    File "/home/me/train.py", line 12, in step  *
        loss = model(values)
    File "/home/me/model.py", line 3, in call
        return values @ weights

    ValueError: Dimensions must be equal, but are 4 and 5.
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no data"), "ValueError: no data"),
        (ValueError(KERAS), "ValueError: Exception encountered when calling Embedding.call(). Invalid dtype: str"),
        (
            TypeError(SCALE),
            "TypeError: Exception encountered when calling Scale.call(). Could not infer the dtype of 'scale'. "
            "Error encountered: Input 'y' of 'Mul' Op has type float32 that does not match type bfloat16 of argument 'x'.",
        ),
        (ValueError(AUTOGRAPH), "ValueError: Dimensions must be equal, but are 4 and 5."),
        (ValueError("in user code:"), "ValueError: in user code:"),
        (SyntaxError("invalid syntax", ("train.py", 3, 1, "x =")), "SyntaxError: invalid syntax (train.py, line 3)"),
        (KeyError("image"), "KeyError: 'image'"),
        (AssertionError(), "AssertionError"),
        (Unprintable(), "Unprintable"),
        (ValueError("x" * 1000), "ValueError: " + "x" * 488),
    ],
)
def test_an_exception_is_one_line(error, line):
    assert exception_line(error) == line
