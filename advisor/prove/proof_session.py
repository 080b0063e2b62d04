"""A proof session: the user's script, held at the moment when it asks for its first element, tries edits on its dataset.

In: how to run the script, and the call whose dataset its training consumes.  Out: a `Trial` per fix; run folders of edited
pipelines that can be analysed again. This half never imports TensorFlow; the other one is `advisor.prove.trial.proof_run`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from advisor.capture.launch import check_target, environment, outputs, protected, request_message, stop, target_name
from advisor.capture.request import CaptureRequest, Progress
from advisor.model.call_graph import CallGraph
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Edit, Safety
from advisor.model.long_lines import shorten_lines
from advisor.model.recording import Call
from advisor.prove.trial.call_matching import as_message
from advisor.prove.trial.messages import edits_to_json, graph_from_json, trial_from_json
from advisor.prove.trial.trial_result import REFUSED, Trial
from advisor.sandbox.private_run import PrivateRun
from advisor.sandbox.temporary import temporary_folder

TRIAL_S = 90.0
"""Longest time for the turns of one trial; most need a third."""
SILENCE_S = 150.0
"""The child tells where it stands at each turn and pass; the longest of them, filling a cache, takes a minute."""
MAX_HANGS = 2
"""A pipeline that hangs costs another run of the script; after so many nothing more is tried."""
_CHILD = Path(__file__).parent / "trial" / "proof_child.py"
_POLL_S = 0.1
_QUIT_GRACE_S = 30.0
"""What the script's own `finally` blocks may take at the end ..."""
_LEAST_QUIT_GRACE_S = 1.0
"""... and what they may take in any case, however little of the budget is left."""


class _Hangs(Exception):
    """The child has said nothing for too long."""


class _Failed(Exception):
    """The child could not do what it was asked; it serves on."""


