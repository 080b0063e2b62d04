"""A run with other texts: the code, its source and its tracebacks are those of the texts; the files stay as they are."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.model.codec import decode
from advisor.model.recording import Recording

CHILD = """
import json, sys
from pathlib import Path
from advisor.capture import script_runner as script
from advisor.capture.source_overlay import Overlay
pairs, name = json.loads(sys.argv[1]), sys.argv[2]
Overlay({path: Path(text).read_bytes() for path, text in pairs}).install()
ended, code = script.run(script.prepare(Path(name), None, []))
sys.exit(code)
"""


def run(tmp_path, files, script="train.py"):
    """Run `script` in a process of its own with the texts laid over its files; returns its output lines and stderr."""
    pairs = []
    for number, (name, text) in enumerate(files.items()):
        new = tmp_path / f"text-{number}"
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        pairs.append([str(tmp_path / name), str(new)])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(pairs), script], cwd=tmp_path, capture_output=True, text=True
    )
    return done.stdout.splitlines(), done.stderr


def test_script_and_its_modules_are_the_new_texts(tmp_path):
    (tmp_path / "train.py").write_text("import helper\nprint('old', __file__, helper.value())\n")
    (tmp_path / "helper.py").write_text("def value():\n    return 'old'\n")
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, capture_output=True)  # fills __pycache__
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    files = {
        "train.py": "import helper\nprint('new', __file__, helper.value())\n",
        "helper.py": "def value():\n    return 'new'\n",
    }
    out, _ = run(tmp_path, files)
    assert out == [f"new {tmp_path / 'train.py'} new"]
    assert {path: path.read_bytes() for path in before} == before


def test_source_and_traceback_are_those_of_the_new_text(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    text = textwrap.dedent("""\
        import inspect, linecache
        def function():
            return 1 / 0  # new
        print(inspect.getsource(function).splitlines()[-1].strip())
        linecache.clearcache()
        print(linecache.getline(__file__, 3).strip())
        linecache.checkcache()
        print(linecache.getline(__file__, 3).strip())
        function()
    """)
    out, err = run(tmp_path, {"train.py": text})
    assert out == ["return 1 / 0  # new"] * 3
    assert "return 1 / 0  # new" in err
    assert "overlay" not in err


def test_declared_encoding_is_kept(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    text = "# -*- coding: latin-1 -*-\nimport linecache\nname = 'é'\nprint(ascii(name), ascii(linecache.getline(__file__, 3)))\n"
    out, _ = run(tmp_path, {"train.py": text.encode("latin-1")})
    assert out == ["'\\xe9' \"name = '\\xe9'\\n\""]


def test_modules_that_exist_only_in_the_overlay_are_found(tmp_path):
    """Another revision may import a module that has been removed since."""
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    files = {
        "train.py": "import gone, gone_pkg.inner as i, pkg.sub\nprint(gone.VALUE, i.VALUE, pkg.sub.VALUE, gone.__file__)\n",
        "gone.py": "VALUE = 1\n",
        "gone_pkg/__init__.py": "",
        "gone_pkg/inner.py": "VALUE = 2\n",
        "pkg/sub.py": "VALUE = 3\n",
    }
    out, err = run(tmp_path, files)
    assert out == [f"1 2 3 {tmp_path / 'gone.py'}"], err
    assert not (tmp_path / "gone.py").exists() and not (tmp_path / "gone_pkg").exists()


def test_modules_on_the_disk_come_first_and_unknown_ones_stay_unknown(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    text = "from importlib.util import find_spec\nprint(find_spec('colorsys').origin.startswith('PLACE'), find_spec('nowhere'))\n"
    out, err = run(tmp_path, {"train.py": text.replace("PLACE", str(tmp_path)), "colorsys.py": "VALUE = 1\n"})
    assert out == ["False None"], err


@pytest.mark.long
@pytest.mark.tensorflow
def test_autograph_reads_the_new_text(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    new = tmp_path / "new"
    new.write_text(
        textwrap.dedent("""\
        # a line more, so that every function stands elsewhere than on disk
        import functools
        import tensorflow as tf
        def wrapped(function):
            return functools.wraps(function)(lambda *args: function(*args))
        @wrapped
        def halve(x):
            if x > 3:  # AutoGraph has to convert this
                return x // 2
            return x
        dataset = tf.data.Dataset.range(1000).map(halve)
        print([int(x) for x in dataset.take(6)])
        for x in dataset: pass
    """)
    )
    request = CaptureRequest(
        tmp_path / "run", tmp_path / "train.py", overlay=((tmp_path / "train.py", new),), is_profiled=False, warmup=5
    )
    folder = capture(request, lambda progress: None)
    assert (folder / "script.out").read_text() == "[0, 1, 2, 3, 2, 2]\n"
    recording = decode((folder / "recording.json").read_bytes(), Recording)
    call = next(call for call in recording.calls if call.method == "map")
    assert (call.site.line, call.text) == (11, ".map(halve)")
    assert not (folder / "plugins").exists()
