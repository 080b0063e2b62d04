"""Sampling mode: collects profiles of running jobs over the network.

In: a `SamplingRequest`: addresses of profiler servers, duration, number of attempts.  Out: `Sampled`: a logdir with a new run
that has one file per worker.  TensorFlow is not needed; see `client`.
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

from advisor.capture.remote.client import ProfileRequest, ProfileResponse, TracerLevels, Worker, read_response
from advisor.capture.remote.profiler_errors import (
    NoProfile,
    explain_failure,
    explain_nothing_collected,
    explain_unseen_file,
)
from advisor.capture.request import Progress
from advisor.model.errors import AdvisorError

GRACE_S = 60.0
"""Time that a server may take after the duration to collect the events and send them; the same as in TensorFlow's client."""
RETRY_PAUSE_S = 1.0
_POLL_S = 0.1
ITERATOR_LEVEL = 2
"""The lowest `host_tracer_level` at which TensorFlow records iterators (observed with TF 2.21)."""
_ITERATOR = b"Iterator::"
"""Contained in each profile with events of a tf.data iterator."""
_ADDRESS = re.compile(r"(?:grpc://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s@]+):(?P<port>\d{1,5})/?")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """What to collect from which workers."""

    addresses: tuple[str, ...]
    """`host:port` of each worker, as returned by `parse_addresses`."""
    out: Path
    """Logdir, to which the run is added."""
    duration_s: float = 2.0
    delay_s: float = 0.0
    """Time to wait before the first attempt."""
    retries: int = 3
    """Number of further attempts for each worker that cannot be reached or returns no events."""
    levels: TracerLevels = field(default_factory=TracerLevels)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The collected profiles."""

    logdir: Path
    run: str
    """Name of the run in `plugins/profile`, as accepted by `--run`."""
    files: tuple[Path, ...]
    """One profile per worker."""
    warnings: tuple[str, ...] = ()
    """Sentences about workers without a profile and other limitations."""


def parse_addresses(text: str) -> tuple[str, ...]:
    """Parse comma-separated addresses of profiler servers.

    Args:
        text: E.g. `grpc://a:6009,grpc://b:6009`.

    Returns:
        Each address as `host:port`, without duplicates.

    Raises:
        AdvisorError: There is no address, or one is invalid.
    """
    addresses: dict[str, None] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
            raise AdvisorError(
                f"{part} is not the address of a profiler server; specify grpc://HOST:PORT with the port that the job passes "
                "to tf.profiler.experimental.server.start, e.g. grpc://localhost:6009."
            )
        addresses[f"{match['host']}:{match['port']}"] = None
    if not addresses:
        raise AdvisorError("Specify the profiler server of at least one job, e.g. grpc://localhost:6009.")
    return tuple(addresses)


def sample(request: SamplingRequest, on_progress: Callable[[Progress], None]) -> Sampled:
    """Collect profiles from all workers concurrently, and retry those that returned no events.

    On an error or Ctrl-C, folders created by this call are removed and the profiler sessions in the jobs are ended.

    Args:
        request: What to collect.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: There is no profile of any worker, or the folder cannot be written.
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
                f"With --host-tracer-level {request.levels.host} the profiler does not record tf.data iterators, so the input "
                f"pipeline cannot be analyzed; capture with level {ITERATOR_LEVEL}."
            )
        return Sampled(request.out, folder.name, tuple(files.values()), tuple(warnings))


def _require_grpc() -> None:
    try:
        import grpc  # noqa: F401
    except ImportError:
        raise AdvisorError(
            "Sampling mode needs grpcio, which is not installed: pip install grpcio (or tfdata-advisor[sampling]); it is "
            "also installed with TensorFlow."
        ) from None


