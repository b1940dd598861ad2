"""`ehcp serve` as a process: Prometheus, both scalers of KEDA, failures, recovery, and its end."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from azure.storage.blob import generate_container_sas
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from fault_proxy import FaultProxy
from operators import ehcp
from waiting import LIMIT, eventually

POLLING = "0.3"
"""Seconds between two polls of a process that is to notice changes."""
KEDA_PROTO = """
syntax = "proto3";
package externalscaler;

service ExternalScaler {
  rpc IsActive(ScaledObjectRef) returns (IsActiveResponse);
  rpc StreamIsActive(ScaledObjectRef) returns (stream IsActiveResponse);
  rpc GetMetricSpec(ScaledObjectRef) returns (GetMetricSpecResponse);
  rpc GetMetrics(GetMetricsRequest) returns (GetMetricsResponse);
}

message ScaledObjectRef { string name = 1; string namespace = 2; map<string, string> scalerMetadata = 3; }
message IsActiveResponse { bool result = 1; }
message MetricSpec { string metricName = 1; int64 targetSize = 2; double targetSizeFloat = 3; }
message GetMetricSpecResponse { repeated MetricSpec metricSpecs = 1; }
message GetMetricsRequest { ScaledObjectRef scaledObjectRef = 1; string metricName = 2; }
message MetricValue { string metricName = 1; int64 metricValue = 2; double metricValueFloat = 3; }
message GetMetricsResponse { repeated MetricValue metricValues = 1; }
"""  # noqa: E501
"""KEDA's interface, from which protoc makes a client: what the server sends is read by that one."""


class Serve:
    """The process, and what it answers."""

    def __init__(self, child: Child, url: str, grpc_address: str) -> None:
        self.child = child
        self.url = url
        self.grpc_address = grpc_address

    def get(self, path: str, accept: str = "") -> tuple[int, str, str]:
        """Status, content type and body."""
        request = urllib.request.Request(f"{self.url}{path}", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    def json(self, path: str = "/lag.json") -> tuple[int, Any]:
        status, content_type, body = self.get(path)
        assert content_type == "application/json"
        return status, json.loads(body)

    def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Samples by name: labels and value."""
        status, _, body = self.get("/metrics")
        assert status == 200
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in parser.text_string_to_metric_families(body):
            assert family.documentation
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the only sample of a name with these labels; None if there is none."""
        values = [
            value
            for found, value in self.metrics().get(name, [])
            if labels.items() <= found.items()
        ]
        assert len(values) <= 1
        return values[0] if values else None

    def wait_known(self) -> None:
        eventually(lambda: self.json()[0] == 200)

    def wait_unknown(self) -> None:
        eventually(lambda: self.json()[0] == 503)


@contextmanager
def starting(folder: Path) -> Iterator[Callable[..., Serve]]:
    """Start processes, and end them.

    They poll once, unless they are told an interval: a sample counts as known for three of them.
    """
    started: list[Child] = []

    def run(*words: str, interval: str = "600", **variables: str) -> Serve:
        log = folder / f"serve-{len(started)}.log"
        child = Child(
            [
                *(sys.executable, "-m", "eventhub_checkpoints.cli", "serve"),
                *("--port", "0", "--grpc-port", "0", "--interval", interval, *words),
            ],
            log=log,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables},
        )
        started.append(child)
        shown = child.wait_ready(
            lambda: re.search(r"^(http\S+)/metrics.*\n(\S+) for KEDA", log.read_text(), re.M),
            LIMIT,
        )
        return Serve(child, shown[1], shown[2])

    try:
        yield run
    finally:
        for child in started:
            child.kill()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Serve]]:
    with starting(tmp_path) as run:
        yield run


