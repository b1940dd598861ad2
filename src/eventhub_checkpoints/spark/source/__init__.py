"""`format("eventhubs")` in pure Python; to import this needs PySpark, unlike all else here."""

from eventhub_checkpoints.spark.source.data_source import EventHubSource

__all__ = ["EventHubSource"]
