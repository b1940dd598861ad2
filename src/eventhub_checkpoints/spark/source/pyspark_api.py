"""PySpark's data source API as this package uses it, in every version from 4.0 on.

Since 4.2 Spark tells a stream where it stands and how much it may take (admission control).
Spark 4.0 and 4.1 do neither, and have no names for it.
"""

from dataclasses import dataclass

from eventhub_checkpoints.errors import MissingDriverError

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
    )
except ImportError as error:
    raise MissingDriverError.of_extra("format('eventhubs')", "spark") from error

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2

    class ReadLimit:  # type: ignore[no-redef]
        """How much Spark lets a stream take at once."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Everything, whatever the options say."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """So many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Marks a stream that drains what is there and stops."""


__all__ = [
    "DataSource",
    "DataSourceReader",
    "DataSourceStreamReader",
    "InputPartition",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]