class Site:
    """A hub with four partitions, and a group in a store."""

    def __init__(self, hub: LocalHub, store: Any, url: str) -> None:
        self.hub = hub
        self.store = store
        self.text = hub.connection_string("orders")
        self.scope = HubAddress.from_connection_string(self.text).scope()
        self.variables = {"EHCP_STORE": url, "EHCP_HUB": self.text}
        self.enqueued = time.time() - 100

    @property
    def age(self) -> float:
        """Seconds since the events were enqueued."""
        return time.time() - self.enqueued

    def save(self, partition_id: str, number: int) -> None:
        row = {"partition_id": partition_id, "offset": str(number), "sequence_number": number}
        self.store.update_checkpoint({**self.scope.as_dict(), **row})

    def own(self, *partition_ids: str) -> None:
        self.store.claim_ownership(
            [
                {**self.scope.as_dict(), "partition_id": id_, "owner_id": "me"}
                for id_ in partition_ids
            ]
        )


@contextmanager
def filled(folder: Path) -> Iterator[Site]:
    """Partition 0 is 4 events behind, 1 is up to date, 2 has lost 5 events, 3 is empty."""
    url = f"sqlite:///{folder}/checkpoints.db"
    with LocalHub({"orders": 4, "payments": 1}) as hub, open_store(url) as store:
        store.create()
        made = Site(hub, store, url)
        for partition_id in "012":
            hub.publish("orders", partition_id, [b"event"] * 20, enqueued_time=made.enqueued)
        hub.trim("orders", "2", 10)
        made.save("0", 15)
        made.save("1", 19)
        made.save("2", 4)
        yield made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with filled(tmp_path) as made:
        yield made


@pytest.fixture(scope="module", params=["one group"])
def unchanged(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[tuple[Site, Serve]]:
    """A site that no test changes, and one process that serves it to all of them.

    The parameter names the groups: the one of the site, or that after another one.
    """
    groups = ["-g", "other", "-g", "$Default"] if request.param == "two groups" else []
    folder = tmp_path_factory.mktemp("unchanged")
    with filled(folder) as made, starting(folder) as run:
        serve = run(*groups, **made.variables)
        serve.wait_known()
        yield made, serve


two_groups = pytest.mark.parametrize("unchanged", ["two groups"], indirect=True)


def test_prometheus_reads_the_metrics_of_each_partition(site, start) -> None:
    site.own("1")
    serve = start(interval=POLLING, **site.variables)
    serve.wait_known()
    assert serve.value("ehcp_up") == 1
    assert serve.value("ehcp_partitions") == 4
    assert serve.value("ehcp_members") == 1
    assert serve.value("ehcp_scale") == 14
    assert serve.value("ehcp_wanted_replicas") == 1
    expected = {
        "ehcp_lag_events": [4, 0, 10, 0],
        "ehcp_lost_events": [0, 0, 5, 0],
        "ehcp_checkpoint_sequence_number": [15, 19, 4, None],
        "ehcp_first_sequence_number": [0, 0, 10, 0],
        "ehcp_last_sequence_number": [19, 19, 19, -1],
    }
    for name, values in expected.items():
        found = [serve.value(name, partition_id=id_) for id_ in "0123"]
        assert (name, found) == (name, values)
    seconds = [serve.value("ehcp_lag_seconds", partition_id=id_) for id_ in "0123"]
    assert (seconds[1], seconds[3]) == (0, 0)
    assert all(each and 100 <= each <= site.age for each in (seconds[0], seconds[2]))
    assert serve.value("ehcp_partition_state", partition_id="2", state="LOST") == 1
    assert serve.value("ehcp_partition_severity", partition_id="2") == 2
    eventually(lambda: serve.value("ehcp_partition_state", partition_id="1", state="OK"))
    [(labels, _)] = serve.metrics()["ehcp_up"]
    assert labels == site.scope.as_dict()


def test_totals_of_a_group_are_published_with_and_without_its_partitions(site, start) -> None:
    served = (
        start(interval=POLLING, **site.variables),
        start("--no-partitions", interval=POLLING, **site.variables),
    )
    for serve in served:
        serve.wait_known()
        assert serve.value("ehcp_group_lag_events") == 14
        assert serve.value("ehcp_group_lost_events") == 5
        assert serve.value("ehcp_group_partitions", state="LOST") == 1
    of_all, of_groups = ({*serve.metrics()} for serve in served)
    assert {name for name in of_all - of_groups if not name.startswith("ehcp_")} == set()
    assert {"ehcp_lag_events", "ehcp_partition_state"} <= of_all - of_groups
    assert of_groups < of_all


def test_openmetrics_is_sent_to_who_asks_for_it(unchanged) -> None:
    _, serve = unchanged
    accept = "application/openmetrics-text;version=1.0.0"
    _, content_type, body = serve.get("/metrics", accept)
    assert content_type.startswith("application/openmetrics-text")
    names = {family.name for family in openmetrics_parser.text_string_to_metric_families(body)}
    assert {"ehcp_up", "ehcp_lag_events", "ehcp_polls"} <= names


def test_kedas_metrics_api_scaler_reads_a_number(unchanged) -> None:
    site, serve = unchanged
    status, found = serve.json("/lag.json?hub=orders&group=%24Default&target=3")
    assert (status, found["scale"], found["replicas"], found["active"]) == (200, 6, 2, True)
    assert (found["lag"], found["lost"]) == (14, 5)
    assert 100 <= found["lag_seconds"] <= site.age
    [group] = found["groups"]
    assert {name: group[name] for name in site.scope._fields} == site.scope.as_dict()
    assert group["state"] == "LOST"
    _, active = serve.json("/lag.json?activation=10")
    assert active["active"] is False


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/lag.json?group=other", 404, "no such group is served; there is: .*/orders/"),
        ("/lag.json?groups=a", 400, "the query has 'groups'; expected namespace, hub, group"),
        ("/lag.json?group=a&group=b", 400, "the query has 'group' twice"),
        ("/lag.json?target=1_0", 400, "target is '1_0'; expected a whole number"),
        ("/lag.json?target=many", 400, "target is 'many'; expected a whole number"),
        ("/lag.json?target=0", 400, "target is '0'; expected a whole number, 1 or more"),
        ("/", 404, "there is no /; use /metrics, /lag.json or /health"),
    ],
)
def test_a_wrong_request_is_explained(unchanged, path, status, said) -> None:
    _, serve = unchanged
    found, body = serve.json(path)
    assert found == status
    assert re.search(said, body["error"])


