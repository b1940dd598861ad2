"""The real client with our store: it resumes, shares, releases."""

from typing import Any

ALL = ["0", "1"]


def test_a_consumer_resumes_exactly_after_the_checkpoint(
    site, blob_container, stored, wait
) -> None:
    site.publish(20)
    first = site.start(site.store(blob_container))
    first.saves = lambda event: event.sequence_number == 9
    wait(lambda: first.total == 40 and stored.checkpoints() == dict.fromkeys(ALL, 9))
    site.closed(first)
    second = site.start(site.store(blob_container))
    wait(lambda: second.total >= 20)
    site.publish(1)
    wait(lambda: second.total >= 22)
    assert second.events == {key: list(range(10, 21)) for key in ALL}


def test_a_group_with_sequence_numbers_only_is_resumed_exactly(
    site, blob_container, stored, wait
) -> None:
    scope = f"{site.hub.endpoint.removeprefix('sb://')}/orders/$default"
    site.hub.add_partitions("orders", 2)
    for partition_id, number in {"0": "0", "1": "7", "2": "19"}.items():  # as Java writes them
        name = f"{scope}/checkpoint/{partition_id}"
        stored.raw.upload_blob(name, b"", metadata={"sequencenumber": number})
    site.publish(20)
    consumer = site.start(site.store(blob_container))
    wait(lambda: consumer.total >= 19 + 12 + 20)
    site.publish(1, ["2"])
    wait(lambda: consumer.events["2"])
    assert consumer.events == {
        "0": list(range(1, 20)),
        "1": list(range(8, 20)),
        "2": [20],
        "3": list(range(20)),
    }


def test_a_checkpoint_without_offset_goes_on_in_our_own_writes(
    site, blob_container, stored, wait
) -> None:
    scope = f"{site.hub.endpoint.removeprefix('sb://')}/orders/$default"
    name = f"{scope}/checkpoint/0"
    stored.raw.upload_blob(name, b"", metadata={"sequencenumber": "0"})
    site.publish(3, ["0"])
    consumer = site.start(site.store(blob_container))
    consumer.saves = lambda event: True
    wait(lambda: stored.checkpoints() == {"0": 2})
    assert stored.rows("checkpoint")["0"].metadata["offset"]
    assert consumer.events == {"0": [1, 2]}


def settled(stored: Any, owners: int, share: int) -> Any:
    """For `wait`: the owners of all partitions, once they have shared them evenly."""

    def check() -> dict[str, str] | None:
        found = stored.owners()
        counts = [list(found.values()).count(owner) for owner in set(found.values())]
        return found if sorted(counts) == [share] * owners and "" not in found.values() else None

    return check


def test_two_consumers_share_the_partitions_evenly_and_settle(
    site, blob_container, stored, wait
) -> None:
    everything = {*ALL, *site.hub.add_partitions("orders", 2)}
    first = site.start(site.store(blob_container))
    wait(lambda: first.owned == everything)
    second = site.start(site.store(blob_container))
    owners = wait(settled(stored, owners=2, share=2))
    wait(lambda: len(first.owned) == len(second.owned) == 2)
    assert first.owned | second.owned == everything

    etags: dict[str, set[str]] = {partition_id: set() for partition_id in everything}

    def renewed_five_times() -> bool:
        assert stored.owners() == owners
        for partition_id, blob in stored.rows("ownership").items():
            etags[partition_id].add(blob.etag)
        return all(len(seen) > 5 for seen in etags.values())

    wait(renewed_five_times)
    before = first.total + second.total
    site.publish(5)
    wait(lambda: first.total + second.total == before + 20)
    assert {key for key, numbers in first.events.items() if 4 in numbers} == first.owned
    assert {key for key, numbers in second.events.items() if 4 in numbers} == second.owned


def test_closing_releases_every_partition_at_once(site, blob_container, stored, wait) -> None:
    # A round of load balancing that is under way at the close would claim again, by the SDK's rule.
    consumer = site.start(site.store(blob_container), load_balancing_interval=30.0)
    wait(lambda: consumer.owned == set(ALL))
    site.closed(consumer)
    assert stored.owners() == dict.fromkeys(ALL, "")
    assert sorted(consumer.closed) == [(partition_id, "SHUTDOWN") for partition_id in ALL]
    assert consumer.errors == []


def test_a_newcomer_takes_released_partitions_without_waiting_for_their_expiry(
    site, blob_container, wait
) -> None:
    first = site.start(site.store(blob_container))
    wait(lambda: first.owned == set(ALL))
    site.closed(first)
    second = site.start(site.store(blob_container), partition_ownership_expiration_interval=1000.0)
    wait(lambda: second.owned == set(ALL))


def test_a_group_shared_with_java_go_or_rust_keeps_its_spelling(
    site, blob_container, stored, wait
) -> None:
    site.publish(1)
    consumer = site.start(site.store(blob_container, name_case="as-typed"))
    consumer.saves = lambda event: True
    wait(lambda: stored.checkpoints() == dict.fromkeys(ALL, 0))
    assert all("/orders/$Default/" in name for name in stored.raw.list_blob_names())
