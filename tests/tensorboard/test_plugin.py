"""Routes of the plugin in TensorBoard's own WSGI application: what is answered, to whom, and with which headers."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re

import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra `tensorboard`)")
from tensorboard.backend.application import TensorBoardWSGI
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from advisor.tensorboard.loader import TfDataLoader
from tests.tensorboard.logdirs import NAME, TAB, broken, foreign, recorded

ROOT = f"/data/plugin/{NAME}"


def client_of(logdir, prefix="", **flags):
    flags = argparse.Namespace(**{"host": None, "bind_all": False, "logdir_spec": "", **flags})
    plugin = TfDataLoader().load(base_plugin.TBContext(logdir=str(logdir), flags=flags))
    return Client(TensorBoardWSGI([plugin], prefix))


@pytest.fixture
def client(tmp_path):
    recorded("keras_fit", tmp_path)
    return client_of(tmp_path)


def ids(client):
    return [run["id"] for run in client.get(f"{ROOT}/runs").json["runs"]]


def sources(policies, directive):
    """The sources that each of several policies gives a directive."""
    parsed = [
        dict(part.strip().partition(" ")[::2] for part in policy.split(";") if part.strip()) for policy in policies
    ]
    return [policy.get(directive, policy["default-src"]).split() for policy in parsed]


def test_the_tab_is_listed_as_a_frame(client):
    (tab,) = client.get("/data/plugins_listing").json.values()
    assert tab["enabled"] is True
    assert tab["tab_name"] == TAB
    assert tab["loading_mechanism"] == {"type": "IFRAME", "module_path": f"{ROOT}/index.js"}


def test_an_empty_logdir_has_an_inactive_tab(tmp_path):
    (tab,) = client_of(tmp_path).get("/data/plugins_listing").json.values()
    assert tab["enabled"] is False


def test_a_logdir_that_cannot_be_read_does_not_break_the_list_of_tabs(client, monkeypatch, caplog):
    def fails(self):
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr("advisor.tensorboard.run_finder.RunFinder.has_runs", fails)
    (tab,) = client.get("/data/plugins_listing").json.values()
    assert tab["enabled"] is False
    assert "cannot read the logdir: the disk is gone" in caplog.text


def test_runs_are_listed(client, tmp_path):
    foreign(tmp_path, hosts=2)
    listing = client.get(f"{ROOT}/runs").json
    assert [(run["name"], run["hosts"], run["is_recorded"]) for run in listing["runs"]] == [
        ("keras_fit/2026_11_21_05_22_17", 1, True),
        ("job/2026_01_01_00_00_00", 2, False),
    ]
    assert listing["logdir"] == str(tmp_path)


def test_the_report_has_a_policy_of_hashes(client, caplog):
    (run,) = ids(client)
    answer = client.get(f"{ROOT}/analysis?run={run}").json
    assert answer["problem"] == ""
    page = client.get(f"{ROOT}/{answer['report']}")
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    policies = page.headers.get_all("Content-Security-Policy")
    strict = policies[0]
    assert sources([strict], "default-src") == [["'none'"]]
    assert sources([strict], "connect-src") == [["'none'"]]
    assert "unsafe" not in strict and "'self'" not in strict
    scripts = re.findall(r"<script>(.*?)</script>", page.get_data(as_text=True), re.DOTALL)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts}
    assert len(hashes) >= 5
    for allowed in sources(policies, "script-src"):
        assert hashes <= set(allowed), "each policy has to allow every script"
    assert not [record for record in caplog.records if "3.0" in record.getMessage()], "TensorBoard objects to a header"


def test_data_has_no_problem_with_tensorboards_checks(client, caplog):
    for path in ("index.js", "tab.css", "runs", "analysis", "report?run=none"):
        response = client.get(f"{ROOT}/{path}")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert not caplog.records


@pytest.mark.parametrize(
    "wish",
    [
        "",
        "none",
        "..",
        "../../../etc/passwd",
        "%2Fetc%2Fpasswd",
        "keras_fit",
        "keras_fit/2026_11_21_05_22_17",
        "%00",
        "%FF",
    ],
)
def test_a_run_that_is_not_listed_is_not_served(client, wish):
    for route in ("analysis", "report"):
        response = client.get(f"{ROOT}/{route}?run={wish}")
        assert response.status_code == 404
        assert "not in the logdir" in response.get_data(as_text=True)


@pytest.mark.parametrize(
    "path",
    [
        "loader.py",
        "../loader.py",
        "assets/index.js",
        "index.js/../plugin.py",
        "%2e%2e/plugin.py",
        "index.js%00",
        "",
        "reports",
    ],
)
def test_no_other_file_is_served(client, path):
    assert client.get(f"{ROOT}/{path}").status_code == 404


def test_a_run_that_disappears_is_a_sentence(client, tmp_path):
    (run,) = ids(client)
    (tmp_path / "keras_fit").rename(tmp_path.parent / f"{tmp_path.name}-moved")
    response = client.get(f"{ROOT}/analysis?run={run}")
    assert response.status_code == 404 and "reload the list" in response.json["problem"]


@pytest.mark.long
def test_a_broken_profile_is_a_sentence(tmp_path):
    broken(tmp_path)
    client = client_of(tmp_path)
    (run,) = ids(client)
    problem = client.get(f"{ROOT}/analysis?run={run}").json["problem"]
    assert "host.xplane.pb" in problem
    page = client.get(f"{ROOT}/report?run={run}")
    assert (page.status_code, page.mimetype, page.get_data(as_text=True)) == (422, "text/plain", problem)


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_only_get_is_answered(client, method):
    assert getattr(client, method)(f"{ROOT}/runs").status_code == 405


@pytest.mark.parametrize("route", ["runs", "analysis?run=x", "report?run=x"])
@pytest.mark.parametrize(
    ("headers", "environ"),
    [
        ({"Host": "evil.example:6006"}, {}),
        ({"Sec-Fetch-Site": "cross-site"}, {}),
        ({}, {"REMOTE_ADDR": "192.168.1.7"}),
    ],
)
def test_data_is_for_this_machine_only(client, route, headers, environ):
    response = client.get(f"{ROOT}/{route}", headers=headers, environ_overrides=environ)
    assert response.status_code == 403
    assert response.json["problem"].startswith("The tab tf.data")


@pytest.mark.parametrize("flags", [{"host": "0.0.0.0"}, {"bind_all": True}])
def test_an_exposed_tensorboard_answers_others(tmp_path, flags):
    foreign(tmp_path)
    client = client_of(tmp_path, **flags)
    response = client.get(
        f"{ROOT}/runs", headers={"Host": "tensorboard.example"}, environ_overrides={"REMOTE_ADDR": "192.168.1.7"}
    )
    assert len(response.json["runs"]) == 1


def test_several_logdirs_are_declined(tmp_path):
    client = client_of("", logdir_spec=f"a:{tmp_path}")
    assert "--logdir_spec" in client.get(f"{ROOT}/runs").json["problem"]
    assert client.get(f"{ROOT}/report?run=x").status_code == 404


def test_an_exception_in_a_route_is_a_sentence(client, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("planned")

    monkeypatch.setattr("advisor.tensorboard.run_finder.RunFinder.listing", fail)
    response = client.get(f"{ROOT}/runs")
    assert response.status_code == 500
    assert response.json["problem"] == "tfdata-advisor failed (RuntimeError: planned): please report it."
    assert caplog.records


def test_names_reach_the_page_as_json(tmp_path):
    foreign(tmp_path, "</script><b>")
    response = client_of(tmp_path).get(f"{ROOT}/runs")
    assert response.mimetype == "application/json"
    assert json.loads(response.data)["runs"][0]["name"].startswith("</script><b>")


def test_a_path_prefix_is_kept(tmp_path):
    foreign(tmp_path)
    client = client_of(tmp_path, prefix="/behind/a/proxy")
    assert len(client.get(f"/behind/a/proxy{ROOT}/runs").json["runs"]) == 1
