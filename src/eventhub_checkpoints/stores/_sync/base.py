# Derived from _async/base.py by tools/unasync.py; edit that file.
"""Base class of all checkpoint stores: the SDK's four methods over four typed hooks.

A backend subclasses `BaseCheckpointStore` and implements `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. Everything that is easy to get wrong is done by the
engine behind it: the SDK's dicts and conventions, parallel claims, retries and their consequences,
checkpoints that must not go back, clocks, releases. `docs/how-to/custom-store.md` builds a backend
from scratch.
"""

import inspect
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._sync.client_check import ClosingContext, own_client_only
from eventhub_checkpoints._shared._sync.compat import uninterrupted
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import (
    Settings,
    StoreSettings,
    nearest_first,
    refuse_misspelt,
    require,
    require_flag,
    require_on_stale,
)
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Checkpoint, Scope, checked_name
from eventhub_checkpoints.stores._sync.abilities import Ability, Deletes, ListsScopes, Replaces
from eventhub_checkpoints.stores._sync.engine import Engine
from eventhub_checkpoints.stores._sync.hooks import Hooks
from eventhub_checkpoints.stores._sync.ownership import proposed
from eventhub_checkpoints.stores.hook_results import Examination, clock_skew
from eventhub_checkpoints.stores.redefinition import fault_of_attribute, refuse_redefined


def keywords_of(kind: type) -> list[str]:
    """Return the names of the keyword arguments of a store's constructor."""
    parameters = inspect.signature(kind).parameters.values()
    own = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    return [*own, *StoreSettings.__annotations__]


