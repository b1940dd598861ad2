"""Names of the base class, as a custom store may and may not use them."""

import re
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import base
from eventhub_checkpoints.abilities import Deletes, KeepsHistory, ListsScopes, Replaces
from eventhub_checkpoints.aio import base as aio_base
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.hooks import Hooks

SCOPE = Scope("orders.servicebus.windows.net", "orders", "$Default")
HOOKS = [name for name in vars(Hooks) if not name.startswith("_")]
PAGE = Path(__file__).parents[3] / "docs" / "custom-store.md"
SECTION = PAGE.read_text().partition("## Names")[2].partition("\n## ")[0]
ROWS = [line.split("|")[1] for line in SECTION.splitlines() if line.startswith("| `")]
OWN = [name for row in ROWS for name in re.findall(r"`(\w+)`", row)]
"""The names of the base class that are no hooks, as the tutorial lists them."""
FORMER = [
    "_call",
    "_claim_all",
    "_close_again",
    "_closed_error",
    "_closed_in",
    "_delete",
    "_examine",
    "_in_flight",
    "_interactive",
    "_is_closing",
    "_is_let_go",
    "_is_open",
    "_is_own",
    "_is_unreachable",
    "_keywords",
    "_known",
    "_learn",
    "_list",
    "_list_checkpoints",
    "_mapped",
    "_move",
    "_moving",
    "_opening",
    "_place",
    "_probe",
    "_process_id",
    "_ready",
    "_recognise",
    "_refuse_stale",
    "_release",
    "_release_all",
    "_release_in_turn",
    "_releasing",
    "_remembered",
    "_replace",
    "_report",
    "_reported",
    "_report_unreachable",
    "_request",
    "_rewind",
    "_rows",
    "_settle",
    "_state_lock",
    "_states",
    "_try_batch",
    "_try_one",
    "_update",
    "_update_in_turn",
    "_verify",
    "_warn_of_owner",
    "_write",
    "_write_lock",
    "_write_locks",
]
"""Names that helpers of a store are likely to have."""


def test_the_base_class_has_one_private_name_and_the_public_ones_of_the_tutorial() -> None:
    store = MemoryCheckpointStore()
    inherited = {name for kind in base.BaseCheckpointStore.__mro__[:-1] for name in vars(kind)}
    mangled = {name for name in vars(store) if name.startswith("_BaseCheckpointStore__")}
    names = {
        name
        for name in inherited | vars(store).keys()
        if not name.startswith("__") and not name.startswith("_abc")
    }
    assert names - mangled == {*OWN, *HOOKS, "rows", "twin"}


@pytest.mark.parametrize("kind", [base.BaseCheckpointStore, aio_base.BaseCheckpointStore])
def test_a_store_that_redefines_what_is_no_hook_is_refused(kind: type) -> None:
    for name in OWN:
        for value in (lambda self, row: row, 5, property(lambda self: 5)):
            with pytest.raises(ConfigurationError, match=f"Mine redefines {name} of Base"):
                type("Mine", (kind,), {name: value})


def test_so_is_one_that_inherits_it_from_a_class_of_its_own() -> None:
    helper = type("Helper", (), {"verify": lambda self: True})
    with pytest.raises(ConfigurationError, match="Mine redefines verify"):
        type("Mine", (helper, base.BaseCheckpointStore), {})


@pytest.mark.parametrize(
    ("ability", "name"),
    [
        (ListsScopes, "list_scopes"),
        (Deletes, "delete_scope"),
        (Deletes, "delete_partition"),
        (Replaces, "replace_checkpoint"),
        (KeepsHistory, "list_history"),
    ],
)
def test_the_methods_of_an_ability_are_the_stores_that_declare_it(ability: Any, name: str) -> None:
    type("Mine", (base.BaseCheckpointStore,), {name: lambda self: 5})
    with pytest.raises(
        ConfigurationError, match=f"Mine redefines {name} of {ability.__name__}, but"
    ):
        type("Mine", (ability, base.BaseCheckpointStore), {name: lambda self: 5})


@pytest.mark.parametrize("kind", [base.BaseCheckpointStore, aio_base.BaseCheckpointStore])
def test_a_helper_by_the_name_of_a_hook_is_refused(kind: type) -> None:
    for name in HOOKS:
        if not callable(getattr(kind, name)):
            continue
        with pytest.raises(ConfigurationError, match=f"Mine.{name} must take the arguments"):
            type("Mine", (kind,), {name: lambda self, one, two, three: None})


def test_an_own_attribute_by_the_name_of_one_of_the_base_class_is_refused() -> None:
    for name in ("counters", "writer", "_engine"):
        with pytest.raises(AttributeError, match=f"property '{name}' .* has no setter"):
            setattr(MemoryCheckpointStore(), name, {})
    with pytest.raises(
        ConfigurationError, match=r"settings is .*; expected the settings of a store"
    ):
        MemoryCheckpointStore().settings = {}  # type: ignore[assignment]


def test_every_other_name_is_free() -> None:
    helpers = dict.fromkeys(FORMER, lambda self: pytest.fail("called by the base class"))
    mine: Any = type("Mine", (MemoryCheckpointStore,), {**helpers, "_engines": 5})
    store = mine()
    vars(store).update(dict.fromkeys(FORMER, 5))
    row = {**SCOPE.as_dict(), "partition_id": "0"}
    [won] = store.claim_ownership([{**row, "owner_id": "me"}])
    store.update_checkpoint({**row, "offset": "5", "sequence_number": 5})
    assert store.list_ownership(*SCOPE)[0]["etag"] == won["etag"]
    assert [each["sequence_number"] for each in store.list_checkpoints(*SCOPE)] == [5]
    store.verify()
    assert store.claim_ownership([{**won, "owner_id": ""}])
    store.close()
