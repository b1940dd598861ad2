"""Exceptions that this package raises.

```
CheckpointStoreError
|-- ConfigurationError (ValueError)     invalid setting; raised when it is passed
|   `-- MissingDriverError (ImportError)   names the extra to install
|-- InvalidRecordError (ValueError)     record that cannot be stored: .field, .value
|-- StaleCheckpointError                checkpoint that would go back: .newest
|-- InvalidCheckpointError              position that the hub does not have: .partition_id
|-- PoisonError                         event whose handler raises each time
|-- DataLossError                       requested events are not in the hub: .partition_id
|-- HubUnavailableError                 the event hub did not answer: a retry may help
`-- StoreError                          the backend failed or did not answer
    |-- StoreUnavailableError           unreachable, timed out, throttled: a retry may help
    |-- StoreAccessError                credentials or permissions: a retry will not help
    `-- StoreNotReadyError              container, table or keyspace missing: names what creates it
```

Losing a claim and finding nothing are results, not errors. The driver's own exception is always
`__cause__`.
"""

from enum import Enum, auto
from typing import Any

from eventhub_checkpoints._shared.secrets import masked, quoted


class Missing(Enum):
    """Value of a key that a record does not have, in an error."""

    MISSING = auto()

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing.MISSING


class CheckpointStoreError(Exception):
    """Base class of all exceptions of this package."""


class ConfigurationError(CheckpointStoreError, ValueError):
    """Invalid setting, reported where it was passed."""


class MissingDriverError(ConfigurationError, ImportError):
    """Backend whose driver is not installed.

    Attributes:
        extra: the extra that installs it; None if no extra does.
    """

    def __init__(self, message: str, extra: str | None = None) -> None:
        super().__init__(message)
        self.extra = extra

    @classmethod
    def of_extra(cls, what: str, extra: str, *packages: str) -> "MissingDriverError":
        """Return the error that names the extra to install, and packages that are in no extra."""
        more = "".join(f" {package}" for package in packages)
        return cls(
            f"{what} needs its driver: python -m pip install 'eventhub-checkpoints[{extra}]'{more}",
            extra,
        )


class InvalidRecordError(CheckpointStoreError, ValueError):
    """Record that no backend could store and return unchanged.

    Attributes:
        field: the invalid key of the record, for example `"sequence_number"`.
        value: its value, including any secret; the message masks secrets. `MISSING` if the record
            lacks the key. The type of the value if the value must not be shown, such as an event's
            body.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        shown = f"of type {value.__qualname__}" if isinstance(value, type) else quoted(value)
        super().__init__(f"{field} is {shown}; expected {expected}")
        self.field = field
        self.value = value
        self.expected = expected

    def __reduce__(self) -> Any:
        """Pickle the three arguments, not the formatted message."""
        return type(self), (self.field, self.value, self.expected)


class StaleCheckpointError(CheckpointStoreError):
    """Checkpoint that must not replace the stored one; nothing was written.

    Attributes:
        partition_id: the partition.
        sequence_number: of the refused checkpoint.
        newest: highest sequence number known to be stored by another writer; None if a checkpoint
            was expected and none is stored.
        way_out: what to do.
    """

    def __init__(
        self,
        partition_id: str,
        sequence_number: int,
        newest: int | None,
        way_out: str = "pass force=True to go back on purpose",
    ) -> None:
        reason = "nothing is stored" if newest is None else f"another writer has stored {newest}"
        super().__init__(
            f"checkpoint {sequence_number} of partition {quoted(partition_id)} was not stored: "
            f"{reason}; {way_out}"
        )
        self.partition_id = partition_id
        self.sequence_number = sequence_number
        self.newest = newest
        self.way_out = way_out

    def __reduce__(self) -> Any:
        """Pickle the four arguments, not the formatted message."""
        return type(self), (self.partition_id, self.sequence_number, self.newest, self.way_out)


class InvalidCheckpointError(CheckpointStoreError):
    """Position that the hub does not have, or no longer has; the hub refused to start there.

    Attributes:
        partition_id: the partition.
        said: message of the hub.
        way_out: what to do, or where to look.
    """

    def __init__(
        self,
        partition_id: str,
        said: str,
        way_out: str = (
            "was the hub deleted and created again? Pass on_invalid_checkpoint='restart' to begin "
            "at the start position, or reset the checkpoint"
        ),
    ) -> None:
        super().__init__(
            f"the hub has no such position in partition {quoted(partition_id)}: {masked(said)}; "
            f"{way_out}"
        )
        self.partition_id = partition_id
        self.said = said
        self.way_out = way_out

    def __reduce__(self) -> Any:
        """Pickle the arguments, not the formatted message."""
        return type(self), (self.partition_id, self.said, self.way_out)


class PoisonError(CheckpointStoreError):
    """Event whose handler raises each time; processing of its partition has stopped.

    Attributes:
        partition_id: the partition.
        sequence_number: of the event.
    """

    def __init__(self, partition_id: str, sequence_number: int) -> None:
        super().__init__(
            f"event {sequence_number} of partition {quoted(partition_id)} could not be processed; "
            "the partition is stopped before it"
        )
        self.partition_id = partition_id
        self.sequence_number = sequence_number

    def __reduce__(self) -> Any:
        """Pickle the arguments, not the formatted message."""
        return type(self), (self.partition_id, self.sequence_number)


class DataLossError(CheckpointStoreError):
    """Events of the requested range are not in the hub.

    Attributes:
        partition_id: the partition.
        requested: first sequence number that was requested.
        first_retained: first sequence number that can be read.
    """

    def __init__(
        self, partition_id: str, requested: int, first_retained: int, message: str
    ) -> None:
        super().__init__(message)
        self.partition_id = partition_id
        self.requested = requested
        self.first_retained = first_retained

    def __reduce__(self) -> Any:
        """Pickle the arguments, not only the message."""
        return type(self), (self.partition_id, self.requested, self.first_retained, str(self))


class HubUnavailableError(CheckpointStoreError):
    """The hub did not answer, or did not deliver the events that it reports; a retry may help."""


class StoreError(CheckpointStoreError):
    """The backend failed or did not answer."""


class StoreUnavailableError(StoreError):
    """The outcome is unknown or the backend is unreachable: a retry may help."""


class StoreAccessError(StoreError):
    """The backend refused access: credentials or permissions are missing; a retry will not help."""


class StoreNotReadyError(StoreError):
    """The container, table or keyspace does not exist; the message names what creates it."""
