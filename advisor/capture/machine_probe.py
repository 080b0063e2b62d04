"""Asks a child process about TensorFlow and this machine, so that a broken TensorFlow cannot break the advisor.

In: nothing, or a product.  Out: `TensorFlowFacts`, `Calibration` or `ProductTimes`. This is the parent's side, which
never imports TensorFlow.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TypeVar

from advisor.capture.product_measurement import ProductRequest
from advisor.capture.script_process import environment
from advisor.host.calibration.window import FACTS_TIMEOUT_S
from advisor.model.calibration import Calibration
from advisor.model.codec import decode, encode_message
from advisor.model.errors import AdvisorError
from advisor.model.recording import Product, ProductTimes
from advisor.model.tensorflow_facts import TensorFlowFacts
from advisor.sandbox.temporary import temporary_folder

T = TypeVar("T")

_CHILD = Path(__file__).with_name("machine_child.py")
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Input pipelines run on the CPU, and initializing GPUs takes seconds."""


def probe_tensorflow() -> TensorFlowFacts:
    """Describe the installed TensorFlow.

    Raises:
        AdvisorError: It cannot be imported, or it hangs.
    """
    return _ask("facts", TensorFlowFacts, {}, FACTS_TIMEOUT_S.value)


def measure_calibration(timeout_s: float) -> Calibration:
    """Measure the costs of this machine.

    Args:
        timeout_s: Time for all of it.

    Raises:
        AdvisorError: TensorFlow cannot be imported, or the measurement fails.
    """
    return _ask("costs", Calibration, _NO_GPU, timeout_s)


def measure_largest_product(product: Product, rows: int, timeout_s: float) -> ProductTimes:
    """Measure a product of a model in 32 and in 16 bit.

    Args:
        product: The product.
        rows: Number of samples.
        timeout_s: Time for all of it.

    Raises:
        AdvisorError: TensorFlow cannot be imported, or the measurement fails.
    """
    request = encode_message(ProductRequest(product, rows))
    return _ask("product", ProductTimes, _NO_GPU, timeout_s, request)


def _ask(what: str, kind: type[T], variables: dict[str, str], timeout_s: float, *arguments: str) -> T:
    with temporary_folder("probe") as folder:
        result = folder / "result.json"
        try:
            child = subprocess.run(
                [sys.executable, str(_CHILD), what, str(result), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**environment(), **variables},
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise AdvisorError(f"TensorFlow did not respond within {timeout_s:.0f} s.") from None
        if child.returncode == 0 and result.exists():
            return decode(result.read_bytes(), kind, "the answer of the child process")
    raise AdvisorError(_why(child.returncode, child.stderr.decode(errors="replace")))


def _why(code: int, text: str) -> str:
    """The last line of a traceback, or how the process ended."""
    if code < 0:
        return f"A process that imports TensorFlow was killed by signal {-code}."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"A process that imports TensorFlow ended with exit code {code}."
