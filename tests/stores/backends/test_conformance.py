"""Every store keeps the contract, on its real server, sync and async.

An item is a store, not a check: it runs the checks that were chosen for the store, all of which
must pass, and its message has a line for each that did not, also for one that could not be run.
Which checks those are:

- Those that look at a store from outside: every backend, both variants.
- Those of the author's accessors, such as rows of other writers: likewise, where the backend has
  the accessor; `lacks` of a backend says which it has not, and a test compares.
- Those of faults between our base class and the hooks: in memory; on Blob, which claims singly; and
  on PostgreSQL, which claims a batch in one trip. For them no other backend differs.
- Wrappers (coalescing, hand-over): in memory and on one server.

Those that let a limit pass (also of a server that is suspended) and those that race processes are
`long`. `conformance/test_limits.py` has the former on a simulated clock. With all checks, one store
is certified here, and one that claims singly in `test_custom_store.py`; in a campaign, every store.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import pytest

from backends import BACKENDS, VARIANTS, Backend, Place, Variant
from campaigns import IS_CAMPAIGN
from conformance_checks import (
    BETWEEN_PROCESSES,
    CONCURRENT_CLAIMS,
    LIMITS,
    OF_NAMES_WITHOUT_CASE,
    PROMPT,
    black_box,
    not_kept,
    without,
)
from eventhub_checkpoints import (
    CoalescingCheckpointStore,
    HandoverStore,
    aio,
    open_store,
)
from eventhub_checkpoints.conformance import (
    CHECKS,
    Accessors,
    Certificate,
    Certifier,
    Check,
    certify,
)
from eventhub_checkpoints.conformance.contract import BASE
from eventhub_checkpoints.conformance.faults import LONGEST_HANG
from eventhub_checkpoints.processing import handover
from stores_in_turn import in_turn
from waiting import LIMIT

ACCESSORS = {"put_raw", "stall", "shift_clock"}
SINGLY, IN_ONE_TRIP = ("memory", "blob"), ("postgres",)
"""Backends whose hooks are made to fail, by how they claim a batch."""
SHORT = "a_short_stall_costs_nothing"
"""The check of a suspended server that suspends it twice, and not until a limit is over."""
CERTIFIED = ("sqlite", "aio")
"""The store that is certified with all checks; it claims in one trip."""
EXPIRY = 60.0
AT_ONCE = 1e-9
"""Every ownership has expired when another asks for it, so nobody is asked."""
TAKES_FROM_A_LIVE_OWNER = {
    "a_zombies_checkpoint_is_refused",
    "a_zombie_of_the_first_checkpoint_is_refused",
    "a_checkpoint_above_a_strangers_is_stored",
    "a_new_owner_may_start_again_at_zero",
    "the_list_after_a_claim_clears_the_floor",
    "listed_rows_can_be_claimed_as_they_are",
    "a_late_release_spares_a_newer_claim",
    "a_strangers_row_is_taken_by_its_etag_only",
    "a_limit_of_one_group_limits_no_other",
}
"""Checks that begin with what a `HandoverStore` is there to prevent."""


def chosen(backend: Backend, checks: Sequence[Check]) -> list[Check]:
    """The checks that apply to a store of a backend: each of them has all that it needs."""
    has = without(backend.lacks, checks)
    if backend.compares_case:  # otherwise: `stores/table/test_names.py`
        has = [check for check in has if check.name not in OF_NAMES_WITHOUT_CASE]
    if backend.name in SINGLY:
        return has
    if backend.name in IN_ONE_TRIP:
        return [check for check in has if check.name not in CONCURRENT_CLAIMS]
    return [check for check in has if check.needs != (BASE,)]


Opening = tuple[Callable[[], Any], Accessors]


@pytest.fixture
def opening(backend: Backend, shared_place: Place, variant: Variant) -> Opening:
    """A factory of stores that other processes can be passed, and the backend's accessors."""
    # They cannot be passed the place, which holds connections.
    make_store = partial(aio.open_store if variant == "aio" else open_store, shared_place.url)
    return make_store, backend.accessors(shared_place)


