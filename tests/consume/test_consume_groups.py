"""How members share a hub: hand-over, take-over, loss, and what a commit says of it."""

import threading

import pytest

from arrow_rows import take
from arrow_variants import ALL, STORES
from eventhub_checkpoints import ConfigurationError, StaleCheckpointError
from waiting import LIMIT, eventually

DEAD = "a member that is gone"


def kinds_of(member, partition):
    """Return what happened to a partition, in order, without repetitions."""
    kinds = [kind for kind, *rest in [*member.log] if kind != "saved" and rest[0] == partition]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


# Sharing


@STORES
def test_two_members_share_the_partitions(member, hub, kept):
    first = member().start()
    eventually(lambda: first.held == {*ALL} and first.count == 210)
    second = member().start()
    eventually(lambda: len(second.held) == 1 and len(first.held) == 2)
    assert first.held | second.held == {*ALL}
    for each in ALL:
        hub.publish("orders", each, ["event"] * 5)
    eventually(lambda: first.count + second.count == 225)
    assert len({*kept.owners().values()}) == 2


@STORES
def test_nothing_is_read_twice_when_members_come_and_go(member, hub):
    members = [member().start()]
    eventually(lambda: members[0].held == {*ALL})
    published = 0
    for step in range(4):
        for each in ALL:
            hub.publish("orders", each, ["event"] * 20)
        published += 60
        if step % 2 == 0:
            members.append(member().start())
            eventually(lambda: members[-1].held)
        else:
            members[-1].stop()
            members[-2].gate.set()
    eventually(lambda: sum(each.count for each in members) == 210 + published)
    for each, before in ALL.items():
        numbers = sorted(number for one in members for number in one.numbers(each))
        assert numbers == [*range(len(before) + 80)]


def test_a_member_that_leaves_releases_what_it_held_at_once(member, kept):
    first = member().start()
    eventually(lambda: first.held == {*ALL} and first.count == 210)
    first.stop()
    assert kept.owners() == {}
    second = member().start()
    eventually(lambda: second.held == {*ALL})
    assert second.count == 0


def test_a_partition_is_announced_before_its_batches_and_lost_after_them(member):
    first = member().start()
    eventually(lambda: first.count == 210)
    second = member().start()
    eventually(lambda: second.held)
    (moved,) = second.held
    eventually(lambda: moved not in first.held)
    assert kinds_of(first, moved) == ["assigned", "batch", "lost"]
    for each in ALL.keys() - {moved}:
        assert kinds_of(first, each) == ["assigned", "batch"]


# Hand-over


def test_a_commit_in_on_lost_covers_a_partition_that_is_handed_over(member, kept):
    """A writer that rotates its file there, and commits when that is closed."""
    first = member(commits=False, at_loss=True).start()
    eventually(lambda: first.count == 210)
    second = member().start()
    eventually(lambda: len(second.held) == 1)
    (moved,) = second.held
    saved, lost = first.of("saved")[0]
    assert saved == {each: len(ALL[each]) - 1 for each in ALL}
    assert lost == {}
    assert second.numbers(moved) == []
    assert kept.numbers()[moved] == saved[moved]


def test_a_partition_that_is_handed_over_waits_for_the_commit_of_a_slow_loop(member, kept):
    first = member(max_rows=50).start()
    eventually(lambda: first.count == 210)
    first.gate.clear()
    second = member().start()
    # It was asked for a partition, and its loop does not come round to saying that it is done.
    eventually(lambda: len(first._inner._sessions) == 2)
    assert len({*kept.owners().values()}) == 1
    assert not second.log
    first.gate.set()
    eventually(lambda: second.held)
    assert second.count == 0
    assert first.held | second.held == {*ALL}


