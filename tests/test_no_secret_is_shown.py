"""Secrets in the wrong argument: whatever quotes what it was passed, quotes none.

Every argument of every public class and function here gets each secret once, and one in every form.
Which forms of a secret are masked is tested in `shared/test_secrets.py`; here it is shown that each
way out masks. New functions are found by their signatures; what they need besides is in `VALID`.
"""

import asyncio
import contextlib
import importlib
import inspect
import itertools
import logging
import socket
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, is_typeddict
from urllib.parse import quote

import pytest

from eventhub_checkpoints import MemoryCheckpointStore, PartitionProcessor, Scope, aio, every
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.errors import InvalidCheckpointError, InvalidRecordError, PoisonError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.stores.backends import BACKENDS

pytestmark = pytest.mark.waits

MARK = "S3CR3T"
Searched = Callable[[str, int], None]
ARGUMENTS = "calls with a secret as an argument"
SECRETS = [
    f"Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={MARK}=",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={MARK}==;EndpointSuffix=x",
    f"https://account.blob.core.windows.net/container?sv=2022-11-02&sig={MARK}&se=2030",
    f"SharedAccessSignature sr=ns&sig={MARK}&se=1&skn=root",
    f"postgresql://app:{MARK}@host/database",
    f"rediss://:{MARK}/{MARK}?{MARK}@host:6380/0",
    f"Bearer {MARK}",
    f"c2VjcmV0{MARK}c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=",
]
MODULES = [
    *("", ".registry", ".aio", ".aio.registry"),
    *(f"{package}.{backend.name}" for package in ("", ".aio") for backend in BACKENDS),
    *(".checkpointer", ".coalescing", ".processor", ".abilities", ".localhub"),
    *(".dead_letters", ".aio.dead_letters", ".arrow", ".aio.arrow"),
    *(".aio.checkpointer", ".aio.coalescing", ".aio.processor"),
]
NOT_MADE = {
    *("CheckpointManager", "PartitionProcessor", "TrackedEvent", "PartitionStats", "Position"),
    *(
        "Stall",
        "Checkpoint",
        "Ownership",
        "Policy",
        "PartitionProperties",
        "Receiver",
        "RefusedLink",
        "StoredEvent",
        "EmulatorConfig",
    ),
    *("Deletes", "ListsScopes", "WritesInTransaction", "SequenceOffset"),
    *("DeadLetter", "StoredDeadLetter", "Batches", "ConsumedBatches", "HubAddress"),
    *("opened", "configured", "known", "checkpoint_arguments", "ANY"),
}
"""What users do not make or call: it is handed to them, is a base class, or is ours."""
CONTENT = {"DeadLetter"}
"""Classes whose values are what users send: nothing of an event is masked."""
RECORDS = {"Checkpoint", "Ownership", "Position", "PartitionStats", "Scope", "SequenceOffset"}
RECORDS |= {"EventPosition"}
"""Plain data, whose `repr` is what is in it."""
SCOPE = ("ns.servicebus.windows.net", "orders", "$Default")
ROW = dict(
    zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), SCOPE, strict=True)
) | {"partition_id": "0"}
ACCOUNT = "https://account.blob.core.windows.net"
TABLES = "https://account.table.core.windows.net"
HUB = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=eA==;"
    "EntityPath=orders"
)
VALID: dict[str, Any] = {
    **ROW,
    "store": MemoryCheckpointStore(),
    "checkpoint_store": MemoryCheckpointStore(),
    "connection_string": HUB,
    "credential": "DefaultAzureCredential",
    "offset": "7",
    "sequence_number": 7,
    "client": lambda **_: None,
    "processor": PartitionProcessor,
    "url": "memory:",
    "url_or_engine": "sqlite:///nowhere/checkpoints.db",
    "blob_account_url": ACCOUNT,
    "container_name": "container",
    "table_account_url": TABLES,
    "table_name": "positions",
    "container_url": f"{ACCOUNT}/container?sv=2022-11-02&sig=x",
    "conn_str": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=eA==;EndpointSuffix=x",
    "contact_points": ["127.0.0.1"],
    "events": 10,
    "seconds": 5,
    "expires_after": 60,
    "keys": ["key"],
    "policy": every(seconds=5),
    "hubs": {"orders": 2},
    "hub": "orders",
    "partitions": 2,
    "count": 1,
    "messages": [],
    "path": "dead-letters.jsonl",
    "condition": "com.microsoft:timeout",
    "row": ROW,
    "stored": None,
    "version": "v1",
    "settings": {"frequency": "5s", "countThreshold": 10, "timeThreshold": "10s"},
    "ownership_list": [{**ROW, "owner_id": "me", "etag": None}],
    "checkpoint": {**ROW, "offset": "1", "sequence_number": 1},
}
OF_ONE: dict[str, dict[str, Any]] = {
    "RedisCheckpointStore": {"url": "redis://127.0.0.1:1/0"},
    "RedisCheckpointStore.from_url": {"url": "redis://127.0.0.1:1/0"},
    "CassandraCheckpointStore.from_url": {"url": "cassandra://127.0.0.1:1/checkpoints"},
    "SqlCheckpointStore.from_url": {"url": "sqlite:///nowhere/checkpoints.db"},
    "BlobCheckpointStore.from_url": {"url": f"{ACCOUNT}/container?sv=2022-11-02&sig=x"},
    "TableCheckpointStore.from_url": {"url": f"table+{TABLES}/positions?sv=2022-11-02&sig=x"},
    "publish": {"events": ["body"]},
    **{key: {"hub": HUB} for key in ("read_batches", "consume_batches", "BatchConsumerClient")},
    "EventPosition.from_enqueued_time": {"enqueued_time": datetime(2026, 1, 1, tzinfo=UTC)},
    "DeadLetterHub.from_connection_string": {
        "conn_str": "Endpoint=sb://ns.servicebus.windows.net/"
    },
}
"""What one callable needs that the others call something else."""
MAPPINGS = [
    {
        "backendType": "AzureBlob",
        "namespace": "container",
        "rwTimeout": "5s",
        "create": False,
        "settings": dict.fromkeys(StoreSettings.__annotations__, 5),
        "azureblob": {"account": "account", "key": "eA==", "protocol": "https", "endpoint": ""}
        | {"useEmulator": False, "lease": "10s"},
    },
    {
        "backendType": "AzureTable",
        "namespace": "positions",
        "azuretable": {"account": "account", "key": "eA==", "protocol": "https", "endpoint": ""}
        | {"useEmulator": False},
    },
    {
        "backendType": "Cassandra",
        "namespace": "checkpoints",
        "cassandra": {"cluster": "h:9042", "replicationFactor": 1, "username": "a"}
        | {"password": "b", "datacenter": "dc"},
    },
    {"backendType": "Sql", "sql": {"url": "sqlite:///f.db", "password": "", "schema": ""}},
    {"backendType": "Redis", "redis": {"url": "redis://h", "password": "x", "entra": False}},
    {"checkpointing": {"storage": {}}},
]