@pytest.mark.parametrize("path", ["/metrics", "/lag.json", "/health", "/"])
def test_a_request_for_the_head_is_answered_without_the_body(unchanged, path) -> None:
    _, serve = unchanged
    with closing(HTTPConnection(serve.url.removeprefix("http://"), timeout=LIMIT)) as connection:
        for method in ("GET", "HEAD", "GET"):
            connection.request(method, path)
            answer = connection.getresponse()
            assert answer.status == (404 if path == "/" else 200)
            assert int(answer.headers["Content-Length"]) > 0
            assert bool(answer.read()) == (method == "GET")


def test_a_target_that_is_not_a_path_is_explained(unchanged) -> None:
    _, serve = unchanged
    with closing(HTTPConnection(serve.url.removeprefix("http://"), timeout=LIMIT)) as connection:
        connection.putrequest("GET", "http://[/lag.json", skip_host=True)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 400
        assert json.load(answer)["error"] == "'http://[/lag.json' is not a path with a query"


def test_groups_of_several_hubs_are_served_by_one_process(site, start, tmp_path) -> None:
    site.hub.publish("payments", "0", [b"event"] * 3)
    profiles = tmp_path / "profiles.toml"
    url = site.variables["EHCP_STORE"]
    profiles.write_text(
        f"[profiles.orders]\nhub = '{site.text}'\nstore = '{url}'\n"
        f"[profiles.payments]\nhub = '{site.hub.connection_string('payments')}'\nstore = '{url}'\n"
    )
    both = ["--profile", "orders", "--profile", "payments"]
    serve = start(*both, EHCP_CONFIG=str(profiles))
    serve.wait_known()
    _, found = serve.json()
    assert (found["lag"], [each["lag"] for each in found["groups"]]) == (17, [14, 3])
    _, payments = serve.json("/lag.json?hub=payments")
    assert payments["lag"] == 3
    twice = start(*both, "-g", "$Default", "-g", "other", EHCP_CONFIG=str(profiles))
    twice.wait_known()
    _, found = twice.json()
    assert [each["lag"] for each in found["groups"]] == [14, 50, 3, 3]


