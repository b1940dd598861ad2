"""Recipe for Azure Schema Registry: the page's code, with the service's real client and encoder.

Only the service is a stand-in: what the client would send over the network is answered here.
"""

import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
import requests
import urllib3
from azure.core.credentials import AccessToken
from azure.eventhub import EventData

from page_blocks import blocks

PAGE = Path(__file__).parents[2] / "docs/how-to/spark-json-avro.md"
GROUP, NAMESPACE = "shop", "ns.servicebus.windows.net"


def code(words: str) -> str:
    """The one block of the page that contains these words."""
    [block] = [block for block in blocks(PAGE) if words in block.text]
    return block.text


class Registry:
    """Keeps schemas by their ids, and answers in the form of the service."""

    def __init__(self, *definitions: str) -> None:
        self.schemas = {f"{number:032x}": text for number, text in enumerate(definitions)}
        self.read: list[str] = []

    def request(self, method: str, url: str, *, data: Any = None, **_: Any) -> requests.Response:
        assert url.startswith(f"https://{NAMESPACE}/$schemaGroups/")
        answer, body = requests.Response(), b""
        path = url.partition("?")[0]
        if method == "GET":
            schema_id = path.rpartition("/")[2]
            self.read.append(schema_id)
            answer.status_code, body = 200, self.schemas[schema_id].encode()
        else:
            assert path == f"https://{NAMESPACE}/$schemaGroups/{GROUP}/schemas/Order:get-id"
            text = data if isinstance(data, str) else b"".join(data).decode()
            [schema_id] = [key for key, kept in self.schemas.items() if same(kept, text)]
            answer.status_code = 204
        answer.raw = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
        answer.headers.update(
            {
                "Content-Type": "application/json; serialization=Avro",
                "Schema-Id": schema_id,
                "Schema-Group-Name": GROUP,
                "Schema-Name": "Order",
                "Schema-Version": "1",
            }
        )
        return answer


def same(one: str, other: str) -> bool:
    return bool(json.loads(one) == json.loads(other))


class Credential:
    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken("token", 2**32)

    def close(self) -> None:
        pass


def test_events_of_azures_encoder_are_decoded_with_the_schemas_of_the_registry(monkeypatch):
    pytest.importorskip("azure.schemaregistry.encoder.avroencoder")
    from azure.schemaregistry import SchemaRegistryClient
    from azure.schemaregistry.encoder.avroencoder import AvroEncoder

    namespace: dict[str, Any] = {"__name__": "recipe"}
    exec(code("def decode"), namespace)
    registry = Registry(*namespace["SCHEMAS"].values())
    monkeypatch.setattr(
        requests.Session, "request", lambda _, *words, **given: registry.request(*words, **given)
    )
    identity = ModuleType("azure.identity")
    identity.DefaultAzureCredential = Credential  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    monkeypatch.setenv("SCHEMA_REGISTRY", NAMESPACE)
    exec(code("SchemaRegistryClient("), namespace)

    client = SchemaRegistryClient(NAMESPACE, Credential())
    encoder = AvroEncoder(client=client, group_name=GROUP)
    orders = [{"device": "a", "value": 1.5}, {"device": "b", "value": 2.0, "unit": "MW"}] * 2
    events = [
        encoder.encode(order, schema=schema, message_type=EventData)
        for order, schema in zip(orders, [*registry.schemas.values()] * 2, strict=True)
    ]
    kinds = [event.content_type for event in events]
    assert {kind.partition("+")[0] for kind in kinds} == {"avro/binary"}
    bodies = pa.array([b"".join(event.body) for event in events])
    schema_ids = pa.array([kind.partition("+")[2] for kind in kinds])
    [decoded] = namespace["decode"](iter([(bodies, schema_ids)]))
    assert decoded.to_pylist() == [{"unit": "kW", **order} for order in orders]
    assert sorted(registry.read) == sorted(registry.schemas)