def shapes(secret: str) -> list[Any]:
    return [secret, secret.encode(), [secret], (secret, 1), {"orders": secret}, {secret: 1}]


def planted(value: Any, secret: str) -> Iterator[Any]:
    """The value replaced by a secret, and each part of the value."""
    yield from shapes(secret)
    if isinstance(value, dict):
        yield {**value, secret: 1}
        for name, part in value.items():
            for other in planted(part, secret):
                yield {**value, name: other}
    if isinstance(value, list):
        for at, part in enumerate(value):
            for other in planted(part, secret):
                yield [*value[:at], other, *value[at + 1 :]]


def spread(value: Any) -> Iterator[Any]:
    """Each secret in the place of the value, and of each part of the value one secret in each form.

    All secrets in all forms would be about five times as many, and take the same ways out.
    """
    yield from SECRETS
    forms = zip(*(planted(value, secret) for secret in SECRETS), strict=True)
    for number, same_form in enumerate(forms):
        yield same_form[number % len(SECRETS)]


def is_of(one: Any, module: str) -> bool:
    name = getattr(one, "__name__", "_")
    return name[0] != "_" and callable(one) and getattr(one, "__module__", "") == module


def constructors() -> dict[str, Callable[..., Any]]:
    """The public classes and functions, and what else makes an object of a class."""
    found: dict[str, Callable[..., Any]] = {}
    for suffix in MODULES:
        module = importlib.import_module(f"eventhub_checkpoints{suffix}")
        own = [name for name, one in vars(module).items() if is_of(one, module.__name__)]
        for name in getattr(module, "__all__", own):
            one = getattr(module, name)
            is_error = inspect.isclass(one) and issubclass(one, Exception)
            if is_error or is_typeddict(one):
                continue
            variant = "aio." if ".aio" in f"{one.__module__}." else ""
            if name not in NOT_MADE and not inspect.isabstract(one):
                found[f"{variant}{name}"] = one
            if inspect.isclass(one) and name not in CONTENT:
                for way, member in vars(one).items():
                    if isinstance(member, classmethod | staticmethod) and way[0] != "_":
                        found[f"{variant}{name}.{way}"] = getattr(one, way)
    return found


