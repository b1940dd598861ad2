"""Files in `deploy`: alerts by promtool, the dashboard by names of metrics, YAML by parsing."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventhub_checkpoints.cli.serve.command import PORT
from eventhub_checkpoints.cli.serve.metrics import GROUP, PARTITION, GroupCollector
from eventhub_checkpoints.operations.monitor import Monitor, PolledGroup
from eventhub_checkpoints.operations.states import State
from eventhub_checkpoints.receive import HubAddress

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
TEXT = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=a2V5"


def metric_names() -> set[str]:
    """The names that a scrape shows, of counters with their suffix."""
    hub = HubAddress.from_connection_string(f"{TEXT};EntityPath=orders")
    families = GroupCollector(Monitor([PolledGroup(None, hub)]), 64).collect()
    return {
        f"{family.name}_total" if family.type == "counter" else family.name for family in families
    }


def dashboard() -> Any:
    return json.loads((DEPLOY / "grafana" / "dashboard.json").read_text("utf-8"))


def expressions() -> list[str]:
    """The queries of the dashboard, with its variables replaced as Grafana does."""
    found = [
        target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])
    ]
    return [re.sub(r"\$(namespace|hub|group)", ".*", each) for each in found]


def alert_expressions() -> list[str]:
    rules = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"][0]["rules"]
    return [rule["expr"] for rule in rules]


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    return found


def check(*command: str | Path) -> None:
    ended = subprocess.run(
        [*command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout


@pytest.mark.long
def test_promtool_accepts_the_alerts(promtool) -> None:
    check(promtool, "check", "rules", ALERTS)


@pytest.mark.long
def test_the_alerts_are_raised_when_they_should_be(promtool) -> None:
    check(promtool, "test", "rules", DEPLOY / "prometheus" / "alerts.test.yaml")


def test_each_alert_is_raised_by_a_test() -> None:
    tests = yaml.safe_load((DEPLOY / "prometheus" / "alerts.test.yaml").read_text("utf-8"))
    raised = {
        case["alertname"]
        for test in tests["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    rules = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"][0]["rules"]
    assert raised == {rule["alert"] for rule in rules}


@pytest.mark.long
def test_promtool_parses_the_queries_of_the_dashboard(promtool, tmp_path) -> None:
    rules = [
        {"record": f"panel:{at}", "expr": expression} for at, expression in enumerate(expressions())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    check(promtool, "check", "rules", file)


def test_every_metric_and_label_that_the_files_name_exists() -> None:
    names, labels = metric_names(), {*PARTITION, "state"}
    variables = [each["definition"] for each in dashboard()["templating"]["list"][1:]]
    for expression in [*expressions(), *alert_expressions(), *variables]:
        used = set(re.findall(r"\behcp_\w+", expression))
        assert used
        assert used <= names, expression
        selected = set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression))
        grouped = re.findall(r"(?:by|on) \(([^)]*)\)", expression)
        selected |= {label.strip() for group in grouped for label in group.split(",")}
        assert selected <= labels, expression
    states = {
        state
        for expression in alert_expressions()
        for each in re.findall(r'state=~?"([A-Z|]+)"', expression)
        for state in each.split("|")
    }
    assert states <= set(State)
    assert {state for state in State if state.severity == 2} - {"LOST"} <= states


def test_the_dashboard_shows_every_panel_once_and_in_its_place() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        own = {
            (at["x"] + column, at["y"] + row) for column in range(at["w"]) for row in range(at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not own & cells
        cells |= own


def test_every_metric_is_in_the_documentation() -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text("utf-8")
    documented = set(re.findall(r"`(ehcp_\w+)`", page))
    assert documented == metric_names()
    for label in GROUP:
        assert f"`{label}`" in page


def test_the_deployment_serves_the_ports_that_keda_asks_for() -> None:
    deployment, service = yaml.safe_load_all(
        (DEPLOY / "kubernetes" / "ehcp-serve.yaml").read_text("utf-8")
    )
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    words = container["command"]
    http, grpc = (int(words[words.index(name) + 1]) for name in ("--port", "--grpc-port"))
    assert http == PORT
    assert [each["containerPort"] for each in container["ports"]] == [http, grpc]
    assert [each["port"] for each in service["spec"]["ports"]] == [http, grpc]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    name = service["metadata"]["name"]
    [by_http] = trigger("metrics-api")
    assert by_http["url"].startswith(f"http://{name}.default.svc.cluster.local:{http}/lag.json?")
    [by_grpc] = trigger("external")
    assert by_grpc["scalerAddress"] == f"{name}.default.svc.cluster.local:{grpc}"


def trigger(file: str) -> list[dict[str, str]]:
    """The metadata of the triggers of a ScaledObject."""
    scaled = yaml.safe_load((DEPLOY / "keda" / f"{file}.yaml").read_text("utf-8"))
    return [each["metadata"] for each in scaled["spec"]["triggers"]]
