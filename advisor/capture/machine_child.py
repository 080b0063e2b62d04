"""Entry point of the child process that imports TensorFlow to describe it or to measure something on this machine.

In: `facts`, `costs` or `product` in `argv[1]`, the path of the result in `argv[2]`, and for `product` a `ProductRequest` as JSON
in `argv[3]`.  Out: the result as JSON in that file.

Run by path, for the reasons given in `advisor/capture/child.py`. No user code runs in it.
"""

import sys


def _bootstrap() -> None:
    own_folder = sys.path.pop(0)
    package_root = own_folder.rsplit("advisor", 1)[0]
    sys.path.insert(0, package_root)
    from pathlib import Path

    import tensorflow

    from advisor.capture.cost_measurement import measure_costs
    from advisor.capture.product_measurement import ProductRequest, measure_product
    from advisor.capture.tensorflow_inspection import tensorflow_facts
    from advisor.model.codec import decode_message, encode

    what = sys.argv[1]
    answer: object = None
    if what == "facts":
        answer = tensorflow_facts(tensorflow)
    elif what == "costs":
        answer = measure_costs(tensorflow)
    else:
        answer = measure_product(tensorflow, decode_message(sys.argv[3], ProductRequest))
    Path(sys.argv[2]).write_bytes(encode(answer))


if __name__ == "__main__":
    _bootstrap()
