"""Scripts that write in every way Python can: the tree stays as it was, in each kind of view."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.model.codec import decode
from advisor.model.errors import ScriptFailed
from advisor.model.recording import Recording
from advisor.sandbox.namespace import REFUSE
from tests.sandbox.conftest import is_alive, tree_of, wait_until

WRITES = """
import os, pickle, shutil, sqlite3, tempfile
from pathlib import Path

here = Path(__file__).parent
print("resumed from", sorted(path.name for path in here.glob("ckpt-*")))
with open("log.csv", "a") as file:
    file.write("1,0.5\\n")
with (here / "state.pickle").open("wb") as file:
    pickle.dump({"step": 1}, file)
base = sqlite3.connect(here / "runs.sqlite")
base.execute("create table if not exists runs (step)")
base.execute("insert into runs values (1)")
base.commit()
print("runs", base.execute("select count(*) from runs").fetchone()[0])
os.makedirs(here / "ckpt-1")
(here / "ckpt-1" / "weights").write_bytes(b"x")
os.rename(here / "ckpt-1", here / "ckpt-2")
os.remove(here / "old.txt")
shutil.rmtree("old")
os.utime(here / "train.py", (5, 5))
with tempfile.NamedTemporaryFile(delete=False) as file:
    file.write(b"left behind")
print(sorted(path.name for path in here.iterdir()), open("log.csv").read().count("\\n"))
"""
SEEN = "resumed from []\nruns 1\n['ckpt-2', 'log.csv', 'runs.sqlite', 'state.pickle', 'train.py'] 2\n"


def can_mount() -> bool:
    """Whether this system lets a test take part in a private view at all."""
    probe = "from advisor.sandbox import syscalls; syscalls.unshare(syscalls.CLONE_NEWNS)"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="no right to mount")


@pytest.fixture
def folder(project: Callable[[str], Path], temporary: Path, home: Path) -> Path:
    folder = project(WRITES)
    (folder / "old").mkdir()
    (folder / "old" / "part").write_text("part")
    (folder / "old.txt").write_text("old")
    return folder


def run(folder: Path, **options: object) -> Recording:
    out = folder.parent / "run"
    capture(CaptureRequest(out=out, script=folder / "train.py", **options), lambda progress: None)  # type: ignore[arg-type]
    return decode((out / "recording.json").read_bytes(), Recording)


@needs_mounts
def test_a_run_leaves_no_trace_and_each_starts_from_the_same_state(folder: Path) -> None:
    before = tree_of(folder)
    for _ in range(2):
        assert run(folder).warnings == ()
        assert (folder.parent / "run" / "script.out").read_text() == SEEN
    assert tree_of(folder) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (
            "namespace",
            "This system refused a private view of the disk (Operation not permitted), so each run used a copy of",
        ),
        pytest.param(
            "overlay",
            "The kernel refused an overlay (Invalid argument), so each run used a copy of",
            marks=needs_mounts,
        ),
    ],
)
def test_a_refusing_kernel_is_said_and_the_project_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, refused: str, says: str
) -> None:
    monkeypatch.setenv(REFUSE, refused)
    before = tree_of(folder)
    for _ in range(2):
        warnings = run(folder).warnings
        assert (folder.parent / "run" / "script.out").read_text() == SEEN
        assert len(warnings) == 1
        assert warnings[0].startswith(f"{says} {folder}")
    assert tree_of(folder) == before


@pytest.mark.long
@pytest.mark.parametrize("refused", ["namespace", pytest.param("overlay", marks=needs_mounts)])
def test_what_could_not_be_protected_is_named(
    project: Callable[[str], Path], temporary: Path, home: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    elsewhere = home / "elsewhere.txt"
    folder = project(f"open({str(elsewhere)!r}, 'w').write('x'); open('inside.txt', 'w').write('x')")
    monkeypatch.setenv(REFUSE, refused)
    warnings = run(folder).warnings
    assert warnings[-1] == f"Runs of the script changed files that could not be protected: {elsewhere}."
    assert not (folder / "inside.txt").exists()


@needs_mounts
@pytest.mark.long
def test_a_project_on_a_nested_overlay_is_copied(tmp_path: Path, temporary: Path, home: Path) -> None:
    """A real refusal: overlays may not be stacked more than twice."""
    program = f"""