CONSTRUCTORS = constructors()


def arguments(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """What a call needs at least."""
    valid = VALID | OF_ONE.get(name.removeprefix("aio."), {})
    if name.startswith("aio."):
        valid |= dict.fromkeys(("store", "checkpoint_store"), aio.MemoryCheckpointStore())
    given = {}
    for one in inspect.signature(function).parameters.values():
        is_open = one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        if one.default is one.empty and not is_open:
            assert one.name in valid, f"{name} needs {one.name}: give a value in VALID or OF_ONE"
            given[one.name] = valid[one.name]
    return given


def calls(function: Callable[..., Any], name: str) -> Iterator[tuple[str, list[Any], dict]]:
    """One call for each argument and secret; the text says which."""
    given = arguments(function, name)
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            for value in spread(None):
                yield one.name, [value], {}
        elif one.kind is one.VAR_KEYWORD:
            for setting in StoreSettings.__annotations__:
                for value in spread(None):
                    yield setting, [], given | {setting: value}
        else:
            for value in spread(given.get(one.name)):
                yield one.name, [], given | {one.name: value}


def shown_by(function: Callable[..., Any], positional: list[Any], named: dict) -> str:
    """What a call and its result show to people."""
    try:
        result = function(*positional, **named)
        if inspect.isawaitable(result):
            result = asyncio.run(asyncio.wait_for(result, 5))
    except Exception as error:
        return "".join(traceback.format_exception(error))
    if isinstance(result, (list, tuple, dict)) or type(result).__name__ in RECORDS:
        return ""
    with contextlib.suppress(Exception):
        return repr(result)
    return ""


def checked(function: Callable[..., Any], name: str, caplog: Any) -> int:
    tried = 0
    for argument, positional, named in calls(function, name):
        text = shown_by(function, positional, named) + "".join(
            record.getMessage() + str(record.exc_text) for record in caplog.records
        )
        assert MARK not in text, f"{name}({argument}=...) shows a secret: {text[-1500:]}"
        caplog.clear()
        tried += 1
    return tried


@pytest.fixture(autouse=True)
def all_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="eventhub_checkpoints")


def test_the_public_constructors_are_found() -> None:
    names = {"open_store", "BlobCheckpointStore.from_connection_string", "every", "LocalHub"}
    names |= {
        "Policy.from_settings",
        "Checkpoint.from_dict",
        "EventProcessor",
        "Checkpointer",
        "CoalescingCheckpointStore",
        "Scope.checked",
    }
    assert CONSTRUCTORS.keys() >= names
    assert CONSTRUCTORS.keys() >= {"aio.EventProcessor", "aio.SqlCheckpointStore.from_url"}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_no_constructor_shows_a_secret(
    name: str,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    searched: Searched,
) -> None:
    monkeypatch.chdir(tmp_path)
    function = CONSTRUCTORS[name]
    has_arguments = bool(inspect.signature(function).parameters)
    tried = checked(function, name, caplog)
    assert (tried > 0) == has_arguments
    searched(ARGUMENTS, tried)


def methods(of: object, ends: set[str]) -> list[str]:
    return [
        name
        for name, _ in inspect.getmembers(type(of), inspect.isfunction)
        if not name.startswith("_") and name not in ends
    ]


HOOKS = {"read_ownerships", "try_claim", "try_claims", "read_checkpoints", "write_checkpoint"}
HOOKS |= {"read_scopes", "delete_rows", "identity", "map_error", "hides", "open", "close"}
HOOKS |= {"drop_connections", "read_spellings", "read_settings"}


