"""What goes wrong on the way to a profiler server: one sentence each, real sockets, no TensorFlow."""

from __future__ import annotations

import contextlib
import http.server
import os
import pty
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from advisor.capture.remote import client, sampling
from advisor.capture.remote.client import _messages
from advisor.capture.remote.sampling import SamplingRequest, sample
from advisor.cli import main
from advisor.model.errors import AdvisorError
from tests.collecting import free_port

grpc = pytest.importorskip("grpc")

XSPACE = b"an XSpace with Iterator::Root in it"


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(sampling, "RETRY_PAUSE_S", 0.01)
    monkeypatch.setattr(client, "_CONNECT_MS", 500)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "logs"


def ask(folder, *addresses, retries=0, **options):
    return sample(
        SamplingRequest(addresses, folder, duration_s=0.05, retries=retries, **options), lambda progress: None
    )


def refusal(folder, address, **options):
    with pytest.raises(AdvisorError) as caught:
        ask(folder, address, **options)
    assert not folder.exists(), "a capture that fails leaves nothing behind"
    sentence = str(caught.value)
    assert address in sentence or address.rpartition(":")[0] in sentence
    return sentence


@contextlib.contextmanager
def grpc_server(answer):
    """A gRPC server; `answer(request, context)` answers Profile calls, None: there is no such service."""
    server = grpc.server(ThreadPoolExecutor(4))
    if answer is not None:
        handler = grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=_messages()["Request"].FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        service = grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {"Profile": handler})
        server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(0)


def profile(**fields):
    return _messages()["Response"](**fields)


def test_a_port_without_a_server(folder):
    port = free_port()
    sentence = refusal(folder, f"localhost:{port}")
    assert f"tf.profiler.experimental.server.start({port})" in sentence


def test_no_such_host(folder):
    assert "The host name no-such-host.invalid cannot be resolved" in refusal(folder, "no-such-host.invalid:6009")


