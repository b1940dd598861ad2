"""What is sent: one round trip for each operation, whatever the server knows."""

import threading

import pytest

from eventhub_checkpoints.records import Proposal, Scope

PARTITIONS = [str(number) for number in range(64)]


class Counted:
    """Scripts that a server was asked to run in a block."""

    def __init__(self, place) -> None:
        self.place = place
        self.scripts = 0

    def __enter__(self):
        self.place.raw.config_resetstat()
        return self

    def __exit__(self, *_) -> None:
        stats = self.place.raw.info("commandstats")
        names = ("cmdstat_evalsha", "cmdstat_eval")
        self.scripts = sum(stats.get(name, {}).get("calls", 0) for name in names)


@pytest.fixture
def batch(client):
    return [client.proposal(one, "owner-1") for one in PARTITIONS]


@pytest.fixture
def warm(client, place):
    """The store has connected, and the server knows its scripts."""
    client.claim("warm", "owner-1")
    client.save("warm", 1)
    client.list_ownership()
    client.list_checkpoints()


@pytest.mark.usefixtures("warm")
def test_64_first_claims_and_64_renewals_are_one_round_trip_each(client, place, batch) -> None:
    with Counted(place) as first:
        won = client.claim_ownership(batch)
    with Counted(place) as second:
        renewed = client.claim_ownership(won)
    assert len(won) == len(renewed) == 64
    assert (first.scripts, second.scripts) == (1, 1)


@pytest.mark.usefixtures("warm")
def test_nothing_but_the_script_is_sent(client, place, batch) -> None:
    with place.raw.monitor() as monitor:
        client.claim_ownership(batch)
        place.raw.ping()
        seen: list[tuple[str, str]] = []
        while not seen or seen[-1][1] != "PING":
            one = monitor.next_command()
            if one["client_type"] != "lua":
                seen.append((one["client_port"], one["command"].split()[0]))
    by_the_store = [command for port, command in seen if port == seen[0][0]]
    assert by_the_store == ["EVALSHA"]


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("operation", ["list_ownership", "list_checkpoints", "save"])
def test_every_other_operation_is_one_round_trip(client, place, operation) -> None:
    with Counted(place) as counted:
        getattr(client, operation)(*(("0", 1) if operation == "save" else ()))
    assert counted.scripts == 1


def test_a_batch_over_two_groups_is_one_call_for_each(client, place) -> None:
    other = client.within(Scope("ns", "orders", "other"))
    mixed = [
        one.proposal(partition_id, "owner-1")
        for partition_id in ("0", "1", "2")
        for one in (client, other)
    ]
    client.claim("warm", "owner-1")
    with Counted(place) as counted:
        won = client.claim_ownership(mixed)
    asked = [(row["consumer_group"], row["partition_id"]) for row in mixed]
    assert [(row["consumer_group"], row["partition_id"]) for row in won] == asked
    assert counted.scripts == 2


@pytest.mark.usefixtures("warm")
def test_a_server_that_forgot_the_scripts_is_told_them_again(client, place, batch) -> None:
    place.raw.script_flush()
    with Counted(place) as counted:
        assert len(client.claim_ownership(batch)) == 64
    assert counted.scripts == 2
    with Counted(place) as counted:
        client.claim("new", "owner-1")
    assert counted.scripts == 1


def test_scripts_that_are_flushed_all_the_time_cost_nothing_else(client, place) -> None:
    ended = threading.Event()

    def flush() -> None:
        while not ended.is_set():
            place.raw.script_flush()

    flushing = threading.Thread(target=flush)
    flushing.start()
    try:
        row = client.take("0", "owner-1")
        for number in range(100):
            row = client.take("0", "owner-1", row["etag"])
            client.save("0", number)
    finally:
        ended.set()
        flushing.join()
    assert client.position("0") == 99
    assert client.store.counters["lost_claims"] == 0


def test_a_claim_that_is_sent_twice_is_won_once_and_known_as_won(opener, place) -> None:
    client = opener(place.url)
    proposal = Proposal.from_dict(client.proposal("0", "owner-1"), "e" * 32)
    first = opener.finished(client.store.try_claim(proposal))
    again = opener.finished(client.store.try_claim(proposal))
    assert first.row.etag == again.row.etag == proposal.new_etag
    assert place.raw.hlen(place.stored_keys()[0]) == 1
