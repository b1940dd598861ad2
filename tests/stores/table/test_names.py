"""Names of groups and of tables, as they are stored and refused."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from backends import Backend, Variant
from backends.table import Table, TablePlace
from conformance_checks import OF_NAMES_WITHOUT_CASE, not_kept
from eventhub_checkpoints import ConfigurationError, InvalidRecordError, aio, open_store
from eventhub_checkpoints.conformance import CHECKS, Certifier
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope

Make = Callable[..., Client]


def test_names_are_stored_as_they_are_typed(client: Make, table: TablePlace, scope: Scope) -> None:
    mixed = scope._replace(eventhub_name="ORDERS")
    client(table.url, names=mixed).take("0", "a")
    assert client(table.url).list_ownership() == []
    assert client(table.url, names=mixed).owner("0") == "a"
    key = f"{mixed.fully_qualified_namespace} ORDERS $Default Ownership"
    assert table.table.get_entity(key, "0")["ownerid"] == "a"


def test_in_lower_case_all_spellings_are_one_group(
    server: Backend, variant: Variant, table: TablePlace
) -> None:
    open_it = aio.open_store if variant == "aio" else open_store
    checks = [check for check in CHECKS if check.name in OF_NAMES_WITHOUT_CASE]
    make = partial(open_it, table.url, name_case="lower")
    with Certifier(make, server.accessors(table)) as certifier:
        assert not_kept(certifier, checks) == []
    assert len(checks) == 2


def test_rows_of_the_group_in_another_case_are_found(
    client: Make, table: TablePlace, scope: Scope
) -> None:
    mixed = scope._replace(eventhub_name="ORDERS")
    client(table.url, names=mixed).take("0", "a")
    client(table.url, names=mixed).save("0", 7)
    (spelling,) = client(table.url).call("examine", *scope).spellings
    assert spelling.scope == mixed
    assert [row.owner_id for row in spelling.ownerships.rows] == ["a"]
    assert [row.sequence_number for row in spelling.checkpoints.rows] == [7]
    assert client(table.url, names=mixed).call("examine", *mixed).spellings == []


def test_groups_are_listed_as_this_store_reads_them(
    client: Make, table: TablePlace, scope: Scope
) -> None:
    mixed = scope._replace(eventhub_name="ORDERS")
    client(table.url, names=mixed).take("0", "a")
    client(table.url).save("0", 7)
    of_test = {scope, mixed, scope.folded}
    as_typed = {*client(table.url).call("list_scopes")} & of_test
    assert as_typed == {scope, mixed}
    lower = {*client(table.url, name_case="lower").call("list_scopes")} & of_test
    assert lower == set()


SIZES = {Scope("ns", "hub", f"group{number}"): size for number, size in enumerate([1_001, 1, 5])}


@pytest.fixture(scope="module")
def crowded(server: Table) -> Iterator[TablePlace]:
    """A table with more entities than a page has, which is 1,000."""
    with server.place() as place:
        for scope, size in SIZES.items():
            key = " ".join([*scope, "Ownership"])
            keys = [{"PartitionKey": key, "RowKey": str(each)} for each in range(size)]
            for start in range(0, size, 100):
                creations = [("create", {**each, "ownerid": "a"}) for each in keys[start:][:100]]
                place.table.submit_transaction(creations)
        yield place


def test_many_groups_are_listed_whole_page_after_page(client: Make, crowded: TablePlace) -> None:
    """Of a group with many entities, one page is read to list the groups."""
    assert client(crowded.url).call("list_scopes") == [*SIZES]
    for scope, size in SIZES.items():
        assert len(client(crowded.url, names=scope).list_ownership()) == size


@pytest.mark.parametrize("name", ["my group", "group#1", "group?"])
def test_a_name_that_cannot_be_stored_is_refused_before_any_request(
    client: Make, proxied: str, proxy: Any, scope: Scope, name: str
) -> None:
    made = client(proxied, names=scope._replace(consumer_group=name))
    with pytest.raises(InvalidRecordError, match="consumer_group"):
        made.list_ownership()
    with pytest.raises(InvalidRecordError, match="consumer_group"):
        made.take("0", "a")
    assert proxy.requests == []


def test_of_a_key_that_is_too_long_the_longest_name_is_shown(
    client: Make, table: TablePlace
) -> None:
    names = Scope("ns.servicebus.windows.net", "h" * 500, "$Default")
    with pytest.raises(InvalidRecordError, match=r"eventhub_name .*a key of at most 512 c"):
        client(table.url, names=names).take("0", "a")


@pytest.mark.parametrize("partition_id", ["a b", "p'q", "\u00e4", "100%", "a&b=c", "p" * 512])
def test_partition_ids_come_back_unchanged(
    client: Make, table: TablePlace, partition_id: str
) -> None:
    made = client(table.url)
    row = made.take(partition_id, "a")
    others = [made.take("0", "a"), row]
    assert len(made.claim_ownership(others)) == 2
    made.save(partition_id, 7)
    made.save(partition_id, 8)
    assert made.owner(partition_id) == "a"
    assert made.position(partition_id) == 8


OF_BLOB = "https://account.blob.core.windows.net/table"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("table+https://account.table.core.windows.net", "names no table: expected table+https://"),
        ("table+https://account.table.core.windows.net/a-b", "'a-b' is not a table name: "),
        ("table+https://account.table.core.windows.net/ab", "'ab' is not a table name: "),
        ("table+https://account.table.core.windows.net/1ab", "'1ab' is not a table name: "),
        ("table+https://account.table.core.windows.net/Tables", "'Tables' is not a table name"),
        ("table+https://account.table.core.windows.net/a/b", "'a/b' is not a table name"),
        (f"table+{OF_BLOB}", "that of the account's blobs; expected that of Table Storage, https:"),
        ("table://account/table", "expected table+https://ACCOUNT.table.core.windows.net/TABLE"),
        ("table+ftp://account/table", "expected table+https://ACCOUNT.table.core.windows.net"),
        ("table+https://me:hush@host/table", "must not have a user or password"),
        ("tables://account/table", "did you mean table+https://ACCOUNT.table.core.windows.net"),
        (
            "https://account.table.core.windows.net/positions",
            "for tables, open_store takes table+https://ACCOUNT.table.core.windows.net/TABLE",
        ),
        (
            "account.table.core.windows.net/positions",
            "did you mean table+https://ACCOUNT.table.core.windows.net/TABLE?",
        ),
    ],
)
def test_a_url_that_is_none_is_answered_with_its_form(
    variant: Variant, url: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        (aio.open_store if variant == "aio" else open_store)(url, credential="a2V5")
    assert said in str(refused.value)
    assert "hush" not in str(refused.value)