class BaseCheckpointStore(Hooks, OfOneProcess, ClosingContext, CheckpointStore):
    """A checkpoint store for one `EventHubConsumerClient`, over a backend's hooks.

    A subclass defines the hooks and whatever else it likes, except the other names of this class.
    A closed store stays closed: every call except a release raises `StoreError`.

    Every method that reaches the backend raises:

    - `InvalidRecordError`: a name, an id or a position is invalid.
    - `StoreUnavailableError`: no definite answer within `operation_timeout`, or `write_timeout`.
    - `StoreAccessError`: the backend refused access.
    - `StoreNotReadyError`: the container, table or keyspace does not exist.

    Args:
        **settings: see [`StoreSettings`][eventhub_checkpoints.base.StoreSettings].

    Raises:
        ConfigurationError: a setting is invalid.
    """

    def __init__(self, **settings: Unpack[StoreSettings]) -> None:
        for name in settings.keys() - StoreSettings.__annotations__.keys():
            known = ", ".join(nearest_first(name, keywords_of(type(self))))
            raise ConfigurationError(
                f"{name} is not a setting of {type(self).__name__}; expected one of {known}"
            )
        self.__engine = Engine(self, Settings(**settings))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        abilities = [each for each in cls.__mro__ if Ability in each.__bases__]
        refuse_redefined(cls, Hooks, [BaseCheckpointStore, *abilities])

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; a helper's, by the name of a hook or a flag, would replace that."""
        inherited = inspect.getattr_static(BaseCheckpointStore, name, None)
        if fault := fault_of_attribute(value, inherited):
            raise ConfigurationError(f"{type(self).__name__}.{name} must {fault}")
        super().__setattr__(name, value)

    @property
    def _engine(self) -> Engine:
        return self.__engine

    @property
    def settings(self) -> Settings:
        """The settings that were passed, and the defaults of the others; they can be replaced."""
        return self._engine.runner.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        require("settings", settings, isinstance(settings, Settings), "the settings of a store")
        self._engine.runner.settings = settings

    @property
    def counters(self) -> Counter[str]:
        """Number of events by kind.

        The kinds are `lost_claims`, `unconfirmed_claims`, `stale_checkpoints` and `skipped_rows`.
        """
        return self._engine.runner.counters

    @property
    def writer(self) -> str:
        """Host and process, for backends that store them with each row."""
        return self._engine.runner.writer

    def create(self) -> None:
        """Create whatever the store needs and is missing: a container, tables, a keyspace.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`; or the connection was
                refused, or the host's name not known, for 5 s (see `unreachable_timeout`).
        """
        engine = self._engine
        self.creates = True
        engine.runner.open_again()
        seconds = self.settings.operation_timeout
        uninterrupted(seconds, engine.interactive, engine.runner.ready)

    def verify(self) -> None:
        """Check at start-up that ownerships and checkpoints can be read and written.

        It writes two rows, an ownership and a checkpoint, under the names `eventhub-checkpoints`,
        `verify` and `probe`, which no client uses. They are kept and overwritten the next time,
        because deleting takes a permission that a consumer need not have.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`; or the connection was
                refused, or the host's name not known, for 5 s (see `unreachable_timeout`).
        """
        engine, seconds = self._engine, self.settings.operation_timeout
        uninterrupted(seconds, engine.interactive, engine.verify)

    def close(self) -> None:
        """Close what the store opened, permanently in this process and event loop.

        Close it after the client. Waits for the requests in flight, at most until their time
        limits. Every later call raises `StoreError`, except the release of an ownership, which a
        client may still be about to make: that connects once more, and closes. May be called twice.
        """
        self._engine.runner.close()

    @own_client_only
    @with_checked_arguments
    def list_ownership(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return all ownerships of a consumer group, as fresh dicts.

        Returns:
            Dicts with the three names as passed, `partition_id`, `owner_id` (`""`: released),
            `etag`, and `last_modified_time` in float seconds since the epoch on this process's
            clock. (The SDK documents a datetime, but compares it with `time.time()`.)

        Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`,
        `_balance_ownership`: it iterates over the list three times and modifies the rows.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        seconds = self.settings.operation_timeout
        rows = uninterrupted(seconds, self._engine.ownerships.read, scope)
        return [row.as_dict(scope, modified) for row, modified in rows]

    def claim_ownership(
        self, ownership_list: Iterable[Mapping[str, Any]], **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Try to claim, renew or release each proposed partition; return those that were won.

        A proposal wins when its etag is the stored one, or when nothing is stored. A proposal that
        loses is left out; losing is not an error. A proposal with an empty `owner_id` is a release,
        and never raises. A renewal whose outcome stays unknown is returned unchanged for
        `keep_unconfirmed` seconds after the server last confirmed the row; any other proposal whose
        outcome stays unknown is left out. All proposals are tried before an error is raised.

        Args:
            ownership_list: proposals as the SDK builds them; neither kept nor modified.

        Returns:
            Fresh dicts in the order proposed, with the new `etag` and `last_modified_time`.
        """
        ownerships = self._engine.ownerships
        failures: list[Exception] = []
        proposals = list(proposed(ownership_list, failures))
        with tracing.claim(proposals) as operation:
            seconds = self.settings.operation_timeout
            won = uninterrupted(seconds, ownerships.claim, proposals, failures)
            operation.set("won", len(won))
            if failures:
                raise failures[0]
        return [
            won[claim].as_dict(claim.scope)
            for claim in proposals
            if claim in won and not ownerships.take_reopening(claim)
        ]

    @with_checked_arguments
    def reopen(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> None:
        """Have this store's client close a partition, and open it again with a new link.

        The next renewal of the partition is left out of the result of `claim_ownership`, once. The
        client then closes the partition as if it were lost, and claims it again in its next round;
        meanwhile its ownership stays in force. For a watchdog, see `Checkpointer`.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        self._engine.ownerships.reopen(scope, checked_name("partition_id", partition_id))

    @own_client_only
    @with_checked_arguments
    def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        *,
        with_times: bool = False,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return all checkpoints of a consumer group, as fresh dicts.

        Args:
            fully_qualified_namespace: of the hub.
            eventhub_name: of the hub.
            consumer_group: of the hub.
            with_times: add `last_modified_time` to each dict, in seconds since the epoch on this
                process's clock; None if the backend does not know it.

        Returns:
            Dicts with the three names as passed, `partition_id`, `sequence_number`, and `offset`:
            a non-empty string, or, where no usable offset is stored, an int that makes the client
            resume by sequence number.
        """
        require_flag("with_times", with_times)
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        seconds = self.settings.operation_timeout
        listing = uninterrupted(seconds, self._engine.checkpoints.read, scope)
        rows = [row.as_dict(scope) for row in listing.rows]
        if with_times:
            now = time.time()
            skew = clock_skew(listing, now)
            for row, stored in zip(rows, listing.rows, strict=True):
                modified = stored.last_modified_time
                row["last_modified_time"] = None if modified is None else min(now, modified + skew)
        return rows

    def update_checkpoint(
        self,
        checkpoint: Mapping[str, Any],
        *,
        force: bool = False,
        on_stale: Literal["log", "raise"] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store a partition's checkpoint, unless another writer has stored a later one.

        A checkpoint below another writer's is not written: it is logged, or raised as
        `StaleCheckpointError` if the store was created with `on_stale="raise"`. Sequence numbers
        are compared, never offsets; an equal one is success.

        Args:
            checkpoint: as the SDK builds it; neither kept nor modified. If the offset is unknown,
                `offset` is None, or the sequence number as an int, as `list_checkpoints` returns
                it. Any other int is refused, because it may be an offset, which must be a string.
            force: overwrite whatever is stored, to go back on purpose. If the ownership of another
                client was renewed within the last minute, a warning names that owner: its next
                checkpoint undoes the rewind, so stop the group first.
            on_stale: overrides the setting of the store for this write.

        Raises:
            ConfigurationError: `force` is not a bool; a string such as "false" would be true. Or
                `on_stale` is another word. Or another keyword is a misspelling of one of them; all
                others are ignored.
            StaleCheckpointError: another writer has stored a later checkpoint, and `on_stale` is
                `"raise"`.
        """
        if kwargs:
            refuse_misspelt(kwargs, ("force", "on_stale"), "an option of update_checkpoint")
        if not isinstance(force, bool):
            raise ConfigurationError(f"force is {quoted(force)}; expected True or False")
        if on_stale is not None:
            require_on_stale(on_stale)
        engine = self._engine
        record = Checkpoint.from_dict(checkpoint, engine.fresh_version())
        update, settings = engine.checkpoints.update, engine.runner.settings
        how = on_stale or settings.on_stale
        uninterrupted(settings.write_timeout, update, record, how, is_forced=force)

    @with_checked_arguments
    def examine(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> Examination:
        """Read the rows of a consumer group as they are stored, for diagnosis.

        Unlike the lists, it returns what could not be read instead of logging it, leaves times on
        the backend's clock, and does not change what the store knows about the group.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        seconds = self.settings.operation_timeout
        return uninterrupted(seconds, self._engine.examine, scope)


class FullCheckpointStore(ListsScopes, Deletes, Replaces, BaseCheckpointStore):
    """A checkpoint store with all abilities on groups, as every store of this package.

    This is the return type of `open_store`. A store of another package need not derive from
    it: if a URL may name one, check `isinstance(store, Deletes)` before using that capability.
    """