def test_an_unknown_hub_is_an_error_for_all_until_it_is_back(site, start, keda) -> None:
    serve = start("--timeout", "5", interval=POLLING, **site.variables)
    serve.wait_known()
    with keda(serve) as scaler:
        eventually(lambda: is_active(scaler))
        site.hub.stop()
        serve.wait_unknown()
        status, found = serve.json()
        assert (status, "is unknown" in found["error"]) == (503, True)
        with pytest.raises(grpc.RpcError) as failed:
            scaler.is_active()
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as failed:
            scaler.metrics()
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "is unknown" in failed.value.details()
        assert serve.value("ehcp_up") == 0
        for name in ("ehcp_scale", "ehcp_lag_events", "ehcp_partition_state"):
            assert name not in serve.metrics()
        assert (serve.value("ehcp_poll_failures_total") or 0) > 0
        # The process itself is well: a restart would not help.
        status, health = serve.json("/health")
        assert (status, health["groups"][0]["up"]) == (200, False)
        site.hub.start()
        eventually(lambda: serve.value("ehcp_lag_events", partition_id="0") == 4)
        eventually(lambda: is_active(scaler))


@pytest.fixture
def blob(blob_container, proxy: FaultProxy) -> Iterator[Site]:
    """The same in Blob Storage, behind a proxy that counts requests and can fail."""
    sas = generate_container_sas(
        EMULATOR_ACCOUNT,
        blob_container.name,
        account_key=EMULATOR_KEY,
        permission="racwdl",
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    url = f"{blob_container.through(proxy.endpoint).url}?{sas}"
    with LocalHub({"orders": 2}) as hub, open_store(url) as store:
        made = Site(hub, store, url)
        hub.publish("orders", "0", [b"event"] * 20)
        made.save("0", 15)
        yield made


def test_askers_at_the_same_time_cause_no_list_of_the_store(blob, proxy, start) -> None:
    proxy.forget()
    serve = start(**blob.variables)
    serve.wait_known()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: serve.json(), range(40)))
    assert {status for status, _ in answers} == {200}
    assert {found["lag"] for _, found in answers} == {4}
    assert serve.value("ehcp_polls_total") == 1
    assert (proxy.count("GET", "/checkpoint/"), proxy.count("GET", "/ownership/")) == (0, 0)
    assert proxy.count("GET", "comp=list") == 2  # of checkpoints, of ownerships


def test_an_unknown_store_is_an_error_until_it_is_back(blob, proxy, start) -> None:
    serve = start("--timeout", "2", interval=POLLING, **blob.variables)
    serve.wait_known()
    proxy.on().drop()
    serve.wait_unknown()
    assert serve.value("ehcp_up") == 0
    assert "ehcp_lag_events" not in serve.metrics()
    proxy.heal()
    eventually(lambda: serve.value("ehcp_lag_events", partition_id="0") == 4)


class Keda:
    """A client of KEDA's interface, made by protoc."""

    def __init__(self, folder: Path, serve: Serve) -> None:
        self._folder = folder
        self._channel = grpc.insecure_channel(serve.grpc_address)
        self.messages, services = generated(folder)
        self._stub = services.ExternalScalerStub(self._channel)

    def __enter__(self) -> "Keda":
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def reference(self, **metadata: str) -> Any:
        return self.messages.ScaledObjectRef(
            name="consumer",
            namespace="production",
            scalerMetadata={"scalerAddress": "ehcp:9878", **metadata},
        )

    def is_active(self, **metadata: str) -> Any:
        return self._stub.IsActive(self.reference(**metadata), timeout=LIMIT)

    def stream(self, **metadata: str) -> Any:
        return self._stub.StreamIsActive(self.reference(**metadata))

    def specification(self, **metadata: str) -> Any:
        return self._stub.GetMetricSpec(self.reference(**metadata), timeout=LIMIT).metricSpecs

    def metrics(self, name: str = "unprocessed-events", **metadata: str) -> Any:
        request = self.messages.GetMetricsRequest(
            scaledObjectRef=self.reference(**metadata), metricName=name
        )
        return self._stub.GetMetrics(request, timeout=LIMIT).metricValues


