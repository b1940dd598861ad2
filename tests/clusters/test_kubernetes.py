"""The command and the files for Kubernetes, up to the driver's pod."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from tests.clusters.conftest import ROOT, documented

DEPLOY = ROOT / "deploy/spark"
SECONDS = 120
RIGHTS = {"pods", "services", "configmaps", "persistentvolumeclaims"}
"""What Spark's driver creates and deletes."""


class ApiServer(ThreadingHTTPServer):
    """Accepts whatever is created, and remembers it by its kind."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ApiRequest)
        self.created: dict[str, Any] = {}


class ApiRequest(BaseHTTPRequestHandler):
    server: ApiServer

    def answer(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if self.command == "POST":
            sent["metadata"] |= {"uid": "1", "resourceVersion": "1"}
            self.server.created[sent["kind"]] = sent
        body = json.dumps(sent).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture(scope="module")
def files() -> dict[str, Any]:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_the_driver_may_create_executors_and_nothing_of_other_namespaces(files):
    [rule] = files["Role"]["rules"]
    assert set(rule["resources"]) == RIGHTS
    assert {"create", "watch", "deletecollection"} <= set(rule["verbs"])
    assert files["RoleBinding"]["roleRef"]["name"] == files["Role"]["metadata"]["name"]
    assert files["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": files["ServiceAccount"]["metadata"]["name"]}
    ]


def test_the_documented_command_creates_the_documented_driver(api, files, tmp_path):
    home = Path(pyspark.__path__[0])
    command = documented("k8s://").replace(
        "https://API-SERVER:6443", f"http://127.0.0.1:{api.server_port}"
    )
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(home / "bin"), os.environ["PATH"]]),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "KUBECONFIG": str(tmp_path / "none"),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    pod = api.created["Pod"]["spec"]
    assert pod["serviceAccountName"] == files["ServiceAccount"]["metadata"]["name"]
    [driver] = pod["containers"]
    assert driver["image"] == "registry.example.com/orders-job"
    assert "local:///opt/spark/work-dir/job.py" in driver["args"]
    secrets = {
        each["name"]: each["valueFrom"]["secretKeyRef"]
        for each in driver["env"]
        if "secretKeyRef" in each.get("valueFrom", {})
    }
    assert set(secrets) == {"EVENTHUB_CONNECTION_STRING", "CHECKPOINT_STORE"}
    for reference in secrets.values():
        assert reference["name"] == files["Secret"]["metadata"]["name"]
        assert reference["key"] in files["Secret"]["stringData"]
    assert "SharedAccessKey" not in json.dumps(api.created) + ran.stderr


def test_the_image_runs_the_job_that_is_submitted_with_its_own_python():
    lines = (DEPLOY / "Dockerfile").read_text()
    python = "/opt/venv/bin/python"
    assert f"ENV PYSPARK_PYTHON={python}" in lines
    assert f"ENV PYSPARK_DRIVER_PYTHON={python}" in lines
    assert f"uv pip install --no-cache --python {python}" in lines
    copied = lines.partition("COPY job.py ")[2].split()[0]
    assert f"local://{copied}" in documented("k8s://")
