"""Values as they are stored, and what somebody else may have left there."""

import hashlib
import json
import re

import pytest

from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.redis.protocol import hash_key

STRANGE = [
    b"",
    b"\xff\xfe\x00",
    b"no json",
    b"7",
    b"null",
    b'"text"',
    b"[]",
    b'[{"etag": "a"}]',
    b'{"etag": ["a"]}',
    b'{"etag": 1e999, "ownerid": true}',
    b'{"etag": "a", "ownerid": "\\ud800"}',
    b'{"etag": "a", "deep": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    b'\xef\xbb\xbf{"etag": "a"}',
    '{"etag": "a"}'.encode("utf-16"),
]


def key_of(place, client, kind) -> str:
    return hash_key(place.namespace, client.scope, kind)


def test_an_ownership_is_stored_as_the_page_says(client, place) -> None:
    won = client.take("0", "owner/1")
    row = json.loads(place.raw.hget(key_of(place, client, "ownership"), "0"))
    assert row.keys() == {"ownerid", "etag", "modified"}
    assert (row["ownerid"], row["etag"]) == ("owner/1", won["etag"])
    assert re.fullmatch(r"\d{10}\.\d{6}", row["modified"])
    assert re.fullmatch(r"[0-9a-f]{32}", row["etag"])


def test_a_checkpoint_is_stored_as_the_page_says(client, place) -> None:
    largest = 2**63 - 1
    client.update_checkpoint(client.checkpoint("0", largest, '1:AAA:ü"\\'))
    row = json.loads(place.raw.hget(key_of(place, client, "checkpoint"), "0"))
    assert row.keys() == {"offset", "sequencenumber", "version", "modified", "writer"}
    assert (row["offset"], row["sequencenumber"]) == ('1:AAA:ü"\\', str(largest))
    assert row["writer"] == client.store.writer
    assert client.position("0") == largest


def test_no_key_expires(client, place) -> None:
    client.take("0", "owner-1")
    client.save("0", 1)
    assert {place.raw.ttl(key) for key in place.stored_keys()} == {-1}


@pytest.mark.parametrize("raw", STRANGE, ids=lambda raw: repr(raw[:24]))
def test_a_strange_ownership_is_free_by_the_hash_of_its_value(client, place, raw) -> None:
    place.raw.hset(key_of(place, client, "ownership"), "0", raw)
    client.take("1", "owner-2")
    row = client.row("0")
    assert (row["owner_id"], row["etag"]) == ("", hashlib.sha1(raw).hexdigest())
    assert client.claim("0", "owner-1") is None, "a claim without an etag took it"
    assert client.take("0", "owner-1", row["etag"])
    assert client.store.counters["skipped_rows"] == 1


@pytest.mark.parametrize("raw", STRANGE, ids=lambda raw: repr(raw[:24]))
def test_a_strange_checkpoint_is_left_out_and_can_be_written_over(client, place, raw) -> None:
    place.raw.hset(key_of(place, client, "checkpoint"), "0", raw)
    client.take_listed("0", "owner-1")
    assert client.saved("0") is None
    client.save("0", 5)
    assert client.position("0") == 5
    assert client.store.counters["skipped_rows"] == 2, "it was listed twice before"


def test_numbers_in_the_place_of_texts_are_read(client, place) -> None:
    raw = json.dumps({"offset": 4711, "sequencenumber": 2**60 + 1, "version": "v"})
    place.raw.hset(key_of(place, client, "checkpoint"), "0", raw)
    saved = client.saved("0")
    assert (saved["offset"], saved["sequence_number"]) == ("4711", 2**60 + 1)


def test_a_partition_id_that_is_no_text_harms_nobody(client, place) -> None:
    place.raw.hset(key_of(place, client, "checkpoint"), b"\xff/", "{}")
    client.save("0", 5)
    assert [row["partition_id"] for row in client.list_checkpoints()] == ["0"]


def test_a_key_of_another_type_is_named(client, place) -> None:
    place.raw.set(key_of(place, client, "ownership"), "a text")
    with pytest.raises(StoreError, match=r"holds no hash") as failed:
        client.take("0", "owner-1")
    assert key_of(place, client, "ownership") in str(failed.value)


@pytest.mark.parametrize("namespace", ["n*", "n?", "n[ab]", "n\\", "n^-"])
def test_a_namespace_is_no_pattern(opener, server, namespace) -> None:
    client = opener(server.url, namespace=namespace)
    other = opener(server.url, namespace="nab")
    stranger = Scope("ns", "others", "g")
    try:
        other.within(stranger).save("0", 1)
        client.save("0", 1)
        assert client.call("list_scopes") == [client.scope.folded]
    finally:
        for one, scope in ((client, client.scope), (other, stranger)):
            one.call("delete_scope", *scope.as_dict().values())
    assert client.call("list_scopes") == []
