"""Sampling mode: running jobs, asked over the network for a profile of the next seconds.

In: a `SamplingRequest`: addresses of profiler servers, how long, how often to try.  Out: `Sampled`: a logdir with one new
run in it, one file per worker.  Nothing is asked of TensorFlow here; see `profiler_service`.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.capture.remote.client import Answer, TracerLevels, Wish, Worker, read_answer
from advisor.capture.remote.profiler_errors import (
    Refusal,
    explain_failure,
    explain_nothing_collected,
    explain_unseen_file,
)
from advisor.capture.request import Progress
from advisor.model.errors import AdvisorError

GRACE_S = 60.0
"""What a server may take beyond the duration to gather the events and send them; TensorFlow's own client gives as much."""
RETRY_PAUSE_S = 1.0
_POLL_S = 0.1
ITERATOR_LEVEL = 2
"""The lowest `host_tracer_level` at which TensorFlow records iterators (seen with 2.21)."""
_ITERATOR = b"Iterator::"
"""Stands in every profile in which a tf.data iterator ran."""
_ADDRESS = re.compile(r"(?:grpc://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s@]+):(?P<port>\d{1,5})/?")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """What to collect, and from whom."""

    addresses: tuple[str, ...]
    """`host:port` of each worker, as `parse_addresses` gives them."""
    out: Path
    """Logdir; the run is added to what is in it."""
    duration_s: float = 2.0
    delay_s: float = 0.0
    """Wait so long before the first attempt."""
    retries: int = 3
    """Further attempts for each worker that could not be reached, or gave nothing."""
    levels: TracerLevels = field(default_factory=TracerLevels)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What came of it."""

    logdir: Path
    run: str
    """The run's name below `plugins/profile`, as `--run` takes it."""
    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()
    """Workers that gave nothing, and what else limits the profile, in sentences."""


def parse_addresses(text: str) -> tuple[str, ...]:
    """`grpc://a:6009,grpc://b:6009` as `host:port`s, each once. Raises AdvisorError for anything else."""
    found: dict[str, None] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
            raise AdvisorError(
                f"{part} is no address of a profiler server: write grpc://HOST:PORT with the port that the job gives to "
                "tf.profiler.experimental.server.start, such as grpc://localhost:6009."
            )
        found[f"{match['host']}:{match['port']}"] = None
    if not found:
        raise AdvisorError("Name the profiler server of at least one job, such as grpc://localhost:6009.")
    return tuple(found)


def sample(request: SamplingRequest, on_progress: Callable[[Progress], None]) -> Sampled:
    """Collect from all workers at the same time, and again from those that gave nothing.

    Raises AdvisorError when no worker gave a profile, or the folder cannot be written; then, as on Ctrl-C, no folder is left
    that was not there before, and the sessions in the jobs have been ended.
    """
    _require_grpc()
    with _new_run(request.out) as folder:
        if request.delay_s:
            on_progress(Progress("waiting", text=f"{request.delay_s:g} s"))
            time.sleep(request.delay_s)
        files, refused = _collect(request, folder, on_progress)
        if not files:
            raise AdvisorError(_all_refused(refused))
        warnings = list(refused.values())
        if request.levels.host < ITERATOR_LEVEL:
            warnings.append(
                f"At --host-tracer-level {request.levels.host} the profiler records no tf.data iterators, so nothing can be said "
                f"about input: capture at {ITERATOR_LEVEL}."
            )
        return Sampled(request.out, folder.name, tuple(files.values()), tuple(warnings))


def _require_grpc() -> None:
    try:
        import grpc  # noqa: F401
    except ImportError:
        raise AdvisorError(
            "Sampling mode talks gRPC, and grpcio is not installed here: pip install grpcio (or tfdata-advisor[sampling]); "
            "TensorFlow brings it along."
        ) from None


