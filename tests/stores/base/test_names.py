"""Names of the base class, as a custom store may and may not use them."""

import inspect
import re
from abc import ABCMeta
from collections.abc import Iterator
from functools import cached_property, lru_cache, partial, partialmethod, wraps
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from eventhub_checkpoints import abilities, aio, base
from eventhub_checkpoints.abilities import Deletes, KeepsHistory, ListsScopes, Replaces
from eventhub_checkpoints.aio import abilities as aio_abilities
from eventhub_checkpoints.aio import base as aio_base
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.hooks import Hooks

SCOPE = Scope("orders.servicebus.windows.net", "orders", "$Default")
HOOKS = [name for name in vars(Hooks) if not name.startswith("_")]
FLAGS = [name for name in HOOKS if isinstance(vars(Hooks)[name], bool)]
BASES = [base.BaseCheckpointStore, aio_base.BaseCheckpointStore]
ABILITIES = ["ListsScopes", "Deletes", "KeepsHistory", "WritesInTransaction"]
"""Those that have hooks."""
PAGE = Path(__file__).parents[3] / "docs/how-to/custom-store.md"
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


def test_the_api_page_lists_every_hook() -> None:
    page = (PAGE.parents[1] / "reference/api/base.md").read_text()
    _, _, entry = page.partition(".base.BaseCheckpointStore\n")
    listed = re.findall(r"        - (\w+)", entry.partition("\n:::")[0])
    assert set(HOOKS) <= {*listed}


@pytest.mark.parametrize("kind", BASES)
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


def hooks_of(kind: type) -> Iterator[tuple[tuple[type, ...], str, Any]]:
    """The bases of a store that has each hook, the hook's name, and the hook."""
    for name in HOOKS:
        if name not in FLAGS:
            yield (kind,), name, getattr(kind, name)
    module: Any = abilities if kind is BASES[0] else aio_abilities
    for ability in (getattr(module, name) for name in ABILITIES):
        for name in sorted(ability.__abstractmethods__):
            yield (ability, kind), name, getattr(ability, name)


def refusal(bases: tuple[type, ...], name: str, value: object) -> str:
    """Why a class is refused that has something by a name, itself or from a mixin; `""`: it is not.

    Both are refused with the same words.
    """
    said = set()
    for mixins, members in ((), {name: value}), ((type("Mixin", (), {name: value}),), {}):
        try:
            type("Mine", (*mixins, *bases), members)
            said.add("")
        except ConfigurationError as error:
            said.add(str(error))
    [sentence] = said
    return sentence


def as_defined(hook: Any, is_async: bool, body: str = "return None") -> Any:
    """A function with the arguments of a hook."""
    names: dict[str, Any] = {}
    arguments = ", ".join(inspect.signature(hook).parameters)
    exec(f"{'async ' * is_async}def function({arguments}): {body}", names)
    return names["function"]


COROUTINES = (
    "in a store of eventhub_checkpoints.aio.base, hooks that perform I/O are coroutine functions; "
    "in one of eventhub_checkpoints.base, none are"
)


@pytest.mark.parametrize("kind", BASES)
def test_a_helper_by_the_name_of_a_hook_is_refused(kind: type) -> None:
    for bases, name, hook in hooks_of(kind):
        said = refusal(bases, name, lambda self, one, two, three, four: None)
        arguments = ", ".join(inspect.signature(hook).parameters)
        assert said.startswith(f"Mine.{name} must take the arguments ({arguments}) of the hook")


@pytest.mark.parametrize("kind", BASES)
def test_a_hook_that_is_defined_for_the_other_variant_is_refused(kind: type) -> None:
    for bases, name, hook in hooks_of(kind):
        is_async = inspect.iscoroutinefunction(hook)
        assert refusal(bases, name, as_defined(hook, is_async)) == ""
        definition = "`async def`" if is_async else "`def`"
        assert refusal(bases, name, as_defined(hook, not is_async)) == (
            f"Mine.{name} must be defined with {definition}, or have another name: {COROUTINES}"
        )


