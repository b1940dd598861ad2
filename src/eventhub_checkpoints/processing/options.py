"""Options of an EventProcessor, and errors for invalid ones."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from inspect import getattr_static, isfunction
from typing import Any

from eventhub_checkpoints._shared.callables import HANDLERS, is_callback, require_call
from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints._shared.offset_words import is_taken
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import (
    COUNT,
    FLAG,
    SECONDS,
    SECONDS_OR_ZERO,
    TIME,
    Rule,
    is_number,
    is_seconds,
    kind_of,
    name_of,
    require,
    require_all,
)
from eventhub_checkpoints._shared.times import parse_time
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.processing.policy import Policy, every


def require_factory(processor: object) -> None:
    """Refuse a processor factory that cannot be called, or a class without a handler of events."""
    expected = (
        "a class with process_events or process_batch, or a callable that returns an object of one"
    )
    require("processor", processor, callable(processor), expected)
    if isinstance(processor, type):
        require_handler(processor)
    context = checkpoints = object()
    require_call("processor", "a partition context and a manager", processor, context, checkpoints)


def require_hub(client: Any) -> None:
    """Refuse a client's `from_connection_string` that is bound to what is no connection string.

    The client's own error would be raised when the processor is started, and says less.
    """
    method = getattr(client, "func", None)
    if isinstance(client, partial) and getattr(method, "__name__", "") == "from_connection_string":
        text = client.args[0] if client.args else client.keywords["conn_str"]
        ConnectionString.of_hub(text, client.keywords.get("eventhub_name"), "conn_str")


def require_handler(processor: object) -> None:
    """Refuse a processor, or a class of processors, whose methods cannot be called.

    A handler with wrong parameters would fail for each event, as if all of them were poison. If an
    attribute with the name of a handler is no method, each opening of a partition would fail.
    """
    of_batches = handles_batches(processor)
    holds = of_batches or callable(getattr(processor, "process_events", None))
    require("processor", processor, holds, "one that has process_events or process_batch")
    own = getattr(processor, "process_events", None)
    inherited = "PartitionProcessor.process_events"
    if of_batches and own is not None and getattr(own, "__qualname__", "") != inherited:
        raise ConfigurationError(
            f"processor {quoted(processor)} has process_events and process_batch; keep the one "
            "that its client calls: a BatchConsumerClient calls process_batch"
        )
    for name, arguments in HANDLERS.items():
        if not hasattr(processor, name):
            continue
        method, named = getattr(processor, name), f"{name} of {quoted(processor)}"
        require(named, method, callable(method), "a method, or no such attribute")
        is_unbound = isinstance(processor, type) and isfunction(getattr_static(processor, name))
        expected = " and ".join(arguments) or "no argument"
        require_call(named, expected, method, *["self"] * is_unbound, *arguments)


def handles_batches(processor: object) -> bool:
    """Return whether a processor, or a class of processors, handles Arrow batches."""
    return callable(getattr(processor, "process_batch", None))


def require_client_of(processor: object, *, delivers_batches: bool) -> None:
    """Refuse a processor whose handler the client would not call."""
    if handles_batches(processor) == delivers_batches:
        return
    if delivers_batches:
        raise ConfigurationError(
            f"client delivers Arrow batches, and processor {quoted(processor)} has no "
            "process_batch; write that, or pass an EventHubConsumerClient for process_events"
        )
    raise ConfigurationError(
        f"processor {quoted(processor)} has process_batch, and client delivers events; pass "
        "functools.partial(BatchConsumerClient, ...) of eventhub_checkpoints.arrow as client"
    )


def other_store(has: str = "another checkpoint_store than the processor") -> ConfigurationError:
    """Return the error for an already constructed client with a different store."""
    return ConfigurationError(
        f"client is ready and has {has}, so that each of several processors would process "
        "every event: give the client and the processor the same store object, or pass a callable "
        "that takes checkpoint_store= and returns the client"
    )


def not_a_client(what: str, client: object, kind: type) -> ConfigurationError:
    """Return the error that names what was expected instead of a client."""
    return ConfigurationError(
        # The value itself is not shown: a connection string is a secret.
        f"{what} of type {kind_of(client)}; expected a callable that takes checkpoint_store= "
        f"and returns an {name_of(kind)}, or such a client"
    )


MAX_BATCH_SIZE = 300
"""Default of `max_batch_size`, as of the client."""
NEVER = every(events=sys.maxsize)
"""Saves only on request."""
POSITIONS = (str, int, datetime)
"""Types that the client accepts as a start position."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Options:
    """Options of one processor, as documented in `EventProcessor`."""

    starting_position: Any
    from_saved: bool
    save: bool
    policy: Policy | None
    max_batch_size: int
    max_wait_time: float | None
    owner_level: int | None
    prefetch: int
    max_pending: int
    attempts: int
    on_poison: str | Callable[..., Any]
    on_invalid_checkpoint: str
    on_error: Callable[[str | None, Exception], object] | None
    drain_timeout: float
    write_timeout: float
    unhealthy_after: float
    stalled_after: float | None
    on_stall: Any
    handover: bool

    def __post_init__(self) -> None:
        require_all(self, RULES)
        start = self.starting_position
        if isinstance(start, Mapping):
            for partition_id, value in start.items():
                require_start(f"starting_position of partition {quoted(partition_id)}", value)
        elif not callable(start):
            require_start("starting_position", start)

    @property
    def saving_policy(self) -> Policy:
        """Return the policy for positions that the processor does not save itself."""
        return self.policy if self.save and self.policy is not None else NEVER

    def check_ready_client(self) -> None:
        """Refuse an option that has no effect on an already constructed client."""
        option = "from_saved=False" if not self.from_saved else "on_invalid_checkpoint='restart'"
        if not self.from_saved or self.on_invalid_checkpoint == "restart":
            raise ConfigurationError(
                f"client is ready, and {option} needs one that is made with the processor's own "
                "store: pass a callable, such as functools.partial("
                "EventHubConsumerClient.from_connection_string, ...)"
            )

    def check_batch_client(self, prefetch: int) -> None:
        """Refuse an option that has no effect on a client of Arrow batches.

        Args:
            prefetch: its default.
        """
        defaults = {"max_batch_size": MAX_BATCH_SIZE, "owner_level": None, "prefetch": prefetch}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                raise ConfigurationError(
                    f"{name} has no effect on a BatchConsumerClient, which has settings of its "
                    "own: pass max_rows, owner_level or buffer_bytes to that"
                )

    def start_of(self, partition_id: str) -> Any:
        """Return the start position set for a partition, by mapping or value, or None."""
        if isinstance(self.starting_position, Mapping):
            return self.starting_position.get(partition_id)
        return self.starting_position

    def check_partitions(self, partition_ids: list[str]) -> None:
        """Refuse a start position for a partition that the hub does not have."""
        if not isinstance(self.starting_position, Mapping):
            return
        for partition_id in self.starting_position:
            if partition_id not in partition_ids:
                raise ConfigurationError(
                    f"starting_position names partition {quoted(partition_id)}; "
                    f"the hub has {', '.join(map(repr, partition_ids))}"
                )


