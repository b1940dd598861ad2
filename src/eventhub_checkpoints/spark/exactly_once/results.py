"""How the rows of a batch come to the transaction: through the driver's memory."""

from typing import TYPE_CHECKING, Any, Protocol

from eventhub_checkpoints.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row

    from eventhub_checkpoints.stores.sql._sync.engine import Connection

MAX_ROWS = 100_000
"""Rows of one batch that the driver takes into its memory."""


class Results(Protocol):
    """The rows of one batch, ready to be written."""

    def __len__(self) -> int:
        """How many rows there are."""

    def begin(self, connection: "Connection") -> Any:
        """What `write` is given; asked for inside of the transaction."""

    def end(self, connection: "Connection") -> None:
        """Clear up, in the same transaction."""


class Collected:
    """Rows in the driver's memory."""

    def __init__(self, rows: "Sequence[Row]") -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def begin(self, connection: "Connection") -> "Sequence[Row]":
        """The rows."""
        return self.rows

    def end(self, connection: "Connection") -> None:
        """Nothing is left behind."""

    @classmethod
    def of(cls, frame: "DataFrame", max_rows: int) -> "Collected":
        """Fetch the rows.

        Raises:
            ConfigurationError: there are more than `max_rows`.
        """
        # One more than may be, so that a batch that is too large never comes whole.
        rows = frame.limit(max_rows + 1).collect()
        if len(rows) > max_rows:
            raise ConfigurationError(
                f"a batch has more than {max_rows} rows, which is what the driver takes; aggregate "
                "them in transform=, have executors write them with staging=StagingTable(...), "
                "read less at a time with maxEventsPerTrigger, or give a higher max_rows="
            )
        return cls(rows)
