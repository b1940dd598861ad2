"""What the store does when storage misbehaves: nothing is invented, nothing waits for ever."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventhub_checkpoints.errors import StoreError, StoreUnavailableError
from waiting import LIMIT, eventually, takes

SHORT = 0.4
"""Seconds until a call is given up that cannot succeed."""


@pytest.fixture
def impatient(watched) -> Callable[[], None]:
    """Lets the store wait no longer than `SHORT` for anything from now on."""
    return lambda: watched.set(operation_timeout=SHORT, write_timeout=SHORT, keep_unconfirmed=LIMIT)


@pytest.fixture
def hasty(variant, proxied) -> Any:
    """A store whose calls take a second at most."""
    client = variant.open(proxied)
    client.list_ownership()  # connecting takes time, too
    client.set(operation_timeout=1.0, write_timeout=1.0)
    return client


# A row that has vanished.


def test_an_etag_whose_blob_is_gone_wins_where_the_server_says_412(watched, empty) -> None:
    row = watched.take("0", "owner-1")
    empty()
    (won,) = watched.claim_ownership([row])
    assert won["etag"] != row["etag"]
    assert watched.owner("0") == "owner-1"


def test_an_etag_whose_blob_is_gone_wins_where_the_server_says_404(watched, empty, proxy) -> None:
    row = watched.take("0", "owner-1")
    empty()
    proxy.forget()
    proxy.on("PUT", "comp=metadata").refuse(404, "BlobNotFound")  # as Azure answers
    (won,) = watched.claim_ownership([row])
    assert won["etag"] != row["etag"]
    assert [request.method for request in proxy.requests] == ["PUT", "PUT"]


def test_of_two_who_find_the_blob_gone_one_wins(watched, rival, empty) -> None:
    row = watched.take("0", "owner-1")
    empty()
    assert rival.claim("0", "owner-2", row["etag"]) is not None
    assert watched.claim_ownership([row]) == []
    assert rival.owner("0") == "owner-2"


def test_a_checkpoint_whose_blob_is_gone_is_created(watched, empty) -> None:
    watched.save("0", 5)
    empty()
    watched.save("0", 6)
    assert watched.position("0") == 6


@pytest.fixture
def leased(raw) -> Iterator[Callable[[], None]]:
    """Leases every blob that is there, until the test ends."""
    leases = []

    def lease() -> None:
        leases.extend(raw.get_blob_client(name).acquire_lease(-1) for name in raw.list_blob_names())

    yield lease
    for one in leases:
        one.release()


def test_a_leased_blob_is_lost_and_spares_the_others(watched, leased, caplog) -> None:
    row = watched.take("0", "owner-1")
    leased()
    won = watched.claim_ownership([row, watched.proposal("1", "owner-1")])
    assert [one["partition_id"] for one in won] == ["1"]
    assert "412 LeaseIdMissing" in caplog.text


def test_a_checkpoint_on_a_leased_blob_is_an_error(watched, leased) -> None:
    watched.save("0", 5)
    leased()
    with pytest.raises(StoreError, match="412 LeaseIdMissing"):
        watched.save("0", 6)


# A server that does not answer.


def test_a_checkpoint_that_has_no_answer_is_unavailable(watched, rival, impatient, proxy) -> None:
    watched.save("0", 1)
    proxy.on("PUT").hang()
    impatient()
    with pytest.raises(StoreUnavailableError):
        watched.save("0", 2)
    # Not healed: a request that was given up may be on its way to the proxy still.
    assert rival.position("0") == 1


# Every transport ends a read and a write; the rest of the rule is of the base class, so that one
# transport shows it each.


@pytest.mark.long
def test_a_list_is_cut_off(hasty, proxy) -> None:
    proxy.on("GET").hang()
    with takes(0.5, 5.5), pytest.raises(StoreUnavailableError):
        hasty.list_ownership()


@pytest.mark.long
def test_a_checkpoint_is_cut_off(hasty, proxy) -> None:
    proxy.on("PUT").hang()
    with takes(0.5, 5.5), pytest.raises(StoreUnavailableError):
        hasty.save("0", 1)


@pytest.mark.long
@pytest.mark.parametrize("variant", ["aio"], indirect=True)
def test_a_batch_of_claims_is_cut_off_and_invents_nothing(hasty, proxy) -> None:
    proxy.on("PUT").hang()
    proposals = [hasty.proposal(str(n), "owner-1") for n in range(4)]
    with takes(0.5, 5.5):
        assert hasty.claim_ownership(proposals) == []


@pytest.mark.long
@pytest.mark.parametrize("variant", ["sync-driver"], indirect=True)
def test_a_release_is_cut_off_and_calm(hasty, proxy) -> None:
    row = hasty.take("0", "owner-1")
    proxy.on("PUT").hang()
    with takes(0.5, 5.5):
        hasty.release(row)


@pytest.mark.long
@pytest.mark.parametrize("variant", ["sync"], indirect=True)
def test_the_winners_of_a_batch_with_one_hung_claim_are_known(hasty, proxy) -> None:
    proxy.on("PUT", "/ownership/1").hang()
    won = hasty.claim_ownership([hasty.proposal(str(n), "owner-1") for n in range(4)])
    assert [row["partition_id"] for row in won] == ["0", "2", "3"]
    proxy.heal()
    assert len(hasty.claim_ownership(won)) == 3  # with the etags that were won


def test_a_write_whose_answer_hangs_is_recognised_later(watched, rival, proxy) -> None:
    watched.list_checkpoints()
    hung = proxy.on("PUT", "/checkpoint/").hang(executed=True)
    watched.set(write_timeout=SHORT)

    def was_sent() -> bool:
        with pytest.raises(StoreUnavailableError):
            watched.save("0", 5)
        return hung.hits > 0

    eventually(was_sent)
    eventually(lambda: rival.position("0") == 5)
    proxy.heal()
    watched.set(write_timeout=LIMIT)
    watched.save("0", 3)  # its own write of 5 is no other writer's
    assert watched.position("0") == 3


# An answer that is lost, a server that is busy.


def test_a_first_claim_whose_answer_was_lost_is_recognised(watched, proxy) -> None:
    lost = proxy.on("PUT", "/ownership/", times=1).lose_answer()
    won = watched.take("0", "owner-1")
    assert lost.hits == 1
    assert watched.row("0")["etag"] == won["etag"]


def test_a_renewal_whose_answer_was_lost_is_recognised(watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    lost = proxy.on("PUT", "/ownership/", times=1).lose_answer()
    (won,) = watched.claim_ownership([row])
    assert lost.hits == 1
    assert won["etag"] != row["etag"]
    assert watched.claim_ownership([won])


def test_a_claim_that_was_lost_to_another_is_not_recognised(watched, rival, proxy) -> None:
    proxy.on("PUT", "/ownership/", times=1).drop()
    rival.take("0", "owner-2")
    assert watched.claim("0", "owner-1") is None


def test_a_conflict_without_a_lost_answer_is_no_own_claim(variant, watched, blob_container) -> None:
    twin = variant.open(blob_container)
    twin.take("0", "owner-1")
    assert watched.claim("0", "owner-1") is None


def test_a_checkpoint_whose_answer_was_lost_is_stored_once(watched, proxy) -> None:
    watched.save("0", 1)
    lost = proxy.on("PUT", "/checkpoint/", times=1).lose_answer()
    watched.save("0", 2)
    assert lost.hits == 1
    watched.save("0", 3)
    assert watched.position("0") == 3


@pytest.mark.parametrize(
    ("status", "code"),
    [(503, "ServerBusy"), (500, "OperationTimedOut"), (429, "TooManyRequests"), (408, "")],
)
def test_a_busy_server_is_asked_again(watched, proxy, status, code) -> None:
    row = watched.take("0", "owner-1")
    for call in (
        lambda: watched.claim_ownership([row]),
        lambda: watched.save("0", 1),
        watched.list_ownership,
        watched.list_checkpoints,
    ):
        busy = proxy.on(times=2).refuse(status, code)
        call()
        assert busy.hits == 2
    assert (watched.owner("0"), watched.position("0")) == ("owner-1", 1)


def test_a_dropped_connection_is_made_again(watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    proxy.down()
    proxy.up()
    assert watched.claim_ownership([row])


# Storage is away for a while.


def test_storage_that_is_away_is_said_and_found_again(watched, impatient, proxy) -> None:
    row = watched.take("0", "owner-1")
    proxy.down()
    impatient()
    for call in (watched.list_ownership, watched.list_checkpoints, lambda: watched.save("0", 1)):
        with pytest.raises(StoreUnavailableError):
            call()
    assert watched.claim_ownership([row, watched.proposal("1", "owner-1")]) == [row]
    proxy.up()
    watched.set(operation_timeout=LIMIT, write_timeout=LIMIT)
    assert watched.claim_ownership(watched.list_ownership())[0]["etag"] != row["etag"]
    watched.save("0", 1)
    assert (watched.owner("0"), watched.position("0")) == ("owner-1", 1)


def test_nothing_is_kept_where_the_store_was_told_so(variant, proxied, rival, proxy) -> None:
    client = variant.open(proxied, keep_unconfirmed=0.0)
    row = client.take("0", "owner-1")
    client.set(operation_timeout=SHORT)
    proxy.on("PUT").refuse(503, "ServerBusy")
    assert client.claim_ownership([row]) == []
    # Not healed: a request that was given up may be on its way to the proxy still.
    assert rival.claim_ownership([row])  # nobody else came


def test_another_owners_partition_is_never_kept(watched, impatient, rival, proxy) -> None:
    rival.take("0", "owner-2")
    row = watched.row("0")
    proxy.on("PUT").refuse(503, "ServerBusy")
    impatient()
    assert watched.claim_ownership([{**row, "owner_id": "owner-1"}]) == []


def test_a_failing_write_is_counted_and_logged(watched, impatient, proxy, caplog) -> None:
    proxy.on("PUT").refuse(503, "ServerBusy")
    watched.list_ownership()
    impatient()
    assert watched.claim("0", "owner-1") is None
    assert watched.store.counters["unconfirmed_claims"] == 1
    assert "claim of partition 0" in caplog.text