def keeps(opening: Opening, checks: Sequence[Check]) -> None:
    """Assert that the stores pass all the checks, of which there are some."""
    assert checks
    with Certifier(*opening) as certifier:
        broken = not_kept(certifier, checks)
    assert not broken, "\n".join([f"{len(broken)} of {len(checks)}:", *broken])


def test_the_store_keeps_the_contract(backend: Backend, opening: Opening) -> None:
    keeps(opening, chosen(backend, PROMPT))


def test_a_backend_has_every_accessor_but_those_that_it_is_said_to_lack(
    backend: Backend, shared_place: Place
) -> None:
    given = backend.accessors(shared_place).names & ACCESSORS
    assert given == ACCESSORS - backend.lacks_here


class Suspension:
    """A server that is suspended once for several checks, which run at the same time.

    Args:
        stall: suspends it for so many seconds, or ends that.
        checks: how many checks call it, each at the beginning and at its end.
    """

    def __init__(self, stall: Callable[[float], None], checks: int) -> None:
        self._begin = threading.Barrier(checks, partial(stall, LONGEST_HANG), LIMIT)
        self._end = threading.Barrier(checks, partial(stall, 0.0), LIMIT)

    def __call__(self, seconds: float) -> None:
        (self._begin if seconds else self._end).wait()


@pytest.mark.long
@in_turn([name for name, kind in BACKENDS.items() if "stall" not in kind.lacks])
def test_a_suspended_server_costs_no_more_than_the_limit(
    backend: Backend, opening: Opening
) -> None:
    if "stall" in backend.lacks_here:
        pytest.skip(f"{backend.name} is no child process, so it cannot be suspended")
    make_store, accessors = opening
    assert accessors.stall is not None
    checks = [check for check in LIMITS if "stall" in check.needs and check.name != SHORT]
    once = replace(accessors, stall=Suspension(accessors.stall, len(checks)))
    with Certifier(make_store, once) as certifier, ThreadPoolExecutor(len(checks)) as pool:
        broken = pool.map(lambda check: not_kept(certifier, [check]), checks)
        assert [*broken] == [[]] * len(checks)
    keeps(opening, [check for check in LIMITS if check.name == SHORT])


@pytest.mark.long
@in_turn(
    [name for name, kind in BACKENDS.items() if kind.reaches_processes and name != CERTIFIED[0]]
)
def test_processes_that_race_for_the_store_find_one_winner(opening: Opening) -> None:
    keeps(opening, BETWEEN_PROCESSES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("backend", "variant"),
    [(name, variant) for name in BACKENDS for variant in VARIANTS] if IS_CAMPAIGN else [CERTIFIED],
    indirect=["backend"],
)
def test_the_store_is_certified_in_less_than_two_minutes(
    backend: Backend, variant: Variant, opening: Opening, tell: Callable[[str, str], None]
) -> None:
    """All checks, as the command runs them; on every backend in a campaign."""
    report = certify(*opening, name=f"{backend.name} {variant}")
    tell("conformance", f"{report.store}: {report.text().splitlines()[-1]}")
    assert report.certificate is (
        Certificate.CERTIFIED if backend.reaches_processes else Certificate.WITHIN_ONE_PROCESS
    ), report.text()
    assert report.seconds is not None
    assert report.seconds < 120


def test_sync_and_async_stores_race_each_other(backend: Backend, shared_place: Place) -> None:
    variants = cycle(VARIANTS)

    def make_store() -> Any:
        return shared_place.open(next(variants))

    races = [check for check in black_box() if check.function.__module__.endswith(".races")]
    keeps((make_store, backend.accessors(shared_place)), races)


