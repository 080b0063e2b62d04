"""Entry point of the child process that imports TensorFlow to describe it or to measure the costs of this machine.

In: `facts` or `costs` in `argv[1]`, the path of the result in `argv[2]`.  Out: the result as JSON in that file.

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
    from advisor.capture.tensorflow_facts import tensorflow_facts
    from advisor.model.codec import encode

    action = {"facts": tensorflow_facts, "costs": measure_costs}[sys.argv[1]]
    Path(sys.argv[2]).write_bytes(encode(action(tensorflow)))


if __name__ == "__main__":
    _bootstrap()
