"""Settings of a member of a consumer group that reads in Arrow batches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import (
    COUNT,
    FLAG,
    SECONDS,
    SECONDS_OR_ZERO,
    TIME,
    Rule,
    is_count,
    is_seconds,
    nearest,
    require_all,
)
from eventhub_checkpoints.consume.balancer import STRATEGIES, Strategy
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import Address, checked_group
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow.plan import address_of
from eventhub_checkpoints.receive.columns import COLUMNS, column_types
from eventhub_checkpoints.receive.ranges import ReadSettings, ReceivePath

EXPIRY_INTERVALS = 6
"""Times `load_balancing_interval` after which an ownership expires, unless that is set.

Source: azure-eventhub 5.15.1, `EventHubConsumerClient`.
"""
NOT_KAFKA = (
    "Kafka has no owner levels, so nothing would keep two consumers of a group from reading the "
    "same partition; it has consumer groups of its own. Pass a connection string or a HubAddress"
)
NAMES = [*column_types()]
"""Names of all columns, in the order of the Spark source."""
RULES: Mapping[str, Rule] = {
    "max_rows": COUNT,
    "max_bytes": COUNT,
    "max_wait": (partial(is_seconds, or_zero=True), SECONDS_OR_ZERO),
    "buffer_bytes": COUNT,
    "load_balancing_interval": TIME,
    "load_balancing_strategy": (
        lambda value: value in STRATEGIES,
        "'greedy' or 'balanced'",
    ),
    "partition_ownership_expiration_interval": (
        lambda value: value is None or is_seconds(value),
        f"None, or {SECONDS}",
    ),
    "owner_level": (partial(is_count, least=0), "a whole number, 0 or more"),
    "fail_on_data_loss": FLAG,
    "receive_path": (lambda value: value in get_args(ReceivePath), "'auto', 'fast' or 'public'"),
}
"""Predicate for each setting, and the expectation that the error message names."""


@dataclass(frozen=True, kw_only=True)
class ConsumeSettings:
    """Settings of a member, as documented in `consume_batches`.

    Raises:
        ConfigurationError: one of them is invalid.
    """

    max_rows: int = 10_000
    max_bytes: int = 16 * 2**20
    max_wait: float = 1.0
    columns: Iterable[str] | None = None
    buffer_bytes: int = 64 * 2**20
    load_balancing_interval: float = 30.0
    load_balancing_strategy: Strategy = "greedy"
    partition_ownership_expiration_interval: float | None = None
    owner_level: int = 0
    fail_on_data_loss: bool = True
    receive_path: ReceivePath = "auto"

    def __post_init__(self) -> None:
        require_all(self, RULES)
        if self.columns is not None:
            object.__setattr__(self, "columns", checked_columns(self.columns))

    @cached_property
    def expires_after(self) -> float:
        """Seconds after which an ownership that was not renewed counts as expired."""
        seconds = self.partition_ownership_expiration_interval
        return EXPIRY_INTERVALS * self.load_balancing_interval if seconds is None else seconds

    @cached_property
    def read(self) -> ReadSettings:
        """How each partition is read."""
        return ReadSettings(
            rows_per_batch=self.max_rows,
            fail_on_data_loss=self.fail_on_data_loss,
            receive_path=self.receive_path,
            owner_level=self.owner_level,
        )

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns of a batch, in order."""
        return NAMES if self.columns is None else list(self.columns)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Fields of `Columns` that are decoded for them."""
        return frozenset(field for field, each in COLUMNS.items() if each.name in self.names)


def settings_of(owner: str, values: Mapping[str, Any]) -> ConsumeSettings:
    """Return the settings that a call of `owner` was passed.

    Raises:
        ConfigurationError: there is no setting of a name, or one is invalid.
    """
    known = [each.name for each in fields(ConsumeSettings)]
    for name in values:
        if name not in known:
            meant = nearest(name, known)
            way_out = f"did you mean {meant}?" if meant else f"it has {', '.join(known)}"
            raise ConfigurationError(f"{owner} has no argument {quoted(name)}; {way_out}")
    return ConsumeSettings(**values)


def checked_columns(columns: object) -> tuple[str, ...]:
    """Return names of columns.

    Raises:
        ConfigurationError: they are something else, or there is none.
    """
    is_list = isinstance(columns, Iterable) and not isinstance(columns, str | bytes)
    names = list(columns) if is_list else []  # type: ignore[call-overload]
    if not names or len({*map(repr, names)}) < len(names) or any(n not in NAMES for n in names):
        raise ConfigurationError(
            f"columns is {quoted(columns)}; expected None, or some of {', '.join(NAMES)}, each once"
        )
    return tuple(names)


def hub_of(hub: str | Address, consumer_group: str | None) -> HubAddress:
    """Return the address of a hub, read by a consumer group.

    Args:
        hub: a connection string or an address.
        consumer_group: default: that of the address, or `$Default`.

    Raises:
        ConfigurationError: it is none, or one over Kafka. No message shows a connection string.
    """
    address = address_of(hub, None)
    if not isinstance(address, HubAddress):
        raise ConfigurationError(f"hub is a {type(address).__name__}: {NOT_KAFKA}")
    if consumer_group is None:
        return address
    return replace(address, consumer_group=checked_group("consumer_group", consumer_group))
