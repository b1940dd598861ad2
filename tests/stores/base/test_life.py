"""A store's life: opened once, verified, shared by threads, forked, closed."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import (
    ConfigurationError,
    MemoryCheckpointStore,
    Scope,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from forks import in_a_child

PROBE = Scope("eventhub-checkpoints", "verify", "probe")
NO_ANSWER = StoreUnavailableError("no answer")
THREADS = 8


def all_at_once(calls: list[Callable[[], Any]]) -> None:
    """Start every call in a thread of its own at the same moment; the first error is raised."""
    barrier, failures = threading.Barrier(len(calls)), []

    def run(call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            call()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("kind", [MemoryCheckpointStore, AioMemoryCheckpointStore])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operation_timeout", 0),
        ("write_timeout", "10"),
        ("keep_unconfirmed", -1),
        ("max_concurrency", 0),
        ("on_stale", "ignore"),
    ],
)
def test_a_bad_setting_is_refused_where_it_is_given(kind, name, value) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name} is {value!r}"):
        kind(**{name: value})


@pytest.mark.parametrize("kind", [MemoryCheckpointStore, AioMemoryCheckpointStore])
def test_a_store_is_true_for_the_client_replaces_one_that_is_false(kind) -> None:
    assert kind()
    assert not hasattr(kind, "__len__")


def test_a_store_is_opened_once_before_its_first_use(store) -> None:
    assert store.faults.calls == []
    all_at_once([store.list_ownership] * THREADS)
    assert store.faults.count("open") == 1


def test_opening_is_tried_again(store, make_fault) -> None:
    store.faults.plan("open", make_fault(error=NO_ANSWER))
    store.take()
    assert store.faults.calls == ["open", "open", "try_claim"]


def test_a_store_that_could_not_be_opened_is_opened_at_its_next_use(store, make_fault) -> None:
    store.faults.plan("open", make_fault(error=StoreNotReadyError("no container")))
    with pytest.raises(StoreNotReadyError):
        store.list_ownership()
    assert store.list_ownership() == []


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.update(1),
        lambda store: store.list_ownership(),
        lambda store: store.claim(*[]) or store.take(),
    ],
)
def test_a_store_that_hangs_while_it_is_opened_is_given_up_in_time(make, make_fault, call) -> None:
    store = make(operation_timeout=0.5, write_timeout=0.5)
    store.faults.always["open"] = make_fault(hangs=True)
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError):
        call(store)
    assert time.monotonic() - began < 10


def test_who_waits_for_the_opening_waits_no_longer_than_its_own_bound(make, make_fault) -> None:
    store, gate = make(operation_timeout=18.0, write_timeout=0.4), threading.Event()
    slow = store.faults.plan("open", make_fault(gate=gate))
    opener = threading.Thread(target=store.list_ownership)
    opener.start()
    try:
        assert slow.entered.wait(5)
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError):
            store.update(1)
        assert time.monotonic() - began < 8
    finally:
        gate.set()
        opener.join()


def test_a_list_that_waits_too_long_for_the_opening_is_told_so(make, make_fault) -> None:
    store, gate = make(operation_timeout=0.4), threading.Event()
    slow = store.faults.always["open"] = make_fault(gate=gate)

    def open_it() -> None:
        with pytest.raises(StoreUnavailableError):
            store.list_ownership()

    opener = threading.Thread(target=open_it)
    opener.start()
    try:
        assert slow.entered.wait(5)
        with pytest.raises(StoreUnavailableError):
            store.list_checkpoints()
    finally:
        gate.set()
        opener.join()


BOTH_KINDS = ["try_claim", "read_ownerships", "try_claim", "read_checkpoints", "write_checkpoint"]


def test_verifying_reads_and_writes_both_kinds_each_time(store) -> None:
    store.run("verify")
    assert store.faults.calls == ["open", *BOTH_KINDS]
    store.run("verify")
    assert store.faults.calls == ["open", *BOTH_KINDS, *BOTH_KINDS]


def test_verifying_writes_over_an_ownership_too(store) -> None:
    store.run("verify")
    (before,) = store.rows.ownerships(PROBE).rows
    store.run("verify")
    (after,) = store.rows.ownerships(PROBE).rows
    assert after.etag != before.etag


def test_verifying_leaves_two_rows_that_no_client_sees(make) -> None:
    for store in (make(), make()):
        store.run("verify")
        store.run("verify")
    assert store.rows.scopes() == [PROBE]
    assert [len(store.rows.raw(kind)) for kind in ("ownership", "checkpoint")] == [1, 1]
    assert store.list_ownership() == store.list_checkpoints() == []


def test_verifying_disturbs_no_consumer(make) -> None:
    consumer, other = make(on_stale="raise"), make()
    mine = consumer.take()
    consumer.update(7)
    consumer.run("verify")
    other.run("verify")
    assert consumer.take(etag=mine["etag"])
    consumer.update(8)
    assert (consumer.owner(), consumer.stored()) == ("me", 8)


def test_several_may_verify_at_once(make) -> None:
    stores = [make() for _ in range(THREADS)]
    all_at_once([lambda store=store: store.run("verify") for store in stores])
    all_at_once([lambda: stores[0].run("verify")] * THREADS)


@pytest.mark.parametrize("hook", [*dict.fromkeys(BOTH_KINDS)])
@pytest.mark.parametrize(
    ("error", "kind"),
    [(PermissionError("no right"), StoreAccessError), (NO_ANSWER, StoreUnavailableError)],
)
def test_verifying_says_what_is_wrong(make, make_fault, hook, error, kind) -> None:
    store = make(operation_timeout=0.3)
    store.faults.always[hook] = make_fault(error=error)
    with pytest.raises(kind):
        store.run("verify")


def test_closing_twice_is_no_error(store) -> None:
    store.take()
    store.run("close")
    store.run("close")


def test_a_with_block_closes(make) -> None:
    subject = make()
    closed = []
    original = subject.store.close
    subject.store.close = lambda: closed.append(1) or original()
    enter, leave = ("__aenter__", "__aexit__") if subject.is_aio else ("__enter__", "__exit__")
    assert subject.run(enter) is subject.store
    subject.run(leave, None, None, None)
    assert closed == [1]


def test_a_store_is_used_by_several_threads_at_once(store) -> None:
    def work(partition_id: str) -> None:
        won = store.take(partition_id)
        for number in range(20):
            store.update(number, partition_id)
            won = store.take(partition_id, etag=won["etag"])
            store.list_checkpoints()
            store.list_ownership()
        store.claim(won | {"owner_id": ""})

    all_at_once([lambda key=str(key): work(key) for key in range(THREADS)])
    assert {store.stored(str(key)) for key in range(THREADS)} == {19}
    assert {store.owner(str(key)) for key in range(THREADS)} == {""}


def test_of_racing_first_claims_one_wins(make) -> None:
    stores = [make() for _ in range(THREADS)]
    won: list[dict[str, Any]] = []
    proposal = make().take("other") | {"partition_id": "0", "etag": ""}
    calls = [
        lambda one=one, key=key: won.extend(one.claim(proposal | {"owner_id": f"owner {key}"}))
        for key, one in enumerate(stores)
    ]
    all_at_once(calls)
    assert [row["owner_id"] for row in won] == [stores[0].owner()]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_store_works_in_parent_and_child_after_a_fork(make) -> None:
    subject = make()
    subject.update(1)

    def in_the_child() -> None:
        subject.renew_loop()
        assert subject.list_checkpoints()[0]["sequence_number"] == 1
        subject.update(2)
        subject.take()
        assert subject.stored() == 2

    assert in_a_child(in_the_child) == 0
    subject.update(3)
    assert subject.stored() == 3


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("hook", ["open", "write_checkpoint", "read_checkpoints"])
def test_a_lock_that_a_thread_held_at_the_fork_is_free_in_the_child(make, make_fault, hook) -> None:
    subject, gate = make(), threading.Event()
    fault = subject.faults.plan(hook, make_fault(gate=gate))
    call = subject.list_checkpoints if hook == "read_checkpoints" else lambda: subject.update(1)
    thread = threading.Thread(target=call)
    thread.start()
    assert fault.entered.wait(5)

    def in_the_child() -> None:
        subject.renew_loop()
        subject.update(2)
        subject.list_checkpoints()

    status = in_a_child(in_the_child)
    gate.set()
    thread.join()
    assert status == 0
    subject.update(3)