def generated(folder: Path) -> tuple[Any, Any]:
    """Import the client's modules, which protoc generates once."""
    name = "keda_of_the_tests"
    if not (folder / f"{name}_pb2.py").exists():
        (folder / f"{name}.proto").write_text(KEDA_PROTO)
        options = [f"--{kind}_out={folder}" for kind in ("python", "grpc_python")]
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", *options, f"{name}.proto"],
            check=True,
        )
    sys.path.insert(0, str(folder))
    try:
        return __import__(f"{name}_pb2"), __import__(f"{name}_pb2_grpc")
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("keda")


@pytest.fixture
def keda(folder: Path) -> Callable[[Serve], Keda]:
    return lambda serve: Keda(folder, serve)


def test_kedas_external_scaler_is_answered(unchanged, keda) -> None:
    _, serve = unchanged
    with keda(serve) as scaler:
        assert scaler.is_active().result is True
        [specification] = scaler.specification(unprocessedEventThreshold="3")
        assert specification.metricName == "unprocessed-events"
        assert (specification.targetSize, specification.targetSizeFloat) == (3, 3.0)
        [value] = scaler.metrics(unprocessedEventThreshold="3")
        assert (value.metricName, value.metricValue, value.metricValueFloat) == (
            *("unprocessed-events", 6, 6.0),
        )
        [default] = scaler.specification()
        assert default.targetSize == 64
        assert scaler.is_active(activationUnprocessedEventThreshold="10").result is False


@two_groups
def test_the_metadata_is_that_of_kedas_own_trigger(unchanged, keda) -> None:
    site, serve = unchanged
    host = site.scope.fully_qualified_namespace
    with keda(serve) as scaler:
        names = {"eventHubNamespace": host, "eventHubName": "orders"}
        [value] = scaler.metrics(**names, consumerGroup="other")
        assert value.metricValue == 50
        for code, metadata in (
            (grpc.StatusCode.INVALID_ARGUMENT, names),  # two groups
            (grpc.StatusCode.NOT_FOUND, {"consumerGroup": "another"}),
            (
                grpc.StatusCode.INVALID_ARGUMENT,
                {"consumerGroup": "other", "unprocessedEventThreshold": "0"},
            ),
            (
                grpc.StatusCode.INVALID_ARGUMENT,
                {"consumerGroup": "other", "activationUnprocessedEventThreshold": "-1"},
            ),
        ):
            with pytest.raises(grpc.RpcError) as failed:
                scaler.metrics(**metadata)
            assert failed.value.code() is code
        with pytest.raises(grpc.RpcError) as failed:
            scaler.specification(**names, consumerGroup="other", unprocessedEventThreshold="x")
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as failed:
            next(scaler.stream(**names))
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_stream_wakes_keda_when_the_first_event_comes(site, start, keda) -> None:
    for partition_id in "012":
        site.save(partition_id, 19)
    serve = start("--hold", "0", "--timeout", "5", interval=POLLING, **site.variables)
    serve.wait_known()
    with keda(serve) as scaler:
        stream = scaler.stream()
        assert next(stream).result is False
        site.hub.publish("orders", "3", [b"event"])
        assert next(stream).result is True
        # Nothing is sent while it is unknown; after that, the stream goes on.
        site.hub.stop()
        serve.wait_unknown()
        site.hub.start()
        serve.wait_known()
        site.save("3", 0)
        assert next(stream).result is False
        stream.cancel()


def test_more_streams_than_threads_are_refused(site, start, keda) -> None:
    serve = start(**site.variables)
    serve.wait_known()
    with keda(serve) as scaler:
        streams = [scaler.stream() for _ in range(100)]
        assert all(next(stream).result for stream in streams)
        with pytest.raises(grpc.RpcError) as failed:
            next(scaler.stream())
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert scaler.is_active().result  # other calls are answered
        for stream in streams:
            stream.cancel()
        eventually(lambda: is_open(scaler))


