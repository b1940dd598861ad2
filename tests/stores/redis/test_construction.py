"""How a store is opened: URLs, ready clients, and what is refused."""

import logging

import pytest

from eventhub_checkpoints import ConfigurationError, StoreNotReadyError, StoreUnavailableError
from refusals import says
from waiting import eventually

SECRET = "pa$$word"
QUESTION = "redis://user:12?rest@127.0.0.1"
"""Read by the rules, its password is a port and a query."""


def test_the_namespace_of_the_url_begins_every_key(opener, place) -> None:
    client = opener(place.url)
    client.take("0", "owner-1")
    client.save("0", 1)
    group = f"{{{place.namespace}:ns.servicebus.windows.net/orders/$default}}"
    assert sorted(place.stored_keys()) == [f"{group}:checkpoint", f"{group}:ownership"]


def test_the_namespace_can_be_a_keyword(opener, server, place) -> None:
    opener(server.url, namespace=place.namespace).take("0", "owner-1")
    assert len(place.stored_keys()) == 1


def test_two_namespaces_are_refused(opener, place) -> None:
    with pytest.raises(ConfigurationError, match="in the URL; give it once"):
        opener.store(place.url, namespace="other")


@pytest.mark.parametrize("namespace", ["", "a:b", "a{b", "a}b", "a/b", "a b", "a\n"])
def test_a_namespace_that_would_make_keys_ambiguous_is_refused(opener, namespace) -> None:
    with pytest.raises(ConfigurationError, match="namespace is"):
        opener.store("redis://127.0.0.1", namespace=namespace)


def test_other_options_of_the_query_go_to_the_driver(opener, server, place) -> None:
    client = opener(f"{place.url}&client_name=ours&db=3")
    client.take("0", "owner-1")
    names = [one["name"] for one in place.raw.client_list()]
    assert "ours" in names
    assert place.stored_keys() == []  # those of database 0
    assert client.call("list_scopes")
    client.call("delete_scope", *client.scope.as_dict().values())


@pytest.mark.parametrize(
    "url", ["", "redis://", "http://127.0.0.1", "redis://:a#b@127.0.0.1", QUESTION]
)
def test_a_url_that_is_none_is_refused_and_not_repeated(opener, url) -> None:
    with pytest.raises(ConfigurationError, match="redis://") as refused:
        opener.store(url)
    assert "a#b" not in str(refused.value)
    assert "rest" not in str(refused.value)


def test_an_option_that_cannot_be_used_is_refused(opener) -> None:
    with pytest.raises(ConfigurationError, match="option of the URL"):
        opener.store("redis://127.0.0.1?db=many")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "redis://h/0?socket_keepaliv=1",
            "socket_keepaliv is not an option; expected one of socket_keepalive, ",
        ),
        (
            "redis://h?socket_keepaliv=",
            "socket_keepaliv is not an option; expected one of socket_keepalive, ",
        ),
        ("redis://h?namespac=n", "namespac is not an option; expected one of namespace, "),
        (
            "redis://h?parser_class=x",
            "parser_class is not an option; expected one of audience, client_name, ",
        ),
        (
            "rediss://h?ssl_ca_cert=x",
            "ssl_ca_cert is not an option; expected one of ssl_ca_certs, ",
        ),
        ("redis://h?ssl_ca_certs=x", "ssl_ca_certs needs TLS.*rediss://"),
        ("rediss://h?ssl_ca_certs=/no/such.pem", "ssl_ca_certs is '/no/such.pem', and this path"),
        ("rediss://h?ssl_cert_reqs=maybe", "Invalid SSL Certificate Requirements Flag: maybe"),
    ],
)
def test_an_option_that_the_driver_would_tell_of_late_is_refused_early(opener, url, said) -> None:
    with pytest.raises(ConfigurationError, match=f"option of the URL cannot be used: {said}"):
        opener.store(url)


def test_options_of_tls_are_those_of_the_driver(opener) -> None:
    query = (
        f"ssl_ca_certs={__file__}&ssl_cert_reqs=none&ssl_check_hostname=no&ssl_keyfile=&timeout=3"
    )
    assert opener.store(f"rediss://h/1?{query}")


@pytest.mark.parametrize("database", ["/99", "?db=99"])
def test_a_database_that_the_server_has_not_is_named(opener, server, database) -> None:
    client = opener(f"{server.url}{database}")
    with pytest.raises(StoreNotReadyError, match=r"/99, .*no database of this number") as failed:
        client.list_ownership()
    assert "out of range" in str(failed.value.__cause__)


