"""The real client while others take partitions over and storage fails: nothing is lost."""

from typing import Any

import pytest

from eventhub_checkpoints.errors import StoreUnavailableError

ALL = ["0", "1"]
SHORT = {"operation_timeout": 0.5, "write_timeout": 0.5}


@pytest.fixture
def proxied(blob_container, proxy) -> Any:
    return blob_container.through(proxy.endpoint)


def every_event(*consumers: Any) -> dict[str, list[int]]:
    """What all consumers have processed, in order."""
    return {
        key: sorted(number for one in consumers for number in one.events.get(key, []))
        for key in ALL
    }


def test_a_partition_that_was_taken_over_is_given_up_and_taken_back_when_it_is_free(
    site, blob_container, stored, wait
) -> None:
    consumer = site.start(site.store(blob_container))
    consumer.saves = lambda event: True
    site.publish(5)
    wait(lambda: stored.checkpoints() == dict.fromkeys(ALL, 4))
    taken = stored.raw.get_blob_client(stored.rows("ownership")["0"].name)
    taken.set_blob_metadata({"ownerid": "other"})
    wait(lambda: ("0", "OWNERSHIP_LOST") in consumer.closed)
    assert stored.owners()["0"] == "other"  # giving up releases nobody else's partition
    assert consumer.owned == {"1"}
    taken.set_blob_metadata({"ownerid": ""})
    site.publish(5)
    wait(lambda: stored.checkpoints() == dict.fromkeys(ALL, 9))
    assert "other" not in stored.owners().values()
    assert every_event(consumer) == {key: list(range(10)) for key in ALL}


@pytest.mark.long
def test_storage_that_is_down_for_a_while_stops_no_processing(
    site, proxied, proxy, stored, wait
) -> None:
    consumer = site.start(site.store(proxied, **SHORT))
    wait(lambda: consumer.owned == set(ALL))
    owners = stored.owners()
    proxy.down()
    wait(lambda: consumer.saw(StoreUnavailableError))
    site.publish(5)
    wait(lambda: consumer.total == 10)
    proxy.up()
    etags = {blob.etag for blob in stored.rows("ownership").values()}
    wait(lambda: etags.isdisjoint(blob.etag for blob in stored.rows("ownership").values()))
    assert stored.owners() == owners
    consumer.saves = lambda event: True
    site.publish(1)
    wait(lambda: stored.checkpoints() == dict.fromkeys(ALL, 5))
    assert every_event(consumer) == {key: list(range(6)) for key in ALL}
    assert consumer.closed == []


def test_a_consumer_that_starts_while_storage_is_down_begins_when_it_is_back(
    site, proxied, proxy, wait
) -> None:
    proxy.down()
    site.publish(5)
    consumer = site.start(site.store(proxied, **SHORT))
    wait(lambda: consumer.saw(StoreUnavailableError))
    assert consumer.owned == set()
    proxy.up()
    wait(lambda: consumer.total == 10)


@pytest.mark.long
@pytest.mark.parametrize(
    ("failure", "site"), [("refused", "sync"), ("dropped", "aio")], indirect=["site"]
)
def test_writes_alone_that_fail_for_a_while_change_no_owner(
    site, blob_container, proxied, proxy, stored, wait, failure
) -> None:
    consumer = site.start(site.store(proxied, **SHORT))
    wait(lambda: consumer.owned == set(ALL))
    owners = stored.owners()
    fault = proxy.on("PUT")
    fault.refuse(503, "ServerBusy") if failure == "refused" else fault.drop()
    newcomer = site.start(site.store(proxied, **SHORT))
    wait(lambda: consumer.store.counters["unconfirmed_claims"] >= 3 * len(ALL))
    wait(lambda: newcomer.store.counters["unconfirmed_claims"] >= 3)
    site.publish(5)
    wait(lambda: consumer.total == 10)
    assert (consumer.owned, newcomer.owned) == (set(ALL), set())
    assert stored.owners() == owners
    proxy.heal()
    wait(lambda: len(consumer.owned) == len(newcomer.owned) == 1)
    site.publish(5)
    wait(
        lambda: all(
            {*range(10)} <= {*numbers} for numbers in every_event(consumer, newcomer).values()
        )
    )


@pytest.mark.long
def test_writes_alone_that_fail_for_long_lose_the_partitions_but_no_event(
    site, proxied, proxy, stored, wait
) -> None:
    keeping = {**SHORT, "keep_unconfirmed": 1.0}
    expiring = {"partition_ownership_expiration_interval": 2.0}
    consumer = site.start(site.store(proxied, **keeping), **expiring)
    consumer.saves = lambda event: True
    site.publish(5)
    wait(lambda: stored.checkpoints() == dict.fromkeys(ALL, 4))
    consumer.saves = lambda event: False
    proxy.on("PUT").refuse(503, "ServerBusy")
    newcomer = site.start(site.store(proxied, **keeping), **expiring)
    wait(lambda: consumer.owned == set())
    wait(lambda: newcomer.store.counters["unconfirmed_claims"] >= 3)
    assert newcomer.owned == set()  # the old ownerships have expired, and none was confirmed
    site.publish(5)
    proxy.heal()
    wait(lambda: sorted([*consumer.owned, *newcomer.owned]) == ALL)
    wait(
        lambda: all(
            {*range(10)} <= {*numbers} for numbers in every_event(consumer, newcomer).values()
        )
    )
