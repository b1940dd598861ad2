"""A store's life: opened once, verified, shared by threads, forked, closed."""

import asyncio
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from eventhub_checkpoints import (
    ConfigurationError,
    MemoryCheckpointStore,
    Scope,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from forks import in_a_child
from waiting import LIMIT, eventually

PROBE = Scope("eventhub-checkpoints", "verify", "probe")
NO_ANSWER = StoreUnavailableError("no answer")
THREADS = 8
Script = Generator[tuple[Any, ...], Any, None]


def script(store: Any, method: str, *args: Any) -> Script:
    """One call, for `all_at_once`."""
    yield store, method, *args


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
    store.all_at_once([script(store, "list_ownership", *store.scope) for _ in range(THREADS)])
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
    ("call", "seconds"),
    [
        (lambda store: store.update(1), 2.0),
        (lambda store: store.list_ownership(), 3.0),
        (lambda store: store.claim(*[]) or store.take(), 3.0),
    ],
)
def test_a_store_that_hangs_while_it_is_opened_is_given_up_in_time(
    make_aio, make_fault, call, seconds
) -> None:
    store = make_aio(operation_timeout=3.0, write_timeout=2.0)
    store.faults.always["open"] = make_fault(hangs=True)
    with store.takes(seconds), pytest.raises(StoreUnavailableError):
        call(store)


def test_who_waits_for_the_opening_waits_no_longer_than_its_own_bound(
    timed, make_fault, gate
) -> None:
    store = timed(operation_timeout=LIMIT, write_timeout=0.4)
    slow = store.faults.plan("open", make_fault(gate=gate))
    opener = store.begin("list_ownership", *store.scope)
    try:
        store.until(slow.entered)
        with store.takes(0.4), pytest.raises(StoreUnavailableError, match="still being opened"):
            store.update(1)
    finally:
        gate.set()
        store.ended(opener)


def test_a_list_that_waits_too_long_for_the_opening_is_told_so(make_aio, make_fault) -> None:
    store = make_aio(operation_timeout=4.0)
    slow = store.faults.always["open"] = make_fault(hangs=True)
    opener = store.begin("list_ownership", *store.scope)
    store.until(slow.entered)
    store.let_pass(1.0)
    store.limit(operation_timeout=2.0)
    with store.takes(2.0), pytest.raises(StoreUnavailableError, match="still being opened"):
        store.list_checkpoints()
    with store.takes(1.0), pytest.raises(StoreUnavailableError):
        store.ended(opener)


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
    stores[0].all_at_once([script(store, "verify") for store in stores])
    stores[0].all_at_once([script(stores[0], "verify") for _ in stores])


@pytest.mark.parametrize("hook", [*dict.fromkeys(BOTH_KINDS)])
@pytest.mark.parametrize(
    ("error", "kind"),
    [(PermissionError("no right"), StoreAccessError), (NO_ANSWER, StoreUnavailableError)],
)
def test_verifying_says_what_is_wrong(make, make_fault, hook, error, kind) -> None:
    # Where there is no answer, it tries again until the time is over.
    store = make(operation_timeout=0.3) if error is NO_ANSWER else make()
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


def test_a_store_is_used_by_several_threads_or_tasks_at_once(store) -> None:
    def work(partition_id: str) -> Script:
        names = store.scope.as_dict() | {"partition_id": partition_id}
        (won,) = yield store, "claim_ownership", [names | {"owner_id": "me"}]
        for number in range(20):
            yield store, "update_checkpoint", names | {"offset": "1", "sequence_number": number}
            (won,) = yield store, "claim_ownership", [won]
            yield store, "list_checkpoints", *store.scope
            yield store, "list_ownership", *store.scope
        yield store, "claim_ownership", [won | {"owner_id": ""}]

    store.all_at_once([work(str(key)) for key in range(THREADS)])
    assert {store.stored(str(key)) for key in range(THREADS)} == {19}
    assert {store.owner(str(key)) for key in range(THREADS)} == {""}


