"""Wrong values in every argument of what users call: this package answers, and no stray error."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData

import eventhub_checkpoints as sync
from eventhub_checkpoints import aio, conformance, receive, spark
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.aio import blob as aio_blob
from eventhub_checkpoints.aio import cassandra as aio_cassandra
from eventhub_checkpoints.aio import dead_letters as aio_dead_letters
from eventhub_checkpoints.aio import redis as aio_redis
from eventhub_checkpoints.aio import sql as aio_sql
from eventhub_checkpoints.aio import table as aio_table
from eventhub_checkpoints.arrow import BatchConsumerClient, consume_batches, read_batches
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.cassandra import CassandraCheckpointStore
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.dead_letters import DeadLetter, DeadLetterFile, DeadLetterHub
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.iothub_react import read_iothub_react_table
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.kafka import KafkaAddress
from eventhub_checkpoints.redis import RedisCheckpointStore
from eventhub_checkpoints.sql import DeadLetterTable, SqlCheckpointStore
from eventhub_checkpoints.table import TableCheckpointStore

HUB = (
    "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders;"
    "UseDevelopmentEmulator=true"
)
SCOPE = sync.Scope("ns.servicebus.windows.net", "orders", "$Default")
NAMES = SCOPE.as_dict()
OF_PARTITION = {**NAMES, "partition_id": "0"}
CHECKPOINT = {**OF_PARTITION, "sequence_number": 5, "offset": "7"}
OWNERSHIP = {**OF_PARTITION, "owner_id": "owner", "etag": "e", "last_modified_time": 1.0}
POSITION = spark.EventPosition.from_sequence_number(5)
RANGE = receive.OffsetRange("0", 0, 1)


class Odd:
    """Class that nothing here knows."""


async def coroutine(*_: object) -> None:
    """Stand for a function of the other variant."""


WRONG: dict[str, Any] = {
    "None": None,
    "bool": True,
    "negative": -1,
    "zero": 0,
    "int": 5,
    "huge": 10**400,
    "float": 1.5,
    "nan": float("nan"),
    "empty string": "",
    "string": "x",
    "long": "x" * 5000,
    "control": "a/b\0",
    "surrogate": "\udc80",
    "bytes": b"x",
    "list": [],
    "list of None": [None],
    "list of lists": [[]],
    "dict": {},
    "dict of ints": {1: 2},
    "dict of None": {"0": None},
    "object": Odd(),
    "class": Odd,
    "function": lambda: None,
    "coroutine": coroutine,
    "tuple": (1, 2),
    "set": {1},
    "date": date(2026, 1, 1),
    "naive": datetime(2026, 1, 1),
    "scope": SCOPE,
}
Call = tuple[str, Callable[..., Any], dict[str, Any]]


def defaults(function: Callable[..., Any], **values: Any) -> dict[str, Any]:
    """Return valid arguments: the defaults of a function, and these."""
    parameters = inspect.signature(function).parameters.values()
    own = {each.name: each.default for each in parameters}
    return {k: v for k, v in own.items() if v is not inspect.Parameter.empty} | values


class Processor(sync.PartitionProcessor):
    """Processor that does nothing."""

    def process_events(self, events: list[Any]) -> None:
        """Never called."""


class AioProcessor(aio.PartitionProcessor):
    """Processor that does nothing."""

    async def process_events(self, events: list[Any]) -> None:
        """Never called."""


def client(checkpoint_store: object) -> None:
    """Never called."""


def calls_of(module: Any, name: str, **of_variant: Any) -> Iterator[Call]:
    """Yield the calls of one variant."""
    store = module.MemoryCheckpointStore
    wrapped = [lambda: store(), lambda: module.CoalescingCheckpointStore(store())]
    wrapped.append(lambda: module.HandoverStore(store(), expires_after=180))
    for make, what in zip(wrapped, ("store", "coalescing", "handover"), strict=True):
        for method in ("list_ownership", "list_checkpoints"):
            yield f"{name}{what}.{method}", getattr(make(), method), NAMES
        yield f"{name}{what}.claim", make().claim_ownership, {"ownership_list": [OWNERSHIP]}
        yield f"{name}{what}.update", make().update_checkpoint, {"checkpoint": CHECKPOINT}
        for key, value in OWNERSHIP.items():
            yield (
                f"{name}{what}.claim of {key}",
                lambda value, key=key, make=make: make().claim_ownership(
                    [{**OWNERSHIP, key: value}]
                ),
                {"value": value},
            )
        for key, value in CHECKPOINT.items():
            yield (
                f"{name}{what}.update of {key}",
                lambda value, key=key, make=make: make().update_checkpoint(
                    {**CHECKPOINT, key: value}
                ),
                {"value": value},
            )
    yield f"{name}handing", wrapped[2]().is_handing_over, OF_PARTITION
    for method in ("examine", "delete_scope"):
        yield f"{name}{method}", getattr(store(), method), NAMES
    for method in ("delete_partition", "reopen"):
        yield f"{name}{method}", getattr(store(), method), OF_PARTITION
    options = {"checkpoint": CHECKPOINT, "force": False, "on_stale": None}
    yield f"{name}update", store().update_checkpoint, options
    yield f"{name}list", store().list_checkpoints, {**NAMES, "with_times": False}
    yield f"{name}replace", store().replace_checkpoint, {"checkpoint": CHECKPOINT, "stored": None}
    yield f"{name}open_store", module.open_store, {"url": "memory:"}
    yield f"{name}MemoryCheckpointStore", store, {"rows": None, "on_stale": "log"}
    yield f"{name}memory.from_url", store.from_url, {"url": "memory:"}
    for kind in ("Checkpointer", "CoalescingCheckpointStore"):
        made = getattr(module, kind)
        yield f"{name}{kind}", made, defaults(made, store=store())
    yield f"{name}HandoverStore", module.HandoverStore, {"store": store(), "expires_after": 180.0}
    checkpointer = module.Checkpointer(store())
    yield f"{name}done", checkpointer.done, {"event": EventData("a")}
    yield f"{name}flush", checkpointer.flush, {"partition_id": None}
    processor = of_variant.pop("processor")
    made = defaults(module.EventProcessor, client=client, processor=processor, store=store())
    yield f"{name}EventProcessor", module.EventProcessor, made
    stop = module.EventProcessor(client, processor, store=store()).stop
    yield f"{name}stop", stop, {"timeout": None}
    file = of_variant["DeadLetterFile"]("never")
    poison = {"context": None, "event": EventData("a"), "error": OSError()}
    yield f"{name}DeadLetterFile()", file, poison
    yield f"{name}file.mark_redriven", file.mark_redriven, {"stored": None, "hub": "orders"}
    yield f"{name}file.discard", file.discard, {"dead_letters": []}
    for what, kind in of_variant.items():
        own = {"checkpoint_store": store()} if what == "BatchConsumerClient" else {}
        yield f"{name}{what}", kind, defaults(kind, **VALID[what], **own)


VALID: dict[str, dict[str, Any]] = {
    "read_batches": {"hub": HUB},
    "consume_batches": {"hub": HUB, "store": "memory:"},
    "BatchConsumerClient": {"hub": HUB, **defaults(ConsumeSettings)},
    "BlobCheckpointStore": {"blob_account_url": "https://a.blob.core.windows.net"},
    "TableCheckpointStore": {
        "table_account_url": "https://a.table.core.windows.net",
        "table_name": "positions",
    },
    "SqlCheckpointStore": {"url_or_engine": "sqlite:///never.db"},
    "DeadLetterTable": {"url_or_engine": "sqlite:///never.db"},
    "RedisCheckpointStore": {"url": "redis://127.0.0.1:1"},
    "CassandraCheckpointStore": {"contact_points": ["127.0.0.1"]},
    "DeadLetterFile": {"path": "never"},
    "DeadLetterHub": {"client": None},
}


def of_positions(folder: Path) -> Iterator[Call]:
    """Yield the calls that need no hub: records, policies, positions, dead letters, settings."""
    for kind in (sync.every, sync.trailing):
        yield kind.__name__, kind, {"events": 5, "seconds": 1.0}
    for combine in (sync.any_of, sync.all_of):
        yield (
            combine.__name__,
            lambda policy, of=combine: of(policy),
            {"policy": sync.every(events=1)},
        )
    yield "Policy.from_settings", sync.Policy.from_settings, {"settings": {}}
    yield "Scope", sync.Scope, NAMES
    yield "Scope.from_dict", sync.Scope.from_dict, {"row": NAMES}
    yield "SequenceOffset", sync.SequenceOffset, {"number": 5}
    yield "EventPosition", spark.EventPosition, defaults(spark.EventPosition, sequence_number=5)
    yield (
        "from_number",
        spark.EventPosition.from_sequence_number,
        {"sequence_number": 5, "inclusive": False},
    )
    yield "from_offset", spark.EventPosition.from_offset, {"offset": "5", "inclusive": False}
    moment = {"enqueued_time": datetime(2026, 1, 1, tzinfo=UTC)}
    yield "from_enqueued_time", spark.EventPosition.from_enqueued_time, moment
    for kind in (spark.StartingPositions, spark.EndingPositions):
        name, made = kind.__name__, kind("orders", {"0": POSITION})
        yield name, kind, {"eventhub_name": "orders", "positions": {"0": POSITION}}
        after = {"eventhub_name": "orders", "last": {"0": 1}, "partition_ids": ["0"]}
        yield f"{name}.after", kind.after, after
        text = {"text": made.to_connector(), "eventhub_name": "orders"}
        yield f"{name}.from_connector", kind.from_connector, text
        yield f"{name}.from_kafka", kind.from_kafka, {"text": made.to_kafka(), "topic": "orders"}
        yield f"{name}.to_kafka", made.to_kafka, {"topic": None}
        yield (
            f"{name}.resolved",
            lambda timeout, of=made: of.resolved(None, timeout),
            {"timeout": 5.0},
        )
    start = spark.StartingPositions("orders", {"0": POSITION})
    yield "to_kafka of a batch", start.to_kafka, {"batch": False}
    yield "HubRanges", spark.HubRanges, {"eventhub_name": "orders", "ranges": [RANGE]}
    yield "HubRanges.to_kafka", spark.HubRanges("orders", [RANGE]).to_kafka, {"topic": None}
    yield (
        "OffsetRange",
        receive.OffsetRange,
        {"partition_id": "0", "from_sequence_number": 0, "until_sequence_number": 1},
    )
    yield "ReadSettings", receive.ReadSettings, defaults(receive.ReadSettings)
    store = {"store_or_url": sync.MemoryCheckpointStore(), "scope": SCOPE}
    of_ids = {**store, "partition_ids": ["0"], "missing": "earliest"}
    yield "starting_positions", spark.starting_positions, of_ids
    yield "ending_positions", spark.ending_positions, of_ids
    yield "gap_report", spark.gap_report, {"positions": {}, "hub": None, "timeout": 5.0}
    for read in (spark.parse_progress, spark.behind_latest):
        yield read.__name__, read, {"progress": {"sources": []}, "hub": "orders", "source": None}
    for read in (spark.ranges_of, spark.ranges_by_task):
        yield read.__name__, read, {"frame": None}
    location = {"location": str(folder), "hub": "orders", "spark": None, "source": None}
    yield "read_spark_checkpoint", spark.read_spark_checkpoint, location
    yield (
        "CheckpointPublisher",
        spark.CheckpointPublisher,
        {**store, "query_name": None, "source": None},
    )
    with spark.CheckpointPublisher(*store.values()) as publisher:
        yield "attach", publisher.attach, {"spark": None}
        yield "catch_up", publisher.catch_up, {"checkpoint_location": str(folder)}
        yield "publisher.flush", publisher.flush, {"timeout": 0.0}
        yield "observe", publisher.observe, {"frame": None, "partitions": 32}
        yield "publisher.close", publisher.close, {"timeout": 0.0}
    exactly = defaults(spark.ExactlyOnce, target="sqlite:///never.db", scope=SCOPE, write=print)
    yield "ExactlyOnce", spark.ExactlyOnce, exactly
    yield "StagingTable", spark.StagingTable, {"name": "rows", "stale_after": 60.0}
    yield "certify", conformance.certify, {"make_store": Odd, "accessors": None, "checks": []}
    yield "Accessors", conformance.Accessors, defaults(conformance.Accessors)
    row = DeadLetter(SCOPE, "0", 5, "7", None, None, b"a", {}, {}, "e", "m", datetime.now(UTC))
    yield (
        "DeadLetter.of",
        DeadLetter.of,
        {"context": None, "event": EventData("a"), "error": OSError()},
    )
    yield "DeadLetter.from_event", DeadLetter.from_event, {"event": EventData("a")}
    yield "DeadLetter.from_json", DeadLetter.from_json, {"text": row.to_json()}
    yield "DeadLetter.from_dict", DeadLetter.from_dict, {"row": row.as_dict()}
    for key, value in row.as_dict().items():
        yield (
            f"DeadLetter.from_dict of {key}",
            lambda value, key=key: DeadLetter.from_dict({**row.as_dict(), key: value}),
            {"value": value},
        )
    table = DeadLetterTable(f"sqlite:///{folder}/letters.db")
    table.create()
    yield "discard", table.discard, {"dead_letters": []}
    yield "mark_redriven", table.mark_redriven, {"stored": None, "hub": "orders"}
    with SqlCheckpointStore(f"sqlite:///{folder}/store.db", create_tables=True) as kept:
        yield "list_history", kept.list_history, {**NAMES, "partition_id": None, "limit": 5}
        yield "read_in", kept.read_in, {"connection": None, "scope": SCOPE, "partition_ids": ["0"]}
    yield (
        "iothub_react",
        read_iothub_react_table,
        {"session": None, "keyspace": "k", "scope": SCOPE},
    )


def of_hubs() -> Iterator[Call]:
    """Yield the calls on addresses of hubs, and on a local hub."""
    address = receive.HubAddress.from_connection_string(HUB)
    made = {"connection_string": HUB, "consumer_group": "g", "eventhub_name": None}
    yield "from_connection_string", receive.HubAddress.from_connection_string, made
    credential = {"fully_qualified_namespace": "ns", "eventhub_name": "h", "credential": "Nothing"}
    yield "from_credential", receive.HubAddress.from_credential, credential
    fields = {"fully_qualified_namespace": "ns", "eventhub_name": "h", "consumer_group": "g"}
    made = defaults(receive.HubAddress, **fields, connection_string=HUB, settings={})
    yield "HubAddress", receive.HubAddress, made
    yield "KafkaAddress", KafkaAddress, defaults(KafkaAddress, **fields, settings={})
    yield "of_hub", KafkaAddress.of_hub, {"hub": address, "settings": None, "headers": "auto"}
    servers = {"topic": "orders", "settings": {"bootstrap.servers": "127.0.0.1:1"}}
    yield "of_topic", KafkaAddress.of_topic, {**servers, "consumer_group": "g", "namespace": ""}
    # Nothing is asked: each call has a second mistake.
    yield (
        "list_partitions",
        lambda address: receive.list_partitions(address, timeout=-1),
        {"address": None},
    )
    yield "timeout", lambda timeout: receive.list_partitions(Odd(), timeout=timeout), {"timeout": 5}
    yield (
        "partition_properties",
        lambda ids: receive.partition_properties(Odd(), ids),
        {"ids": ["0"]},
    )
    yield (
        "first_event",
        lambda **each: receive.first_event(Odd(), inclusive=True, timeout=1, **each),
        {"partition_id": "0", "start": "-1"},
    )
    yield "LocalHub", LocalHub, defaults(LocalHub, hubs={"orders": 1})


LOCAL: dict[str, Any] = {
    **dict.fromkeys(("namespace", "consumer_group", "properties", "partition_key", "before")),
    **dict.fromkeys(("condition", "description"), "amqp:x"),
    **dict.fromkeys(("refuse", "forget_offset"), False),
    "hub": "orders",
    "count": 1,
    "partitions": 2,
    "seconds": 0.0,
    "partition_id": "0",
    "events": ["a"],
    "messages": [],
    "enqueued_time": None,
    "keys": ["a"],
}
"""Valid arguments of the methods of a local hub, by name."""


def of_local_hub(hub: LocalHub) -> Iterator[Call]:
    """Yield the calls of the methods of a running local hub."""
    for name, method in inspect.getmembers(LocalHub, inspect.isfunction):
        if not name.startswith("_"):
            own = [key for key in inspect.signature(method).parameters if key != "self"]
            yield f"LocalHub.{name}", getattr(hub, name), {key: LOCAL[key] for key in own}


def strays(calls: Iterator[Call], loop: Loop, ours: tuple[type[Exception], ...]) -> list[str]:
    """Return the wrong values of arguments that end in another error than one of `ours`.

    What is taken for a flag, though it is no bool, counts as well: nearly all values are true.
    """
    found = []
    for name, call, valid in calls:
        for argument in valid:
            for what, value in WRONG.items():
                try:
                    answer = call(**{**valid, argument: value})
                    if inspect.isawaitable(answer):
                        loop.finished(answer)
                    if isinstance(valid[argument], bool) and not isinstance(value, bool):
                        found.append(f"{name}({argument}= {what}) is accepted")
                except ours:
                    continue
                except Exception as error:
                    found.append(f"{name}({argument}= {what}): {type(error).__name__}: {error}")
    return found


@pytest.fixture
def loop() -> Iterator[Loop]:
    with Loop() as running:
        yield running


@pytest.mark.parametrize("variant", ["sync", "aio"])
def test_a_wrong_value_for_a_store_or_a_processor_is_answered_by_this_package(
    variant: str, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if variant == "sync":
        calls = calls_of(
            sync,
            "",
            processor=Processor,
            read_batches=read_batches,
            consume_batches=consume_batches,
            BatchConsumerClient=BatchConsumerClient,
            BlobCheckpointStore=BlobCheckpointStore,
            TableCheckpointStore=TableCheckpointStore,
            SqlCheckpointStore=SqlCheckpointStore,
            DeadLetterTable=DeadLetterTable,
            RedisCheckpointStore=RedisCheckpointStore,
            CassandraCheckpointStore=CassandraCheckpointStore,
            DeadLetterFile=DeadLetterFile,
            DeadLetterHub=DeadLetterHub,
        )
    else:
        calls = calls_of(
            aio,
            "aio.",
            processor=AioProcessor,
            read_batches=aio_arrow.read_batches,
            consume_batches=aio_arrow.consume_batches,
            BatchConsumerClient=aio_arrow.BatchConsumerClient,
            BlobCheckpointStore=aio_blob.BlobCheckpointStore,
            TableCheckpointStore=aio_table.TableCheckpointStore,
            SqlCheckpointStore=aio_sql.SqlCheckpointStore,
            DeadLetterTable=aio_sql.DeadLetterTable,
            RedisCheckpointStore=aio_redis.RedisCheckpointStore,
            CassandraCheckpointStore=aio_cassandra.CassandraCheckpointStore,
            DeadLetterFile=aio_dead_letters.DeadLetterFile,
            DeadLetterHub=aio_dead_letters.DeadLetterHub,
        )
    assert strays(calls, loop, (CheckpointStoreError,)) == []
    assert [*tmp_path.iterdir()] == []


def test_a_wrong_value_for_a_position_or_a_record_is_answered_by_this_package(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert strays(of_positions(tmp_path), loop, (CheckpointStoreError,)) == []


def test_a_wrong_value_for_an_address_is_answered_by_this_package(loop: Loop) -> None:
    assert strays(of_hubs(), loop, (CheckpointStoreError, ValueError)) == []


def test_a_wrong_value_for_a_local_hub_is_answered_by_a_value_error(loop: Loop) -> None:
    """The local hub has no error of its own: it runs without the rest of the package."""
    with LocalHub({"orders": 1}) as hub:
        ours = ValueError, LookupError, RuntimeError
        assert strays(of_local_hub(hub), loop, ours) == []
