"""Spark's door to `format("eventhubs")`: modules named `pyspark_*` are searched for sources.

Spark imports this module in every job that uses *any* Python source, so it must be cheap and
must not fail where an extra is missing: the rest is imported when a job asks for this source.
"""

from typing import Any

from pyspark.sql.datasource import DataSource


class DefaultSource(DataSource):
    """Stands for `eventhub_checkpoints.spark.source.EventHubSource` until it is used."""

    @classmethod
    def name(cls) -> str:
        """Return the short name, as in the JVM connector."""
        return "eventhubs"

    def __new__(cls, options: Any) -> Any:
        """Make the real source, which takes this one's place."""
        from eventhub_checkpoints.spark.source import EventHubSource

        return EventHubSource(options)