class Flushing:
    """Makes coalescing stores over a place, and flushes those that are open before each list."""

    def __init__(self, place: Place, variant: Variant) -> None:
        self._place = place
        self._variant = variant
        self._flushes: dict[object, Callable[[], Any]] = {}

    def make(self) -> Any:
        if self._variant == "aio":
            return self._make_aio()
        store = Coalescing(self._place.open("sync"))
        store.forget = partial(self._flushes.pop, store)
        self._flushes[store] = store.flush
        return store

    async def _make_aio(self) -> Any:
        store, loop = AioCoalescing(self._place.open("aio")), asyncio.get_running_loop()

        def flush() -> Any:
            return asyncio.run_coroutine_threadsafe(store.flush(), loop).result()

        store.forget = partial(self._flushes.pop, store)
        self._flushes[store] = flush
        return store

    def settle(self) -> None:
        for flush in [*self._flushes.values()]:
            flush()


class Coalescing(CoalescingCheckpointStore):
    """Closes the store below, which nobody else holds here."""

    forget: Callable[..., Any]

    def close(self) -> None:
        super().close()
        self.store.close()
        self.forget(None)


class AioCoalescing(aio.CoalescingCheckpointStore):
    """The same, for asyncio."""

    forget: Callable[..., Any]

    async def close(self) -> None:
        await super().close()
        await self.store.close()
        self.forget(None)


class HandingOver(HandoverStore):
    """Closes the store below, which nobody else holds here."""

    def close(self) -> None:
        self.store.close()  # type: ignore[attr-defined]


class AioHandingOver(aio.HandoverStore):
    """The same, for asyncio."""

    async def close(self) -> None:
        await self.store.close()  # type: ignore[attr-defined]


def wrapped(variant: Variant) -> Any:
    """Parametrize: in memory, and on Blob in one variant; on every backend in a campaign."""
    all_stores = [(name, each) for name in BACKENDS for each in VARIANTS]
    chosen_stores = [("memory", "sync"), ("memory", "aio"), ("blob", variant)]
    stores = all_stores if IS_CAMPAIGN else chosen_stores
    return pytest.mark.parametrize(("backend", "variant"), stores, indirect=["backend"])


@wrapped("aio")
def test_a_coalescing_store_keeps_the_contract(
    backend: Backend, shared_place: Place, variant: Variant
) -> None:
    flushing, below = Flushing(shared_place, variant), backend.accessors(shared_place)
    accessors = Accessors(below.put_raw, shift_clock=below.shift_clock, settle=flushing.settle)
    # `settle` flushes no store of another process, so none can race.
    keeps((flushing.make, accessors), without(backend.lacks, black_box()))


TAKING = [check for check in black_box() if check.name in TAKES_FROM_A_LIVE_OWNER]
ASKING = [check for check in black_box() if check not in TAKING]


@pytest.fixture
def handing_over(
    backend: Backend, shared_place: Place, variant: Variant
) -> Callable[[float], Opening]:
    """Gives stores with hand-over, by the seconds until an ownership expires."""

    def opening(expires_after: float) -> Opening:
        def make() -> Any:
            if variant == "aio":
                return make_aio()
            return HandingOver(shared_place.open("sync"), expires_after=expires_after)

        async def make_aio() -> Any:
            return AioHandingOver(shared_place.open("aio"), expires_after=expires_after)

        return make, backend.accessors(shared_place)

    return opening


@wrapped("sync")
def test_a_store_with_hand_over_keeps_the_contract(
    backend: Backend, handing_over: Callable[[float], Opening], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks that take a partition of another do so when it has expired."""
    keeps(handing_over(EXPIRY), without(backend.lacks, ASKING))
    # Beside an expiry of no time, every client would be late, and so take nothing from others.
    monkeypatch.setattr(handover, "LATENESS", 0)
    keeps(handing_over(AT_ONCE), without(backend.lacks, TAKING))


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
def test_no_store_with_hand_over_takes_a_partition_of_a_live_owner(
    handing_over: Callable[[float], Opening],
) -> None:
    report = certify(*handing_over(EXPIRY), checks=TAKING)
    assert {each.check.name for each in report.failed} == TAKES_FROM_A_LIVE_OWNER, report.text()


def test_every_check_is_in_one_of_the_three_kinds() -> None:
    assert sorted(check.name for check in (*PROMPT, *LIMITS, *BETWEEN_PROCESSES)) == sorted(
        check.name for check in CHECKS
    )
