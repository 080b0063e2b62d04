"""The plugin: routes and responses.

In: requests of the tab's page.  Out: the page, the list of runs as JSON, the result of an analysis as JSON, or a report as HTML.

    /index.js /tab.css   the page
    /runs                {"logdir", "runs": [...], "notes": [...], "problem"}
    /analysis?run=ID     makes the report: {"problem"} or {"report": the URL}
    /report?run=ID       report.html, with its Content-Security-Policy; theme=light|dark

An exception in a route becomes a sentence in the response and in TensorBoard's log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from advisor.model.text import message_of, printable
from advisor.model.units import format_bytes
from advisor.tensorboard.access import why_refused
from advisor.tensorboard.reports import Reports, version_of
from advisor.tensorboard.run_finder import Run, RunFinder
from advisor.tensorboard.worker_messages import NoPage, Page

NAME = "tfdata_advisor"
TAB = "tf.data"
_ASSETS = Path(__file__).parent / "assets"
_LOG = logging.getLogger("tensorboard")
_UNKNOWN_RUN = NoPage("This run is not in the logdir: reload the list of runs.", is_final=False)

Handler = Callable[[wrappers.Request], wrappers.Response]


class TfDataPlugin(base_plugin.TBPlugin):
    """The tab "tf.data".

    Args:
        context: TensorBoard's logdir and flags.
    """

    plugin_name = NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        super().__init__(context)
        flags = context.flags
        self._finder = RunFinder(context.logdir or "", getattr(flags, "logdir_spec", "") or "")
        self._reports = Reports()
        self._is_exposed = bool(getattr(flags, "host", None) or getattr(flags, "bind_all", False))

    def get_plugin_apps(self) -> dict[str, Any]:
        """Return the WSGI application of every route."""
        return {
            "/index.js": self._app(_asset("index.js", "application/javascript"), has_data=False),
            "/tab.css": self._app(_asset("tab.css", "text/css"), has_data=False),
            "/runs": self._app(self._runs),
            "/analysis": self._app(self._analysis),
            "/report": self._app(self._report),
        }

    def is_active(self) -> bool:
        """Return whether the logdir has a run."""
        try:
            return self._finder.has_runs()
        except Exception as error:  # TensorBoard asks every plugin in one request
            _LOG.warning("The tab %s cannot read the logdir: %s", TAB, message_of(error))
            return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Return the name of the tab, and the module that draws it."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name=TAB, disable_reload=True)

    def _app(self, answer: Handler, has_data: bool = True) -> Any:  # noqa: ANN401
        def respond(request: wrappers.Request) -> wrappers.Response:
            if request.method not in ("GET", "HEAD"):
                return _problem(request, "The tab tf.data only answers GET.", 405)
            refused = has_data and why_refused(
                request.remote_addr or "",
                request.headers.get("Host", ""),
                request.headers.get("Sec-Fetch-Site", ""),
                self._is_exposed,
            )
            if refused:
                return _problem(request, refused, 403)
            try:
                return answer(request)
            except Exception as error:
                _LOG.warning("The tab tf.data could not answer %s", request.path, exc_info=True)
                reason = f"{type(error).__name__}: {printable(message_of(error)[:300])}"
                return _problem(request, f"tfdata-advisor failed ({reason}): please report it.", 500)

        return wrappers.Request.application(respond)

    def _runs(self, request: wrappers.Request) -> wrappers.Response:
        found_runs = self._finder.listing()
        listing = {
            "logdir": printable(self._finder.logdir),
            "runs": [_row(run) for run in found_runs.runs],
            "notes": list(found_runs.notes),
            "problem": found_runs.problem,
        }
        return http_util.Respond(request, listing, "application/json")

    def _analysis(self, request: wrappers.Request) -> wrappers.Response:
        run = self._run(request)
        if run is None:
            return _problem(request, _UNKNOWN_RUN.sentence, 404)
        answer = self._reports.of(run, self._finder.root)
        if isinstance(answer, NoPage):
            return _problem(request, answer.sentence, 200)
        url = f"report?{urlencode({'run': run.id, 'version': version_of(run)})}"
        return http_util.Respond(request, {"report": url, "problem": ""}, "application/json")

    def _report(self, request: wrappers.Request) -> wrappers.Response:
        run = self._run(request)
        answer = _UNKNOWN_RUN if run is None else self._reports.of(run, self._finder.root)
        if isinstance(answer, Page):
            # TensorBoard adds its own policy for HTML; a browser enforces both
            return http_util.Respond(
                request,
                _with_theme(answer.html, request.args.get("theme", "")),
                "text/html",
                csp_scripts_sha256s=list(answer.script_hashes),
                headers=[("Content-Security-Policy", answer.policy)],
            )
        return http_util.Respond(request, printable(answer.sentence), "text/plain", code=404 if run is None else 422)

    def _run(self, request: wrappers.Request) -> Run | None:
        return self._finder.run(request.args.get("run", ""))


def _with_theme(html: bytes, theme: str) -> bytes:
    """Show the page in TensorBoard's theme, which a sandboxed frame cannot see."""
    if theme not in ("light", "dark"):
        return html
    return html.replace(b'<html lang="en">', f'<html lang="en" data-theme="{theme}">'.encode(), 1)


def _row(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "name": run.name,
        "hosts": len(run.files),
        "size": format_bytes(run.size_bytes),
        "written_ms": None if run.is_named_by_time else run.written_ns // 1_000_000,
        "is_recorded": run.is_recorded,
    }


def _asset(name: str, kind: str) -> Handler:
    return lambda request: http_util.Respond(request, (_ASSETS / name).read_bytes(), kind)


def _problem(request: wrappers.Request, sentence: str, code: int) -> wrappers.Response:
    return http_util.Respond(request, {"problem": printable(sentence)}, "application/json", code=code)