@pytest.mark.parametrize("package", ["eventhub_checkpoints", "eventhub_checkpoints.aio"])
@pytest.mark.parametrize("kind", ["MemoryCheckpointStore", "CoalescingCheckpointStore"])
def test_no_method_of_a_store_shows_a_secret(
    package: str, kind: str, caplog: pytest.LogCaptureFixture, searched: Searched
) -> None:
    module = importlib.import_module(package)

    def store() -> Any:
        made = module.MemoryCheckpointStore(operation_timeout=1, write_timeout=1)
        return made if "Memory" in kind else module.CoalescingCheckpointStore(made)

    names = methods(store(), HOOKS)
    assert {"list_ownership", "claim_ownership", "update_checkpoint"} <= {*names}
    for name in names:
        made = store()
        searched(ARGUMENTS, checked(getattr(made, name), name, caplog))


def test_no_method_of_the_local_hub_shows_a_secret(
    caplog: pytest.LogCaptureFixture, searched: Searched
) -> None:
    with LocalHub({"orders": 2}) as hub:
        for name in methods(hub, {"start", "stop", "delete", "recreate"}):
            searched(ARGUMENTS, checked(getattr(hub, name), name, caplog))


@pytest.mark.parametrize("package", ["eventhub_checkpoints", "eventhub_checkpoints.aio"])
@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda mapping: str(mapping.get("backendType")))
def test_no_key_of_a_configuration_shows_a_secret(
    package: str,
    mapping: dict[str, Any],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    searched: Searched,
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = importlib.import_module(package).open_store
    for other in spread(mapping):
        text = shown_by(opened, [other], {})
        assert MARK not in text, f"{other} is shown: {text[-1500:]}"
        searched("keys of a configuration", 1)


URLS = [
    *("sqlite:///f.db?namespace={}", "sqlite:///f.db?{}=1", "sqlite:///{}.db"),
    *("postgresql://h/db?schema={}", "postgresql://h/db?{}=1", "postgresql://h:{}/db"),
    *("postgresql://h/{}", "postgresql://{}/db", "postgresql://h/db?sslmode={}"),
    *("redis://h?namespace={}", "redis://h?db={}", "redis://h?{}=1", "redis://h/{}", "redis://{}"),
    *("rediss://h?ssl_ca_certs={}", "rediss://h?ssl_cert_reqs={}", "redis://h?client_name={}"),
    *("cassandra://h/{}", "cassandra://h/ks?datacenter={}", "cassandra://h:{}/ks"),
    *("cassandra://h/ks?{}=1", "cassandra://{}/ks", "memory:{}", "memory:x?{}"),
    *(f"{ACCOUNT}/{{}}", "https://{}.blob.core.windows.net/container", "http://127.0.0.1/{}/c"),
    *(f"table+{TABLES}/{{}}", "table+https://{}.table.core.windows.net/t", "table+{}://h/t"),
    *("table+https://{}@h/t", "table+https://h:{}/t", "table://{}", "table+http://127.0.0.1/{}/t"),
    *("eventhub_checkpoints.memory:{}", "{}:factory", "{}://host/name", "x{}"),
]


@pytest.mark.parametrize("package", ["eventhub_checkpoints", "eventhub_checkpoints.aio"])
def test_no_part_of_a_url_shows_a_secret(
    package: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, searched: Searched
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = importlib.import_module(package).open_store
    for (at, url), (kind, secret) in itertools.product(enumerate(URLS), enumerate(SECRETS)):
        # Every part has secrets of both spellings, and every secret has both.
        spelled = quote(secret, safe="") if (at + kind) % 2 else secret
        text = shown_by(opened, [url.format(spelled)], {})
        assert MARK not in text, f"{url.format(spelled)} is shown: {text[-1500:]}"
        searched("parts of a URL", 1)


def test_no_error_shows_a_secret_of_a_record() -> None:
    for secret in SECRETS:
        errors = [
            InvalidRecordError("offset", secret, "a string"),
            PoisonError(secret, 5),
            InvalidCheckpointError(secret, f"The supplied offset '{secret}' is invalid"),
        ]
        for error in errors:
            assert MARK not in f"{error} {error!r}"


def ready_stores() -> Iterator[Any]:
    """Stores over clients that hold a secret each."""
    from azure.storage.blob import ContainerClient
    from redis import Redis
    from sqlalchemy import create_engine

    from eventhub_checkpoints.blob import BlobCheckpointStore
    from eventhub_checkpoints.cassandra import CassandraCheckpointStore
    from eventhub_checkpoints.redis import RedisCheckpointStore
    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.table import TableCheckpointStore

    url = f"{ACCOUNT}/container?sv=2022-11-02&sig={MARK}"
    yield BlobCheckpointStore(container_client=ContainerClient.from_container_url(url))
    yield BlobCheckpointStore(ACCOUNT, "container", {"account_name": "a", "account_key": MARK})
    yield TableCheckpointStore(TABLES, "positions", {"account_name": "a", "account_key": MARK})
    yield TableCheckpointStore(f"{TABLES}?sv=2022-11-02&sig={MARK}", "positions")
    yield SqlCheckpointStore(create_engine(f"postgresql+psycopg://app:{MARK}@host/database"))
    yield SqlCheckpointStore("postgresql://app@host/database", credential=MARK)
    yield RedisCheckpointStore(client=Redis.from_url(f"redis://app:{MARK}@host/0"))
    yield RedisCheckpointStore("redis://host/0", credential=MARK)
    yield CassandraCheckpointStore(["host"], username="app", password=MARK)


def test_no_store_shows_the_secret_of_its_client() -> None:
    stores = list(ready_stores())
    assert len(stores) == 9
    for store in stores:
        text = f"{store!r} {store} {vars(store)!r}"
        assert MARK not in text


class Vault:
    """A credential that repeats what it was looking for."""

    def get_token(self, *scopes: str, **_: Any) -> Any:
        raise ValueError(f"the vault has no {SECRETS[0]}")


@pytest.mark.parametrize(
    "url", ["postgresql://app@{}/db", "redis://{}/0", "https://{}/a/container"]
)
def test_no_store_shows_a_secret_that_its_credential_repeats(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = importlib.import_module("eventhub_checkpoints").open_store
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        store = opened(url.format(place), credential=Vault(), operation_timeout=1)
        text = shown_by(store.list_checkpoints, list(SCOPE), {})
    assert "Error" in text
    assert MARK not in text + caplog.text


def fail_at_three_depths() -> None:
    try:
        try:
            raise KeyError(SECRETS[0])
        except KeyError:
            raise OSError("cannot connect")  # noqa: B904  # as drivers do
    except OSError as error:
        raise RuntimeError("no answer") from error


@pytest.mark.parametrize("package", ["eventhub_checkpoints", "eventhub_checkpoints.aio"])
def test_no_error_behind_the_drivers_shows_a_secret(package: str) -> None:
    kind = importlib.import_module(package).MemoryCheckpointStore

    class Failing(kind):  # type: ignore[misc, valid-type]  # the base is known only here
        if package.endswith("aio"):

            async def read_checkpoints(self, scope: Scope) -> Any:
                fail_at_three_depths()
        else:

            def read_checkpoints(self, scope: Scope) -> Any:
                fail_at_three_depths()

    text = shown_by(Failing(operation_timeout=1).list_checkpoints, list(SCOPE), {})
    assert "StoreError: RuntimeError: no answer" in text
    assert MARK not in text


WORDS = {
    "cli": [[], ["demo"], ["demo", "--store"], ["demo", "--events"], ["demo", "--consumer"]],
    "cli.app": [["mirror", "--every"], ["move", "--settle"]],
    "localhub": [["--hub", "a=1", name] for name in ("--port", "--events", "--hub")],
    "conformance": [["--accessors"], ["memory:", "--only"], ["--"], ["memory:"]],
}
"""What stands in front of the secret on a command line that cannot work."""


@pytest.mark.parametrize("command", WORDS)
def test_no_command_line_shows_a_secret(
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    searched: Searched,
) -> None:
    package = command.partition(".")[0]
    main = importlib.import_module(
        f"eventhub_checkpoints.{package}" + ("" if package == "cli" else ".__main__")
    ).main
    for words in WORDS[command]:
        for secret in SECRETS:
            if words[-1:] in (["--store"], ["--"]) and secret.partition("://")[0].isalpha():
                continue  # a store that is there to be connected to
            monkeypatch.setattr("sys.argv", ["command", *words, secret])
            with contextlib.suppress(SystemExit):
                assert main()
            shown = capsys.readouterr()
            assert shown.err
            # Where the frame of a message has only so many columns, a word is cut in two.
            text = "".join(f"{shown.out}{shown.err}".replace("\u2502", "").split())
            assert MARK not in text, f"{words}: {text}"
            searched("command lines, their output and records", 1)
