"""A hook that returns something else than it has to, and a store with an attribute `store`."""

import traceback
from typing import Any

import pytest

from eventhub_checkpoints import MemoryCheckpointStore, aio
from eventhub_checkpoints._shared.wrapping import innermost
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.hook_results import Lost

SCOPE = Scope("ns", "orders", "$Default")
RESULTS = [None, True, "won"]
NAMES = {
    "read_ownerships": "Listing",
    "try_claim": "Won or Lost",
    "try_claims": "Won or Lost or Exception",
    "read_checkpoints": "Listing",
    "write_checkpoint": "Written or Conflict",
}


@pytest.fixture(params=["sync", "aio"])
def make(request: pytest.FixtureRequest, loop: Loop) -> Any:
    """Makes a client of a store one of whose hooks returns an object."""

    def made(hook: str, result: object) -> Client:
        kind: Any = MemoryCheckpointStore if request.param == "sync" else aio.MemoryCheckpointStore

        def returns(*_: object) -> object:
            return result

        async def returns_later(*_: object) -> object:
            return result

        function = returns if request.param == "sync" else returns_later
        # Its name is not that of the hook, as behind a decorator without `functools.wraps`.
        return Client(type("Mine", (kind,), {hook: function})(), SCOPE, loop)

    return made


@pytest.mark.parametrize("result", RESULTS, ids=map(repr, RESULTS))
@pytest.mark.parametrize("hook", [name for name in NAMES if name != "try_claims"])
def test_a_hook_that_returns_something_else_is_named(make: Any, hook: str, result: object) -> None:
    client = make(hook, result)
    calls = {
        "read_ownerships": client.list_ownership,
        "try_claim": lambda: client.claim_ownership([client.proposal("0", "me")]),
        "read_checkpoints": client.list_checkpoints,
        "write_checkpoint": lambda: client.save("0", 1),
    }
    with pytest.raises(StoreError) as failure:
        calls[hook]()
    kind = type(result).__name__
    assert str(failure.value) == f"Mine.{hook} returned {kind}; expected {NAMES[hook]}"


def test_an_answer_of_a_batch_that_is_something_else_is_named(make: Any) -> None:
    client = make("try_claims", [None, None])
    with pytest.raises(StoreError, match="try_claims returned NoneType; expected Won or Lost"):
        client.claim_ownership([client.proposal(key, "me") for key in "01"])


BATCHES = {
    "True": (True, "Mine.try_claims returned bool; expected a list of answers, or None"),
    "short": ([Lost()], "Mine.try_claims returned 1 answers to 2 proposals"),
    "long": ([Lost()] * 3, "Mine.try_claims returned 3 answers to 2 proposals"),
}


@pytest.mark.parametrize(("answers", "said"), BATCHES.values(), ids=BATCHES)
def test_a_batch_without_an_answer_to_each_proposal_is_named(
    make: Any, answers: object, said: str
) -> None:
    client = make("try_claims", answers)
    with pytest.raises(StoreError) as failure:
        client.claim_ownership([client.proposal(key, "me") for key in "01"])
    assert str(failure.value) == said


@pytest.mark.parametrize("variant", ["sync", "aio"])
@pytest.mark.parametrize("result", [*RESULTS, OSError("gone")], ids=map(repr, [*RESULTS, OSError]))
def test_an_error_that_is_not_mapped_to_one_of_this_package_is_shown_all_the_same(
    variant: str, result: object, loop: Loop
) -> None:
    kind: Any = MemoryCheckpointStore if variant == "sync" else aio.MemoryCheckpointStore
    failing: Any = type("Mine", (kind,), {"map_error": lambda self, error: result})()
    driver_error = ValueError("no such index, password=secret1")

    class Rows:
        def ownerships(self, scope: Scope) -> object:
            raise driver_error

    failing.rows = Rows()
    with pytest.raises(StoreError) as failure:
        Client(failing, SCOPE, loop).list_ownership()
    assert str(failure.value) == (
        f"Mine.map_error returned {type(result).__name__}; expected CheckpointStoreError, "
        "for ValueError: no such index, password=***"
    )
    assert failure.value.__cause__ is None, "it would show the secret"
    assert "secret1" not in "".join(traceback.format_exception(failure.value))
    driver_error.args = ("no such index",)
    with pytest.raises(StoreError) as failure:
        Client(failing, SCOPE, loop).list_ownership()
    assert failure.value.__cause__ is driver_error


def test_a_store_with_hooks_wraps_none_whatever_its_attribute_store_is() -> None:
    class Mine(MemoryCheckpointStore):
        store: object

    for attribute in ("a string", MemoryCheckpointStore()):
        mine = Mine()
        mine.store = attribute
        assert innermost(mine) is mine