def test_what_is_not_committed_in_time_is_handed_over_and_named(member, kept, caplog):
    first = member(commits=False, drain_timeout=0.2).start()
    eventually(lambda: first.count == 210)
    second = member().start()
    eventually(lambda: second.held)
    (moved,) = second.held
    eventually(lambda: second.numbers(moved) == ALL[moved])
    assert f"partition {moved} is handed over before what was returned of it is" in caplog.text
    assert "no commit came within 0.2 s" in caplog.text
    first.commit()
    saved, lost = first.of("saved")[0]
    assert lost == {moved: len(ALL[moved]) - 1}
    assert saved == {each: len(ALL[each]) - 1 for each in ALL.keys() - {moved}}
    first.commit()
    assert first.of("saved")[1] == ({}, {})
    assert f"partition {moved} is no longer held: the events up to {len(ALL[moved]) - 1}" in (
        caplog.text
    )


def test_without_hand_over_a_partition_is_taken_at_once_and_read_twice_at_most(member, hub):
    first = member(handover=False).start()
    eventually(lambda: first.count == 210)
    second = member(handover=False).start()
    eventually(lambda: second.held and len(first.held) == 2)
    for each in ALL:
        hub.publish("orders", each, ["event"] * 5)
    eventually(lambda: first.count + second.count == 225)


# Loss


@STORES
def test_a_batch_of_a_lost_partition_is_never_returned(member, hub, kept):
    hub.recreate("orders", 1)
    reader = member(max_rows=10, handover=False).start()
    reader.gate.clear()
    hub.publish("orders", "0", ["event"] * 100)
    eventually(lambda: reader.count == 10)
    # The second batch waits to be taken when the partition goes to somebody else.
    kept.claim(DEAD, "0")
    eventually(lambda: waits_in_vain(reader))
    reader.gate.set()
    eventually(lambda: reader.of("lost"))
    assert reader.numbers("0") == [*range(10)]


def waits_in_vain(reader):
    """Whether the notice of a loss waits for the loop."""
    return not reader._inner._sessions


def test_a_lost_partition_is_left_out_of_a_commit_and_named(member, hub, kept, caplog):
    reader = member(commits=False).start()
    eventually(lambda: reader.count == 210)
    kept.claim(DEAD, "0")
    eventually(lambda: reader.of("lost") == [("0",)])
    eventually(lambda: not reader._inner._positions.handed_out.get("0"))
    reader.commit()
    assert reader.of("saved") == [({"1": 99, "2": 9}, {"0": 99})]
    assert kept.numbers() == {"1": 99, "2": 9}
    assert "partition 0 is no longer held: the events up to 99" in caplog.text
    hub.publish("orders", "1", ["event"])
    eventually(lambda: reader.count == 211)
    reader.commit()
    assert reader.of("saved")[1] == ({"1": 100}, {})


@pytest.mark.parametrize("handover", [True, False])
def test_a_store_that_raises_is_heard_of_a_lost_partition(
    variant, member, kept, opened, caplog, handover
):
    store = variant.open_store(kept.url, on_stale="raise")
    opened.callback(variant.close, store)
    reader = member(store=store, commits=False, handover=handover).start()
    eventually(lambda: reader.count == 210)
    kept.claim(DEAD, "0")
    eventually(lambda: reader.of("lost") == [("0",)])
    eventually(lambda: not reader._inner._positions.handed_out.get("0"))
    with pytest.raises(StaleCheckpointError, match="no longer held"):
        reader.commit()
    assert reader.batches.lost == {"0": 99}
    assert kept.numbers() == {"1": 99, "2": 9}
    reader.commit()
    assert reader.of("saved") == [({}, {})]


def test_a_partition_that_was_committed_is_lost_without_a_word(member, kept, caplog):
    reader = member().start()
    eventually(lambda: reader.count == 210 and len(kept.numbers()) == 3)
    eventually(lambda: len(reader.of("saved")) == len(reader.of("batch")))
    kept.claim(DEAD, "0")
    eventually(lambda: reader.of("lost") == [("0",)])
    reader.commit()
    assert reader.of("saved")[-1] == ({}, {})
    assert "no longer held" not in caplog.text


def test_the_partitions_of_a_member_that_is_gone_are_taken_when_they_expire(member, kept):
    kept.claim(DEAD, "0", "1")
    kept.save("0", 49)
    reader = member(partition_ownership_expiration_interval=1.0).start()
    eventually(lambda: reader.held == {*ALL} and reader.count == 160)
    assert reader.numbers("0") == [*range(50, 100)]