@contextmanager
def _new_run(logdir: Path) -> Iterator[Path]:
    """Create an empty folder `plugins/profile/<time>`. If the block raises, all folders created for it are removed."""
    topmost_new = next((place for place in (*reversed(logdir.absolute().parents), logdir) if not place.exists()), None)
    now = time.time()
    try:
        while True:
            folder = logdir.absolute() / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now))
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                break
            if not folder.is_dir():  # it exists, but is a file
                raise NotADirectoryError(20, "Not a directory")
            now += 1  # another run started in this second
    except OSError as error:
        raise AdvisorError(
            f"Cannot write to {logdir}: {error.strerror or error}; choose another folder with --out."
        ) from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder if topmost_new is None else topmost_new, ignore_errors=True)
        raise


def _collect(
    request: SamplingRequest, folder: Path, on_progress: Callable[[Progress], None]
) -> tuple[dict[str, Path], dict[str, str]]:
    """Return (address -> profile, address -> why there is no profile)."""
    files: dict[str, Path] = {}
    refused: dict[str, str] = {}
    connected = workers = [Worker(address) for address in request.addresses]
    try:
        for attempt in range(request.retries + 1):
            if attempt:
                time.sleep(RETRY_PAUSE_S)
            retried = []
            for worker, result in _attempt(request, workers, folder, attempt, on_progress):
                if isinstance(result, Path):  # a profile without iterators is kept until there is a better one
                    files[worker.address] = result
                    refused.pop(worker.address, None)
                    is_done = request.levels.host < ITERATOR_LEVEL or _has_iterators(result)
                else:
                    if worker.address not in files:
                        refused[worker.address] = result.sentence
                    is_done = result.is_final
                if not is_done:
                    retried.append(worker)
            workers = retried
            if not workers:
                break
    finally:
        for worker in connected:
            worker.close()
    for path in set(folder.iterdir()) - set(files.values()):
        path.unlink()  # old servers write a file even if there are no events
    return files, refused


def _attempt(
    request: SamplingRequest,
    workers: Sequence[Worker],
    folder: Path,
    attempt: int,
    on_progress: Callable[[Progress], None],
) -> Iterator[tuple[Worker, Path | NoProfile]]:
    """Collect from each worker once; yield each worker with its profile or the reason why there is none."""
    import grpc

    wanted = ProfileRequest(round(request.duration_s * 1e3), request.levels, folder.name, str(folder.parent))
    calls = [worker.request_profile(wanted, request.duration_s + GRACE_S) for worker in workers]
    try:
        _wait(calls, _describe(workers, attempt), on_progress)
        on_progress(Progress("saving"))
        for worker, call in zip(workers, calls, strict=True):
            try:
                response = read_response(call.result())
            except grpc.RpcError as error:
                yield worker, explain_failure(worker.address, error, request.duration_s + GRACE_S)
                continue
            yield worker, _keep(response, worker.address, folder, attempt + 1)
    finally:
        for call in calls:
            call.cancel()


def _wait(calls: Sequence[Any], text: str, on_progress: Callable[[Progress], None]) -> None:
    """Wait until all calls are done."""
    while not all(call.done() for call in calls):
        on_progress(Progress("profiling", text=text))
        time.sleep(_POLL_S)


def _describe(workers: Sequence[Worker], attempt: int) -> str:
    text = workers[0].address if len(workers) == 1 else f"{len(workers)} workers"
    return f"{text}, attempt {attempt + 1}" if attempt else text


def _keep(response: ProfileResponse, address: str, folder: Path, attempts: int) -> Path | NoProfile:
    """Write the profile and return its path. An old server has written it itself, possibly to another machine's disk."""
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', address)}.xplane.pb"
    if response.is_empty:
        return explain_nothing_collected(address, attempts)
    if response.xspace:
        path.write_bytes(response.xspace)
    return path if path.exists() else explain_unseen_file(address, folder)


def _has_iterators(path: Path) -> bool:
    return _ITERATOR in path.read_bytes()


def _all_refused(refused: dict[str, str]) -> str:
    first, *others = refused
    if not others:
        return refused[first]
    return f"{refused[first]} There is no profile of the other {len(others)} workers either: {', '.join(others[:10])}."
