"""Whose code a file is, wherever packages are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from advisor.capture.instrument import code_owners
from advisor.capture.instrument.code_owners import CodeOwners


def test_packages_of_this_python_and_its_own_files():
    owners = CodeOwners()
    assert owners.owner_of(numpy.__file__) == "numpy"
    assert owners.owner_of(json.__file__) is None
    assert owners.owner_of(code_owners.__file__) is None
    assert owners.owner_of("<string>") is None
    assert owners.owner_of("/tmp/__autograph_generated_file_x1.py") == "user"


def test_a_folder_whose_name_begins_like_the_advisors_is_not_its_own():
    own = Path(code_owners.__file__).parents[2]
    assert CodeOwners().owner_of(f"{own}_examples/train.py") == "user"


@pytest.mark.parametrize("entry", ["", "inside"])
def test_packages_that_pip_installed_elsewhere_on_the_search_path(tmp_path, monkeypatch, entry):
    """`pip install --target`, here into the folder of the script, or into one below it."""
    folder = tmp_path / entry
    (folder / "tool-1.0.dist-info").mkdir(parents=True)
    (folder / "tool-1.0.dist-info" / "RECORD").write_text("tool/__init__.py,sha256=a,1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(folder), *sys.path])
    owners = CodeOwners()
    assert owners.owner_of(str(folder / "tool" / "data.py")) == "tool"
    assert owners.owner_of(str(folder / "train.py")) == "user"
    assert owners.owner_of(str(tmp_path / "train.py")) == "user"


SCRIPT = """
import tensorflow as tf
def read(value):
    rows = tf.data.Dataset.from_tensors(value)
    if value > 3:  # AutoGraph generates code for the function
        value = value + 1
    return rows.map(lambda value: value + 1)
dataset = tf.data.Dataset.range(100_000).interleave(read, cycle_length=2)
for _ in dataset.batch(8):
    pass
"""


@pytest.mark.tensorflow
def test_a_tensorflow_outside_site_packages_is_not_taken_for_the_users_code(tmp_path):
    """Without a record of its installation, as one that was built from its sources."""
    import tensorflow as tf

    elsewhere = tmp_path / "built"
    elsewhere.mkdir()
    (elsewhere / "tensorflow").symlink_to(Path(tf.__file__).parent)
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    paths = [str(elsewhere), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "advisor",
            "analyze",
            "--quiet",
            "--json",
            "-",
            "--out",
            str(tmp_path / "run"),
            str(script),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)["calls"]
    assert {(call["method"], Path(call["file"]).name, call["line"]) for call in calls} == {
        ("range", "train.py", 8),
        ("interleave", "train.py", 8),
        ("from_tensors", "train.py", 4),
        ("map", "train.py", 7),
        ("batch", "train.py", 9),
    }