@contextmanager
def _new_run(logdir: Path) -> Iterator[Path]:
    """A new, empty folder `plugins/profile/<time>`; if the block raises, what it made is gone again."""
    made = next((place for place in (*reversed(logdir.absolute().parents), logdir) if not place.exists()), None)
    now = time.time()
    try:
        while True:
            folder = logdir.absolute() / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now))
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                break
            if not folder.is_dir():  # a file stands where a folder should be
                raise NotADirectoryError(20, "Not a directory")
            now += 1  # another run began in this second
    except OSError as error:
        raise AdvisorError(
            f"Cannot write to {logdir}: {error.strerror or error}; name another folder with --out."
        ) from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder if made is None else made, ignore_errors=True)
        raise


def _collect(
    request: SamplingRequest, folder: Path, on_progress: Callable[[Progress], None]
) -> tuple[dict[str, Path], dict[str, str]]:
    """(address -> file, address -> why there is none)."""
    files: dict[str, Path] = {}
    refused: dict[str, str] = {}
    connected = workers = [Worker(address) for address in request.addresses]
    try:
        for attempt in range(request.retries + 1):
            if attempt:
                time.sleep(RETRY_PAUSE_S)
            again = []
            for worker, result in _attempt(request, workers, folder, attempt, on_progress):
                if isinstance(result, Path):  # one without iterators stays until there is a better one
                    files[worker.address] = result
                    refused.pop(worker.address, None)
                    is_done = request.levels.host < ITERATOR_LEVEL or _has_iterators(result)
                else:
                    if worker.address not in files:
                        refused[worker.address] = result.sentence
                    is_done = result.is_final
                if not is_done:
                    again.append(worker)
            workers = again
            if not workers:
                break
    finally:
        for worker in connected:
            worker.close()
    for path in set(folder.iterdir()) - set(files.values()):
        path.unlink()  # an old server writes a file even where it has seen nothing
    return files, refused


def _attempt(
    request: SamplingRequest,
    workers: Sequence[Worker],
    folder: Path,
    attempt: int,
    on_progress: Callable[[Progress], None],
) -> Iterator[tuple[Worker, Path | Refusal]]:
    """Ask every worker once; each with its file or why there is none."""
    import grpc

    wish = Wish(round(request.duration_s * 1e3), request.levels, folder.name, str(folder.parent))
    calls = [worker.ask(wish, request.duration_s + GRACE_S) for worker in workers]
    try:
        _wait(calls, _describe(workers, attempt), on_progress)
        on_progress(Progress("saving"))
        for worker, call in zip(workers, calls, strict=True):
            try:
                answer = read_answer(call.result())
            except grpc.RpcError as error:
                yield worker, explain_failure(worker.address, error, request.duration_s + GRACE_S)
                continue
            yield worker, _keep(answer, worker.address, folder, attempt + 1)
    finally:
        for call in calls:
            call.cancel()


def _wait(calls: Sequence[Any], text: str, on_progress: Callable[[Progress], None]) -> None:
    """Until all calls are done."""
    while not all(call.done() for call in calls):
        on_progress(Progress("profiling", text=text))
        time.sleep(_POLL_S)


def _describe(workers: Sequence[Worker], attempt: int) -> str:
    text = workers[0].address if len(workers) == 1 else f"{len(workers)} workers"
    return f"{text}, attempt {attempt + 1}" if attempt else text


def _keep(answer: Answer, address: str, folder: Path, attempts: int) -> Path | Refusal:
    """The profile on disk: written here, or by an old server, if both see the same disk."""
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', address)}.xplane.pb"
    if answer.is_empty:
        return explain_nothing_collected(address, attempts)
    if answer.xspace:
        path.write_bytes(answer.xspace)
    return path if path.exists() else explain_unseen_file(address, folder)


def _has_iterators(path: Path) -> bool:
    return _ITERATOR in path.read_bytes()


def _all_refused(refused: dict[str, str]) -> str:
    first, *others = refused
    if not others:
        return refused[first]
    return f"{refused[first]} The other {len(others)} gave nothing either: {', '.join(others[:10])}."