import os, sys
from pathlib import Path
from advisor.sandbox import syscalls
syscalls.unshare(syscalls.CLONE_NEWNS)
syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_SLAVE)
top = Path({str(tmp_path)!r})
(top / "memory").mkdir()
syscalls.mount("tmpfs", str(top / "memory"), "tmpfs", 0)
lower = top / "memory" / "lower"
lower.mkdir()
(lower / "train.py").write_text("open('made.txt', 'w').write('x'); print(sorted(__import__('os').listdir('.')))")
for number in (1, 2):
    names = [top / "memory" / f"{{name}}-{{number}}" for name in ("upper", "work", "merged")]
    for name in names:
        name.mkdir()
    syscalls.mount("overlay", str(names[2]), "overlay", 0, f"lowerdir={{lower}},upperdir={{names[0]}},workdir={{names[1]}}")
    lower = names[2]
os.chdir(lower)
from advisor.capture.launch import main
code = main(["--out", str(top / "run"), "train.py"])
print(sorted(os.listdir(lower)), lower)
print((top / "run" / "script.out").read_text(), (top / "run" / "recording.json").read_text())
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "['train.py'] " in done.stdout
    assert "['made.txt', 'train.py']" in done.stdout
    merged = tmp_path / "memory" / "merged-2"
    assert (
        f"The kernel refused an overlay of {merged} (Invalid argument), so each run used a copy of it." in done.stdout
    )


def test_in_place_and_to_the_end_write_the_real_files(folder: Path) -> None:
    run(folder, in_place=True)
    assert (folder / "log.csv").read_text() == "step,loss\n1,0.5\n"
    (folder / "train.py").write_text(
        "open('log.csv', 'a').write('end\\n'); import os; print(os.environ.get('WANDB_MODE'))"
    )
    run(folder, to_end=True)
    assert (folder / "log.csv").read_text() == "step,loss\n1,0.5\nend\n"
    assert (folder.parent / "run" / "script.out").read_text() == "None\n"
    for path in (folder.parent / "temporary").iterdir():
        path.unlink()


@pytest.mark.long
def test_trackers_are_offline_and_their_files_go_too(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    folder = project(
        "import os\nfrom pathlib import Path\n"
        "print(*(os.environ[n] for n in ('WANDB_MODE', 'NEPTUNE_MODE', 'CLEARML_OFFLINE_MODE', 'COMET_START_ONLINE')))\n"
        "(Path(os.environ['WANDB_DIR']) / 'run-1').mkdir()\n"
    )
    run(folder)
    assert (folder.parent / "run" / "script.out").read_text() == "offline offline 1 0\n"


@pytest.mark.long
def test_a_failure_that_the_view_may_have_caused_names_the_way_out(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    folder = project("open('/not/there')")
    with pytest.raises(ScriptFailed, match=r"\[Errno 2\].* run it on the real files with --in-place"):
        run(folder)
    with pytest.raises(ScriptFailed) as raised:
        run(folder, in_place=True)
    assert "--in-place" not in str(raised.value)


@needs_mounts
@pytest.mark.long
def test_caches_that_are_there_stay_real_and_new_ones_last_for_the_program(
    project: Callable[[str], Path], temporary: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, so that what it keeps ends with it."""
    folder = project(
        "import os\nfrom pathlib import Path\n"
        "made = [Path(p) for p in ('data/mnist/3.0.1', '~/tensorflow_datasets/cifar')]\n"
        "made = [p.expanduser() for p in made]\n"
        "print([(p / 'dataset_info.json').exists() for p in made], Path('log.txt').exists())\n"
        "for p in made:\n    p.mkdir(parents=True, exist_ok=True)\n    (p / 'dataset_info.json').write_text('{}')\n"
        "Path('log.txt').write_text('x')\n"
        "keras = Path('~/.keras/datasets/mnist.npz').expanduser()\nkeras.write_bytes(b'npz')\n"
    )
    (home / ".keras" / "datasets").mkdir(parents=True)
    before = tree_of(folder)
    program = (
        "from advisor.capture.launch import main; from pathlib import Path\n"
        "for number in (1, 2, 3):\n"
        "    main(['--out', f'../run-{number}', 'train.py']); print(Path(f'../run-{number}/script.out').read_text())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    outputs = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert outputs == ["[False, False] False", "[True, True] False", "[True, True] False"], done.stderr
    assert tree_of(folder) == before
    assert [path.name for path in home.iterdir()] == [".keras"]
    assert (home / ".keras" / "datasets" / "mnist.npz").exists()


def test_processes_that_the_script_left_are_ended(project: Callable[[str], Path], temporary: Path, home: Path) -> None:
    folder = project(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print(child.pid)\n"
    )
    run(folder)
    pid = int((folder.parent / "run" / "script.out").read_text())
    assert wait_until(lambda: not is_alive(pid))