def test_no_secret_is_in_the_text_of_a_store(opener) -> None:
    store = opener.store(f"redis://user:{SECRET}@127.0.0.1:1/2?namespace=n&password={SECRET}")
    assert repr(store) == "RedisCheckpointStore(redis://127.0.0.1:1/2, namespace='n')"


def test_a_server_that_is_not_there_is_named_without_the_password(opener, caplog) -> None:
    client = opener(f"redis://user:{SECRET}@127.0.0.1:1", operation_timeout=0.4)
    failed = says(client.list_ownership, StoreUnavailableError, r"redis://127\.0\.0\.1:1")
    assert SECRET not in str(failed) + caplog.text


@pytest.mark.parametrize("arguments", [{"url": "redis://h"}, {"entra": True}, {"credential": "c"}])
def test_a_ready_client_takes_no_address_and_no_credential(opener, server, arguments) -> None:
    ready = opener.ready(opener.driver.Redis(port=server.port))
    with pytest.raises(ConfigurationError, match="client is ready"):
        opener.store(client=ready, **arguments)


def test_a_client_of_the_other_variant_is_refused(opener, server) -> None:
    other = "redis.asyncio" if opener.variant == "sync" else "redis"
    ready = pytest.importorskip(other).Redis(port=server.port)
    with pytest.raises(ConfigurationError, match="expected redis"):
        opener.store(client=ready)


@pytest.mark.parametrize("decodes", [True, False])
def test_a_ready_client_may_decode_answers_or_not(opener, server, place, decodes) -> None:
    ready = opener.ready(
        opener.driver.Redis(port=server.port, decode_responses=decodes, socket_timeout=60)
    )
    client = opener(client=ready, namespace=place.namespace)
    place.raw.hset(client_key(place), "1", b"\xff\xfe no text \xff")
    first = client.take("0", "owner-1")
    assert client.claim("0", "owner-2") is None
    assert client.take("0", "owner-1", first["etag"])
    assert client.take("1", "owner-1", client.row("1")["etag"])
    client.save("0", 7)
    assert client.position("0") == 7
    assert client.call("list_scopes") == [client.scope.folded]


def client_key(place) -> str:
    return f"{{{place.namespace}:ns.servicebus.windows.net/orders/$default}}:ownership"


def test_a_ready_client_is_not_closed(opener, server, place) -> None:
    ready = opener.ready(opener.driver.Redis(port=server.port))
    client = opener(client=ready, namespace=place.namespace)
    client.take("0", "owner-1")
    connections = number_of_clients(place)
    client.close()
    client.close()
    assert number_of_clients(place) == connections
    assert opener.finished(ready.ping())


def number_of_clients(place) -> int:
    return len(place.raw.client_list())


def test_a_store_closes_its_own_connections_and_can_be_closed_twice(opener, place) -> None:
    before = number_of_clients(place)
    client = opener(place.url)
    client.take("0", "owner-1")
    assert number_of_clients(place) == before + 1
    client.close()
    client.close()
    eventually(lambda: number_of_clients(place) == before)


def test_a_sync_client_that_would_wait_for_ever_is_warned_of(opener, server, caplog) -> None:
    ready = opener.ready(opener.driver.Redis(port=server.port, socket_timeout=None))
    with caplog.at_level(logging.WARNING):
        opener.store(client=ready)
    assert ("no socket_timeout" in caplog.text) == (opener.variant == "sync")


@pytest.mark.parametrize(
    ("url", "given"), [(None, "None"), (5, "of type int"), (b"redis://h", "of type bytes")]
)
def test_what_is_no_url_is_named_by_its_type(opener, url, given) -> None:
    with pytest.raises(
        ConfigurationError,
        match=rf"^this is not the URL of a Redis server, but {given}; .* is passed as client=$",
    ):
        opener.store(url)


@pytest.mark.parametrize("settings", [{"credential": "other"}, {"entra": True}])
def test_a_second_password_is_refused(opener, settings) -> None:
    with pytest.raises(ConfigurationError, match="the URL has a password, and") as refused:
        opener.store(f"redis://:{SECRET}@127.0.0.1", **settings)
    assert SECRET not in str(refused.value)