def test_of_racing_first_claims_one_wins(make) -> None:
    stores = [make() for _ in range(THREADS)]
    won: list[dict[str, Any]] = []
    proposal = stores[0].scope.as_dict() | {"partition_id": "0"}

    def claim(store: Any, owner_id: str) -> Script:
        won.extend((yield store, "claim_ownership", [proposal | {"owner_id": owner_id}]))

    stores[0].all_at_once([claim(store, f"owner {key}") for key, store in enumerate(stores)])
    assert [row["owner_id"] for row in won] == [stores[0].owner()]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_store_works_in_parent_and_child_after_a_fork(make) -> None:
    subject = make()
    subject.update(1)

    def in_the_child() -> None:
        subject.in_a_fork()
        assert subject.list_checkpoints()[0]["sequence_number"] == 1
        subject.update(2)
        subject.take()
        assert subject.stored() == 2

    assert in_a_child(in_the_child) == 0
    subject.update(3)
    assert subject.stored() == 3


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("hook", ["open", "write_checkpoint", "read_checkpoints"])
def test_a_lock_that_a_thread_held_at_the_fork_is_free_in_the_child(
    make, make_fault, gate, hook
) -> None:
    subject = make(operation_timeout=LIMIT, write_timeout=LIMIT)
    fault = subject.faults.plan(hook, make_fault(gate=gate))
    method = {"read_checkpoints": "list_checkpoints"}.get(hook)
    call = subject.begin(method, *subject.scope) if method else subject.begin_update(1)
    subject.until(fault.entered)

    def in_the_child() -> None:
        subject.in_a_fork()
        subject.update(2)
        subject.list_checkpoints()

    status = in_a_child(in_the_child)
    gate.set()
    subject.ended(call)
    assert status == 0
    subject.update(3)


def is_closed(store: Any) -> bool:
    """Whether a call is refused because of that."""
    try:
        store.list_ownership()
    except StoreError as refusal:
        return "is closed: close a store after the client" in str(refusal)
    return False


@pytest.mark.parametrize(
    ("hook", "method"),
    [
        ("open", "list_checkpoints"),
        ("read_checkpoints", "list_checkpoints"),
        ("write_checkpoint", "update_checkpoint"),
    ],
)
def test_closing_waits_for_what_the_backend_is_being_asked(timed, make_fault, hook, method) -> None:
    store = timed()
    slow = store.faults.plan(hook, make_fault(seconds=2.0))
    is_write = method == "update_checkpoint"
    call = store.begin_update(7) if is_write else store.begin(method, *store.scope)
    store.until(slow.entered)
    with store.takes(2.0):
        store.run("close")
    assert store.faults.running == 0
    if hook == "open":
        with pytest.raises(StoreError, match="is closed"):
            store.ended(call)
    else:
        store.ended(call)
    assert store.stored() == (7 if is_write else None)


def test_closing_ends_with_the_attempt_that_hangs(timed, make_fault) -> None:
    store = timed(operation_timeout=4.0, write_timeout=2.0)
    hung = store.faults.plan("write_checkpoint", make_fault(hangs=True, carried_out=True))
    update = store.begin_update(7)
    store.until(hung.entered)
    with store.takes(1.0):
        store.run("close")
    assert store.faults.count("write_checkpoint") == 1
    with pytest.raises(StoreError, match="is closed"):
        store.ended(update)
    assert store.faults.count("write_checkpoint") == 1


@pytest.mark.parametrize(("operation", "write"), [(3.0, 2.0), (2.0, 3.0)])
def test_closing_takes_no_longer_than_the_longer_limit(timed, gate, operation, write) -> None:
    store = timed(operation_timeout=operation, write_timeout=write)
    entered, write_checkpoint = type(gate)(), store.store.write_checkpoint

    async def stubborn(*args: Any) -> Any:
        entered.set()
        while not gate.is_set():
            with suppress(asyncio.CancelledError):
                await gate.opened()
        return await write_checkpoint(*args)

    def stubborn_sync(*args: Any) -> Any:
        entered.set()
        gate.wait()
        return write_checkpoint(*args)

    store.store.write_checkpoint = stubborn if store.is_aio else stubborn_sync
    update = store.begin_update(7)
    try:
        store.until(entered)
        with store.takes(3.0):
            store.run("close")
    finally:
        gate.set()
        store.ended(update)


def test_a_release_while_a_store_is_being_closed_uses_what_is_open(store, make_fault, gate) -> None:
    won = store.take()
    writing = store.faults.plan("write_checkpoint", make_fault(gate=gate))
    update = store.begin_update(7, "1")
    store.until(writing.entered)
    closing = store.begin("close")
    eventually(lambda: is_closed(store))
    assert len(store.claim(won | {"owner_id": ""})) == 1
    assert store.faults.count("open") == 1
    assert not closing.done()
    gate.set()
    store.ended(update)
    store.ended(closing)
    assert (store.stored("1"), store.owner()) == (7, "")
