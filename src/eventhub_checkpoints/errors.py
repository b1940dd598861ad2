"""Every error that this package raises.

```
CheckpointStoreError
|-- ConfigurationError (ValueError)     said at construction: which setting, what was expected
|   `-- MissingDriverError (ImportError)   names the extra to install
|-- InvalidRecordError (ValueError)     a record that cannot be stored: .field, .value
|-- StaleCheckpointError                a checkpoint that would go back: .newest
|-- InvalidCheckpointError              a position that the hub does not have: .partition_id
|-- PoisonError                         an event whose handler raises each time
|-- DataLossError                       events that are wanted and not in the hub: .partition_id
|-- HubUnavailableError                 the event hub did not answer: trying again may help
`-- StoreError                          the backend answered badly or not at all
    |-- StoreUnavailableError           unreachable, timed out, throttled: trying again may help
    |-- StoreAccessError                refused: credentials or rights; trying again will not help
    `-- StoreNotReadyError              container, table or keyspace missing: says what creates it
```

Losing a claim and finding nothing are results, not errors. The driver's own exception is
always `__cause__`.
"""

from typing import Any

from eventhub_checkpoints._shared.secrets import masked, quoted


class CheckpointStoreError(Exception):
    """The base of every error of this package."""


class ConfigurationError(CheckpointStoreError, ValueError):
    """A setting that cannot work, said where it was given."""


class MissingDriverError(ConfigurationError, ImportError):
    """A backend whose driver is not installed."""

    @classmethod
    def of_extra(cls, what: str, extra: str) -> "MissingDriverError":
        """The one sentence that names the extra to install."""
        return cls(
            f"{what} needs its driver: python -m pip install 'eventhub-checkpoints[{extra}]'"
        )


class InvalidRecordError(CheckpointStoreError, ValueError):
    """A record that no backend could keep and give back.

    Attributes:
        field: the key of the record that was wrong, for example `"sequence_number"`.
        value: what it held, a secret included; the message masks one. Its type, where what it
            held is not to be shown, such as an event's body.
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        shown = f"of type {value.__qualname__}" if isinstance(value, type) else quoted(value)
        super().__init__(f"{field} is {shown}; expected {expected}")
        self.field = field
        self.value = value
        self.expected = expected

    def __reduce__(self) -> Any:
        """Pickle by the three arguments, not by the finished message."""
        return type(self), (self.field, self.value, self.expected)


class StaleCheckpointError(CheckpointStoreError):
    """A checkpoint that may not replace what is stored; nothing was written.

    Attributes:
        partition_id: the partition.
        sequence_number: of the refused checkpoint.
        newest: the highest sequence number known to be stored by another writer; None where one
            was expected and nothing is stored.
        way_out: what to do.
    """

    def __init__(
        self,
        partition_id: str,
        sequence_number: int,
        newest: int | None,
        way_out: str = "pass force=True to go back on purpose",
    ) -> None:
        found = "nothing is stored" if newest is None else f"another writer has stored {newest}"
        super().__init__(
            f"checkpoint {sequence_number} of partition {quoted(partition_id)} was not stored: "
            f"{found}; {way_out}"
        )
        self.partition_id = partition_id
        self.sequence_number = sequence_number
        self.newest = newest
        self.way_out = way_out

    def __reduce__(self) -> Any:
        """Pickle by the four arguments, not by the finished message."""
        return type(self), (self.partition_id, self.sequence_number, self.newest, self.way_out)


class InvalidCheckpointError(CheckpointStoreError):
    """A position that the hub does not have, or not any more: it refused to start there.

    Attributes:
        partition_id: the partition.
        said: what the hub said.
        way_out: what to do, or where to look.
    """

    def __init__(
        self,
        partition_id: str,
        said: str,
        way_out: str = (
            "was it created anew? on_invalid_checkpoint='restart' begins at the start position, or "
            "reset the checkpoint"
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
        """Pickle by the arguments, not by the finished message."""
        return type(self), (self.partition_id, self.said, self.way_out)


class PoisonError(CheckpointStoreError):
    """An event whose handler raises each time; its partition is not processed any further.

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
        """Pickle by the arguments, not by the finished message."""
        return type(self), (self.partition_id, self.sequence_number)


class DataLossError(CheckpointStoreError):
    """Events of the wanted range are not in the hub.

    Attributes:
        partition_id: the partition.
        wanted: the sequence number that was asked for.
        first_retained: the first that can be read.
    """

    def __init__(self, partition_id: str, wanted: int, first_retained: int, message: str) -> None:
        super().__init__(message)
        self.partition_id = partition_id
        self.wanted = wanted
        self.first_retained = first_retained

    def __reduce__(self) -> Any:
        """Pickle by the arguments, not by the message alone."""
        return type(self), (self.partition_id, self.wanted, self.first_retained, str(self))


class HubUnavailableError(CheckpointStoreError):
    """The hub did not answer, or did not deliver what it says it has; trying again may help."""


class StoreError(CheckpointStoreError):
    """The backend answered badly or not at all."""


class StoreUnavailableError(StoreError):
    """The outcome is unknown or the backend is not there: trying again may help."""


class StoreAccessError(StoreError):
    """The backend refused: credentials or rights are missing; trying again will not help."""


class StoreNotReadyError(StoreError):
    """The container, table or keyspace does not exist; the message says what creates it."""
