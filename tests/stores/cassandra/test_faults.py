"""What the driver says when something is wrong, and what becomes of the calls."""

import logging
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from cassandra import (
    InvalidRequest,
    OperationTimedOut,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import ConfigurationException, ErrorMessage, SyntaxException

from backends.cassandra import Cassandra, Keyspace
from eventhub_checkpoints import (
    ConfigurationError,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
    open_store,
)
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.stores.cassandra.errors import mapped
from waiting import LIMIT

Make = Callable[..., Client]
CREATORS = 8


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (WriteTimeout("x", write_type=WriteType.CAS), StoreUnavailableError),
        (ErrorMessage(0x1700, "CAS result unknown", None), StoreUnavailableError),
        (ReadTimeout("x"), StoreUnavailableError),
        (Unavailable("x", required_replicas=2, alive_replicas=1), StoreUnavailableError),
        (ConnectionShutdown("x"), StoreUnavailableError),
        (OSError("x"), StoreUnavailableError),
        (OperationTimedOut(), StoreUnavailableError),
        (NoHostAvailable("x", {"a": OSError()}), StoreUnavailableError),
        (ConfigurationException(0x2300, "Unrecognized option {dcX}", None), ConfigurationError),
        (Unauthorized("User x has no MODIFY permission on t"), StoreAccessError),
        (InvalidRequest("Keyspace ks does not exist"), StoreNotReadyError),
        (InvalidRequest("unconfigured table ownership"), StoreNotReadyError),
        (InvalidRequest("no viable alternative"), StoreError),
        (SyntaxException(0x2000, "x", None), StoreError),
    ],
)
def test_each_error_of_the_driver_has_its_kind(error: Exception, kind: type[Exception]) -> None:
    found = mapped(error, "keyspace 'ks'")
    assert type(found) is kind
    assert "'ks'" in str(found)
    assert pickle.loads(pickle.dumps(found)).args == found.args


class Losing:
    """A session whose next conditional write is carried out, and its answer lost.

    A single node that answers cannot be brought to leave a transaction undecided.
    """

    def __init__(self, session: Any, error: Exception) -> None:
        self._session = session
        self._error: Exception | None = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute_async(self, statement: Any, **kwargs: Any) -> Any:
        request = self._session.execute_async(statement, **kwargs)
        if self._error is None or statement.is_idempotent:
            return request
        error, self._error = self._error, None
        request.result()
        return Failed(error)


class Failed:
    """A request that was answered with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add_callbacks(self, callback: Any, errback: Any) -> None:
        errback(self._error)


@pytest.mark.parametrize(
    "error",
    [WriteTimeout("x", write_type=WriteType.CAS), OperationTimedOut(), ConnectionShutdown("x")],
    ids=lambda error: type(error).__name__,
)
def test_a_write_whose_answer_was_lost_is_looked_up(
    client: Make, keyspace: Keyspace, error: Exception
) -> None:
    made = client(keyspace)
    held = made.take("0", "a")
    requests = made.store._requests
    requests._session = Losing(requests._session, error)
    won = made.claim_ownership(
        [made.proposal("0", "a", held["etag"]), made.proposal("1", "a", None)]
    )
    assert [row["partition_id"] for row in won] == ["0", "1"]
    listed = {row["partition_id"]: row["etag"] for row in made.list_ownership()}
    assert {row["partition_id"]: row["etag"] for row in won} == listed
    requests._session = Losing(requests._session._session, error)
    made.save("0", 7)
    made.save("0", 8)
    assert made.position("0") == 8


def test_a_keyspace_that_vanished_is_named_and_used_when_it_is_back(
    client: Make, server: Cassandra, caplog: pytest.LogCaptureFixture
) -> None:
    with server.place() as place:
        made = client(place)
        made.take("0", "a")
        made.save("0", 7)
        place.vanish()
        with caplog.at_level(logging.ERROR), pytest.raises(StoreNotReadyError) as refused:
            made.list_ownership()
        assert place.keyspace in str(refused.value)
        ways = "store.create(), create_keyspace=True or create = true in a configuration"
        assert f"create them with {ways}" in str(refused.value)
        with pytest.raises(StoreNotReadyError):
            made.take("0", "a")
        assert "Traceback" not in caplog.text, "the driver's own noise"
        place.create()
        assert made.list_ownership() == []
        made.take("0", "a")
        made.save("0", 8)


def test_a_store_creates_what_is_missing_when_it_is_told_to(
    client: Make, server: Cassandra
) -> None:
    place = server.place()
    try:
        made = client(place, create_keyspace=True)
        assert made.take("0", "a")
        client(place, create_keyspace=True).save("0", 7)
        versions = server.session.execute(f"SELECT name, version FROM {place.keyspace}.version")
        assert [(row["name"], row["version"]) for row in versions] == [("tables", 1)]
    finally:
        place.drop()


def create(url: str, barrier: Any, failures: Any) -> None:
    try:
        with open_store(url, create_keyspace=True, operation_timeout=LIMIT) as store:
            barrier.wait(LIMIT)
            store.verify()
    except BaseException as error:
        failures.put(repr(error))
        raise


@pytest.mark.long
def test_eight_processes_create_one_keyspace_at_once(server: Cassandra) -> None:
    context = multiprocessing.get_context("fork")
    barrier, failures = context.Barrier(CREATORS), context.SimpleQueue()
    place = server.place()
    children = [
        context.Process(target=create, args=(place.url, barrier, failures)) for _ in range(CREATORS)
    ]
    try:
        for child in children:
            child.start()
        for child in children:
            child.join(LIMIT)
        assert failures.empty(), failures.get()
        assert [child.exitcode for child in children] == [0] * CREATORS
        assert list(place.rows("ownership")) == ["0"]
    finally:
        place.drop()
