"""The generated files: valid by the schemas of Kubernetes and of Compose, pinned, and never written over files of others."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from advisor.model.errors import AdvisorError
from advisor.model.offload_result import DYNAMIC, Sizing
from advisor.model.own_files import FileKind, is_own_file
from advisor.model.recording import Recording, ScriptExit
from advisor.model.state import ObservedState
from advisor.offload.files import MARK, NAMES, Deployment, data_folder_of, deployment_of, render
from advisor.offload.repairs import SERVICE_ADDRESS, distribute_edit
from advisor.testing import batch, map_, pipeline, source
from advisor.workflows.offload_files import check_folder, write_files

CASES = {
    "plain": Deployment("2.21.0", "3.11", workers=3, worker_cores=7.5),
    "with data": Deployment("2.16.1", "3.12", workers=1, worker_cores=2, data_folder="/data/train set"),
    "odd folder": Deployment("2.21.0", data_folder='/data/it\'s: "odd" #1 {x}'),
}
KUBERNETES = ("1.25.0", kubernetes_validate.latest_version())


@pytest.fixture(params=CASES.values(), ids=CASES)
def deployment(request) -> Deployment:
    return request.param


def objects(deployment: Deployment) -> list[dict]:
    return list(yaml.safe_load_all(render(deployment)["kubernetes.yaml"]))


def of_kind(deployment: Deployment, kind: str, name: str) -> dict:
    return next(item for item in objects(deployment) if (item["kind"], item["metadata"]["name"]) == (kind, name))


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_objects_are_valid(deployment, version):
    for kubernetes_object in objects(deployment):
        kubernetes_validate.validate(kubernetes_object, version, strict=True)


def test_the_schema_notices_an_invalid_object():
    wrong = of_kind(CASES["plain"], "Deployment", "tfdata-worker")
    wrong["spec"]["replicas"] = "three"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[0], strict=True)


@pytest.mark.long
def test_the_compose_file_is_valid(deployment, tmp_path):
    path = tmp_path / "compose.yaml"
    path.write_text(render(deployment)["compose.yaml"])
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    path.write_text(path.read_text().replace("build: .", "bild: ."))
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_workers_are_reachable_from_other_machines(deployment):
    worker = of_kind(deployment, "Deployment", "tfdata-worker")["spec"]["template"]["spec"]["containers"][0]
    assert "$(POD_IP):5001" in worker["args"]
    assert worker["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert not any("localhost" in argument for argument in worker["args"])


def test_the_dispatcher_survives_restarts_and_is_found_by_its_name(deployment):
    assert of_kind(deployment, "Service", "tfdata-dispatcher")["spec"]["clusterIP"] == "None"
    dispatcher = of_kind(deployment, "Deployment", "tfdata-dispatcher")["spec"]
    container = dispatcher["template"]["spec"]["containers"][0]
    assert dispatcher["strategy"]["type"] == "Recreate" and dispatcher["replicas"] == 1
    assert container["args"][container["args"].index("--work-dir") + 1] == "/journal"
    assert container["volumeMounts"][0]["mountPath"] == "/journal"
    assert container["readinessProbe"]["tcpSocket"] == {"port": "grpc"}


def test_no_outdated_api_and_no_nightly(deployment):
    for text in render(deployment).values():
        assert "extensions/v1beta1" not in text and "nightly" not in text and "latest" not in text


def test_number_of_workers_and_their_cores(deployment):
    worker = of_kind(deployment, "Deployment", "tfdata-worker")["spec"]
    assert worker["replicas"] == deployment.workers
    cores = worker["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert cores == f"{deployment.worker_cores * 1000:.0f}m"
    compose = yaml.safe_load(render(deployment)["compose.yaml"])
    assert compose["services"]["worker"]["deploy"]["replicas"] == deployment.workers


def test_data_are_mounted_under_the_same_path():
    deployment = CASES["odd folder"]
    pod = of_kind(deployment, "Deployment", "tfdata-worker")["spec"]["template"]["spec"]
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "data", "mountPath": deployment.data_folder, "readOnly": True}
    ]
    compose = yaml.safe_load(render(deployment)["compose.yaml"])
    assert compose["services"]["worker"]["volumes"][0]["target"] == deployment.data_folder


def test_the_address_in_the_script_is_a_name_in_both_networks(deployment):
    written = str(distribute_edit("c0", DYNAMIC, SERVICE_ADDRESS).arguments[0][1])
    host, port = re.search(r'"grpc://([^":]+):(\d+)"', written).groups()
    compose = yaml.safe_load(render(deployment)["compose.yaml"])["services"]
    names = {
        name: {name, *service.get("networks", {}).get("default", {}).get("aliases", ())}
        for name, service in compose.items()
    }
    assert host in names["dispatcher"] and host not in names["worker"]
    assert f"{host}:{port}" in compose["worker"]["command"]
    assert port in compose["dispatcher"]["command"]
    assert of_kind(deployment, "Service", host)["spec"]["ports"][0]["port"] == int(port)


def test_the_image_has_the_users_tensorflow(deployment):
    text = render(deployment)["Dockerfile"]
    assert f"=={deployment.tensorflow}\n" in text and f"FROM python:{deployment.python}-slim\n" in text


def test_all_files_are_recognised_and_the_server_is_python(deployment, tmp_path):
    texts = render(deployment)
    assert tuple(texts) == NAMES
    for path in write_files(tmp_path / "new", texts):
        assert path.read_text().startswith(MARK) and is_own_file(path, FileKind.SERVICE_FILE)
    assert ast.get_docstring(ast.parse(texts["server.py"]))


def analysed(version: str, *names: str):
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    host = dataclasses.replace(analysis.host, tensorflow_version=version, python_version="3.12.4")
    state = tuple(ObservedState(str(i), "file", name, ("c0",)) for i, name in enumerate(names))
    recording = Recording("train.py", host, ScriptExit("stopped"), state=state)
    return dataclasses.replace(analysis, host=host, recording=recording)


def test_the_deployment_follows_the_run():
    sizing = Sizing("workers", "", workers=4, worker_cores=8)
    deployment = deployment_of(analysed("2.20.0", "/data/a.tfrecord", "/data/b.tfrecord"), sizing)
    assert (deployment.tensorflow, deployment.python, deployment.workers, deployment.worker_cores) == (
        "2.20.0",
        "3.12",
        4,
        8,
    )
    assert deployment.data_folder == "/data"


@pytest.mark.parametrize("version", ["", "2.22.0-dev20260101", "2.20"])
def test_only_a_release_can_be_pinned(version):
    with pytest.raises(AdvisorError, match="No files can be made"):
        deployment_of(analysed(version), None)


@pytest.mark.parametrize(
    ("names", "folder"),
    [((), ""), (("gs://b/a",), ""), (("/a/x/1", "/a/y/2"), "/a"), (("/a/1", "/b/2"), ""), (("/1",), "")],
)
def test_folder_of_the_data(names, folder):
    assert data_folder_of(analysed("2.20.0", *names)) == folder


def test_files_of_others_are_kept(tmp_path: Path):
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(AdvisorError, match="not written by advisor offload"):
        check_folder(tmp_path)
    with pytest.raises(AdvisorError):
        write_files(tmp_path, render(CASES["plain"]))
    assert [path.name for path in tmp_path.iterdir()] == ["Dockerfile"]


def test_own_files_are_replaced(tmp_path: Path):
    write_files(tmp_path, render(CASES["plain"]))
    write_files(tmp_path, render(CASES["with data"]))
    assert "2.16.1" in (tmp_path / "Dockerfile").read_text()


def test_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "server.py").symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(AdvisorError):
        write_files(tmp_path, render(CASES["plain"]))