def test_a_partition_is_assigned_again_after_its_loss(member, hub, kept):
    reader = member(partition_ownership_expiration_interval=1.0).start()
    eventually(lambda: reader.count == 210)
    eventually(lambda: len(kept.numbers()) == 3)
    kept.claim(DEAD, "0")
    eventually(lambda: kinds_of(reader, "0") == ["assigned", "batch", "lost", "assigned"])
    hub.publish("orders", "0", ["event"])
    eventually(lambda: reader.count == 211)
    assert reader.numbers("0") == [*range(101)]


# Official clients


@pytest.mark.parametrize(
    ("variant", "kept", "handover"),
    [("sync", "sqlite", True), ("aio", "memory", False)],
    indirect=["variant", "kept"],
)
def test_an_official_client_joins_and_leaves(member, official, hub, handover):
    reader = member().start()
    eventually(lambda: reader.held == {*ALL} and reader.count == 210)
    other = official(handover=handover)
    hub_counts = {each: len(numbers) for each, numbers in ALL.items()}

    def publish():
        for each in ALL:
            hub.publish("orders", each, ["event"])
            hub_counts[each] += 1
        return True

    eventually(lambda: publish() and other.numbers)
    (moved,) = other.numbers
    eventually(lambda: moved not in reader.held)
    other.stop()
    eventually(lambda: reader.held == {*ALL})
    publish()
    expected = {each: [*range(count)] for each, count in hub_counts.items()}
    found = {
        each: lambda each=each: sorted({*reader.numbers(each), *other.numbers.get(each, [])})
        for each in ALL
    }
    eventually(lambda: {each: numbers() for each, numbers in found.items()} == expected)
    if handover:
        assert not {*reader.numbers(moved)} & {*other.numbers[moved]}


def test_a_member_joins_official_clients(member, official, hub):
    """They do not answer a request, so their partition is taken when that expires."""
    other = official()
    eventually(lambda: sum(map(len, other.numbers.values())) == 210)
    reader = member(partition_ownership_expiration_interval=1.0).start()
    eventually(lambda: reader.held)
    for each in ALL:
        hub.publish("orders", each, ["event"] * 5)

    def numbers(each):
        return sorted({*reader.numbers(each), *other.numbers.get(each, [])})

    expected = {each: [*range(len(rows) + 5)] for each, rows in ALL.items()}
    eventually(lambda: {each: numbers(each) for each in ALL} == expected)


# In one process


def test_a_callback_that_raises_ends_no_iteration(variant, address, kept):
    errors = [ValueError("mine")]

    def on_assigned(partition):
        if errors:
            raise errors.pop()

    settings = {"store": kept.url, "max_wait": 0.0, "on_assigned": on_assigned}
    with variant.consume_batches(address, **settings) as batches:
        with pytest.raises(ValueError, match="mine"):
            next(batches)
        take(batches, 210)


def test_callbacks_may_be_coroutine_functions_of_aio_only(variant, address, kept):
    called = []

    async def on_assigned(partition):
        called.append(partition)

    settings = {"store": kept.url, "max_wait": 0.0, "on_assigned": on_assigned}
    if not variant.is_async:
        with pytest.raises(ConfigurationError, match=r"is async; .* or consume_batches of"):
            variant.consume_batches(address, **settings)
        return
    with variant.consume_batches(address, **settings) as batches:
        take(batches, 210)
    assert sorted(called) == [*ALL]


def test_threads_share_the_batches_and_none_comes_twice(variant, address, kept):
    found, lock = [], threading.Lock()
    settings = {"store": kept.url, "max_rows": 10, "max_wait": 0.0}
    with variant.consume_batches(address, **settings) as batches:

        def read():
            for batch in batches:
                with lock:
                    found.extend(
                        zip(
                            batch["partition"].to_pylist(),
                            batch["sequenceNumber"].to_pylist(),
                            strict=True,
                        )
                    )

        threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(found) >= 210)
        assert len({*kept.owners().values()}) == 1
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(found) == sorted((each, number) for each in ALL for number in ALL[each])
