"""PySpark's data source API as this package uses it, in every version from 4.0 on.

Since 4.2 Spark passes a stream its position and a limit (admission control). Spark 4.0 and 4.1 do
neither, and lack these classes.
"""

from dataclasses import dataclass

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2

    class ReadLimit:  # type: ignore[no-redef]
        """Limit of Spark for one batch of a stream."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit, overriding the options."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Maximum number of rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Marker of a stream that can read the available events and stop."""


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
