"""Times one matrix product or convolution in 32 and in 16 bit, on the CPU of this machine.

In: TensorFlow, the largest product of a model (`Product`), a number of samples.  Out: `ProductTimes`.

What the processor's flags promise says little: the gain depends on the shape. The product is computed as a Keras layer does it
under the policy `mixed_bfloat16`: its input is 16 bit already, its kernel is cast in every step. The two types take turns, and
the fastest turn of each counts: other processes can only make a turn slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from advisor.host.calibration.capture import PRODUCT_TURN_S, PRODUCT_TURNS
from advisor.model.recording import Product, ProductTimes


@dataclass(frozen=True, slots=True)
class ProductRequest:
    """What to measure."""

    product: Product
    rows: int
    """Number of samples."""


def measure_product(tf: Any, request: ProductRequest) -> ProductTimes:  # noqa: ANN401
    """Measure the product in both types.

    Args:
        tf: The TensorFlow module, in eager mode.
        request: The product.
    """
    calls = [_call(tf, request, kind) for kind in (tf.float32, tf.bfloat16)]
    best = [float("inf")] * len(calls)
    for call in calls:  # tracing, and the first run
        call()
    for _ in range(PRODUCT_TURNS.value):
        for number, call in enumerate(calls):
            best[number] = min(best[number], _turn_ns(call))
    return ProductTimes(request.product, request.rows, best[0], best[1])


def _call(tf: Any, request: ProductRequest, kind: Any) -> Callable[[], object]:  # noqa: ANN401
    product = request.product
    inputs = tf.cast(tf.random.normal((request.rows, *product.inputs)), kind)
    kernel = tf.Variable(tf.random.normal(product.kernel))

    def multiply() -> Any:  # noqa: ANN401
        weights = tf.cast(kernel, kind)
        if product.kind == "Conv2D":
            return tf.nn.conv2d(inputs, weights, product.strides, product.padding)
        return tf.tensordot(inputs, weights, 1) if len(product.inputs) > 1 else tf.matmul(inputs, weights)

    compiled = tf.function(multiply, autograph=False)
    return lambda: compiled().numpy()


def _turn_ns(call: Callable[[], object]) -> float:
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < PRODUCT_TURN_S.value or not count:
        call()
        count += 1
    return elapsed / count * 1e9