def require_start(name: str, value: object) -> None:
    """Refuse a value that is not a start position."""
    is_position = isinstance(value, POSITIONS) and not isinstance(value, bool) and value != ""
    # The hub would take any other string for an offset, and refuse it each time.
    is_position = is_position and not (isinstance(value, str) and is_no_offset(value))
    # The client would take a naive datetime for UTC, whatever time zone was meant.
    is_position = is_position and not (isinstance(value, datetime) and value.tzinfo is None)
    expected = (
        'an offset as a string, "-1", "@latest", a sequence number or a datetime with a time zone'
    )
    require(name, value, value is None or is_position, expected)


def is_no_offset(text: str) -> bool:
    """Return whether a string is certainly not an offset: a word, a time, a connection string.

    Offsets are opaque, but contain no spaces, and are no `Key=value`. Those of a hub with
    geo-replication may contain the padding of Base64, as `1:AAAAAAAAAHA=:7`.
    """
    if (
        not is_taken(text)
        or text.isalpha()
        or not text.isascii()
        or any(sign in text for sign in " ;")
    ):
        return True
    if KEY_AND_VALUE.match(text):
        return True
    try:
        parse_time(text)
    except ConfigurationError:
        return False
    return not text.isdigit()


KEY_AND_VALUE = re.compile("[A-Za-z_]+=")
RULES: Mapping[str, Rule] = {
    "from_saved": FLAG,
    "save": FLAG,
    "policy": (
        lambda value: value is None or isinstance(value, Policy),
        "None, or a policy such as every(seconds=5)",
    ),
    "max_batch_size": COUNT,
    "max_wait_time": (lambda value: value is None or is_seconds(value), f"None, or {SECONDS}"),
    "owner_level": (
        lambda value: value is None or (isinstance(value, int) and is_number(value) and value >= 0),
        "None, or a whole number, 0 or more",
    ),
    "prefetch": COUNT,
    "max_pending": COUNT,
    "attempts": COUNT,
    "on_poison": (
        lambda value: callable(value) or value in ("stop", "skip"),
        "'stop', 'skip' or a callable",
    ),
    "on_invalid_checkpoint": (lambda value: value in ("raise", "restart"), "'raise' or 'restart'"),
    "on_error": (is_callback, "None, or a plain function"),
    "drain_timeout": (partial(is_seconds, or_zero=True), SECONDS_OR_ZERO),
    "write_timeout": TIME,
    "unhealthy_after": TIME,
    "handover": FLAG,
}
"""Predicate for each option, and the expectation that the error message names."""
