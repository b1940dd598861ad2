"""Clusters that cannot be reached, or let nobody in: each is told in one sentence."""

import pickle
import re
import ssl
import threading
from collections.abc import Callable

import pytest
from cassandra import AuthenticationFailed, OperationTimedOut, UnresolvableContactPoints
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ServerError

from backends.cassandra import Cassandra, Keyspace
from eventhub_checkpoints import ConfigurationError, StoreAccessError, StoreUnavailableError
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.stores.cassandra.driver import Login
from eventhub_checkpoints.stores.cassandra.errors import unreached
from refusals import says
from waiting import takes

pytestmark = pytest.mark.waits

Make = Callable[..., Client]
REFUSED = OSError(111, "Tried connecting to [('10.0.0.1', 9042)]. Last error: Connection refused")
UNTRUSTED = OSError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")
NO_TLS = OSError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")


@pytest.mark.parametrize(
    ("nodes", "kind", "said"),
    [
        ({"a:1": REFUSED}, StoreUnavailableError, "(a:1: Connection refused); check hosts and"),
        ({"a:1": TimeoutError()}, StoreUnavailableError, "(a:1: no answer in time)"),
        ({"a:1": OSError()}, StoreUnavailableError, "(a:1: OSError)"),
        (["a", "b"], StoreUnavailableError, "(a: no connection, b: no connection)"),
        (list("abcde"), StoreUnavailableError, "c: no connection and 2 more)"),
        (None, StoreUnavailableError, "no node could be used"),
        ({"a": NO_TLS}, ConfigurationError, "leave ssl_context out"),
        ({"a": UNTRUSTED}, StoreAccessError, "certificate is not trusted"),
        ({"a": UNTRUSTED, "b": REFUSED}, StoreUnavailableError, "no node could be used"),
        ({"a": OSError(), "b": AuthenticationFailed()}, StoreAccessError, "give both"),
    ],
)
def test_nodes_of_which_none_can_be_used_are_told_with_their_reasons(
    nodes: object, kind: type[Exception], said: str
) -> None:
    assert_told(NoHostAvailable("x", nodes), kind, said)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (AuthenticationFailed("x"), StoreAccessError, "user and password were refused"),
        (UnresolvableContactPoints({}), StoreUnavailableError, "check them, and DNS"),
        (OperationTimedOut(), StoreUnavailableError, "no answer in time"),
        (TimeoutError(), StoreUnavailableError, "no answer in time"),
    ],
)
def test_what_is_in_the_way_is_told(error: Exception, kind: type[Exception], said: str) -> None:
    assert_told(error, kind, said)


def assert_told(error: Exception, kind: type[Exception], said: str) -> None:
    found = unreached(error, "Cassandra at a:1")
    assert type(found) is kind
    assert str(found).startswith("Cassandra at a:1: ")
    assert said in str(found)
    assert pickle.loads(pickle.dumps(found)).args == found.args


def test_what_a_cluster_has_answered_is_no_matter_of_reaching_it() -> None:
    assert unreached(ServerError(0, "x", None), "Cassandra at a:1") is None


def test_a_cluster_is_named_by_the_first_of_its_contact_points_and_never_by_a_password() -> None:
    points = ["a", "::1", ("b", 7), "c", "d"]
    login = Login.checked(points, 9, "me", "hush", "dc1", None, 1.0)
    assert login.address == "Cassandra at a:9, [::1]:9, b:7 and 2 more (datacenter 'dc1')"


def test_the_text_of_a_store_has_no_password(client: Make) -> None:
    made = client(contact_points=["a"], username="me", password="hush", namespace="ks")
    assert repr(made.store) == "CassandraCheckpointStore(Cassandra at a:9042, keyspace 'ks')"


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("127.0.0.1:1", "127.0.0.1:1: Connection refused); check hosts and port"),
        ("nowhere.invalid", "the names of the contact points cannot be resolved"),
    ],
)
def test_a_wrong_port_or_host_is_named(client: Make, point: str, said: str) -> None:
    made = client(contact_points=[point], namespace="ks", operation_timeout=1.0)
    failed = says(made.list_ownership, StoreUnavailableError, re.escape(said))
    assert str(failed).startswith(f"Cassandra at {point}")
    assert "keyspace 'ks'" in str(failed)
    assert isinstance(failed.__cause__, NoHostAvailable | UnresolvableContactPoints)


def test_a_datacenter_that_the_cluster_has_not_is_told_at_once(
    client: Make, server: Cassandra, keyspace: Keyspace
) -> None:
    own = server.session.cluster.metadata.all_hosts()[0].datacenter
    made = client(keyspace, datacenter=own.upper())
    with pytest.raises(
        ConfigurationError, match=f"does not have this datacenter; it has {own}"
    ) as failed:
        made.list_ownership()
    assert isinstance(failed.value.__cause__, NoHostAvailable)
    assert client(keyspace, datacenter=own).list_ownership() == []


def test_tls_with_a_node_that_speaks_none_is_told_at_once(client: Make, keyspace: Keyspace) -> None:
    made = client(keyspace, ssl_context=ssl.create_default_context())
    with pytest.raises(ConfigurationError, match="does not use TLS: leave ssl_context out"):
        made.list_ownership()


def test_copies_that_the_datacenter_has_no_nodes_for_are_named(
    client: Make, server: Cassandra
) -> None:
    place = server.place()
    try:
        made = client(place, create_keyspace=True, replication=9, operation_timeout=2.0)
        too_many = "replication factor to at most the number of nodes"
        says(made.list_ownership, StoreUnavailableError, too_many)
    finally:
        place.drop()


def test_copies_in_a_datacenter_that_is_none_are_refused(client: Make, server: Cassandra) -> None:
    elsewhere = {"class": "NetworkTopologyStrategy", "nowhere": 1}
    made = client(server.place(), create_keyspace=True, replication=elsewhere)
    with pytest.raises(ConfigurationError, match="names of datacenters that the cluster has"):
        made.list_ownership()


@pytest.mark.long
def test_connecting_to_a_node_that_is_silent_ends_in_time(client: Make, server: Cassandra) -> None:
    if not server.is_own:
        pytest.skip("the server is not a process of our own, so it cannot be paused")
    before = threading.active_count()
    made = client(contact_points=[("127.0.0.1", server.port)], operation_timeout=1.0)
    server.pause(3.0)
    try:
        with takes(0.5), pytest.raises(StoreUnavailableError):
            made.list_ownership()
    finally:
        server.resume()
    assert threading.active_count() <= before + 20


@pytest.mark.parametrize("points", [None, 5, b"host"])
def test_contact_points_that_are_none_are_refused(client: Make, points: object) -> None:
    with pytest.raises(ConfigurationError, match=r"contact_points is .*; expected hosts, such as"):
        client(contact_points=points)
