"""What is recorded about Keras models: where they are compiled, the loss of their first batches, their largest product.

In: the class `keras.Model`, the models that `fit` trains, the logs of their batches.  Out: parts of a `Recording`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.patches import Patches
from advisor.model.recording import CompileCall, Product

MAX_COMPILES = 8
"""Calls that are kept. More than one is too many for a change, so more need not be known."""
MAX_BATCHES = 64
"""Batches whose loss is kept: two calls of `steps_per_execution=32`. Reading a loss waits for the device."""


class KerasModels:
    """Observes the models of one process."""

    def __init__(self, finder: SiteFinder) -> None:
        self.compiles: list[CompileCall] = []
        self.losses: list[tuple[int, float | None]] = []
        self.product: Product | None = None
        """The largest product of the model that `fit` trains; None if no layer has one of a known shape."""
        self._finder = finder
        self._is_described = False
        self._batches = 0
        self._is_following = False

    def install(self, model: type, patches: Patches) -> None:
        """Hook `Model.compile`, in the class that defines it."""
        owner = next((cls for cls in model.__mro__ if "compile" in cls.__dict__), None)
        if owner is not None:
            patches.set(owner, "compile", self._compile_hook(getattr(owner, "compile")))  # noqa: B009

    def note_fit(self) -> None:
        """Follow the loss of the first `fit`; later ones go on with trained weights. The product is that of the last."""
        self._is_described = False
        self._is_following = not self._batches

    @property
    def is_noting_batches(self) -> bool:
        """Whether `note_batch` has anything to do."""
        return self._is_following or not self._is_described

    def note_batch(self, model: Any, logs: Any, per_call: int | None) -> None:  # noqa: ANN401
        """Note the end of a call of the train function.

        Args:
            model: The trained model, which is built by now; None if unknown.
            logs: What Keras passes to its callbacks.
            per_call: Batches of the call (`steps_per_execution`); None if unknown.
        """
        if not self._is_described and model is not None:
            self._is_described = True
            with contextlib.suppress(Exception):  # a private method, and subclasses may raise anything
                self.product = largest_product(model._flatten_layers(include_self=False))
        if not self._is_following:
            return
        self._batches += per_call or 1
        try:
            loss = float(logs["loss"])
            self.losses.append((self._batches, loss if math.isfinite(loss) else None))
        except Exception:  # no loss, or no number
            self._is_following = False
        if self._batches >= MAX_BATCHES:
            self._is_following = False

    def end_epoch(self) -> None:
        """Note the end of an epoch: Keras' mean of the losses begins again."""
        self._is_following = self._is_following and not self._batches

    def _compile_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        try:
            signature = inspect.signature(original)
        except (TypeError, ValueError):
            return original

        @functools.wraps(original)
        def compile_model(model: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if len(self.compiles) < MAX_COMPILES:
                with contextlib.suppress(Exception):  # wrong arguments in the script: Keras raises the error
                    names = list(signature.bind(model, *args, **kwargs).arguments)[1:]
                    place = self._finder.place(sys._getframe(1), "compile")
                    self.compiles.append(CompileCall(place.site, place.text, tuple(names), place.library))
            return original(model, *args, **kwargs)

        return compile_model


def largest_product(layers: Iterable[Any]) -> Product | None:
    """Return the product with the most multiplications per sample; None if no layer has one of a known shape."""
    products = [product for layer in layers if (product := _product_of(layer)) is not None]
    return max(products, key=_multiplications, default=None)


def _product_of(layer: Any) -> Product | None:  # noqa: ANN401
    with contextlib.suppress(Exception):  # layers that are not built, and those that are no product, raise anything
        kernel, inputs = tuple(map(int, layer.kernel.shape)), _inputs_of(layer)
        if len(kernel) == 2 and inputs[-1] == kernel[0]:
            return Product(str(layer.name), "MatMul", inputs, kernel)
        is_plain = type(layer).__name__ == "Conv2D" and layer.data_format == "channels_last" and layer.groups == 1
        if is_plain and len(kernel) == 4 and len(inputs) == 3 and tuple(layer.dilation_rate) == (1, 1):
            rows, columns = map(int, layer.strides)
            return Product(str(layer.name), "Conv2D", inputs, kernel, (rows, columns), str(layer.padding).upper())
    return None


def _inputs_of(layer: Any) -> tuple[int, ...]:  # noqa: ANN401
    """The shape of a layer's input for one sample. Keras 3 keeps the shapes of `build`, Keras 2 its shape.

    Raises:
        Exception: It is unknown.
    """
    shapes: Iterator[Any] = iter(getattr(layer, "_build_shapes_dict", {}).values())
    shape = next(shapes, None) or getattr(layer, "_build_input_shape", None) or layer.input.shape
    return tuple(int(size) for size in tuple(shape)[1:])


def _multiplications(product: Product) -> float:
    if product.kind == "MatMul":
        return math.prod(product.inputs[:-1]) * math.prod(product.kernel)
    places = [size / stride for size, stride in zip(product.inputs[:2], product.strides, strict=True)]
    return math.prod(places) * math.prod(product.kernel)