@pytest.mark.parametrize("kind", BASES)
def test_a_hook_that_yields_is_refused(kind: type) -> None:
    for bases, name, hook in hooks_of(kind):
        for is_async in (False, True):
            assert refusal(bases, name, as_defined(hook, is_async, "yield None")) == (
                f"Mine.{name} must return its result, not yield it, or have another name; "
                "it is a generator function"
            )


@pytest.mark.parametrize("kind", BASES)
def test_a_hook_that_is_no_method_is_refused(kind: type) -> None:
    for bases, name, hook in hooks_of(kind):
        function = as_defined(hook, inspect.iscoroutinefunction(hook))
        for value in (
            *(None, True, False, 5, "hook", type),
            *(made(function) for made in (property, classmethod, staticmethod)),
            *(made(function) for made in (cached_property, partial, partialmethod)),
        ):
            assert refusal(bases, name, value) == (
                f"Mine.{name} must be a method, or have another name; "
                f"its type is {type(value).__name__}"
            )


@pytest.mark.parametrize("kind", BASES)
def test_a_flag_that_is_no_bool_is_refused(kind: type) -> None:
    for name in FLAGS:
        for value in (True, False):
            assert refusal((kind,), name, value) == ""
        for other in (None, 1, "yes", lambda self: True, property(lambda self: True)):
            assert refusal((kind,), name, other) == (
                f"Mine.{name} must be True or False, or have another name; "
                f"its type is {type(other).__name__}"
            )


@pytest.mark.parametrize("kind", BASES)
def test_an_attribute_by_a_name_of_the_base_class_is_refused(kind: type) -> None:
    """What a store sets on itself would replace the method or the flag without a word."""
    full: Any = MemoryCheckpointStore if kind is BASES[0] else aio.MemoryCheckpointStore
    store = full()
    for name in FLAGS:
        setattr(store, name, getattr(store, name))
        with pytest.raises(ConfigurationError) as refused:
            setattr(store, name, "x")
        assert str(refused.value) == (
            f"MemoryCheckpointStore.{name} must be True or False, or have another name; "
            "its type is str"
        )
    for name in ("verify", "list_ownership", "try_claim", "drop_connections", "identity"):
        with pytest.raises(ConfigurationError) as refused:
            setattr(store, name, True)
        assert str(refused.value) == (
            f"MemoryCheckpointStore.{name} must be a method, or have another name; its type is bool"
        )
        setattr(store, name, Mock())


@pytest.mark.parametrize("kind", BASES)
def test_a_hook_may_be_decorated(kind: type) -> None:
    """A decorator may be a plain function around a coroutine function, if it says what it wraps."""
    for bases, name, hook in hooks_of(kind):
        function = as_defined(hook, inspect.iscoroutinefunction(hook))

        @wraps(function)
        def decorated(*args: Any, function: Any = function) -> Any:
            return function(*args)

        assert refusal(bases, name, decorated) == ""
        assert refusal(bases, name, lru_cache(function)) == ""


@pytest.mark.parametrize("kind", BASES)
def test_what_abstract_classes_have_is_not_theirs_to_define(kind: type) -> None:
    said = "Mine redefines _abc_impl of BaseCheckpointStore, but only hooks can be redefined"
    assert refusal((kind,), "_abc_impl", lambda self: None).startswith(said)
    mixin = ABCMeta("Mixin", (), {})
    assert type("Mine", (mixin, kind), {}).__mro__[1] is mixin


def test_a_subclass_of_a_custom_store_may_redefine_what_is_that_stores_own() -> None:
    class Mine(MemoryCheckpointStore):
        def helper(self) -> int:
            return 5

        def read_scopes(self) -> list[Scope]:
            return []

    class More(Mine):
        def helper(self) -> int:
            return 6

        def read_scopes(self) -> list[Scope]:
            return [SCOPE]

        def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
            return 7

    assert More().helper() == 6
    assert More().delete_scope(*SCOPE) == 7
    assert More().list_scopes() == [SCOPE]


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