class ProofSession:
    """Use as a context manager: entering runs the script up to its first element, leaving stops it.

    Raises AdvisorError when the script does not come to that point or its process ends in the middle, ScriptFailed when it fails
    on its way there. Nothing is left behind but what lies in `request.out`.
    """

    def __init__(
        self,
        request: CaptureRequest,
        consumer_call: Call | None,
        budget_s: float,
        on_progress: Callable[[Progress], None],
        calls: tuple[Call, ...] = (),
        silence_s: float = SILENCE_S,
        hold_at: int | None = None,
    ) -> None:
        """`request.out` is where the run folders of `profile` go (and the script's output); `budget_s` bounds everything: what
        still runs then is stopped, and whoever waits for it gets OutOfTime.

        `consumer_call`: the call whose dataset the training consumes; None: not known, the first dataset that the script's own
        code (or Keras' `fit`) begins to consume counts, but for a look at an element or two.
        `calls`: those of the first run; with them the calls of this run are told apart even if they are numbered otherwise.
        `hold_at`: hold the script at the consumption of that number (`CallGraph.consumption`), whichever dataset it is.
        `silence_s`: a pipeline that gives no sign of life for so long is taken to hang.
        """
        self._request, self._consumer_call, self._budget_s = request, consumer_call, budget_s
        self._on_progress, self._calls, self._silence_s = on_progress, calls, silence_s
        self._hold_at = hold_at
        self.written_files: tuple[str, ...] = ()
        """Files that the script itself opened for writing on its way to the first element (absolute paths). What TensorFlow's own
        code writes (checkpoints, summaries) is not seen.
        """
        self.runs = 0
        """How often the script was run: once, and once more after each pipeline that hung."""
        self.notes: tuple[str, ...] = ()
        """What the run wrote and could not be protected from, in sentences; known at its end."""
        self._deadline = 0.0
        self._child: subprocess.Popen[bytes] | None = None
        self._to_child: IO[bytes] | None = None
        self._from_child: IO[bytes] | None = None
        self._rest = b""
        self._files: Path | None = None
        self._hangs = 0
        self._profiles = 0
        self._outputs = contextlib.ExitStack()

    def __enter__(self) -> ProofSession:
        check_target(self._request)
        self._deadline = time.monotonic() + self._budget_s
        try:
            self._request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdvisorError(f"Cannot write to {self._request.out}: {error.strerror}.") from None
        try:
            self._start()
        except BaseException as reason:
            self._end(reason)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    # -- requests

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
    ) -> Trial:
        """Measure `current` against `current + candidate`; compare the elements of the original with those of the latter.

        Edits are applied in that order. `claimed` is what all of them together are said to do to the data.
        """
        message = {
            "do": "try",
            "current": edits_to_json(current),
            "candidate": edits_to_json(candidate),
            "claimed": str(claimed),
            "memory": predicted_memory_bytes,
            "seconds": max(1.0, min(TRIAL_S, self._deadline - time.monotonic())),
        }
        try:
            reply = self._ask(message)
        except _Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            return Trial(
                REFUSED, note=f"The edited pipeline gave no element for {self._silence_s:.0f} s, so it was given up."
            )
        except _Failed as error:
            return Trial(REFUSED, note=str(error), is_replayable=False)
        return trial_from_json(reply["trial"])

    def profile(self, edits: tuple[Edit, ...]) -> Path:
        """A run folder with a profile and a recording of the edited pipeline alone, its call ids those of the first run.

        Raises AdvisorError where it cannot be rebuilt or measured; the session goes on.
        """
        self._profiles += 1
        out = self._request.out / f"edited-{self._profiles}"
        try:
            self._ask({"do": "profile", "edits": edits_to_json(edits), "out": str(out.resolve())})
        except _Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            raise AdvisorError(f"The edited pipeline gave no element for {self._silence_s:.0f} s.") from None
        except _Failed as error:
            raise AdvisorError(str(error)) from None
        return out

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original against all edits that are kept."""
        return self.try_fix((), edits, claimed)

    def call_graph(self) -> CallGraph:
        """The calls that the script has made so far. Raises AdvisorError where they cannot be read."""
        try:
            return graph_from_json(self._ask({"do": "calls"})["graph"])
        except _Hangs:
            self._end(is_hanging=True)
            raise AdvisorError(f"The script's calls could not be read within {self._silence_s:.0f} s.") from None
        except _Failed as error:
            raise AdvisorError(str(error)) from None

    # -- the child

    def _start(self) -> None:
        """Run the script until it is held."""
        self._on_progress(Progress("starting", text=target_name(self._request)))
        self.runs += 1
        self._files = self._outputs.enter_context(temporary_folder("proof"))
        out, err = self._outputs.enter_context(outputs(self._request))
        run = self._outputs.enter_context(protected(self._request, self._files))
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        message = {
            **request_message(self._request, reply_write),
            "request_fd": request_read,
            "consumer": None if self._consumer_call is None else as_message(self._consumer_call),
            "calls": [as_message(call) for call in self._calls],
            "files": str(self._files),
            "hold_at": self._hold_at,
        }
        message_file = self._files / "request.json"
        message_file.write_text(json.dumps(message), "utf-8")
        try:
            self._child = subprocess.Popen(
                [*run.command, sys.executable, str(_CHILD), str(message_file)],
                stdout=out,
                stderr=err,
                pass_fds=(request_read, reply_write),
                env={**environment(), **run.variables},
            )
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._to_child = os.fdopen(request_write, "wb", buffering=0)
        self._from_child = os.fdopen(reply_read, "rb", buffering=0)
        self._rest = b""
        # The way to the first element may be long (data is prepared, a model is built): it has all the budget.
        limit_s = max(0.0, self._deadline - time.monotonic())
        try:
            ready = self._wait_for("ready", limit_s, is_silence=False)
        except (_Hangs, OutOfTime):
            raise OutOfTime(
                f"{target_name(self._request)} did not come to its first element within {limit_s:.0f} s; "
                "give it more time with --budget."
            ) from None
        self.written_files = tuple(ready["written"])
        self._outputs.callback(self._take_note_of, run)

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if time.monotonic() >= self._deadline:
            raise OutOfTime(f"There is no time left to try anything on {target_name(self._request)}.")
        if self._child is None:
            if self._hangs > MAX_HANGS:
                raise AdvisorError(f"{self._hangs} edited pipelines hung; nothing more is tried.")
            self._start()
        assert self._to_child is not None
        with contextlib.suppress(BrokenPipeError):  # what became of the child is seen when the reply is awaited
            self._to_child.write((json.dumps(message) + "\n").encode())
        return self._wait_for("trial" if message["do"] == "try" else "done", self._silence_s, is_silence=True)

    def _wait_for(self, wanted: str, limit_s: float, is_silence: bool) -> dict[str, Any]:
        """The reply of that kind. Raises AdvisorError, ScriptFailed, _Hangs after `limit_s` of silence (or in all)."""
        deadline = time.monotonic() + limit_s
        ended: dict[str, Any] = {}
        while True:
            if time.monotonic() >= self._deadline:
                self._end(is_hanging=True)
                raise OutOfTime(f"{target_name(self._request)} was stopped when its time was used up.")
            message = self._receive()
            if message is None:
                if self._child is not None and self._child.poll() is not None:
                    raise self._failure(ended, wanted)
                if time.monotonic() > deadline:
                    raise _Hangs
                continue
            if is_silence:
                deadline = time.monotonic() + limit_s
            match message["say"]:
                case kind if kind == wanted:
                    return message
                case "progress":
                    self._on_progress(Progress(message["phase"], message["done"], message["total"]))
                case "failed":
                    raise _Failed(str(message["text"]))
                case "ended":
                    ended = message

    def _receive(self) -> dict[str, Any] | None:
        """The next message, or None if there is none within a moment."""
        assert self._from_child is not None
        if b"\n" not in self._rest:
            ready, _, _ = select.select([self._from_child], [], [], _POLL_S)
            data = self._from_child.read(65536) if ready else b""
            if ready and not data and self._child is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(_POLL_S)
            self._rest += data or b""
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict) and "say" in message:
                return message
        return None

    def _failure(self, ended: dict[str, Any], wanted: str) -> AdvisorError:
        """Why the child is gone."""
        name = target_name(self._request)
        code = self._child.returncode if self._child is not None else 0
        if code < 0:
            return AdvisorError(f"{name} was killed by signal {-code} while fixes were tried; no file was changed.")
        if wanted != "ready":
            return AdvisorError(
                f"{name} ended while fixes were tried ({ended.get('exception') or f'exit code {code}'})."
            )
        kind = ended.get("kind")
        if kind == "failed" or (kind == "exited" and code):
            self._show_error()
            return ScriptFailed(
                f"{name} failed before its first element: {ended.get('exception') or f'exit code {code}'}."
            )
        call = self._consumer_call
        if call is None:
            return AdvisorError(f"{name} consumed no dataset, so there is no pipeline to try alone.")
        where = f" (line {call.site.line})" if call.site is not None else ""
        return AdvisorError(
            f"{name} did not consume the dataset of {call.method}{where} when it was run again, so its pipeline cannot be "
            "tried alone."
        )

    def _show_error(self) -> None:
        """The script's own stderr, as it wrote it."""
        if not self._request.show_output:
            with contextlib.suppress(OSError):
                text = (self._request.out / "script.err").read_text("utf-8", errors="replace")
                sys.stderr.write(shorten_lines(text))
                sys.stderr.flush()

    def _end(self, error: BaseException | None = None, is_hanging: bool = False) -> None:
        """End the child: by asking; after an error as Ctrl-C would, so that its exit handlers run; hard if it hangs. Then remove
        all that it needed.
        """
        child, self._child = self._child, None
        try:
            if child is not None:
                if is_hanging:
                    child.terminate()
                elif error is None:
                    with contextlib.suppress(OSError):
                        assert self._to_child is not None
                        self._to_child.write(b'{"do": "quit"}\n')
                    self._wait_for_end(child)
                is_late = time.monotonic() >= self._deadline and not isinstance(error, KeyboardInterrupt)
                stop(child, is_told=error is None or type(error) is KeyboardInterrupt, is_hard=is_late)
        finally:
            for pipe in (self._to_child, self._from_child):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._to_child = self._from_child = None
            self._outputs.close()
            self._files = None

    def _take_note_of(self, run: PrivateRun) -> None:
        self.notes = run.notes()

    def _wait_for_end(self, child: subprocess.Popen[bytes]) -> None:
        """Read on, so that the child's last words do not block it."""
        now = time.monotonic()
        deadline = now + min(_QUIT_GRACE_S, max(_LEAST_QUIT_GRACE_S, self._deadline - now))
        while child.poll() is None and time.monotonic() < deadline:
            self._receive()
