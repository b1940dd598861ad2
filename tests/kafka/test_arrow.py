"""`read_batches` on a real topic: from the checkpoints to its end, and back into the store."""

import pytest

from eventhub_checkpoints import DataLossError, open_store
from eventhub_checkpoints.arrow import HubAddress, ReadSettings, read_batches
from eventhub_checkpoints.receive.kafka import KafkaAddress
from kafka_broker import CONNECTION_STRING

AT_ONCE = ReadSettings(receiver_timeout=3600)
"""What waits for `receiver_timeout` does not end within the time limit of a test."""


@pytest.fixture
def address(broker, topic_name):
    return KafkaAddress.of_topic(topic_name, {"bootstrap.servers": broker.address}, "processors")


@pytest.fixture
def topic_name(topics, request):
    name = request.node.name.replace("[", "-").replace("]", "")
    topics.create(name, 2)
    return name


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    with open_store(url) as store:
        store.create()
    return url


def taken(address, **more):
    """The sequence numbers of what comes, by partition id, committed as it comes."""
    found = {}
    with read_batches(address, **more) as batches:
        for batch in batches:
            found.setdefault(batch["partition"][0].as_py(), []).extend(
                batch["sequenceNumber"].to_pylist()
            )
            if "store" in more:
                batches.commit()
    return found


def rows(url, address):
    with open_store(url) as store:
        found = store.list_checkpoints(*address.scope())
    return {row["partition_id"]: (row["sequence_number"], row["offset"]) for row in found}


def test_a_second_run_goes_on_where_the_first_has_committed(topics, topic_name, address, url):
    topics.publish(topic_name, "0", 30)
    topics.publish(topic_name, "1", 5)
    assert taken(address, store=url) == {"0": [*range(30)], "1": [*range(5)]}
    assert {one: number for one, (number, _) in rows(url, address).items()} == {"0": 29, "1": 4}
    topics.publish(topic_name, "1", 2)
    assert taken(address, store=url) == {"1": [5, 6]}


def test_an_end_that_is_no_record_is_reached_at_once(topics, topic_name, address, url):
    topics.publish(topic_name, "0", 2)
    topics.commit(topic_name, 3)
    assert taken(address, store=url, settings=AT_ONCE) == {"0": [0, 1, 2, 3, 4]}
    # Again: now nothing but the marks of transactions lies before the end.
    assert taken(address, store=url, settings=AT_ONCE) == {}


def test_a_commit_saves_the_end_that_a_partition_began_at(topics, topic_name, address, url):
    topics.publish(topic_name, "0", 3)
    with read_batches(address, store=url, start="latest") as batches:
        assert [*batches] == []
        assert batches.commit() == {"0": 2}
    topics.publish(topic_name, "0", 1)
    assert taken(address, store=url) == {"0": [3]}


def test_records_that_have_expired_behind_a_checkpoint_are_a_loss(
    topics, topic_name, address, url, caplog
):
    topics.publish(topic_name, "0", 20)
    assert taken(address, store=url, partition_ids=["0"], until=5) == {"0": [*range(5)]}
    topics.trim(topic_name, "0", before=12)
    with pytest.raises(DataLossError, match="the first retained is 12, so 7 events are lost"):
        taken(address, store=url)
    tolerant = ReadSettings(fail_on_data_loss=False)
    assert taken(address, store=url, settings=tolerant) == {"0": [*range(12, 20)]}
    assert "events are lost" in caplog.text


def test_a_hub_is_read_with_its_connection_string(broker, topics, topic_name):
    topics.publish(topic_name, "1", 3)
    hub = HubAddress.from_connection_string(CONNECTION_STRING, eventhub_name=topic_name)
    own = {"bootstrap.servers": broker.sasl_address, "security.protocol": "SASL_PLAINTEXT"}
    assert taken(KafkaAddress.of_hub(hub, own)) == {"1": [0, 1, 2]}