def test_a_web_server_is_no_profiler_server(folder):
    with http.server.HTTPServer(("localhost", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert "is not a profiler server" in refusal(folder, f"localhost:{server.server_port}", retries=5)
        server.shutdown()


def test_another_grpc_server_is_no_profiler_server(folder):
    with grpc_server(None) as address:
        assert "is not a profiler server" in refusal(folder, address, retries=5)


@pytest.mark.long
def test_a_server_that_does_not_respond(folder):
    with socket.socket() as silent:
        silent.bind(("localhost", 0))
        silent.listen()
        sentence = refusal(folder, f"localhost:{silent.getsockname()[1]}")
    assert "firewall" in sentence and "ssh -L" in sentence


@pytest.mark.long
def test_a_proxy_is_named(folder, monkeypatch):
    with socket.socket() as silent:
        silent.bind(("localhost", 0))
        silent.listen()
        monkeypatch.setenv("http_proxy", f"http://localhost:{silent.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        sentence = refusal(folder, "worker-0:6009")
    assert "no_proxy" in sentence


def test_the_job_ends_meanwhile(folder):
    def dies(request, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    with grpc_server(dies) as address:
        assert "ended, or the connection broke" in refusal(folder, address)


def test_too_slow(folder, monkeypatch):
    monkeypatch.setattr(sampling, "GRACE_S", 0.2)
    stop = threading.Event()
    with grpc_server(lambda request, context: stop.wait(5) and profile()) as address:
        sentence = refusal(folder, address, retries=5)
        stop.set()
    assert "--duration" in sentence


def test_the_servers_own_error_is_shown_without_its_control_characters(folder):
    def fails(request, context):
        context.abort(grpc.StatusCode.INTERNAL, "\x1b[31mdisk\nfull")

    with grpc_server(fails) as address:
        sentence = refusal(folder, address)
    assert "disk full" in sentence and "\x1b" not in sentence


def test_nothing_collected_is_tried_again(folder):
    calls = []

    def third_time(request, context):
        calls.append(request)
        return profile(xspace=XSPACE) if len(calls) == 3 else profile(empty_trace=True)

    with grpc_server(third_time) as address:
        sampled = ask(folder, address, retries=3)
    assert len(calls) == 3 and sampled.files[0].read_bytes() == XSPACE and not sampled.warnings


def test_no_attempt_gives_anything(folder):
    with grpc_server(lambda request, context: profile(empty_trace=True)) as address:
        sentence = refusal(folder, address, retries=2)
    assert "3 attempts" in sentence and "while the job trains" in sentence


def test_a_profile_without_iterators_is_tried_again_and_kept(folder):
    calls = []

    def no_iterators(request, context):
        calls.append(request)
        return profile(xspace=b"no pipeline")

    with grpc_server(no_iterators) as address:
        assert ask(folder, address, retries=2).files[0].read_bytes() == b"no pipeline"
    assert len(calls) == 3


def test_an_empty_answer_later_takes_nothing_away(folder):
    answers = [profile(xspace=b"no pipeline"), profile(empty_trace=True)]
    with grpc_server(lambda request, context: answers.pop(0)) as address:
        assert ask(folder, address, retries=1).files[0].read_bytes() == b"no pipeline"


def test_what_is_asked_for(folder):
    asked = []
    levels = sampling.TracerLevels(host=3, python=1, device=0)

    def answer(request, context):
        asked.append(request)
        return profile(xspace=XSPACE)

    with grpc_server(answer) as address:
        ask(folder, address, levels=levels)
    (request,) = asked
    options = request.opts
    assert (options.host_tracer_level, options.python_tracer_level, options.device_tracer_level) == (3, 1, 0)
    assert options.version == 1 and request.duration_ms == options.duration_ms == 50 and request.emit_xspace


def write_as_old_servers_do(request, context):
    from pathlib import Path

    run = Path(request.repository_root) / request.session_id
    run.mkdir(parents=True, exist_ok=True)
    (run / f"{request.host_name.replace(':', '_')}.xplane.pb").write_bytes(XSPACE)
    return profile()


def test_an_old_server_writes_the_file_itself(folder):
    with grpc_server(write_as_old_servers_do) as address:
        assert ask(folder, address).files[0].read_bytes() == XSPACE


def test_an_old_server_that_has_seen_nothing_leaves_no_file(folder):
    def empty(request, context):
        write_as_old_servers_do(request, context)
        return profile(empty_trace=True)

    with grpc_server(empty) as nothing, grpc_server(write_as_old_servers_do) as address:
        (kept,) = ask(folder, nothing, address).files
    assert list(kept.parent.iterdir()) == [kept]


def test_an_old_server_on_another_machine(folder):
    with grpc_server(lambda request, context: profile()) as address:
        sentence = refusal(folder, address, retries=5)
    assert "on the job's machine" in sentence and "--out" in sentence


def test_one_worker_of_two(folder):
    with grpc_server(lambda request, context: profile(xspace=XSPACE)) as address:
        sampled = ask(folder, address, f"localhost:{free_port()}")
    assert len(sampled.files) == 1 and len(sampled.warnings) == 1


def test_all_workers_fail(folder):
    first, second = f"localhost:{free_port()}", f"localhost:{free_port()}"
    with pytest.raises(AdvisorError) as caught:
        ask(folder, first, second)
    assert first in str(caught.value) and second in str(caught.value)


def test_a_run_is_added_to_a_logdir(folder):
    old = folder / "plugins" / "profile" / "2020_01_01_00_00_00" / "host.xplane.pb"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    with grpc_server(lambda request, context: profile(xspace=XSPACE)) as address:
        runs = {ask(folder, address).run for _ in range(3)}
    assert len(runs) == 3 and old.read_bytes() == b"old"
    with pytest.raises(AdvisorError):
        ask(folder, f"localhost:{free_port()}")
    assert {path.name for path in old.parents[1].iterdir()} == {*runs, old.parent.name}


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "logs"):
        with pytest.raises(AdvisorError, match="--out"):
            ask(out, "localhost:1")
    assert (tmp_path / "file").read_text() == "mine"


def test_without_grpcio(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(AdvisorError, match="pip install grpcio"):
        ask(folder, "localhost:1")
    assert not folder.exists()


@pytest.mark.parametrize("is_terminal", [True, pytest.param(False, marks=pytest.mark.long)])
def test_progress_is_shown_on_a_terminal_only(is_terminal, folder):
    def slowly(request, context):
        time.sleep(1)
        return profile(xspace=XSPACE)

    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    with grpc_server(slowly) as address:
        command = [sys.executable, "-m", "advisor", "capture", address, "--no-report", "--out", str(folder)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # a terminal whose other side is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert done.stdout.decode() == f"{folder}\n"
    assert (f"({address})".encode() in shown) if is_terminal else not shown


def test_interrupted(folder):
    reached, cancelled = threading.Event(), threading.Event()

    def waits(request, context):
        context.add_callback(cancelled.set)
        reached.set()
        cancelled.wait(10)
        return profile()

    def interrupt(progress):
        if reached.is_set():
            raise KeyboardInterrupt

    with grpc_server(waits) as address:
        with pytest.raises(KeyboardInterrupt):
            sample(SamplingRequest((address,), folder, duration_s=5), interrupt)
        assert cancelled.wait(5), "the session in the job is ended too"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["http://localhost:6009"], "grpc://localhost:6009"),
        (["grpc://localhost:1", "--duration", "soon"], "soon"),
        (["grpc://localhost:1", "--no-report", "--json", "-"], "--json"),
        (["grpc://localhost:1", "--fail-on", "serial-mop"], "serial-map"),
        (["grpc://localhost:1", "--source", "absent.py"], "absent.py"),
        (["grpc://localhost:1", "--retries", "0"], "server.start(1)"),
        ([], "grpc://"),
    ],
)
def test_command_line_mistakes_end_with_one_sentence(args, words, capsys, tmp_path):
    assert main(["capture", *args, "--out", str(tmp_path / "logs")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and words in captured.err and captured.err.count("\n") == 1
    assert not (tmp_path / "logs").exists()