def is_active(scaler: Keda) -> bool:
    """What KEDA is told; unknown counts as no."""
    try:
        return bool(scaler.is_active().result)
    except grpc.RpcError:
        return False


def is_open(scaler: Keda) -> bool:
    try:
        return bool(next(scaler.stream()).result)
    except grpc.RpcError:
        return False


DEPLOY = Path(__file__).parents[2] / "deploy" / "keda"


def trigger(file: str) -> dict[str, str]:
    """The metadata of the trigger of a ScaledObject that the project ships."""
    scaled = yaml.safe_load((DEPLOY / file).read_text("utf-8"))
    [found] = scaled["spec"]["triggers"]
    return found["metadata"]


@two_groups
def test_the_scaled_object_for_metrics_api_reads_a_number(unchanged) -> None:
    _, serve = unchanged
    metadata = trigger("metrics-api.yaml")
    _, query = metadata["url"].split("/lag.json")
    status, found = serve.json(f"/lag.json{query}")
    assert status == 200
    [group] = found["groups"]
    assert group["consumer_group"] == "$Default"
    assert found[metadata["valueLocation"]] == 14
    assert f"target={metadata['targetValue']}" in query


@two_groups
def test_the_scaled_object_for_the_external_scaler_is_answered(unchanged, keda) -> None:
    _, serve = unchanged
    metadata = trigger("external.yaml")
    with keda(serve) as scaler:
        [value] = scaler.metrics(**metadata)
        [specification] = scaler.specification(**metadata)
        assert (value.metricValue, specification.targetSize) == (14, 64)
        assert scaler.is_active(**metadata).result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_open_streams_and_connections(site, start, keda, number) -> None:
    serve = start(**site.variables)
    serve.wait_known()
    host, port = serve.url.removeprefix("http://").split(":")
    with keda(serve) as scaler, socket.create_connection((host, int(port))):
        stream = scaler.stream()
        assert next(stream).result
        os.kill(serve.child.pid, number)
        assert serve.child.wait(LIMIT) == 0
    assert "Traceback" not in serve.child.log.read_text()


def test_a_signal_ends_it_while_a_poll_hangs(site, start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", site.text)
        serve = start(**{**site.variables, "EHCP_HUB": text})
        accepted, _ = silent.accept()
        with accepted:
            assert serve.json()[0] == 503
            os.kill(serve.child.pid, signal.SIGTERM)
            assert serve.child.wait(LIMIT) == 0


def test_a_mistake_is_one_sentence(site, monkeypatch) -> None:
    logger = logging.getLogger("azure")
    monkeypatch.setattr(logger, "level", logger.level)  # the command changes it
    monkeypatch.setenv("EHCP_HUB", site.text)
    result = ehcp("serve")
    assert "no store: pass --store" in str(result.exception)
    monkeypatch.setenv("EHCP_STORE", site.variables["EHCP_STORE"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words, said in (
            (["--port", port], f"port {port} of 127.0.0.1 is not available"),
            (["--port", "0", "--grpc-port", port], f"port {port} of 127.0.0.1 is not available"),
            (["-g", "a", "-g", "A"], "is named twice"),
        ):
            result = ehcp("serve", *words)
            assert result.exit_code == 1
            assert said in str(result.exception)
            assert "\n" not in str(result.exception)


def test_it_listens_on_this_machine_only_unless_a_host_is_named(unchanged, start) -> None:
    site, serve = unchanged
    assert serve.url.startswith("http://127.0.0.1:")
    assert serve.grpc_address.startswith("127.0.0.1:")
    everywhere = start("--host", "0.0.0.0", **site.variables)
    assert everywhere.url.startswith("http://0.0.0.0:")
    everywhere.wait_known()


def test_no_answer_shows_the_key(site, start) -> None:
    serve = start("--timeout", "5", interval=POLLING, **site.variables)
    serve.wait_known()
    site.hub.stop()
    serve.wait_unknown()
    answers = [serve.get(path)[2] for path in ("/metrics", "/lag.json", "/health")]
    assert "any-key-will-do" not in "".join(answers) + serve.child.log.read_text()
