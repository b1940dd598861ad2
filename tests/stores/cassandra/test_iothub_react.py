"""What iothub-react saved in a keyspace, read on a real Cassandra."""

import json
import logging
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("cassandra", reason="cassandra-driver is not installed")
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.query import named_tuple_factory, tuple_factory

from eventhub_checkpoints import Scope, StoreNotReadyError, StoreUnavailableError
from eventhub_checkpoints.iothub_react import read_iothub_react_table
from eventhub_checkpoints.records import Checkpoint

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")
Save = Callable[[int, str | None], None]


def checkpoint(partition_id: str, offset: str) -> Checkpoint:
    return Checkpoint(SCOPE, partition_id, offset, None)


@pytest.fixture(scope="module")
def session(servers: Any) -> Session:
    """A session whose rows are dicts."""
    return servers("cassandra").session


@pytest.fixture(scope="module")
def namespace(session: Session) -> Iterator[str]:
    """A namespace of iothub-react's, with the keyspace and table that it made of it."""
    name = f"iothub-react-{uuid.uuid4().hex}"
    keyspace = name.replace("-", "_")
    session.execute(
        f"CREATE KEYSPACE {keyspace} "
        "WITH REPLICATION = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute(
        f"CREATE TABLE {keyspace}.checkpoints"
        "(partition int, offset text, lastUpdate timestamp, PRIMARY KEY(partition))"
    )
    yield name
    session.execute(f"DROP KEYSPACE {keyspace}")


@pytest.fixture
def save(session: Session, namespace: str) -> Iterator[Save]:
    """Writes a row as iothub-react does: JSON in the statement."""
    table = f"{namespace.replace('-', '_')}.checkpoints"

    def write(partition: int, offset: str | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row = {"partition": partition, "offset": offset, "lastUpdate": now}
        session.execute(f"INSERT INTO {table} JSON '{json.dumps(row)}'")

    session.execute(f"TRUNCATE {table}")
    yield write
    session.execute(f"TRUNCATE {table}")


def test_offsets_are_read_in_the_order_of_the_partitions(
    session: Session, namespace: str, save: Save
) -> None:
    for partition, offset in [(10, "7"), (2, "0"), (0, "1"), (0, "197568495320")]:
        save(partition, offset)
    expected = [checkpoint("0", "197568495320"), checkpoint("2", "0"), checkpoint("10", "7")]
    assert read_iothub_react_table(session, namespace, SCOPE) == expected
    assert read_iothub_react_table(session, namespace.replace("-", "_"), SCOPE) == expected


@pytest.mark.parametrize("factory", [tuple_factory, named_tuple_factory])
def test_rows_of_any_form_will_do(
    session: Session, namespace: str, save: Save, factory: Any
) -> None:
    save(0, "5")
    profile = ExecutionProfile(row_factory=factory, request_timeout=60)
    points = session.cluster.endpoints_resolved
    with Cluster(points, execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
        other = cluster.connect()
        assert read_iothub_react_table(other, namespace, SCOPE) == [checkpoint("0", "5")]
    with pytest.raises(StoreUnavailableError):
        read_iothub_react_table(other, namespace, SCOPE)


def test_a_table_without_rows_is_no_checkpoint(
    session: Session, namespace: str, save: Save
) -> None:
    assert read_iothub_react_table(session, namespace, SCOPE) == []


@pytest.mark.parametrize("nothing", ["-1", "{offset checkpoint not found}"])
def test_a_note_that_nothing_was_saved_is_no_checkpoint(
    nothing: str, session: Session, namespace: str, save: Save, caplog: pytest.LogCaptureFixture
) -> None:
    save(0, nothing)
    save(1, "5")
    with caplog.at_level(logging.WARNING, "eventhub_checkpoints"):
        assert read_iothub_react_table(session, namespace, SCOPE) == [checkpoint("1", "5")]
    assert not [record for record in caplog.records if record.name == "eventhub_checkpoints"]


@pytest.mark.parametrize(("partition", "offset"), [(0, ""), (0, "x"), (0, None), (-1, "5")])
def test_a_row_that_holds_no_offset_is_reported_and_harms_no_other(
    partition: int,
    offset: str | None,
    session: Session,
    namespace: str,
    save: Save,
    caplog: pytest.LogCaptureFixture,
) -> None:
    save(partition, offset)
    save(7, "5")
    with caplog.at_level(logging.WARNING, "eventhub_checkpoints"):
        assert read_iothub_react_table(session, namespace, SCOPE) == [checkpoint("7", "5")]
    reported = [r.getMessage() for r in caplog.records if r.name == "eventhub_checkpoints"]
    keyspace = namespace.replace("-", "_")
    assert reported == [
        f"partition {partition} in keyspace {keyspace} was left out: "
        "it holds no offset of a partition"
    ]


@pytest.mark.parametrize("missing", ["not_there", "system"])
def test_a_missing_keyspace_or_table_is_named(session: Session, missing: str) -> None:
    with pytest.raises(
        StoreNotReadyError, match=f"keyspace '{missing}' has no table 'checkpoints'"
    ):
        read_iothub_react_table(session, missing, SCOPE)


def test_a_name_cannot_smuggle_in_a_statement(session: Session) -> None:
    with pytest.raises(StoreNotReadyError, match="keyspace 'a__drop_table_x_' has no"):
        read_iothub_react_table(session, "a; DROP TABLE x;", SCOPE)
